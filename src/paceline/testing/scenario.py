"""What happens in one run of the World, drawn from its seed: the fleet, the jobs, what people press and what breaks."""

from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

import msgspec

from paceline.policy.trust import DAY_MS, Level, Policy
from paceline.testing.sim import Faults
from paceline.worker.drivers.config import Behaviour

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
MIDNIGHTS_MS = (1_792_886_400_000, 1_793_491_200_000, 1_806_105_600_000, 1_794_700_800_000)
"""Midnight UTC of the days on which the clocks go back in Europe and in America, of the day before they go forward in
Europe, and of an ordinary Sunday."""
COUNTRIES = ("9725", "9725", "9725", "8190", "1808")
"""Israel, Japan, Hawaii: awake at different hours, and some never together with some numbers."""

FAST = Policy(name="fast", levels=(Level("only", 12, (1_000, 2_000)),), typing_ms=(0, 500), burst_limit=0)
BURSTY = Policy(name="bursty", levels=(Level("only", 20, (2_000, 4_000)),), typing_ms=(200, 1_500))
TIGHT = Policy(
    name="tight",
    levels=(
        Level("cold", 6, (6_000, 9_000), max_age_days=3, daily_cap=8, hours=(9, 11)),
        Level("hot", 10, (4_000, 6_000), daily_cap=14, hours=(8, 12)),
    ),
    recipient_hours=(9, 20),
    typing_ms=(500, 2_000),
)


class PhonePlan(msgspec.Struct, frozen=True):
    """A number and one of its sessions; a number with two of them stands here twice."""

    phone: str
    session: str
    age_ms: int
    timezone: str


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    at_ms: int
    contacts: list[str]
    priority: int
    on_unknown: str
    validity_seconds: int
    single: bool = False
    delay_ms: int = 0
    """Its `sendAt`, counted from when it is posted."""
    spread_minutes: int = 0

    @property
    def text(self) -> str:
        return f"text of {self.name}"


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    policy: Policy
    phones: list[PhonePlan]
    jobs: list[JobPlan]
    suppressions: list[tuple[int, str]]
    """When somebody says stop."""
    cancels: list[tuple[int, int]]
    """When the n-th job is canceled."""
    outage: tuple[int, int]
    """From when and for how long the first number's worker stands still."""
    behaviour: Behaviour
    faults: Faults
    lease_ms: int
    start_ms: int
    lost_volumes: bool = False
    """A worker that crashes may lose its journal with its volume."""


