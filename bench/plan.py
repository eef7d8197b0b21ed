"""How long a plan takes: contacts × numbers → milliseconds for each step and for the whole HTTP answer.

    python bench/plan.py            the table in docs/api.md
    python bench/plan.py --quick    100,000 contacts only, up to 1,000 numbers

Runs the gateway in a thread on a private Redis, and asks it over a socket like any caller. Each figure is the best of
some runs: other work on the machine only ever adds. The steps are processor time, so that they say something on a busy
machine too; `HTTP` and `look` are what a clock on the wall says.

decode    a bare JSON decode of the body, the yardstick: comparable between machines where milliseconds are not
count     sifting, deduplicating and locating the contacts, the suppression list asked
forecast  the plan by day and by number
advice    the suggestions, each a forecast of its own
all       the whole answer, with reading, decoding and checking the body, the caller's own part counted in
HTTP      the same on the wall
ratio     `all` as a multiple of `decode`
crew      counting the fleet into kinds, and
look      reading it from Redis: both once for all who ask while the picture is fresh, so not in the answer

"digits" is a list of plain numbers, "named" one of objects with a variable each, which takes far longer to decode.
"""

import argparse
import asyncio
import http.client
import socket
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from paceline.domain.jobs import Job
from paceline.edge import Keys, Limits, digest
from paceline.gateway.app import create_app
from paceline.gateway.intake import Intake
from paceline.gateway.media import MediaDesk
from paceline.gateway.outlets import Outlets
from paceline.gateway.plan import Planner, forecast
from paceline.gateway.schemas import JobRequest
from paceline.kits.logging import silence
from paceline.kits.media_store import MediaFiles
from paceline.kits.rng import new_rng
from paceline.kits.safe_http import SafeHttp
from paceline.policy import plan as planning
from paceline.policy.crew import crew_of
from paceline.policy.facts import Rules
from paceline.policy.trust import DAY_MS, parse
from paceline.settings import read_policy
from paceline.store.client import RedisLink
from paceline.store.guards import ApiKeyRecord
from paceline.store.rows import Pace, sends_text
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store
from paceline.testing.servers import redis_server

KEY = "a-key-for-the-benchmark-alone"
RUNS = 7
CONTACTS = (1_000, 10_000, 100_000)
PHONES = (10, 1_000, 10_000)
TUESDAY_NOON = 1_773_136_800_000
AGES_DAYS = (1, 5, 10, 30, 90)
STEPS = ("decode", "count", "forecast", "advice", "crew", "look")
_HEADERS = {"X-API-KEY": KEY, "Content-Type": "application/json"}


class Clock:
    """Stands still, so that every run plans the same day; `move` makes the gateway's picture of the fleet old."""

    def __init__(self) -> None:
        self.at_ms = TUESDAY_NOON

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(ms / 1_000)


class Bench:
    def __init__(self, url: str, folder: str) -> None:
        self.clock = Clock()
        self.rules = Rules(parse(read_policy("default")), liveness_ms=DAY_MS)
        self.link = RedisLink(url)
        self.store = Store(self.link, ScriptConfig(lead_ms=self.rules.lead_ms))
        media = MediaDesk(self.store, MediaFiles(Path(folder)), in_thread=asyncio.to_thread)
        self.intake = Intake(self.store, self.rules, new_rng(1), media=media, breathe=lambda: asyncio.sleep(0))
        outlets = Outlets.of(self.store, self.clock, new_rng(2), new_id=self.intake.new_job_id, http=SafeHttp())
        keys = Keys(self.store, self.clock, Limits(0, 0))
        self.app = create_app(self.store, self.intake, media, keys, self.clock, outlets=outlets)
        self.planner = Planner(self.store, breathe=self.intake.breathe)

    async def prepare(self, phones: int) -> None:
        await self.store.guards.save_key(ApiKeyRecord("bench", digest(KEY.encode()), ["send"]))
        for index in range(phones):
            session, age = f"s{index}", AGES_DAYS[index % len(AGES_DAYS)]
            await self.store.sessions.register(
                session,
                f"97254{index:07d}",
                driver="simulated",
                # An hour apart, as numbers come in: no two need have the same future.
                created_at_ms=TUESDAY_NOON - age * DAY_MS - index % 24 * 3_600_000,
                timezone=None,
                tags=[],
                limit=4,
                now_ms=TUESDAY_NOON,
            )
            await self.link.read(
                ("HSET", f"session:{session}", "connection", "CONNECTED", "lastSeen", TUESDAY_NOON),
                ("HSET", "sessions:seen", session, TUESDAY_NOON),
                ("HSET", "phones:pace", f"97254{index:07d}", _pace(index)),
                ("HSET", "phones:sends", f"97254{index:07d}", _sends(index)),
            )

    async def steps(self, body: bytes) -> dict[str, float]:
        request = msgspec.json.decode(body, type=JobRequest)
        counted = await self.planner.count(request)
        job = _job(counted.accepted, counted.zones)
        picture = await self.intake.watcher.look(self.clock.now_ms(), fresh=True)

        async def counting() -> None:
            await self.planner.count(request)

        ask = picture.ask(job, job.total, now_ms=job.accepted_at, expires_ms=job.expires_at(job.total - 1))
        crew = picture.crew(None, 1, start_ms=ask.start_ms)

        async def crewing() -> None:
            crew_of(crew.seats, self.rules, now_ms=ask.start_ms)

        async def forecasting() -> None:
            planning.plan(ask, crew, self.rules)

        async def answering() -> None:
            forecast(job, counted, picture)

        async def looking() -> None:
            await self.intake.watcher.look(self.clock.now_ms(), fresh=True)

        async def decoding() -> None:
            msgspec.json.decode(body)

        found = {
            "decode": await best(decoding),
            "count": await best(counting),
            "forecast": await best(forecasting),
            "crew": await best(crewing, runs=3),
            "look": await best(looking, runs=3, clock=time.perf_counter),
        }
        found["advice"] = max(0.0, await best(answering) - found["forecast"])
        return found


