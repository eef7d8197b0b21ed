"""From hand-over to settled, beside other queue engines completing as many tasks.

    python bench/peers.py            20,000 tasks
    python bench/peers.py --quick    5,000
    (cd bench/node && npm install --no-save --ignore-scripts) first

All on a Redis that forces every write to the disk and has a core of its own. The others (`node/bullmq.js`,
`peers/engines.py`): one worker process, tasks of 200 bytes that were added before, nothing to do in each, no pace; from
when the worker begins to take them to the last execution, start-up and adding not counted. Paceline: 5,000 numbers that
share the tasks, with no rest between two of them (`unpaced.toml`), but never two of a number at once; one dispatcher
process hands them over, `consumer.py` settles them as sent. What ours does with each task beyond moving it (hours,
caps, suppression, the rolling minute, statistics, events, the job's counters) the others do not. Processor time is of
everything but Redis, and of Redis, for a task.

The engines of Python are locked in `peers/requirements.txt` and live in an environment of their own, `.peers-venv`,
made when it is missing. An engine that cannot be run is a row that says why.
"""

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

os.environ["BENCH_POLICY"] = "unpaced.toml"

from dispatch import consumer, dispatcher
from fleet import Fleet
from meter import Meter, connect, durable_redis, table

from paceline.domain.states import Byte
from paceline.store import keys

HERE = Path(__file__).parent
VENV = HERE / ".peers-venv"
LOCKED = HERE / "peers" / "requirements.txt"
TASKS, QUICK_TASKS = 20_000, 5_000
NUMBERS = 5_000
PORT = 4974
PATIENCE_S = 600.0
PEERS = {
    "Celery, solo pool": "celery",
    "dramatiq, 4 threads, prefetch 200": "dramatiq",
    "taskiq, stream, 100 at once": "taskiq",
    "saq, concurrency 30": "saq",
    "arq, 50 jobs, poll every 10 ms": "arq",
}

Row = tuple[float, float, float]
"""Tasks a second, µs of processor time for each, and of Redis'."""


class CannotRun(Exception):
    """Why an engine has no numbers."""


def bullmq(tasks: int) -> Row:
    return _measured(["node", str(HERE / "node" / "bullmq.js")], tasks)


def peer(engine: str, tasks: int) -> Row:
    return _measured([_python(), str(HERE / "peers" / "engines.py"), engine], tasks)


def _measured(command: list[str], tasks: int) -> Row:
    """Of a worker that is told the socket and how many, and says `taking` and `done`."""
    with durable_redis(has_own_core=True) as server, tempfile.TemporaryFile("w+") as errors:
        try:
            process = subprocess.Popen(
                [*command, server.socket, str(tasks)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True,
            )  # fmt: skip
        except OSError as error:
            raise CannotRun(str(error)) from error
        patience = threading.Timer(PATIENCE_S, process.kill)
        patience.start()
        try:
            _wait_for("taking", process, errors)
            meter = Meter(worker=process.pid, redis=server.pid)
            _wait_for("done", process, errors)
            took, used = meter.read()
        finally:
            patience.cancel()
            process.kill()
            process.wait()
    return tasks / took, used["worker"].cpu_s / tasks * 1e6, used["redis"].cpu_s / tasks * 1e6


def _wait_for(word: str, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    errors.seek(0)
    raise CannotRun(_reason(errors.read()) or f"it ended, or was ended after {PATIENCE_S:.0f} s, and said nothing")


def _python() -> str:
    """The interpreter that has the engines of Python."""
    python, stamp = VENV / "bin" / "python", VENV / ".installed"
    if not stamp.exists() or stamp.stat().st_mtime < LOCKED.stat().st_mtime:
        print("installing the engines to compare with", file=sys.stderr)
        _run(sys.executable, "-m", "venv", str(VENV))
        _run(str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCKED))
        stamp.touch()
    return str(python)


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise CannotRun(_reason(ended.stderr or ended.stdout))


def _reason(text: str) -> str:
    """The line of what a program said last that tells why it ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "error:" in line.lower()), lines[-1] if lines else "")


def ours(tasks: int) -> Row:
    with durable_redis(has_own_core=True) as server:
        fleet = Fleet(connect(server.socket))
        fleet.hold()
        fleet.connect(NUMBERS)
        fleet.fill(NUMBERS, -(-tasks // NUMBERS))
        fleet.look()
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
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--only", choices=PEERS.values(), help="besides Paceline")
    options = parser.parse_args()
    tasks = options.tasks or (QUICK_TASKS if options.quick else TASKS)
    engines: dict[str, Callable[[int], Row]] = {"BullMQ, concurrency 100": bullmq} if not options.only else {}
    for name, engine in PEERS.items():
        if options.only in (None, engine):
            engines[name] = functools.partial(peer, engine)
    found = ours(tasks)
    rows = [_told("Paceline", found, found[0])]
    for name, run in engines.items():
        try:
            rows.append(_told(name, run(tasks), found[0]))
        except CannotRun as reason:
            rows.append((name, f"not run: {reason}", "", "", ""))
    table(("engine", "tasks/s", "CPU µs", "Redis µs", "ours is × faster"), rows)


def _told(name: str, found: Row, best: float) -> tuple[str, ...]:
    rate, cpu, redis = found
    return name, f"{rate:,.0f}", f"{cpu:.0f}", f"{redis:.0f}", f"{best / rate:.2f}"


if __name__ == "__main__":
    main()
