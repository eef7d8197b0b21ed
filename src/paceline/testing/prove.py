"""Runs the World over many seeds, in several processes, with or without a planted bug. `report` says what it found."""

import traceback
import zlib
from collections.abc import Iterable, Iterator

import msgspec

from paceline.policy.trust import DAY_MS
from paceline.store.blocking import BlockingRedis
from paceline.testing import scenario
from paceline.testing.checkers import check
from paceline.testing.plans import Scenario
from paceline.testing.planting import Bug
from paceline.testing.servers import own_redis, pool
from paceline.testing.world import Limits, World

PLANTED_SEEDS = 150
"""Within the drills and so many seeds every planted bug must be seen."""
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
    """A number that is the same for the same run: every step of it and the ledger, boiled down."""


class Catch(msgspec.Struct, frozen=True):
    """The run in which a planted bug was seen, and how many had been looked at by then."""

    run: Run
    looked: int


def run_seed(seed: int, redis: BlockingRedis, bug: Bug | None = None, limits: Limits | None = None) -> Run:
    return run_scenario(scenario.draw(seed), redis, bug, limits)


def run_scenario(plan: Scenario, redis: BlockingRedis, bug: Bug | None = None, limits: Limits | None = None) -> Run:
    world = World(plan, redis, mutate=bug.lua if bug else None)
    ended = world.run(limits or Limits())
    found = [str(violation) for violation in check(world, ended)]
    lines = [line for book in world.ledgers.values() for line in book.lines]
    ledger = repr([(line.at, line.task_id, line.repeat) for line in lines]).encode()
    return Run(
        seed=plan.seed,
        violations=found,
        messages=len(lines),
        faults=world.sim.injected,
        steps=world.sim.steps,
        virtual_ms=world.sim.now_ms - plan.start_ms,
        trace=zlib.crc32(ledger, world.sim.trace),
    )


def prove(first: int, last: int, workers: int = 2) -> Iterator[Run]:
    """All seeds from `first` up to `last`, in their order."""
    shares = [range(start, min(start + SHARE, last)) for start in range(first, last, SHARE)]
    with pool(workers) as processes:
        for runs in processes.map(_run_share, shares):
            yield from runs


def catch(bugs: Iterable[Bug], workers: int = 2, *, hinted: bool = False) -> Iterator[Catch | None]:
    """For each bug the first run in which it was seen. With hints, those where it was seen before are tried first:
    quicker, but it says nothing about how many runs it takes."""
    with pool(workers) as processes:
        yield from processes.map(_caught_with_hints if hinted else _caught, bugs)


def caught(bug: Bug, redis: BlockingRedis, hints: Iterable[int] = ()) -> Catch | None:
    """The first run in which the bug is seen by a judge of the promise it breaks, who finds nothing without it."""
    seeds = dict.fromkeys((*hints, *range(-1, -len(scenario.DRILLS) - 1, -1), *range(PLANTED_SEEDS)))
    for looked, seed in enumerate(seeds, start=1):
        with bug.planted():
            run = run_seed(seed, redis, bug, PLANTED_LIMITS)
        if _breaks(bug.promise, run) and not _breaks(bug.promise, run_seed(seed, redis, limits=PLANTED_LIMITS)):
            return Catch(run, looked)
    return None


def _breaks(promise: str, run: Run) -> bool:
    return any(violation.startswith(f"{promise}:") for violation in run.violations)


# What the processes of the pool do


def _run_share(seeds: Iterable[int]) -> list[Run]:
    return [_run_or_tell(seed) for seed in seeds]


def _run_or_tell(seed: int) -> Run:
    """A run that breaks off is a finding like any other: the others go on, and it can be replayed."""
    try:
        return run_seed(seed, own_redis())
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = f"the run broke off: {error!r} in {where.name}, {where.filename}:{where.lineno}"
        return Run(seed, [what], 0, 0, 0, 0, 0)


def _caught(bug: Bug) -> Catch | None:
    return caught(bug, own_redis())


def _caught_with_hints(bug: Bug) -> Catch | None:
    return caught(bug, own_redis(), bug.seeds)
