"""The fleet as Prometheus sees it, read when it asks: sessions, numbers, their budgets, what waits and for what.

One service tells it, the orchestrator: it is one truth, whoever reads it. Neighbours: `store.measure` reads it added
up, `catalogue` has the names.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from paceline.domain.reasons import Reason
from paceline.domain.sessions import Connection
from paceline.kits.clock import Clock
from paceline.kits.metrics import Reading
from paceline.policy import budget, hours
from paceline.policy.facts import Rules
from paceline.store.measure import Backlog, Fleet, PhoneDay
from paceline.store.store import Store
from paceline.telemetry import catalogue as names

RESTRICTIONS = ("NONE", "COOLDOWN", "TIME_LOCKED", "CAPPED", "QUARANTINED")
SOURCES = ("manual", "smartguard")
REASONS = (*Reason, "PARKED")
JOB_QUEUES = ("gateway", "priority", "active", "no_sessions")
MESSAGE_QUEUES = ("scheduled", "retry", "handing", "outbox")


class FleetReadings:
    def __init__(self, store: Store, rules: Rules, clock: Clock) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock

    async def read(self) -> Iterable[Reading]:
        now_ms = self._clock.now_ms()
        fleet = await self._store.measure.fleet(now_ms=now_ms, worst=names.WORST)
        backlog = await self._store.measure.backlog(now_ms=now_ms)
        unrouted = await self._store.rounds.unrouted()
        return [
            *_sessions(fleet),
            *_phones(fleet),
            *_days(fleet.days, self._rules, now_ms),
            *_backlog(backlog, now_ms),
            Reading(names.QUEUED, sum(job.rest for job in unrouted.values()), ("unrouted",)),
            Reading(names.QUEUED, fleet.queued, ("phones",)),
            Reading(names.QUEUED, fleet.parked, ("parked",)),
        ]


def _sessions(fleet: Fleet) -> Iterator[Reading]:
    # Every value each time, also at 0: a series that comes and goes cannot be told from one nobody reads any more.
    for connection in Connection:
        yield Reading(names.SESSIONS, fleet.connections.get(connection, 0), (connection,))
    yield Reading(names.SESSIONS_DOWN, fleet.down)
    for source in SOURCES:
        yield Reading(names.OVERRIDES, fleet.overrides.get(source, 0), (source,))
    yield Reading(names.WORKERS, fleet.workers)
    yield Reading(names.WORKER_MEMORY, fleet.memory)
    yield Reading(names.WORKER_MEMORY_MAX, fleet.memory_max)
    rows = [(one.session, one.sent, one.failed) for one in fleet.worst]
    for session, sent, failed in [*rows, (names.OTHERS, fleet.others_sent, fleet.others_failed)]:
        yield Reading(names.SESSION_MINUTE, sent, (session, "sent"))
        yield Reading(names.SESSION_MINUTE, failed, (session, "failed"))


def _phones(fleet: Fleet) -> Iterator[Reading]:
    for restriction in RESTRICTIONS:
        yield Reading(names.STANDING, fleet.restricted.get(restriction, 0), (restriction,))
    for reason in REASONS:
        yield Reading(names.WAITING, fleet.waiting.get(reason, 0), (reason,))


def _days(days: Iterable[PhoneDay], rules: Rules, now_ms: int) -> Iterator[Reading]:
    """By trust level: how many, what they may send today, and what they have used of it."""
    phones, used = Counter[str](), Counter[str]()
    today: dict[str, str] = {}
    for day in days:
        level = rules.policy.level(day.created_at or None, now_ms=now_ms)
        phones[level.name] += 1
        if level.daily_cap is None or not day.cap_day:
            continue
        zone = hours.phone_zone(day.phone, day.timezone or None)
        if zone not in today:
            today[zone] = hours.local_day(zone, now_ms)
        used[level.name] += budget.used_on(today[zone], counted_day=day.cap_day, counted=day.cap_used)
    for level in rules.policy.levels:
        yield Reading(names.PHONES, phones[level.name], (level.name,))
        if level.daily_cap is not None:
            yield Reading(names.DAILY_LIMIT, phones[level.name] * level.daily_cap, (level.name,))
            yield Reading(names.DAILY_USED, used[level.name], (level.name,))


def _backlog(backlog: Backlog, now_ms: int) -> Iterator[Reading]:
    lengths = backlog.lengths
    yield Reading(names.FLEET_PAUSED, backlog.is_paused)
    yield Reading(names.FLEET_STOPPED, backlog.is_stopped)
    yield Reading(names.RESTRICTED_HOUR, backlog.restricted_last_hour)
    yield Reading(names.OVERDUE, seconds_since(backlog.due_at, now_ms))
    yield Reading(names.DEADLINE_OVERDUE, seconds_since(backlog.deadline_at, now_ms))
    yield Reading(names.DEAD_LETTERS, lengths["dead_letters"])
    for queue in JOB_QUEUES:
        yield Reading(names.JOBS_OPEN, lengths[queue], (queue,))
    for queue in MESSAGE_QUEUES:
        yield Reading(names.QUEUED, lengths[queue], (queue,))
    yield Reading(names.PROXIES, lengths["proxies"], ("all",))
    for state in ("available", "bad"):
        yield Reading(names.PROXIES, lengths[f"proxies_{state}"], (state,))
    for state in ("available", "used"):
        yield Reading(names.PROFILES, lengths[f"profiles_{state}"], (state,))


def seconds_since(at_ms: int | None, now_ms: int) -> float:
    """0 if that is still to come, or never."""
    return 0.0 if at_ms is None else max(0, now_ms - at_ms) / 1000
