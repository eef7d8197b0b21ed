"""`make soak`: a month of a large fleet in virtual time. Is memory flat, and are all books balanced every evening?

    python -m paceline.testing.soak --numbers 1000 --days 30 --messages 3000000

Each morning a job for the whole fleet is posted; there is some trouble all day, and every night all workers are started
anew. What was sent that day is then held against what was accepted, and forgotten here, as memory is what is measured.
Redis counts its TTLs in real time, so each evening a day is taken off every TTL. They and the workers' journals are
shortened to a few days, the stream of events to one: what is kept for a month by default could not show in a month that
it is freed.
"""

import argparse
import gc
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from unittest.mock import patch

import msgspec

from paceline.dispatcher.fleet import FLEET_AGE_MS, OLDEST
from paceline.kits.logging import silence
from paceline.orchestrator.days import ZONE_AGE_MS
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.policy.trust import DAY_MS, parse
from paceline.settings import read_policy
from paceline.store import keys
from paceline.store.blocking import BlockingRedis
from paceline.store.scripts import ScriptConfig
from paceline.testing import judges_soak
from paceline.testing.crowd import CrowdLink, CrowdSim
from paceline.testing.plans import HOUR_MS, MIDNIGHTS_MS, JobPlan, PhonePlan, Scenario
from paceline.testing.servers import private_redis
from paceline.testing.steps import Faults
from paceline.testing.world import World
from paceline.worker.drivers.config import Behaviour

KEPT_DAYS = 2
START_MS = MIDNIGHTS_MS[3] + 7 * HOUR_MS
"""Seven in the morning in London, where the whole fleet lives: its hot numbers begin to send."""
TROUBLE = Behaviour(
    lost_ack=0.001, slow_ack=0.001, disconnect_before=0.001, disconnect_after=0.0005, not_registered=0.002
)
FLAT = 1.1
"""The last third of the days may take so much more than the third before it."""
_SETTLED_LISTS = ("told", "wrote", "proven")


class Day(msgspec.Struct, frozen=True):
    number: int
    sent: int
    redis_mb: float
    process_mb: float
    seconds: float
    own_seconds: float
    """Of processor time, of this process; beside it that of its Redis. A pause does not count there."""
    redis_seconds: float
    trace: int
    """Who ran when since the first day: two soaks with the same one went the same way."""
    faults: list[str]


class SoakWorld(World):
    # A word every few hours: four million pings would be most of the work.
    liveness_ms = 8 * HOUR_MS
    ping_ms = 3 * HOUR_MS
    # As in production, with a picture of the fleet as old as that of twenty thousand numbers may be.
    route_ahead = ROUTE_AHEAD
    zone_age_ms = ZONE_AGE_MS
    fleet_age_ms = FLEET_AGE_MS * OLDEST
    # A task is handed over a second and more before its slot, so nobody sends later for it.
    rest_ms = 100
    simulator = CrowdSim
    link = CrowdLink

    def config(self) -> ScriptConfig:
        kept_s = KEPT_DAYS * DAY_MS // 1000
        a_day = len(self.scenario.jobs[0].contacts)
        return msgspec.structs.replace(
            super().config(),
            message_ttl=kept_s,
            job_ttl=kept_s,
            session_days_ttl=kept_s,
            events_kept=a_day,
        )


