"""How fast one dispatcher hands over: hand-offs a second, how late they come, what they cost.

    python bench/dispatch.py            1,000 and 50,000 numbers, and 50,000 that are all due at once
    python bench/dispatch.py --quick    1,000 and 5,000, shorter

A real dispatcher process (`SEND_MODE=redis`) on a real Redis that forces every write to the disk (`appendfsync
always`), with the real policy code. The policy has no burst rule, hours or cap; each number is due about every three
seconds. `consumer.py` stands for the workers: it waits for the moment a task may be sent and settles it.

paced         late p50 and p99: from the moment a number was due to its hand-over. µs: processor time per hand-over,
              of the dispatcher, and of Redis (settling and the stub's own reading counted in)
all at once   every number due in the same moment, nobody settles: how fast the first hand-overs follow each other
bare Redis    the least a hand-over can be, in batches of 100 on the same Redis: claim the due numbers, pop a task,
              push it on; no facts, no policy, no checks. What we reach is told as a share of it
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fleet import POLICY, Fleet
from meter import Meter, Server, connect, durable_redis, percentile, table

from paceline.store import keys

HERE = Path(__file__).parent
SECONDS, QUICK_SECONDS = 20, 8
WARM_UP_S = 12.0
"""Until it runs evenly: in the beginning nothing about any number is remembered."""
EVERY_S = 3.0
BARE_BATCH = 100

BARE = """
for _, phone in ipairs(redis.call('ZRANGEBYSCORE', 'bare:due', '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  redis.call('ZADD', 'bare:due', ARGV[1] + 3000, phone)
  local task = redis.call('RPOP', 'bare:queue:' .. phone)
  if task then redis.call('LPUSH', 'bare:outbox:' .. phone, task) end
end
"""


@contextlib.contextmanager
def dispatcher(server: Server, port: int) -> Iterator[int]:
    """The product's own process; gives its pid."""
    env = os.environ | {
        "REDIS_URL": server.url, "PACELINE_POLICY": POLICY, "SEND_MODE": "redis", "PORT": str(port),
        "API_KEY": "a-key-for-the-benchmark-alone", "SMART_GUARD_ENABLED": "false", "LOG_LEVEL": "warning",
        "HANDOFF_TTL_MS": "3600000", "LOG_MESSAGES": "false",
    }  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "paceline.dispatcher.main"], env=env)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def consumer(server: Server) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "consumer.py"), server.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def paced(phones: int, seconds: float, port: int) -> tuple[str, ...]:
    with durable_redis(has_own_core=True) as server:
        fleet = Fleet(connect(server.socket))
        fleet.hold()
        fleet.connect(phones)
        fleet.fill(phones, int((seconds + WARM_UP_S) / EVERY_S) + 4)
        fleet.look()
        with dispatcher(server, port) as pid, consumer(server) as stub:
            time.sleep(3)
            fleet.spread(int(EVERY_S * 1000))
            fleet.go()
            time.sleep(WARM_UP_S)
            tell(stub, "measure")
            before = handed_over(fleet)
            meter = Meter(dispatcher=pid, redis=server.pid, stub=stub.pid)
            time.sleep(seconds)
            took, used = meter.read()
            count = handed_over(fleet) - before
            saw = json.loads(stub.communicate("end\n")[0])
    each = {name: usage.cpu_s / max(1, count) * 1e6 for name, usage in used.items()}
    return (
        f"{phones:,}", f"{count / took:,.0f}", f"{phones / EVERY_S:,.0f}", f"{percentile(saw['late'], 0.5):.0f}",
        f"{percentile(saw['late'], 0.99):.0f}", f"{percentile(saw['held'], 0.99):.0f}", str(saw["violations"]),
        f"{each['dispatcher']:.1f}",
        f"{each['redis']:.1f}", f"{used['dispatcher'].cpu_s / took:.0%}", f"{used['redis'].cpu_s / took:.0%}",
        f"{used['stub'].cpu_s / took:.0%}", f"{used['dispatcher'].rss_mb:.0f}",
    )  # fmt: skip


def tell(stub: "subprocess.Popen[str]", word: str) -> None:
    assert stub.stdin is not None
    stub.stdin.write(f"{word}\n")
    stub.stdin.flush()


def handed_over(fleet: Fleet) -> int:
    """Tasks that left their queues, by the state bytes of all jobs."""
    jobs = fleet.redis.read(("ZRANGE", keys.jobs_index(), 0, -1))[0]
    states = fleet.redis.read(*[("GET", keys.job_states(job)) for job in jobs])
    return sum(len(text) - text.count("q") - text.count("r") for text in states)


def at_once(phones: int, port: int) -> tuple[str, ...]:
    with durable_redis(has_own_core=True) as server:
        fleet = Fleet(connect(server.socket))
        bare = bare_rate(fleet, phones)
        fleet.hold()
        fleet.connect(phones)
        fleet.fill(phones, 2)
        fleet.look()
        with dispatcher(server, port) as pid:
            time.sleep(3)
            meter = Meter(dispatcher=pid, redis=server.pid)
            fleet.go()
            while handed_over(fleet) < phones:
                time.sleep(0.05)
            took, used = meter.read()
    each = {name: usage.cpu_s / phones * 1e6 for name, usage in used.items()}
    rate = phones / took
    return (
        f"{phones:,}", f"{rate:,.0f}", f"{each['dispatcher']:.1f}", f"{each['redis']:.1f}", f"{bare:,.0f}",
        f"{rate / bare:.0%}",
    )  # fmt: skip


def bare_rate(fleet: Fleet, phones: int) -> float:
    """Hand-overs a second of a script that does nothing but move tasks."""
    redis = fleet.redis
    (sha,) = redis.read(("SCRIPT", "LOAD", BARE))
    for start in range(0, phones, 500):
        some = range(start, min(start + 500, phones))
        redis.read(*[("LPUSH", f"bare:queue:{n}", f"task-{n}") for n in some])
        redis.read(*[("ZADD", "bare:due", 0, n) for n in some])
    began = time.monotonic()
    for _ in range(phones // BARE_BATCH):
        redis.read(("EVALSHA", sha, 0, 1, BARE_BATCH))
    took = time.monotonic() - began
    redis.flush()
    return phones / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--phones", type=int, nargs="*")
    parser.add_argument("--port", type=int, default=4971)
    parser.add_argument("--only", choices=("paced", "at-once"))
    options = parser.parse_args()
    sizes = options.phones or ([1_000, 5_000] if options.quick else [1_000, 50_000])
    seconds = QUICK_SECONDS if options.quick else SECONDS
    if options.only != "at-once":
        head = ("phones", "hand-offs/s", "wanted/s", "late p50 ms", "late p99 ms", "stub p99 ms", "violations",
                "dispatcher µs", "Redis µs", "dispatcher CPU", "Redis CPU", "stub CPU", "dispatcher MB")  # fmt: skip
        table(head, [paced(phones, seconds, options.port) for phones in sizes])
    if options.only != "paced":
        head = ("all at once", "hand-offs/s", "dispatcher µs", "Redis µs", "bare Redis/s", "share of bare")
        table(head, [at_once(sizes[-1], options.port)])


if __name__ == "__main__":
    main()
