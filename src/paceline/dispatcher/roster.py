"""All sessions as one list that can be sorted, searched and turned page by page, however many there are.

Which sessions stand on a page, and the counts, come from a look at the whole fleet that is some seconds old: looking at
10,000 takes about a second. What stands in a row is read when it is asked for. Neighbours: `watching` judges a
number's facts, `routes_overview` is the HTTP.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from paceline.dispatcher.schemas_overview import Order, RosterPage, RosterRow, Sort
from paceline.dispatcher.watching import effective_rpm, next_slot_at, restriction, rpm_source, waiting
from paceline.kits.clock import monotonic_ms
from paceline.policy.facts import Rules, Sender, sender
from paceline.store.operators import MINUTE_MS, LastMinute, WatchedPhone
from paceline.store.session_views import SessionView
from paceline.store.store import Store

LASTS_MS = 2_000
SHARE = 10
"""A look that took long is kept so many times as long: watching never takes more than a tenth of this process."""
AT_ONCE = 200
"""Sessions looked at in one go: some 20 ms, then others have their turn."""
NEVER_MS = 2**53
"""After every slot: of a number that waits for nothing."""

# How much an operator should care, for sorting by status: what needs a person comes first.
_CARE = {
    word: place
    for place, word in enumerate(
        ("QUARANTINED", "LINK_BLOCKED", "LOGGED_OUT", "FAILED", "SCAN_QR", "RESTRICTED", "RECONNECTING", "STARTING",
         "REMOVING", "PAUSED", "STOPPED", "WORKING")
    )
}  # fmt: skip


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What a session is sorted and found by."""

    session_id: str
    phone: str
    status: str
    trust: str
    age: int
    rpm: int
    effective_rpm: float
    queue: int
    used: float
    """Of the day's budget, 0 to 1."""
    slot: int
    is_connected: bool
    is_sending: bool
    words: str
    """What a search looks through."""


@dataclass(frozen=True)
class Wanted:
    """Which sessions; an empty word asks for nothing."""

    search: str = ""
    status: str = ""
    trust: str = ""

    def takes(self, entry: Entry) -> bool:
        return (
            (not self.status or entry.status == self.status)
            and (not self.trust or entry.trust == self.trust)
            and all(word in entry.words for word in self.search.lower().split())
        )


_KEYS: dict[Sort, Callable[[Entry], tuple[float | str, ...]]] = {
    "session": lambda entry: (),
    "status": lambda entry: (_CARE.get(entry.status, -1),),
    "trust": lambda entry: (entry.age,),
    "rpm": lambda entry: (entry.rpm,),
    "effectiveRpm": lambda entry: (entry.effective_rpm,),
    "queue": lambda entry: (entry.queue,),
    "budget": lambda entry: (entry.used,),
    "nextSlot": lambda entry: (entry.slot,),
}


