"""What the metrics read of the store when somebody asks: the fleet added up page by page, and how long everything is.

Reads only. A page is about a millisecond of Redis, so whoever waits behind it hardly notices. Neighbour:
`paceline.telemetry` gives it names.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from paceline.policy.restriction import BREAKER_WINDOW_MS
from paceline.store import keys
from paceline.store.caller import Answer, Caller

PAGE = 100
"""Numbers in one script call, with all their sessions."""
USAGE_MS = 180_000
"""A worker's memory that was measured longer ago (six looks of the watchdog) is no longer its memory."""

LENGTHS: dict[str, tuple[str, str]] = {
    "gateway": ("LLEN", keys.gateway_jobs()),
    "priority": ("LLEN", keys.priority_jobs()),
    "active": ("ZCARD", keys.jobs_active()),
    "no_sessions": ("ZCARD", keys.jobs_retry()),
    "scheduled": ("ZCARD", keys.scheduled()),
    "retry": ("ZCARD", keys.task_retry()),
    "handing": ("ZCARD", keys.handing()),
    "outbox": ("ZCARD", keys.deadlines()),
    "dead_letters": ("LLEN", keys.dead_letters()),
    "proxies": ("SCARD", keys.proxies()),
    "proxies_available": ("SCARD", keys.proxies_available()),
    "proxies_bad": ("SCARD", keys.proxies_bad()),
    "profiles_available": ("SCARD", keys.profiles_available()),
    "profiles_used": ("SCARD", keys.profiles_used()),
}


class PhoneDay(msgspec.Struct, frozen=True, array_like=True):
    """What a number's daily budget follows from."""

    phone: str
    created_at: int
    timezone: str
    cap_day: str
    cap_used: int


class SessionMinute(msgspec.Struct, frozen=True, array_like=True):
    session: str
    sent: int
    failed: int


class FleetPage(Answer, frozen=True, kw_only=True, rename="camel"):
    phones: int
    queued: int
    parked: int
    down: int
    workers: int
    memory: int
    memory_max: int
    sent: int
    failed: int
    restricted: dict[str, int]
    waiting: dict[str, int]
    connections: dict[str, int]
    overrides: dict[str, int]
    days: list[PhoneDay] = []
    worst: list[SessionMinute] = []


class Fleet:
    """Pages added up."""

    def __init__(self, pages: Sequence[FleetPage], *, worst: int) -> None:
        self.queued = sum(page.queued for page in pages)
        self.parked = sum(page.parked for page in pages)
        self.down = sum(page.down for page in pages)
        self.workers = sum(page.workers for page in pages)
        self.memory = sum(page.memory for page in pages)
        self.memory_max = max((page.memory_max for page in pages), default=0)
        self.restricted = _added(page.restricted for page in pages)
        self.waiting = _added(page.waiting for page in pages)
        self.connections = _added(page.connections for page in pages)
        self.overrides = _added(page.overrides for page in pages)
        self.days = [day for page in pages for day in page.days]
        ranked = sorted((one for page in pages for one in page.worst), key=lambda one: (-one.failed, one.session))
        self.worst = ranked[:worst]
        self.others_sent = sum(page.sent for page in pages) - sum(one.sent for one in self.worst)
        self.others_failed = sum(page.failed for page in pages) - sum(one.failed for one in self.worst)


class Backlog(msgspec.Struct, frozen=True):
    lengths: dict[str, int]
    """By the names of `LENGTHS`."""
    is_paused: bool
    is_stopped: bool
    due_at: int | None
    """When the number that is due longest became due."""
    deadline_at: int | None
    restricted_last_hour: int


class Memory(msgspec.Struct, frozen=True):
    used: int
    most: int
    """0 is no limit."""


class Measure:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def fleet(self, *, now_ms: int, worst: int) -> Fleet:
        pages: list[FleetPage] = []
        while not pages or pages[-1].phones == PAGE:
            page = await self._caller.call(
                "measure_fleet", FleetPage, offset=len(pages) * PAGE, limit=PAGE, now=now_ms, worst=worst,
                usageSince=now_ms - USAGE_MS,
            )  # fmt: skip
            pages.append(page)
        return Fleet(pages, worst=worst)

    async def backlog(self, *, now_ms: int) -> Backlog:
        fleet, due, deadline, restricted, *lengths = await self._caller.read(
            ("HMGET", keys.fleet(), "paused", "stopped"),
            ("ZRANGE", keys.due(), 0, 0, "WITHSCORES"),
            ("ZRANGE", keys.deadlines(), 0, 0, "WITHSCORES"),
            ("ZCOUNT", keys.restricted_phones(), now_ms - BREAKER_WINDOW_MS, "+inf"),
            *LENGTHS.values(),
        )
        return Backlog(
            lengths=dict(zip(LENGTHS, map(int, lengths), strict=True)),
            is_paused=fleet[0] == "1",
            is_stopped=fleet[1] == "1",
            due_at=_first_score(due),
            deadline_at=_first_score(deadline),
            restricted_last_hour=int(restricted),
        )

    async def webhooks_due_at(self) -> int | None:
        """When the delivery that is due longest became due."""
        return _first_score(await self._caller.read_one("ZRANGE", keys.webhooks_due(), 0, 0, "WITHSCORES"))

    async def memory(self) -> Memory:
        info = await self._caller.read_one("INFO", "memory")
        return Memory(int(info["used_memory"]), int(info["maxmemory"]))


def _first_score(found: Sequence[Any]) -> int | None:
    """Of a ZRANGE with scores, which through a raw pipeline is a flat list, through a client one of pairs."""
    if not found:
        return None
    _, score = found if isinstance(found[0], str) else found[0]
    return int(float(score))


def _added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for one in counts:
        total.update(one)
    return total
