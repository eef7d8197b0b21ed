"""What a scrape costs: numbers in the fleet → milliseconds, and what counting costs those who count.

    python bench/metrics.py            1, 1,000 and 10,000 numbers
    python bench/metrics.py --quick    up to 1,000

Fills a private Redis with numbers that have a busy minute behind them, every tenth failing, and asks the orchestrator's
metrics for everything as `GET /metrics` does. Each figure is the best of some runs: other work on the machine only ever
adds.

scrape    the whole answer, on the wall
python    processor time of our process for it, of which
text      writing Prometheus' format, from what is known already
redis     processor time of Redis for it (user and system)
longest   the longest single script call: how long it keeps others waiting
bytes     the size of the answer
series    samples in it: the same for 1,000 numbers and for 10,000

Counting is timed by itself: an observation, and a call to Redis with the stopwatch around it compared to one without.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from prometheus_client import generate_latest

from paceline.domain.errors import Unavailable
from paceline.kits.clock import SystemClock
from paceline.kits.logging import silence
from paceline.kits.metrics import FRESH_MS, Metrics
from paceline.policy.facts import Rules
from paceline.policy.trust import DAY_MS, parse
from paceline.settings import read_policy
from paceline.store.client import RedisLink
from paceline.store.rows import Pace, sends_text
from paceline.store.scripts import Script
from paceline.store.store import Store
from paceline.telemetry import catalogue
from paceline.telemetry.fleet import FleetReadings
from paceline.telemetry.link import TimedLink
from paceline.telemetry.service import about_service, new_metrics
from paceline.testing.servers import redis_server

PHONES = (1, 1_000, 10_000)
RUNS = 5
BATCH = 500
COUNTED = 100_000
CALLS = 2_000
HEAD = ("numbers", "scrape", "python", "text", "redis", "longest", "bytes", "series")


class StopwatchLink(RedisLink):
    """Remembers the longest script call."""

    longest_s = 0.0

    async def run(self, script: Script, argument: str) -> Any:
        began = time.perf_counter()
        answer = await super().run(script, argument)
        self.longest_s = max(self.longest_s, time.perf_counter() - began)
        return answer


async def fill(store: Store, link: RedisLink, first: int, phones: int, now_ms: int) -> None:
    for start in range(first, phones, BATCH):
        commands: list[tuple[str | int | float, ...]] = []
        for index in range(start, min(start + BATCH, phones)):
            session, phone = f"s{index}", f"97254{index:07d}"
            await store.sessions.register(
                session, phone, driver="simulated", created_at_ms=now_ms - (index % 40) * DAY_MS, timezone=None,
                tags=[], limit=4, now_ms=now_ms,
            )  # fmt: skip
            minute = [now_ms - place * 9_000 for place in reversed(range(6))]
            pace = Pace(version="1", cap_day="2026-03-10", cap_used=str(index % 100), sent_by=session)
            commands += [
                ("HSET", f"session:{session}", "connection", "CONNECTED", "memoryBytes", 40_000_000, "usageAt", now_ms),
                ("HSET", "phones:pace", phone, pace.line),
                ("HSET", "phones:sends", phone, sends_text([(at, at) for at in minute])),
                ("HSET", f"phone:{phone}", "waitReason", "PACING", "waitUntil", now_ms + 3_000),
                ("RPUSH", f"queue:session:{phone}", *(f'["j:{place}","1"]' for place in range(20))),
            ]
            if index % 10 == 0:
                commands.append(("HSET", f"pacer:{phone}", f"failed:{session}", ",".join(map(str, minute))))
        await link.read(*commands)


async def scrape(metrics: Metrics, link: StopwatchLink) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in HEAD[1:6]}
    for _ in range(RUNS):
        # What was read is good for a moment; the next one has to read again.
        await asyncio.sleep(FRESH_MS / 1000 + 0.05)
        link.longest_s = 0.0
        redis_before, cpu_before, wall_before = await redis_cpu_s(link), time.process_time(), time.perf_counter()
        text = await metrics.render()
        found["scrape"].append(time.perf_counter() - wall_before)
        found["python"].append(time.process_time() - cpu_before)
        found["redis"].append(await redis_cpu_s(link) - redis_before)
        found["longest"].append(link.longest_s)
        began = time.process_time()
        generate_latest(metrics.registry)
        found["text"].append(time.process_time() - began)
    lines = [line for line in text.splitlines() if not line.startswith(b"#")]
    return {name: min(values) * 1000 for name, values in found.items()} | {"bytes": len(text), "series": len(lines)}


async def until_up(link: RedisLink) -> None:
    for _ in range(500):
        with suppress(Unavailable):
            await link.time_ms()
            return
        await asyncio.sleep(0.02)


async def redis_cpu_s(link: RedisLink) -> float:
    info = (await link.read(("INFO", "cpu")))[0]
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def counting_us() -> float:
    histogram = new_metrics().histogram(catalogue.DISPATCH_LATENESS)
    began = time.process_time()
    for _ in range(COUNTED):
        histogram.observe(0.02)
    return (time.process_time() - began) / COUNTED * 1e6


async def call_us(ask: Callable[[], Awaitable[Any]]) -> float:
    took = []
    for _ in range(RUNS):
        began = time.process_time()
        for _ in range(CALLS):
            await ask()
        took.append((time.process_time() - began) / CALLS * 1e6)
    return min(took)


async def run(sizes: tuple[int, ...], url: str) -> None:
    link, clock, metrics = StopwatchLink(url), SystemClock(), new_metrics()
    store, rules = Store(TimedLink(link, metrics)), Rules(parse(read_policy("default")))
    await until_up(link)
    about_service("orchestrator", store, metrics)
    metrics.read(FleetReadings(store, rules, clock).read)
    print(" ".join(f"{name:>9}" for name in HEAD))
    filled = 0
    for phones in sizes:
        await fill(store, link, filled, phones, clock.now_ms())
        filled = phones
        row = await scrape(metrics, link)
        cells = [f"{phones:>9,}", *(f"{row[name]:>7.1f}ms" for name in HEAD[1:6]), f"{row['bytes']:>9,.0f}"]
        print(" ".join([*cells, f"{row['series']:>9,.0f}"]))
    timed, bare = TimedLink(link, new_metrics()), link
    with_us, without_us = await call_us(lambda: timed.read(("PING",))), await call_us(lambda: bare.read(("PING",)))
    print(
        f"counting: {counting_us():.2f} µs an observation; a call to Redis {without_us:.0f} µs of processor time, ",
        end="",
    )
    print(f"{with_us:.0f} with the stopwatch")
    await link.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 1,000 numbers")
    sizes = PHONES[:2] if parser.parse_args().quick else PHONES
    silence()
    with redis_server() as socket:
        asyncio.run(run(sizes, f"unix://{socket}"))


if __name__ == "__main__":
    main()