def scenario(numbers: int, days: int, messages: int) -> Scenario:
    people = [f"4478{number:08d}" for number in range(messages // days)]
    jobs = [
        JobPlan(
            name=f"day-{day}", at_ms=START_MS + day * DAY_MS + 60_000, contacts=people, priority=1,
            on_unknown="resend", validity_seconds=2 * DAY_MS // 1000,
        )
        for day in range(days)
    ]  # fmt: skip
    return Scenario(
        seed=1, policy=parse(read_policy("default")), start_ms=START_MS, lease_ms=120_000, jobs=jobs,
        phones=[PhonePlan(f"4477{n:08d}", f"s{n}", 60 * DAY_MS, "Europe/London") for n in range(numbers)],
        suppressions=[], cancels=[], outage=(START_MS, 0), behaviour=TROUBLE,
        faults=Faults(crash=2e-6, lose_reply=1e-5, refuse=1e-5, until_ms=2**62),
    )  # fmt: skip


def soak(redis: BlockingRedis, numbers: int, days: int, messages: int) -> Iterator[Day]:
    world = SoakWorld(scenario(numbers, days, messages), redis)
    with world.failing(), _adapted_workers(), _no_collecting():
        for number in range(days):
            began = _clocks(redis)
            evening_ms = START_MS + (number + 1) * DAY_MS
            world.sim.run(lambda: False, deadline_ms=evening_ms, max_steps=2**62)
            faults = [*judges_soak.balance(world, number), *judges_soak.pace(world)]
            sent = sum(len(book.lines) for book in world.ledgers.values())
            _start_anew(world)
            gc.collect()
            _take_a_day_off(redis)
            used = int(redis.read(("INFO", "memory"))[0]["used_memory"])
            wall, own, theirs = (now - before for now, before in zip(_clocks(redis), began, strict=True))
            yield Day(number + 1, sent, used / 2**20, _own_mb(), wall, own, theirs, world.sim.trace, faults)


@contextmanager
def _adapted_workers() -> Iterator[None]:
    """Volumes are in memory here, so a worker's journal must not keep its month either; and nobody asks a worker to
    stop, so it need not look up every second while it waits for its turn, nor every hour while it has nothing to do."""
    with (
        patch("paceline.worker.book.KEEP_MS", KEPT_DAYS * DAY_MS),
        patch("paceline.worker.sender._NAP_MS", HOUR_MS),
        patch("paceline.testing.ports.CLAIM_WAIT_MS", 8 * HOUR_MS),
    ):
        yield


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Python looks for circles among millions of objects in the evening instead of all day."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _clocks(redis: BlockingRedis) -> tuple[float, float, float]:
    """In seconds: the one on the wall, and the processor's that this process and its Redis have used."""
    used = redis.read(("INFO", "cpu"))[0]
    return time.monotonic(), time.process_time(), float(used["used_cpu_sys"]) + float(used["used_cpu_user"])


def _own_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _start_anew(world: SoakWorld) -> None:
    """What the World itself remembers of the day goes, and with every worker what that remembered."""
    for book in world.ledgers.values():
        book.lines.clear()
        book.refusals.clear()
    for name in _SETTLED_LISTS:
        getattr(world.outside, name).clear()
    for plan in world.scenario.phones:
        world.sim.kill(world.workers.of(plan.session))


def _take_a_day_off(redis: BlockingRedis) -> None:
    # In production the audit trail is copied to a file and freed all the time.
    redis.read(("XTRIM", keys.audit(), "MAXLEN", 0))
    cursor = "0"
    while True:
        cursor, found = redis.read(("SCAN", cursor, "COUNT", 5_000))[0]
        left = redis.read(*[("PTTL", key) for key in found]) if found else []
        changes = [
            ("UNLINK", key) if ms <= DAY_MS else ("PEXPIRE", key, ms - DAY_MS)
            for key, ms in zip(found, left, strict=True)
            if ms > 0
        ]
        if changes:
            redis.read(*changes)
        if str(cursor) == "0":
            return


def growth(values: list[float]) -> float:
    """How much the last third takes, of what the third before it took."""
    third = max(1, len(values) // 3)
    return mean(values[-third:]) / mean(values[-2 * third : -third] or values[-third:])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="A month of a large fleet in virtual time.")
    parser.add_argument("--numbers", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--messages", type=int, default=3_000_000, help="in all; at most 100,000 a day")
    asked = parser.parse_args(arguments)
    silence()
    days: list[Day] = []
    print(_row("day", "sent", "Redis MB", "own MB", "seconds", "own CPU", "Redis CPU"), flush=True)
    with private_redis() as redis:
        for day in soak(redis, asked.numbers, asked.days, asked.messages):
            days.append(day)
            memory = (f"{mb:.1f}" for mb in (day.redis_mb, day.process_mb))
            times = (f"{seconds:.0f}" for seconds in (day.seconds, day.own_seconds, day.redis_seconds))
            print(_row(str(day.number), f"{day.sent:,}", *memory, *times), flush=True)
            for fault in day.faults[:5]:
                print(f"     {fault}", flush=True)
    return _tell(days)


def _row(*cells: str) -> str:
    return " ".join(f"{cell:>9}" for cell in cells)


def _tell(days: list[Day]) -> int:
    sent, seconds = sum(day.sent for day in days), sum(day.seconds for day in days)
    faults = sum(len(day.faults) for day in days)
    grown = {"Redis": growth([day.redis_mb for day in days]), "process": growth([day.process_mb for day in days])}
    speed = len(days) * 86_400 / max(seconds, 0.001)
    print(
        f"{sent:,} messages on the wire in {len(days)} simulated days, simulated in {seconds / 60:.1f} minutes: "
        f"{sent / max(seconds, 0.001):.0f} messages a second, {speed:,.0f}x real time"
    )
    own, theirs = sum(day.own_seconds for day in days), sum(day.redis_seconds for day in days)
    print(
        f"processor time: {own / 60:.1f} minutes of this process and {theirs / 60:.1f} of Redis, "
        f"{1000 * own / max(sent, 1):.2f} + {1000 * theirs / max(sent, 1):.2f} ms a message"
    )
    print(
        "memory, last third of the days against the third before: "
        + ", ".join(f"{k} {v:.3f}" for k, v in grown.items())
    )
    print(f"books that did not balance: {faults}")
    return 1 if faults or max(grown.values()) > FLAT else 0


if __name__ == "__main__":
    sys.exit(main())
