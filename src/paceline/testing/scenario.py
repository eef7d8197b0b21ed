"""What happens in one run of the World, drawn from its seed: the fleet, the jobs, what people press and what breaks."""

from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

import msgspec

from paceline.domain.jobs import Strategy
from paceline.policy.trust import DAY_MS, Policy, parse
from paceline.settings import read_policy
from paceline.testing import quiet
from paceline.testing.around import draw_around, draw_fleet, draw_jumps, draw_stop_words, with_files
from paceline.testing.drills import DRILLS
from paceline.testing.plans import (
    BURSTY,
    FAST,
    GROWING,
    HOUR_MS,
    MIDNIGHTS_MS,
    MINUTE_MS,
    TIGHT,
    JobPlan,
    PhonePlan,
    Scenario,
)
from paceline.testing.presses import draw_deeds
from paceline.testing.steps import Faults
from paceline.worker.drivers.config import Behaviour

__all__ = ["DRILLS", "draw"]

COUNTRIES = ("9725", "9725", "9725", "8190", "1808")
"""Israel, Japan, Hawaii: awake at different hours, and some never together with some numbers."""
PRESETS = (parse(read_policy("default")), parse(read_policy("distribution")))
STRATEGIES: tuple[Strategy | None, ...] = (None, None, "sticky", "least_loaded", "health_based", "round_robin")


def draw(seed: int) -> Scenario:
    """The run of a seed; negative ones are the drills."""
    if seed < 0:
        return DRILLS[-seed - 1]
    if quiet.is_drawn(seed):
        return quiet.draw_quiet(seed)
    rng = Random(seed)
    policy = rng.choice([FAST, FAST, BURSTY, GROWING, GROWING, TIGHT, TIGHT, *PRESETS])
    hold_only = rng.random() < 0.4
    phones = [_phone(rng, number, policy) for number in range(rng.choice([1, 2, 2, 3, 4]))]
    if rng.random() < 0.3:
        phones.append(msgspec.structs.replace(phones[0], session="second"))
    start_ms, outage = _start(rng, phones[0].timezone, policy)
    most = 8 if policy in PRESETS else rng.choice([14, 14, 30])
    jobs = [
        _job(rng, f"job-{number}", start_ms, most, hold_only=hold_only, phones=[plan.phone for plan in phones])
        for number in range(rng.randint(1, 3))
    ]
    jobs = with_files(seed, _overlapping(rng, jobs))
    everybody = [to for job in jobs for to in job.contacts]
    deeds = draw_deeds(rng, start_ms, len(phones), jobs) if rng.random() < 0.6 else []
    around, more = draw_around(seed, start_ms), draw_stop_words(seed, start_ms, len(phones), jobs)
    return Scenario(
        seed=seed,
        policy=policy,
        start_ms=start_ms,
        phones=phones,
        outage=outage,
        jobs=jobs,
        suppressions=[(_soon(rng, start_ms), rng.choice(everybody)) for _ in range(rng.choice([0, 0, 1, 2]))],
        cancels=[(_soon(rng, start_ms), rng.randrange(len(jobs)))] if rng.random() < 0.2 else [],
        behaviour=_stormy(seed, _behaviour(rng, dedupe=not hold_only)),
        faults=_faults(rng, start_ms),
        lease_ms=rng.choice([20_000, 120_000]),
        lost_volumes=rng.random() < 0.15,
        deeds=[*deeds, *more, *draw_fleet(seed, start_ms, len(phones), around), *draw_jumps(seed, start_ms)],
        api=rng.random() < 0.33,
        global_rpm=rng.choice([0, 0, 0, 4, 6]),
        frequency=rng.choice([(0, 0), (0, 0), (1, 10 * MINUTE_MS), (2, HOUR_MS)]),
        guard_tick_ms=rng.choice([0, 60_000, 90_000]),
        restores=rng.random() < 0.5,
        patience_ms=rng.randint(1, 12) * MINUTE_MS,
        around=around,
    )


