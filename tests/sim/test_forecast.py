"""The honest ETA: what a caller is told at accept, and again half way, against what happens in virtual time.

The forecast does not know which attempts will fail, how many, who has no WhatsApp, and when workers are away: at accept
these fleets have no past, and half way it has seen what their numbers keep. What it is off by most: a job of two
minutes that ends with a retry of one; a list whose first third is sticky to one of three numbers (it waits for room
there); and half way, a job whose last task lies somewhere in the queues among those of others.
"""

from dataclasses import replace
from functools import cache

import msgspec
import pytest

from paceline.domain.jobs import Contact
from paceline.gateway.picture import Picture
from paceline.policy.audience import zones_of_contacts
from paceline.policy.facts import Rules
from paceline.policy.trust import DAY_MS
from paceline.policy.turns import Other
from paceline.store.pacers import FleetPhone
from paceline.testing.scenario import BURSTY, MIDNIGHTS_MS, JobPlan, PhonePlan, Scenario
from paceline.testing.servers import private_redis
from paceline.testing.sim import Faults
from paceline.testing.world import Limits, World
from paceline.worker.drivers.config import Behaviour

from .fast import Fast, Number, Running, Trouble
from .fleets import Given, fleets, job

HALF, MOST = 0.05, 0.15
"""What half of the estimates and nine in ten may be off, as a share of the job's duration."""
SEEDS = (20, 21, 22)
"""Together, since one failure at the wrong moment moves a job's end by a day: a single seed says little about nine in
ten."""


class Row(msgspec.Struct, frozen=True):
    fleet: str
    job: str
    when: str
    hours: float
    estimate_hours: float

    @property
    def off(self) -> float:
        return (self.estimate_hours - self.hours) / self.hours


def picture(fast: Fast) -> Picture:
    """As the gateway sees it: facts, queues, and what lies at the jobs' cursors."""
    phones = [FleetPhone(number.facts(fast.now), number.queued, number.parked) for number in fast.numbers.values()]
    unrouted = {id_: other(run) for id_, run in fast.jobs.items() if run.cursor < len(run.contacts)}
    return Picture(phones, unrouted, fast.rules)


def other(run: Running) -> Other:
    job = run.job
    each_ms = job.spread_minutes * 60_000 / job.total
    return Other(job.total - run.cursor, job.priority, job.phone, next_ms=job.scheduled_at(run.cursor), each_ms=each_ms)


def held_by(fast: Fast, id_: str) -> frozenset[str]:
    """The numbers that have some of it in their queues; what is parked there may be anybody's."""
    return frozenset(
        number.phone
        for number in fast.numbers.values()
        if number.parked or any(task.job.job_id == id_ for queue in number.queues for task in queue)
    )


def estimates(fast: Fast) -> dict[str, int | None]:
    """Of the jobs that have not ended, from the code that answers POST and GET /v1/jobs."""
    seen = picture(fast)
    found = {}
    for id_, run in fast.jobs.items():
        if run.ended_at is None:
            told = msgspec.structs.replace(run.job, zones=zones_of_contacts(run.contacts))
            rest = len(run.contacts) - run.cursor
            found[id_] = seen.job(told, rest, now_ms=fast.now, held_by=held_by(fast, id_), busy=run.left).finish_ms
    return found


