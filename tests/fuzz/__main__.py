"""`make fuzz`: at least 5,000 cases over the three services, from a seed that is printed and can be given again."""

import argparse
import os
import sys

from .fuzzing import PHASES, Report, fuzz
from .stage import stage

ENOUGH = 5_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--examples", type=int, default=60, help="cases for each operation and phase that draws them")
    parser.add_argument("--services", nargs="*", default=["gateway", "dispatcher", "orchestrator"])
    parser.add_argument("--phases", nargs="*", default=PHASES)
    parser.add_argument("--answers", action="store_true", help="list how often each operation answered what")
    asked = parser.parse_args()
    print(f"seed {asked.seed}, {asked.examples} examples")
    with stage() as running:
        reports = []
        for name in asked.services:
            reports.append(fuzz(running, name, examples=asked.examples, seed=asked.seed, phases=asked.phases))
            tell(reports[-1], answers=asked.answers)
    cases = sum(report.cases for report in reports)
    bad = sum(len(report.failures) + len(report.errors) for report in reports)
    print(f"in all: {cases:,} cases, {bad} failures, {len(running.server_errors)} answers of 500 and above")
    for line in sorted(set(running.server_errors)):
        print("  ", line)
    if cases < ENOUGH and asked.services == ["gateway", "dispatcher", "orchestrator"]:
        print(f"too few: at least {ENOUGH:,} are wanted")
        return 1
    return 1 if bad or running.server_errors else 0


def tell(report: Report, *, answers: bool) -> None:
    print(f"{report.service}: {report.cases:,} cases, {len(report.failures)} failures", flush=True)
    if answers:
        for line, count in sorted(report.answers.items()):
            print(f"   {count:6} {line}")
    for what, sample in report.failures.items():
        print("  ", what.replace("\n", " "))
        print("      ", sample[:1_500])
    for error in report.errors:
        print("   not tested:", error[:600])


if __name__ == "__main__":
    sys.exit(main())