def draw(seed: int) -> Scenario:
    """The run of a seed; negative ones are the drills."""
    if seed < 0:
        return DRILLS[-seed - 1]
    rng = Random(seed)
    policy = rng.choice([FAST, BURSTY, TIGHT, TIGHT])
    hold_only = rng.random() < 0.4
    phones = [_phone(rng, number) for number in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        phones.append(msgspec.structs.replace(phones[0], session="second"))
    start_ms, outage = _start(rng, phones[0].timezone)
    jobs = [_job(rng, f"job-{number}", hold_only, start_ms) for number in range(rng.randint(1, 3))]
    everybody = [to for job in jobs for to in job.contacts]
    return Scenario(
        seed=seed,
        policy=policy,
        start_ms=start_ms,
        phones=phones,
        outage=outage,
        jobs=jobs,
        suppressions=[(_soon(rng, start_ms), rng.choice(everybody)) for _ in range(rng.choice([0, 0, 1, 2]))],
        cancels=[(_soon(rng, start_ms), rng.randrange(len(jobs)))] if rng.random() < 0.3 else [],
        behaviour=_behaviour(rng, dedupe=not hold_only),
        faults=_faults(rng, start_ms),
        lease_ms=rng.choice([20_000, 120_000]),
        lost_volumes=rng.random() < 0.15,
    )


def _phone(rng: Random, number: int) -> PhonePlan:
    zone = rng.choice(["Europe/London", "Asia/Jerusalem", "America/New_York"])
    age_ms = rng.choice([DAY_MS // 2, 30 * DAY_MS])
    return PhonePlan(f"44770090{number:04d}", f"s{number}", age_ms, zone)


def _start(rng: Random, zone: str) -> tuple[int, tuple[int, int]]:
    """Any hour of a day worth looking at, with the worker away for minutes; or shortly before the first number closes,
    with its worker away at that very moment."""
    midnight = rng.choice(MIDNIGHTS_MS)
    if rng.random() < 0.5:
        start = midnight + rng.randrange(24 * HOUR_MS)
        return start, (start + rng.randrange(5 * MINUTE_MS), rng.randrange(6 * MINUTE_MS))
    local = datetime.fromtimestamp(midnight / 1000, ZoneInfo(zone)).replace(hour=rng.choice([11, 12]), minute=0)
    closing = round(local.timestamp() * 1000)
    start = closing - rng.randint(MINUTE_MS, 5 * MINUTE_MS)
    return start, (closing - rng.randrange(20_000), rng.randrange(50_000))


def _job(rng: Random, name: str, hold_only: bool, start_ms: int) -> JobPlan:
    single = rng.random() < 0.25
    first = rng.randrange(9_000)
    most = rng.choice([14, 14, 30])
    country = rng.choice(COUNTRIES)
    digits = 11 if country == "1808" else 12
    contacts = [f"{country}{first + number:0{digits - 4}d}" for number in range(1 if single else rng.randint(2, most))]
    return JobPlan(
        name=name,
        at_ms=start_ms + rng.randint(0, 3 * MINUTE_MS),
        contacts=contacts,
        priority=rng.choice([1, 1, 1, 2, 3]),
        # A single send cannot ask for `hold`.
        on_unknown="hold" if not single and (hold_only or rng.random() < 0.3) else "resend",
        validity_seconds=rng.choice([60, 3_600, 30 * 86_400, 30 * 86_400]),
        single=single,
        delay_ms=rng.choice([0, 0, 0, 4 * MINUTE_MS]),
        spread_minutes=rng.choice([0, 0, 0, 6]),
    )


def _soon(rng: Random, start_ms: int) -> int:
    return start_ms + rng.randint(0, 5 * MINUTE_MS)


def _behaviour(rng: Random, *, dedupe: bool) -> Behaviour:
    trouble = rng.choice([0.0, 0.02, 0.1])
    return Behaviour(
        dedupe=dedupe,
        ack_delay_ms=(20, 800),
        lost_ack=trouble,
        slow_ack=trouble,
        slow_ack_delay_ms=(1_000, 40_000),
        disconnect_before=trouble,
        disconnect_after=trouble,
        not_registered=trouble / 2,
        restricted=trouble / 4,
        rate_limit=trouble / 4,
        delivered_ratio=rng.choice([1.0, 0.7]),
        delivered_delay_ms=rng.choice([(300, 5_000), (300, 90_000)]),
        read_delay_ms=(2_000, 120_000),
    )


def _faults(rng: Random, start_ms: int) -> Faults:
    level = rng.choice([0.0, 0.002, 0.01, 0.03])
    return Faults(
        crash=level,
        lose_reply=level,
        refuse=level,
        freeze=level / 4,
        until_ms=start_ms + rng.randint(2, 20) * MINUTE_MS,
    )


# Drills: runs made for one rule each, in an otherwise quiet world, so that no rule waits for chance to be looked at.


def _drill(
    number: int, policy: Policy, jobs: list[JobPlan], *, start_ms: int, outage: tuple[int, int] | None = None
) -> Scenario:
    return Scenario(
        seed=-number,
        policy=policy,
        start_ms=start_ms,
        phones=[PhonePlan("447700900000", "s0", 30 * DAY_MS, "Europe/London")],
        jobs=jobs,
        suppressions=[],
        cancels=[],
        outage=outage or (start_ms, 0),
        behaviour=Behaviour(ack_delay_ms=(20, 200)),
        faults=Faults(),
        lease_ms=120_000,
    )


def _plain_job(name: str, at_ms: int, count: int, priority: int = 1) -> JobPlan:
    contacts = [f"97250{priority}{number:06d}" for number in range(count)]
    return JobPlan(
        name=name, at_ms=at_ms, contacts=contacts, priority=priority, on_unknown="resend", validity_seconds=864_000
    )


def _drills() -> list[Scenario]:
    # In London, a few hours after the clocks went back: the hour at which TIGHT closes.
    noon = MIDNIGHTS_MS[0] + 12 * HOUR_MS
    early = noon - 2 * HOUR_MS
    busy = [_plain_job("many", early, 30)]
    # Something urgent again and again: at one moment there may be nothing in the queue that it could overtake.
    urgent = [_plain_job(f"high-{after}", early + after * 1_000, 4, priority=3) for after in (25, 60, 75, 120)]
    mixed = [_plain_job("low", early, 60), *urgent]
    drills = [_drill(1, FAST, busy, start_ms=early), _drill(2, BURSTY, mixed, start_ms=early)]
    for number in range(3, 9):
        start = noon - MINUTE_MS
        away = (noon - number * 1_500, 20_000)
        drills.append(_drill(number, TIGHT, [_plain_job("late", start, 12)], start_ms=start, outage=away))
    return drills


DRILLS = _drills()
