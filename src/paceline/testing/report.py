"""What `python -m paceline.testing` does and prints; `make prove` is this with both options.

python -m paceline.testing --seeds=0:2000    any number of seeds; a violation comes with the command to replay it
python -m paceline.testing --seeds=7:8       one seed again (negative ones are the drills, `drills:0` all of them)
python -m paceline.testing --planted         every planted bug must be caught
python -m paceline.testing --seeds=7:8 --keep a-resumed-job-failed    its scenario becomes a regression test
"""

import argparse
import os
import re
import time
import zlib
from collections.abc import Iterable

from paceline.testing import regressions, scenario
from paceline.testing.planted import BUGS
from paceline.testing.prove import Run, catch, prove

TOLD_EVERY = 500
"""Seeds between two words about how far it is."""
SHOWN = 10
"""Violations of one seed that are printed."""
_YEAR_DAYS = 365.25


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m paceline.testing", description="Run the World over many seeds.")
    parser.add_argument("--seeds", metavar="FIRST:LAST", help="negative ones are the drills")
    parser.add_argument("--planted", action="store_true", help="show that every planted bug is caught")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes; as many as cores")
    parser.add_argument("--keep", metavar="NAME", help="write the scenario of the (one) seed as a regression test")
    options = parser.parse_args(arguments)
    seeds = options.seeds or ("" if options.planted else "drills:100")
    if seeds and not re.fullmatch(r"(drills|-?\d+)(:-?\d+)?", seeds):
        parser.error(f"--seeds: {seeds!r} is not FIRST:LAST")
    first, _, last = seeds.replace("drills", str(-len(scenario.DRILLS))).partition(":")
    if options.keep:
        print(f"written: {regressions.keep(int(first), options.keep)}")
    failed = bool(seeds) and _seeds(int(first or 0), int(last or int(first) + 1), options.workers)
    return int(failed or (options.planted and not _planted(options.workers)))


def _seeds(first: int, last: int, workers: int) -> bool:
    """Whether one of them broke a promise."""
    began, runs = time.monotonic(), []
    for run in prove(first, last, workers):
        runs.append(run)
        _tell_violations(run)
        if len(runs) % TOLD_EVERY == 0 and len(runs) < last - first:
            print(f"  {len(runs)} of {last - first} seeds, {time.monotonic() - began:.0f} s", flush=True)
    bad = sum(bool(run.violations) for run in runs)
    print(summary(runs, time.monotonic() - began))
    print(f"seeds with a violation: {bad} of {len(runs)}{'' if bad else rule_of_three(len(runs))}", flush=True)
    return bad > 0


def summary(runs: list[Run], seconds: float) -> str:
    virtual_ms = sum(run.virtual_ms for run in runs)
    trace = zlib.crc32(repr([run.trace for run in runs]).encode())
    return (
        f"{len(runs):,} seeds, {sum(run.messages for run in runs):,} messages, {sum(run.faults for run in runs):,} "
        f"faults, {virtual_ms / 86_400_000 / _YEAR_DAYS:.1f} simulated years in {seconds:.0f} s: "
        f"{virtual_ms / 1000 / max(seconds, 0.001):,.0f}x real time; trace {trace:08x}"
    )


def rule_of_three(trials: int) -> str:
    return f" (so, with 95 % confidence, fewer than {min(100, 300 / trials):.3g} % of such runs break a promise)"


def _tell_violations(run: Run) -> None:
    if run.violations:
        print(f"seed {run.seed}: replay with  python -m paceline.testing --seeds={run.seed}:{run.seed + 1}")
        for violation in run.violations[:SHOWN]:
            print(f"    {violation}", flush=True)


def _planted(workers: int) -> bool:
    """Whether all of them were caught."""
    missed = 0
    for bug, seen in zip(BUGS, catch(BUGS, workers), strict=True):
        missed += seen is None
        says = f"within {seen.looked} (seed {seen.run.seed})" if seen else "NOT CAUGHT"
        print(f"{bug.promise:4} {bug.name}: {says}", flush=True)
    print(f"planted bugs: {len(BUGS) - missed} of {len(BUGS)} caught")
    return missed == 0


def told(runs: Iterable[Run]) -> list[str]:
    """Every violation with the command that replays it, for an assertion."""
    return [
        f"{violation}  (replay: python -m paceline.testing --seeds={run.seed}:{run.seed + 1})"
        for run in runs
        for violation in run.violations
    ]
