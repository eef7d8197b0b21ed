"""Routing: which number writes to this contact. Decided late, a little ahead of need, and sticky by recipient."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

import msgspec

from paceline.domain.reasons import Reason
from paceline.policy.facts import PhoneFacts, Rules, is_available, sender
from paceline.policy.pacing import effective_rpm

STICKY_MS = 86_400_000
PARKED_AHEAD = 5
"""How many times the usual filling may be parked on one number."""
LOOK_AGAIN_MS = (500, 60_000)
"""A job that found no room looks again when a queue should be half empty, within these bounds."""


class PhoneLoad(msgspec.Struct):
    """A number as the router sees it: whether it could send, what waits for it, how much more it may be given."""

    phone: str
    available: bool
    load: int
    room: int
    rpm: float = 60.0
    spent: bool = False
    """What waits here uses up its day; only tomorrow makes room."""

    @property
    def room_in_ms(self) -> int:
        """When half of what waits here will have gone out: early enough that the queue never runs dry."""
        low, high = LOOK_AGAIN_MS
        if self.spent:
            return high
        return min(high, max(low, int(self.load / 2 * 60_000 / self.rpm)))


def phone_load(facts: PhoneFacts, rules: Rules, *, waiting: int, parked: int, ahead: int, now_ms: int) -> PhoneLoad:
    """A number with `waiting` tasks before a new one (that it is busy with counted in), to be filled up to `ahead`.

    What a recipient's night parks is bounded too, but far wider, so that sleepers do not hold up the awake.
    """
    who = sender(facts, rules, now_ms=now_ms)
    queued = waiting - (1 if facts.unsettled else 0)
    rooms = [ahead - waiting, PARKED_AHEAD * ahead - parked]
    if who.left_today is not None:
        rooms.append(who.left_today - queued)
    return PhoneLoad(
        phone=facts.phone,
        available=is_available(facts, rules, now_ms=now_ms),
        load=waiting,
        room=min(rooms),
        rpm=effective_rpm(who.pace),
        spent=who.left_today is not None and who.left_today <= queued,
    )


class Sticky(msgspec.Struct, frozen=True):
    phone: str
    at_ms: int
    warm: bool = False
    """The recipient has written to this number: the conversation stays there."""


class To(msgspec.Struct, frozen=True):
    phone: str


class NotNow(msgspec.Struct, frozen=True):
    reason: Reason


class Fleet:
    """The numbers while one chunk is routed. A heap by load, since a scan of ten thousand for each contact is too
    slow."""

    def __init__(self, loads: Iterable[PhoneLoad]) -> None:
        self.loads = {load.phone: load for load in loads}
        self._heap = [(load.load, load.phone) for load in self.loads.values() if load.available]
        self._any_available = bool(self._heap)
        heapify(self._heap)

    def route(self, sticky: Sticky | None, *, named: str | None = None, now_ms: int) -> To | NotNow:
        """The number for one contact, or why there is none at the moment; what is chosen is counted at once."""
        decision = self._choose(sticky, named, now_ms)
        if isinstance(decision, To) and (load := self.loads.get(decision.phone)):
            load.load += 1
            load.room -= 1
            heappush(self._heap, (load.load, load.phone))
        return decision

    def room_in_ms(self, named: str | None = None) -> int:
        """When it is worth asking again after `WAITING_FOR_ROOM`."""
        asked = [load for load in self.loads.values() if load.available and named in (None, load.phone)]
        return min((load.room_in_ms for load in asked), default=LOOK_AGAIN_MS[1])

    def _choose(self, sticky: Sticky | None, named: str | None, now_ms: int) -> To | NotNow:
        if named is not None:
            return self._named(named)
        if sticky is not None and sticky.warm:
            # It has to wait for its number whatever happens, so that queue is the place; the job goes on behind it.
            return To(sticky.phone)
        if sticky is not None and now_ms - sticky.at_ms < STICKY_MS:
            load = self.loads.get(sticky.phone)
            if load is not None and load.available and not load.spent:
                # A queue that is only full for the moment is worth the wait: the conversation stays on its number.
                return self._named(sticky.phone)
        return self._least_loaded()

    def _named(self, phone: str) -> To | NotNow:
        load = self.loads.get(phone)
        if load is None:
            return NotNow(Reason.NO_SESSIONS_AVAILABLE)
        return To(phone) if load.room > 0 else NotNow(Reason.WAITING_FOR_ROOM)

    def _least_loaded(self) -> To | NotNow:
        while self._heap:
            counted, phone = self._heap[0]
            load = self.loads[phone]
            if load.available and load.room > 0 and counted == load.load:
                return To(phone)
            heappop(self._heap)
        return NotNow(Reason.WAITING_FOR_ROOM if self._any_available else Reason.NO_SESSIONS_AVAILABLE)
