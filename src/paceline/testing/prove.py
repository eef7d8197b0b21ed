"""Runs the World over many seeds, on several Redis servers at once, and says what it found.

python -m paceline.testing --seeds 0:2000    any number of seeds; a violation comes with the command to replay it
python -m paceline.testing --seeds 7:8       one seed again (negative ones are the drills)
python -m paceline.testing --planted         every planted bug must be caught
"""

import argparse
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

from paceline.kits.logging import silence
from paceline.launcher.redis_server import find_binary
from paceline.store.blocking import BlockingRedis
from paceline.testing import scenario
from paceline.testing.checkers import check
from paceline.testing.planted import BUGS, Bug
from paceline.testing.world import World

PLANTED_SEEDS = 150
"""Within so many seeds every planted bug must be seen."""


PLANTED_STEPS = 150_000
"""More than any of those seeds needs without a bug (97,421 is the most), and an end for those that a bug holds up."""


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
def private_redis() -> Iterator[BlockingRedis]:
    """A Redis of one's own, without persistence, for the time of a run."""
    server = str(find_binary().path)
    with tempfile.TemporaryDirectory(prefix="paceline-world-") as directory:
        socket = Path(directory, "redis.sock")
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", directory]
        process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            redis = BlockingRedis(str(socket))
            deadline = time.monotonic() + 30
            while not redis.answers() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield redis
            redis.close()
        finally:
            process.terminate()
            process.wait()


def run_seed(seed: int, redis: BlockingRedis, bug: Bug | None = None) -> Run:
    world = World(scenario.draw(seed), redis, mutate=bug.lua if bug else None)
    ended = world.run(PLANTED_STEPS) if bug else world.run()
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


def run_seeds(seeds: Iterable[int]) -> list[Run]:
    silence()
    with private_redis() as redis:
        return [run_seed(seed, redis) for seed in seeds]


def caught(bug: Bug) -> Run | None:
    """The first run in which the bug is seen by a judge of the promise it breaks."""
    silence()
    with private_redis() as redis, bug.planted():
        for seed in range(-len(scenario.DRILLS), PLANTED_SEEDS):
            run = run_seed(seed, redis, bug)
            if any(violation.startswith(f"{bug.promise}:") for violation in run.violations):
                return run
    return None


def prove(first: int, last: int, workers: int = 2) -> list[Run]:
    """All seeds from `first` up to `last`, in several processes."""
    shares = [range(first + offset, last, workers) for offset in range(workers)]
    with ProcessPoolExecutor(workers) as pool:
        return [run for runs in pool.map(run_seeds, shares) for run in runs]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m paceline.testing", description="Run the World over many seeds.")
    parser.add_argument("--seeds", default="-8:100", metavar="FIRST:LAST")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--planted", action="store_true", help="show that every planted bug is caught")
    options = parser.parse_args()
    return _planted() if options.planted else _seeds(options.seeds, options.workers)


def _seeds(text: str, workers: int) -> int:
    first, _, last = text.partition(":")
    began = time.monotonic()
    runs = prove(int(first), int(last or int(first) + 1), workers)
    for run in (run for run in runs if run.violations):
        print(f"seed {run.seed}: replay with  python -m paceline.testing --seeds {run.seed}:{run.seed + 1}")
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
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(caught, BUGS))
    for bug, run in zip(BUGS, found, strict=True):
        says = f"caught at seed {run.seed}: {run.violations[0][:90]}" if run else "NOT CAUGHT"
        print(f"{bug.promise}  {bug.name}: {says}")
    print(f"planted bugs: {sum(run is not None for run in found)} of {len(BUGS)} caught")
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
