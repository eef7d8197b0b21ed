"""What drills are made of: a few numbers in London, people in Israel, and nothing else unless it is asked for."""

from typing import Any

from paceline.policy.trust import DAY_MS, Policy
from paceline.testing.plans import HOUR_MS, MIDNIGHTS_MS, Deed, DeedKind, JobPlan, PhonePlan, Scenario
from paceline.testing.steps import Faults
from paceline.worker.drivers.config import Behaviour

NOON = MIDNIGHTS_MS[0] + 12 * HOUR_MS
"""In London, a few hours after the clocks went back: the hour at which TIGHT closes."""
EARLY = NOON - 2 * HOUR_MS


def drill(
    number: int,
    policy: Policy,
    jobs: list[JobPlan],
    *,
    start_ms: int,
    outage: tuple[int, int] | None = None,
    phones: int = 1,
    behaviour: Behaviour | None = None,
    faults: Faults | None = None,
    **more: Any,
) -> Scenario:
    return Scenario(
        seed=-number,
        policy=policy,
        start_ms=start_ms,
        phones=[PhonePlan(f"44770090000{n}", f"s{n}", 30 * DAY_MS, "Europe/London") for n in range(phones)],
        jobs=jobs,
        suppressions=[],
        cancels=[],
        outage=outage or (start_ms, 0),
        behaviour=behaviour or Behaviour(ack_delay_ms=(20, 200)),
        faults=faults or Faults(),
        lease_ms=120_000,
        **more,
    )


def plain_job(name: str, at_ms: int, count: int, priority: int = 1, **more: Any) -> JobPlan:
    contacts = [f"97250{priority}{number:06d}" for number in range(count)]
    return JobPlan(
        name=name,
        at_ms=at_ms,
        contacts=contacts,
        priority=priority,
        on_unknown="resend",
        validity_seconds=864_000,
        **more,
    )


def after(seconds: int, kind: DeedKind, which: int = 0, value: Any = None) -> Deed:
    return Deed(at_ms=EARLY + seconds * 1_000, kind=kind, which=which, value=value)
