"""`make chaos`: real processes and a real Redis, hurt at random under load, from a seed that is printed.

The seed decides which faults come in which order. When they meet which step of the platform is up to the machine, so a
run cannot be repeated exactly; the World (`make prove`) is for that.
"""

import argparse
import os
import sys
from contextlib import nullcontext

from docker.engine import running, why_no_engine

from .run import Report, drawn_for, percentiles, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--quiet", action="store_true", help="no line for each fault")
    parser.add_argument("--docker", action="store_true", help="the workers are containers, the engine is hurt too")
    asked = parser.parse_args()
    if asked.docker and (reason := why_no_engine()):
        parser.error(reason)
    print(f"seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    with running() if asked.docker else nullcontext() as engine:
        say = (lambda line: None) if asked.quiet else _say
        report = run(asked.seed, drawn_for(asked.minutes * 60), say, engine=engine)
    tell(report)
    return 1 if report.broken else 0


def _say(line: str) -> None:
    print(line, flush=True)


def tell(report: Report) -> None:
    if report.left_out:
        print(f"NOT TRIED: disk full, power cut ({report.left_out})")
    print(f"{'fault':18} {'probes':>6} {'p50 s':>7} {'p99 s':>7} {'max s':>7}")
    everything = [seconds for found in report.recoveries.values() for seconds in found]
    for kind, found in [*sorted(report.recoveries.items()), ("all", everything)]:
        half, most = percentiles(found)
        print(f"{kind:18} {len(found):6} {half:7.2f} {most:7.2f} {max(found, default=0):7.2f}")
    hourly = len(report.faults) / max(report.seconds, 1) * 3_600
    print(
        f"{len(report.faults):,} faults in {report.seconds / 60:.1f} minutes ({hourly:,.0f} an hour); "
        f"{report.messages:,} messages, {report.on_the_wire:,} on the wire, {report.repeated} of them more than once "
        f"after a recorded unknown; {report.unknown} outcomes were unknown at first, {report.suppressed} messages "
        f"suppressed; `up` started again {report.up_restarted} times"
    )
    for what in report.broken[:20]:
        print("   ", what)
    zero = f" (so, with 95 % confidence, fewer than {min(100, 300 / max(1, report.messages)):.2g} % of messages)"
    print(f"broken promises: {len(report.broken)}{'' if report.broken else zero}")


if __name__ == "__main__":
    sys.exit(main())