def _pace(index: int) -> str:
    """A busy morning: half of the numbers have sent lately, each something else."""
    used = str(20 + index % 400)
    day = {} if index % 2 else {"cap_day": "2026-03-10", "cap_used": used, "gap_ms": "3000"}
    return Pace(version="1", **day).line


def _sends(index: int) -> str:
    first = TUESDAY_NOON - 600_000 - index * 7
    return "" if index % 2 else sends_text([(first + at, first + at + 300) for at in range(0, 32 * 9_000, 9_000)])


def _job(total: int, zones: dict[str, int]) -> Job:
    return Job(job_id="", total=total, text="", accepted_at=TUESDAY_NOON, accepted_by="", zones=zones,
               validity_seconds=30 * 86_400)  # fmt: skip


async def best(
    work: Callable[[], Awaitable[None]], runs: int = RUNS, clock: Callable[[], float] = time.thread_time
) -> float:
    """Milliseconds of the quickest of some runs."""
    took = []
    for _ in range(runs):
        began = clock()
        await work()
        took.append(clock() - began)
    return min(took) * 1_000


def body_of(contacts: int, *, named: bool) -> bytes:
    numbers = [f"97252{index:07d}" for index in range(contacts)]
    if not named:
        return msgspec.json.encode({"contacts": numbers, "text": "hello"})
    people = [{"to": f"+{to}", "vars": {"name": f"Ada {to[-3:]}"}} for to in numbers]
    return msgspec.json.encode({"contacts": people, "text": "hello {{name}}"})


@contextmanager
def serving(app: Any, loop: asyncio.AbstractEventLoop) -> Iterator[int]:
    """The gateway on a free port, in the loop's thread."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        running = asyncio.run_coroutine_threadsafe(server.serve(sockets=[listener]), loop)
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()[1]
        server.should_exit = True
        running.result()


def ask(port: int, body: bytes) -> tuple[float, float]:
    """Milliseconds of processor time, and on the wall."""
    cpu, wall = [], []
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(RUNS):
        began = time.process_time(), time.perf_counter()
        connection.request("POST", "/v1/jobs/plan", body, _HEADERS)
        answer = connection.getresponse()
        answer.read()
        cpu.append((time.process_time() - began[0]) * 1_000)
        wall.append((time.perf_counter() - began[1]) * 1_000)
        if answer.status != 200:
            raise SystemExit(f"the gateway answered {answer.status}")
    connection.close()
    return min(cpu), min(wall)


def measure(contacts: tuple[int, ...], phones: int) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def made(url: str, folder: str) -> Bench:
        return Bench(url, folder)

    with redis_server() as path, tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        bench = run(made(f"unix://{path}", folder))
        run(bench.prepare(phones))
        with serving(bench.app, loop) as port:
            for count in contacts:
                for named in (False, True):
                    body = body_of(count, named=named)
                    found = run(bench.steps(body))
                    row((count, phones, "named" if named else "digits"), body, found, ask(port, body))
        run(bench.link.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def row(case: tuple[int, int, str], body: bytes, found: dict[str, float], whole: tuple[float, float]) -> None:
    contacts, phones, shape = case
    cells = [found[name] for name in STEPS[:4]] + [*whole, whole[0] / found["decode"]]
    cells += [found[name] for name in STEPS[4:]]
    print(f"| {contacts:>8,} | {phones:>6,} | {shape:6} | {len(body) / 1e6:4.1f} |", end="")
    print("".join(f" {cell:8.1f} |" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    silence()
    names = [*STEPS[:4], "all", "HTTP", "ratio", *STEPS[4:]]
    print("| contacts | phones | body   |   MB |" + "".join(f" {name:>8} |" for name in names))
    print("| -------: | -----: | ------ | ---: |" + " -------: |" * len(names))
    for phones in PHONES[:2] if quick else PHONES:
        measure(CONTACTS[-1:] if quick else CONTACTS, phones)


if __name__ == "__main__":
    main()
