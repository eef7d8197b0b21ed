"""What happens in one run of the World, drawn from its seed: the fleet, the jobs, what people press and what breaks."""

from random import Random

import msgspec

from paceline.policy.trust import DAY_MS, Level, Policy
from paceline.testing.sim import Faults
from paceline.worker.drivers.config import Behaviour

START_MS = 1_792_998_000_000
"""2026-10-26 09:00 in London, the Monday after the clocks went back; hours later they differ between continents."""
MINUTE_MS = 60_000

FAST = Policy(name="fast", levels=(Level("only", 30, (1_000, 2_000)),), typing_ms=(0, 500), burst_limit=0)
BURSTY = Policy(name="bursty", levels=(Level("only", 20, (2_000, 4_000)),), typing_ms=(200, 1_500))
TIGHT = Policy(
    name="tight",
    levels=(
        Level("cold", 6, (6_000, 9_000), max_age_days=3, daily_cap=4, hours=(9, 11)),
        Level("hot", 10, (4_000, 6_000), daily_cap=7, hours=(8, 12)),
    ),
    recipient_hours=(9, 20),
    typing_ms=(500, 2_000),
)


class PhonePlan(msgspec.Struct, frozen=True):
    phone: str
    session: str
    age_ms: int
    timezone: str


class JobPlan(msgspec.Struct, frozen=True):
    at_ms: int
    contacts: list[str]
    priority: int
    on_unknown: str
    validity_seconds: int
    single: bool = False


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    policy: Policy
    phones: list[PhonePlan]
    jobs: list[JobPlan]
    suppressions: list[tuple[int, str]]
    """When somebody says stop."""
    cancels: list[tuple[int, int]]
    """When the n-th job is canceled."""
    behaviour: Behaviour
    faults: Faults
    lease_ms: int
    start_ms: int = START_MS
    lost_volumes: bool = False
    """A worker that crashes may lose its journal with its volume."""


def draw(seed: int) -> Scenario:
    rng = Random(seed)
    policy = rng.choice([FAST, FAST, BURSTY, TIGHT])
    hold_only = rng.random() < 0.4
    jobs = [_job(rng, hold_only) for _ in range(rng.randint(1, 3))]
    everybody = [to for job in jobs for to in job.contacts]
    return Scenario(
        seed=seed,
        policy=policy,
        phones=[_phone(rng, number) for number in range(rng.randint(1, 3))],
        jobs=jobs,
        suppressions=[(_soon(rng), rng.choice(everybody)) for _ in range(rng.choice([0, 0, 1, 2]))],
        cancels=[(_soon(rng), rng.randrange(len(jobs)))] if rng.random() < 0.3 else [],
        behaviour=_behaviour(rng, dedupe=not hold_only),
        faults=_faults(rng),
        lease_ms=rng.choice([20_000, 120_000]),
        lost_volumes=rng.random() < 0.15,
    )


def _phone(rng: Random, number: int) -> PhonePlan:
    zone = rng.choice(["Europe/London", "Asia/Jerusalem", "America/New_York"])
    age_ms = rng.choice([DAY_MS // 2, 30 * DAY_MS])
    return PhonePlan(f"44770090{number:04d}", f"s{number}", age_ms, zone)


def _job(rng: Random, hold_only: bool) -> JobPlan:
    single = rng.random() < 0.25
    first = rng.randrange(9_000)
    contacts = [f"9725{first + number:08d}" for number in range(1 if single else rng.randint(2, 14))]
    return JobPlan(
        at_ms=START_MS + rng.randint(0, 3 * MINUTE_MS),
        contacts=contacts,
        priority=rng.choice([1, 1, 1, 2, 3]),
        on_unknown="hold" if hold_only or rng.random() < 0.3 else "resend",
        validity_seconds=rng.choice([60, 3_600, 30 * 86_400, 30 * 86_400]),
        single=single,
    )


def _soon(rng: Random) -> int:
    return START_MS + rng.randint(0, 5 * MINUTE_MS)


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
        delivered_delay_ms=(300, 5_000),
        read_delay_ms=(2_000, 120_000),
    )


def _faults(rng: Random) -> Faults:
    level = rng.choice([0.0, 0.002, 0.01, 0.03])
    return Faults(
        crash=level,
        lose_reply=level,
        refuse=level,
        freeze=level / 4,
        until_ms=START_MS + rng.randint(2, 20) * MINUTE_MS,
    )