def rows_of(given: Given, seed: int) -> list[Row]:
    fast = Fast(given.rules, given.numbers, start_ms=given.start, seed=seed, trouble=given.trouble, sticky=given.sticky)
    for accepted, contacts in given.jobs:
        fast.accept(accepted, contacts)
    told = [("accept", estimates(fast))]
    size = sum(len(contacts) for _, contacts in given.jobs)
    fast.run(lambda: sum(run.left for run in fast.jobs.values()) <= size // 2, deadline_ms=given.start + 60 * DAY_MS)
    told.append(("half way", estimates(fast)))
    fast.run(fast.everything_ended, deadline_ms=given.start + 60 * DAY_MS)
    rows = []
    for when, found in told:
        for id_, estimate in found.items():
            end = fast.jobs[id_].ended_at
            assert end is not None, (given.name, id_)
            assert estimate is not None, (given.name, id_)
            rows.append(Row(given.name, id_, when, _hours(end - given.start), _hours(estimate - given.start)))
    return rows


def _hours(ms: int) -> float:
    return ms / 3_600_000


@cache
def table(*, calm: bool) -> list[Row]:
    quiet = Trouble()
    chosen = [(given, seed) for seed in (SEEDS[:1] if calm else SEEDS) for given in fleets()]
    return [row for given, seed in chosen for row in rows_of(replace(given, trouble=quiet) if calm else given, seed)]


def percentiles(rows: list[Row], title: str, capsys: pytest.CaptureFixture[str]) -> tuple[float, float]:
    """p50 and p90 of how far off they are; prints the table."""
    off = sorted(abs(row.off) for row in rows)
    half, most = off[len(off) // 2], off[len(off) * 9 // 10]
    with capsys.disabled():
        print(f"\n{'fleet':32} {'job':4} {'took h':>8} {'told h':>8} {'off %':>8}   ({title})")
        for row in rows:
            print(f"{row.fleet:32} {row.job:4} {row.hours:8.2f} {row.estimate_hours:8.2f} {100 * row.off:+8.1f}")
        print(f"{len(off)} estimates, {title}: p50 {100 * half:.1f} %, p90 {100 * most:.1f} %")
    assert len({row.fleet for row in rows}) >= 20
    return half, most


@pytest.mark.parametrize("when", ["accept", "half way"])
@pytest.mark.parametrize("calm", [pytest.param(True, id="calm"), pytest.param(False, id="trouble")])
def test_the_honest_eta(calm: bool, when: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the estimates within 5 % of the job's duration, nine in ten within 15 %, calm or with trouble."""
    title = f"{'calm' if calm else 'trouble'}, {when}"
    half, most = percentiles([row for row in table(calm=calm) if row.when == when], title, capsys)
    assert half <= HALF
    assert most <= MOST


def test_the_fast_platform_is_the_world() -> None:
    """The same small job takes as long in the World, with store, scripts, workers and all, as one event per message."""
    start = MIDNIGHTS_MS[0] + 12 * 3_600_000
    people = [f"97250{number:07d}" for number in range(60)]
    phones = [PhonePlan(f"44770090000{index}", f"s{index}", 30 * DAY_MS, "Europe/London") for index in (0, 1)]
    behaviour = Behaviour(ack_delay_ms=(50, 450))
    plan = JobPlan(
        name="one", at_ms=start + 60_000, contacts=people, priority=1, on_unknown="resend", validity_seconds=864_000
    )
    scenario = Scenario(
        seed=5, policy=BURSTY, phones=phones, jobs=[plan], suppressions=[], cancels=[], outage=(start, 0),
        behaviour=behaviour, faults=Faults(), lease_ms=120_000, start_ms=start,
    )  # fmt: skip
    with private_redis() as redis:
        world = World(scenario, redis)
        assert world.run(Limits())
        (job_id,) = world.jobs
        (view,) = world.ask(lambda store: store.jobs.view(job_id))
    world_ms = int(float(view.run["closedAt"])) - plan.at_ms
    numbers = [Number(phone.phone, start - phone.age_ms, phone.timezone) for phone in phones]
    fast = Fast(
        Rules(BURSTY, liveness_ms=900_000), numbers, start_ms=plan.at_ms, seed=5, trouble=Trouble(ack_ms=(50, 450))
    )
    fast.accept(*job(plan.at_ms, [Contact(to) for to in people]))
    fast.run(fast.everything_ended, deadline_ms=start + DAY_MS)
    ended_at = fast.jobs["a"].ended_at
    assert ended_at is not None
    assert ended_at - plan.at_ms == pytest.approx(world_ms, rel=0.05)