class Roster:
    def __init__(self, store: Store, rules: Rules) -> None:
        self._store = store
        self._rules = rules
        self._entries: list[Entry] = []
        self._until_ms = -1
        self._looking: asyncio.Task[None] | None = None

    async def entries(self, *, now_ms: int) -> list[Entry]:
        """All sessions, of some seconds ago. Those who ask together share one look."""
        if now_ms >= self._until_ms:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look(now_ms), name="roster")
            # A caller that hangs up must not take the look from the others.
            await asyncio.shield(self._looking)
        return self._entries

    async def page(
        self, wanted: Wanted, sort: Sort, order: Order, offset: int, limit: int, *, now_ms: int
    ) -> RosterPage:
        entries = await self.entries(now_ms=now_ms)
        found = [entry for entry in entries if wanted.takes(entry)]
        # The ids are in order already, and sorting keeps that among equals.
        found.sort(key=_KEYS[sort], reverse=order == "desc" and sort != "session")
        if sort == "session" and order == "desc":
            found.reverse()
        shown = [entry.session_id for entry in found[offset : offset + limit]]
        return RosterPage(
            items=await self._rows(shown, now_ms=now_ms) if shown else [],
            next_cursor=str(offset + limit) if len(found) > offset + limit else None,
            total=len(found),
        )

    async def _rows(self, ids: list[str], *, now_ms: int) -> list[RosterRow]:
        """As they are now; one that was removed meanwhile is left out."""
        views = [view for view in await self._store.sessions.many(ids, now_ms=now_ms) if view is not None]
        phones = await self._phones([view.phone for view in views])
        minutes = await self._store.operators.last_minute(
            [(view.session_id, view.phone) for view in views], now_ms=now_ms
        )
        return [
            row_of(view, phones[view.phone], minute, self._rules, now_ms=now_ms)
            for view, minute in zip(views, minutes, strict=True)
            if view.phone in phones
        ]

    async def _look(self, now_ms: int) -> None:
        started_ms = monotonic_ms()
        try:
            found: list[Entry] = []
            ids = await self._store.sessions.ids()
            for start in range(0, len(ids), AT_ONCE):
                views = await self._store.sessions.many(ids[start : start + AT_ONCE], now_ms=now_ms)
                phones = await self._phones([view.phone for view in views if view])
                found += [
                    entry_of(view, phones[view.phone], self._rules, now_ms=now_ms)
                    for view in views
                    if view and view.phone in phones
                ]
            self._entries = found
            took_ms = monotonic_ms() - started_ms
            self._until_ms = now_ms + took_ms + max(LASTS_MS, SHARE * took_ms)
        finally:
            self._looking = None

    async def _phones(self, phones: list[str]) -> dict[str, WatchedPhone]:
        watched = await self._store.operators.watch(list(dict.fromkeys(phones)))
        return {phone.facts.phone: phone for phone in watched}


def count_statuses(entries: list[Entry]) -> dict[str, int]:
    return dict(sorted(Counter(entry.status for entry in entries).items()))


def entry_of(view: SessionView, phone: WatchedPhone, rules: Rules, *, now_ms: int) -> Entry:
    facts = phone.facts
    who = sender(facts, rules, now_ms=now_ms)
    sent_at = facts.last_sent_at or 0
    return Entry(
        session_id=view.session_id,
        phone=view.phone,
        status=view.status,
        trust=who.level.name,
        age=now_ms - (facts.created_at or now_ms),
        rpm=who.pace.rpm,
        effective_rpm=effective_rpm(who),
        queue=phone.queue_len + phone.parked,
        used=_used(who),
        slot=next_slot_at(who, now_ms) or (now_ms if phone.queue_len else NEVER_MS),
        is_connected=view.connection == "CONNECTED",
        is_sending=facts.unsettled is not None or now_ms - sent_at < MINUTE_MS,
        words=" ".join((view.session_id, view.phone, view.display_name or "", *view.tags)).lower(),
    )


def row_of(view: SessionView, phone: WatchedPhone, minute: LastMinute, rules: Rules, *, now_ms: int) -> RosterRow:
    facts = phone.facts
    who = sender(facts, rules, now_ms=now_ms)
    return RosterRow(
        session_id=view.session_id,
        phone=view.phone,
        display_name=view.display_name,
        driver=view.driver,
        status=view.status,
        connection=view.connection,
        tags=view.tags,
        proxy=view.proxy,
        direct=view.direct,
        restriction=restriction(phone, now_ms),
        trust_level=who.level.name,
        rpm=who.pace.rpm,
        rpm_default=who.level.rpm,
        rpm_override=facts.rpm_override,
        rpm_source=rpm_source(phone),
        effective_rpm=effective_rpm(who),
        next_slot_at=next_slot_at(who, now_ms),
        queue_len=phone.queue_len,
        parked=phone.parked,
        sent_today=who.used_today,
        daily_cap=who.level.daily_cap,
        sent_last60s=minute.sent,
        failed_last60s=minute.failed,
        unsettled=facts.unsettled,
        waiting=waiting(phone, who, now_ms),
    )


def _used(who: Sender) -> float:
    return who.used_today / who.level.daily_cap if who.level.daily_cap else 0.0
