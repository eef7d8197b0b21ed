"""From hand-over to settled, beside BullMQ completing as many tasks.

    python bench/peers.py            20,000 tasks
    python bench/peers.py --quick    5,000
    (cd bench/node && npm install --no-save --ignore-scripts) first

Both on a Redis that forces every write to the disk. BullMQ: one worker, concurrency 100, tasks of 200 bytes, nothing to
do in each, no pace. Paceline: as many numbers, each with a task that is due now; one dispatcher process with the real
policy hands them over, `consumer.py` settles them as sent. What ours does with each task beyond moving it (hours, caps,
suppression, pace, statistics, events, the job's counters) BullMQ does not. Processor time is of everything but Redis,
and of Redis, for a task.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

from dispatch import consumer, dispatcher
from fleet import Fleet
from meter import Meter, connect, durable_redis, table

from paceline.domain.states import Byte
from paceline.store import keys

HERE = Path(__file__).parent
TASKS, QUICK_TASKS = 20_000, 5_000
PORT = 4974
PATIENCE_S = 600.0

Row = tuple[float, float, float]
"""Tasks a second, µs of processor time for each, and of Redis'."""


def bullmq(tasks: int) -> Row:
    with durable_redis() as server:
        meter = Meter(redis=server.pid)
        command = ["node", str(HERE / "node" / "bullmq.js"), server.socket, str(tasks)]
        out = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        _, used = meter.read()
    found = json.loads(out)
    return tasks / found["seconds"], found["cpuSeconds"] / tasks * 1e6, used["redis"].cpu_s / tasks * 1e6


def ours(tasks: int) -> Row:
    with durable_redis() as server:
        fleet = Fleet(connect(server.socket))
        fleet.hold()
        fleet.connect(tasks)
        fleet.fill(tasks, 1)
        with dispatcher(server, PORT) as pid, consumer(server) as stub:
            time.sleep(3)
            meter = Meter(dispatcher=pid, stub=stub.pid, redis=server.pid)
            fleet.go()
            deadline = time.monotonic() + PATIENCE_S
            while _settled(fleet) < tasks:
                if time.monotonic() > deadline:
                    raise SystemExit("not all of them were settled")
                time.sleep(0.05)
            took, used = meter.read()
    cpu = used["dispatcher"].cpu_s + used["stub"].cpu_s
    return tasks / took, cpu / tasks * 1e6, used["redis"].cpu_s / tasks * 1e6


def _settled(fleet: Fleet) -> int:
    jobs = fleet.redis.read(("ZRANGE", keys.jobs_index(), 0, -1))[0]
    return sum(text.count(Byte.SENT) for text in fleet.redis.read(*[("GET", keys.job_states(job)) for job in jobs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    tasks = QUICK_TASKS if parser.parse_args().quick else TASKS
    found = {"Paceline": ours(tasks), "BullMQ, concurrency 100": bullmq(tasks)}
    best = found["Paceline"][0]
    rows = [
        (name, f"{rate:,.0f}", f"{cpu:.0f}", f"{redis:.0f}", f"{best / rate:.2f}")
        for name, (rate, cpu, redis) in found.items()
    ]
    table(("engine", "tasks/s", "CPU µs", "Redis µs", "ours is × faster"), rows)
    print("Redis µs of BullMQ count the adding of its tasks, too.\n")


if __name__ == "__main__":
    main()
