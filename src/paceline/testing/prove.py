"""Runs the World over many seeds, on several Redis servers at once, and says what it found.

python -m paceline.testing --seeds=0:2000    any number of seeds; a violation comes with the command to replay it
python -m paceline.testing --seeds=7:8       one seed again (negative ones are the drills)
python -m paceline.testing --planted         every planted bug must be caught
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import msgspec

from paceline.kits.logging import silence
from paceline.launcher.redis_server import find_binary
from paceline.policy.trust import DAY_MS
from paceline.store.blocking import BlockingRedis
from paceline.testing import scenario
from paceline.testing.checkers import check
from paceline.testing.planted import BUGS
from paceline.testing.planting import Bug
from paceline.testing.world import Limits, World

PLANTED_SEEDS = 150
"""Within so many seeds every planted bug must be seen."""
PLANTED_LIMITS = Limits(steps=12_000, virtual_ms=4 * DAY_MS)
"""Enough for most seeds without a bug, and an end for those that a bug holds up."""
SHARE = 10
"""Seeds given out at a time: few, so that no process is left with all the long ones at the end."""


class Run(msgspec.Struct, frozen=True):
    seed: int
    violations: list[str]
    messages: int
    faults: int
    steps: int
    virtual_ms: int
    trace: int
    """A number that is the same for the same run: the ledger and the steps, boiled down."""


@contextmanager
def redis_server(core: int | None = None) -> Iterator[str]:
    """A Redis of one's own, without persistence, for the time of a run; gives the path of its socket."""
    server = str(find_binary().path)
    with tempfile.TemporaryDirectory(prefix="paceline-world-") as directory:
        socket = Path(directory, "redis.sock")
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", directory]
        process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _stay_on(core, process.pid)
            yield str(socket)
        finally:
            process.terminate()
            process.wait()


def connect(socket: str) -> BlockingRedis:
    redis = BlockingRedis(socket)
    deadline = time.monotonic() + 30
    while not redis.answers() and time.monotonic() < deadline:
        time.sleep(0.02)
    return redis


@contextmanager
def private_redis() -> Iterator[BlockingRedis]:
    with redis_server() as socket:
        redis = connect(socket)
        yield redis
        redis.close()


def run_seed(seed: int, redis: BlockingRedis, bug: Bug | None = None, limits: Limits | None = None) -> Run:
    world = World(scenario.draw(seed), redis, mutate=bug.lua if bug else None)
    ended = world.run(limits or Limits())
    found = [str(violation) for violation in check(world, ended)]
    lines = [line for book in world.ledgers.values() for line in book.lines]
    return Run(
        seed=seed,
        violations=found,
        messages=len(lines),
        faults=world.sim.injected,
        steps=world.sim.steps,
        virtual_ms=world.sim.now_ms - world.scenario.start_ms,
        trace=zlib.crc32(repr((world.sim.steps, [(line.at, line.task_id, line.repeat) for line in lines])).encode()),
    )


def prove(first: int, last: int, workers: int = 2) -> list[Run]:
    """All seeds from `first` up to `last`, in several processes."""
    shares = [range(start, min(start + SHARE, last)) for start in range(first, last, SHARE)]
    with _pool(workers) as pool:
        return [run for runs in pool.map(_run_share, shares) for run in runs]


def catch(bugs: Iterable[Bug], workers: int = 2) -> list[Run | None]:
    """For each bug the first run in which it was seen."""
    with _pool(workers) as pool:
        return list(pool.map(_caught_here, bugs))


def caught(bug: Bug, redis: BlockingRedis) -> Run | None:
    """The first run in which the bug is seen by a judge of the promise it breaks, who finds nothing without it."""
    for seed in dict.fromkeys((*bug.seeds, *range(-len(scenario.DRILLS), PLANTED_SEEDS))):
        with bug.planted():
            run = run_seed(seed, redis, bug, PLANTED_LIMITS)
        if _breaks(bug.promise, run) and not _breaks(bug.promise, run_seed(seed, redis, limits=PLANTED_LIMITS)):
            return run
    return None


def _breaks(promise: str, run: Run) -> bool:
    return any(violation.startswith(f"{promise}:") for violation in run.violations)


# The processes. Each has a Redis of its own and shares one core with it: they take turns anyway, and a wake-up across
# cores costs more than all the rest of a call.

_redis: BlockingRedis | None = None


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context()
    places: SimpleQueue[tuple[str, int | None]] = context.SimpleQueue()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    with ExitStack() as stack:
        for number in range(workers):
            core = cores[number % len(cores)] if cores else None
            places.put((stack.enter_context(redis_server(core)), core))
        yield stack.enter_context(ProcessPoolExecutor(workers, context, initializer=_move_in, initargs=(places,)))


def _move_in(places: "SimpleQueue[tuple[str, int | None]]") -> None:
    global _redis  # noqa: PLW0603 - what a process of the pool has is given to it in no other way
    silence()
    socket, core = places.get()
    _stay_on(core, 0)
    _redis = connect(socket)


def _stay_on(core: int | None, pid: int) -> None:
    if core is not None:
        os.sched_setaffinity(pid, {core})


def _run_share(seeds: Iterable[int]) -> list[Run]:
    assert _redis is not None
    return [run_seed(seed, _redis) for seed in seeds]


def _caught_here(bug: Bug) -> Run | None:
    assert _redis is not None
    return caught(bug, _redis)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paceline.testing", description="Run the World over many seeds.")
    parser.add_argument("--seeds", default=f"{-len(scenario.DRILLS)}:100", metavar="FIRST:LAST")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--planted", action="store_true", help="show that every planted bug is caught")
    options = parser.parse_args()
    return _planted() if options.planted else _seeds(options.seeds, options.workers)


def _seeds(text: str, workers: int) -> int:
    first, _, last = text.partition(":")
    began = time.monotonic()
    runs = prove(int(first), int(last or int(first) + 1), workers)
    for run in (run for run in runs if run.violations):
        print(f"seed {run.seed}: replay with  python -m paceline.testing --seeds={run.seed}:{run.seed + 1}")
        for violation in run.violations[:10]:
            print(f"    {violation}")
    bad, seconds = sum(bool(run.violations) for run in runs), max(time.monotonic() - began, 0.001)
    print(
        f"{len(runs)} seeds, {sum(run.messages for run in runs)} messages, {sum(run.faults for run in runs)} faults, "
        f"{sum(run.virtual_ms for run in runs) / 1000 / seconds:.0f}x real time; {bad} with violations"
        + ("" if bad else f" (so fewer than {3 / len(runs):.2%} at 95 % confidence)")
    )
    return 1 if bad else 0


def _planted() -> int:
    found = catch(BUGS)
    for bug, run in zip(BUGS, found, strict=True):
        says = f"caught at seed {run.seed}: {run.violations[0][:90]}" if run else "NOT CAUGHT"
        hint = "" if run is None or run.seed in bug.seeds else f"  (write seeds=({run.seed},) to the bug)"
        print(f"{bug.promise}  {bug.name}: {says}{hint}")
    print(f"planted bugs: {sum(run is not None for run in found)} of {len(BUGS)} caught")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