def _phone(rng: Random, number: int, policy: Policy) -> PhonePlan:
    """Young, old, or about to grow up within the run."""
    zone = rng.choice(["Europe/London", "Asia/Jerusalem", "America/New_York"])
    bounds = [level.max_age_days for level in policy.levels if level.max_age_days]
    ages = [DAY_MS // 2, 30 * DAY_MS]
    if bounds:
        ages += [round(rng.choice(bounds) * DAY_MS) - rng.choice([0, rng.randrange(10 * MINUTE_MS)])] * 2
    return PhonePlan(f"44770090{number:04d}", f"s{number}", rng.choice(ages), zone)


def _start(rng: Random, zone: str, policy: Policy) -> tuple[int, tuple[int, int]]:
    """Any hour of a day worth looking at, with the worker away for minutes; or shortly before the first number closes,
    with its worker away at that very moment."""
    midnight = rng.choice(MIDNIGHTS_MS)
    closing_hours = {level.hours[1] for level in policy.levels if level.hours}
    if rng.random() < 0.5 or not closing_hours:
        start = midnight + rng.randrange(24 * HOUR_MS)
        return start, (start + rng.randrange(5 * MINUTE_MS), rng.randrange(6 * MINUTE_MS))
    hour = rng.choice(sorted(closing_hours))
    local = datetime.fromtimestamp(midnight / 1000, ZoneInfo(zone)).replace(hour=hour, minute=0)
    closing = round(local.timestamp() * 1000)
    start = closing - rng.randint(MINUTE_MS, 5 * MINUTE_MS)
    return start, (closing - rng.randrange(20_000), rng.randrange(50_000))


def _job(rng: Random, name: str, start_ms: int, most: int, *, hold_only: bool, phones: list[str]) -> JobPlan:
    single = rng.random() < 0.25
    first = rng.randrange(9_000)
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
        strategy=None if single else rng.choice(STRATEGIES),
        phone=rng.choice([None, None, None, None, None, rng.choice(phones)]),
    )


def _overlapping(rng: Random, jobs: list[JobPlan]) -> list[JobPlan]:
    """Sometimes several jobs write to the same people."""
    if len(jobs) < 2 or rng.random() < 0.5:
        return jobs
    people = max((job.contacts for job in jobs), key=len)
    return [msgspec.structs.replace(job, contacts=people[: len(job.contacts)]) for job in jobs]


def _soon(rng: Random, start_ms: int) -> int:
    return start_ms + rng.randint(0, 5 * MINUTE_MS)


def _behaviour(rng: Random, *, dedupe: bool) -> Behaviour:
    trouble = rng.choice([0.0, 0.02, 0.1])
    limits = rng.random() < 0.5
    return Behaviour(
        dedupe=dedupe,
        ack_delay_ms=(20, 800),
        lost_ack=trouble,
        slow_ack=trouble,
        slow_ack_delay_ms=(1_000, 40_000),
        disconnect_before=trouble,
        disconnect_after=trouble,
        not_registered=trouble / 2,
        restricted=rng.choice([0.0, 0.02, 0.06]) if limits else 0.0,
        rate_limit=rng.choice([0.0, 0.02, 0.08]) if limits else trouble / 4,
        time_lock=rng.choice([0.0, 0.03, 0.1]) if limits else 0.0,
        time_lock_ms=rng.choice([10 * MINUTE_MS, HOUR_MS]),
        new_chats=rng.choice([0, 0, 4, 8]) if limits else 0,
        new_chats_cycle_ms=rng.choice([15 * MINUTE_MS, 4 * HOUR_MS]),
        ban=rng.choice([0.0, 0.0, 0.02, 0.06]) if limits else 0.0,
        delivered_ratio=rng.choice([1.0, 0.7]),
        delivered_delay_ms=rng.choice([(300, 5_000), (300, 90_000)]),
        read_delay_ms=(2_000, 120_000),
        reply_ratio=rng.choice([0.0, 0.0, 0.4]),
    )


def _stormy(seed: int, behaviour: Behaviour) -> Behaviour:
    """Now and then so much fails that SmartGuard has something to do."""
    if Random(f"storm {seed}").random() < 0.88:
        return behaviour
    return msgspec.structs.replace(behaviour, disconnect_before=0.45)


def _faults(rng: Random, start_ms: int) -> Faults:
    level = rng.choice([0.0, 0.002, 0.01, 0.03])
    return Faults(
        crash=level,
        lose_reply=level,
        refuse=level,
        freeze=level / 4,
        until_ms=start_ms + rng.randint(2, 20) * MINUTE_MS,
    )
