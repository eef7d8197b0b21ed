"""Routing: which number writes to this contact. Decided late, a little ahead of need, and sticky by recipient.

Under every strategy a named number wins and a warm chat stays where it is; a number the platform keeps from new chats
gets only people it already talks with.
"""

from collections import deque
from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import get_args

import msgspec

from paceline.domain.jobs import Strategy
from paceline.domain.reasons import Reason
from paceline.policy import hours
from paceline.policy.facts import PhoneFacts, Rules, Sender, is_available, sender
from paceline.policy.pacing import effective_rpm
from paceline.policy.retry import DELAY_CEILING_MS

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
STICKY_MS = 86_400_000
WARM_MS = 90 * 86_400_000
"""So long after their last word a person still expects the same number to answer."""
HEALTH_MS = 3_600_000
"""Failures older than this say nothing about a number's health today."""
RESTRICTED_ASKED = 50
"""Restricted numbers that are asked whom they know; with more of them a chat may start elsewhere, which is allowed."""
PARKED_AHEAD = 5
"""How many times the usual filling may be parked on one number."""
LOOK_AGAIN_MS = (500, 60_000)
"""A job that found no room looks again when a queue should be half empty, within these bounds."""
AT_REST_MS = 600_000
"""The same while nothing can make room: closed, the day used up, restricted. A number that connects wakes such jobs
at once."""


class PhoneLoad(msgspec.Struct):
    """A number as the router sees it: whether it could send, what waits for it, how much more it may be given."""

    phone: str
    available: bool
    load: int
    room: int
    rpm: float = 60.0
    rests_ms: int = 0
    """How long it is still closed; until then its queue does not move."""
    spent: bool = False
    """What waits here, with what is kept for its retries, uses up its day."""
    keeps_units: bool = False
    """There is some of its day left, if only for retries: room may come before tomorrow."""
    wide_room: int = 1_000
    """How much more it may be given of what has to wait for this very number."""
    failures: int = 0
    """Within the last hour."""
    restriction: Reason | None = None
    """What the platform laid on it, TIME_LOCKED or CAPPED."""
    removed: bool = False
    """It has no session left."""

    @property
    def takes_new(self) -> bool:
        """Whether it may start a chat with somebody it does not know."""
        return self.restriction is None

    @property
    def room_in_ms(self) -> int:
        """When half of what waits here will have gone out: early enough that the queue never runs dry."""
        low, high = LOOK_AGAIN_MS
        if self.spent and not self.keeps_units:
            return AT_REST_MS
        if self.rests_ms:
            return max(low, min(AT_REST_MS, self.rests_ms))
        if self.room <= 0 and not self.load:
            return high  # What is parked here fills it; that comes back at times of its own.
        return min(high, max(low, int(self.load / 2 * 60_000 / self.rpm)))


def phone_load(facts: PhoneFacts, rules: Rules, *, waiting: int, parked: int, ahead: int, now_ms: int) -> PhoneLoad:
    """A number with `waiting` tasks before a new one (that it is busy with counted in), to be filled up to `ahead`.

    What a recipient's night parks is bounded too, but far wider, so that sleepers do not hold up the awake.
    """
    who = sender(facts, rules, now_ms=now_ms)
    queued = waiting - (1 if facts.unsettled else 0)
    kept = _kept_for_retries(who, queued, now_ms)
    rooms = [ahead - waiting, PARKED_AHEAD * ahead - parked]
    if who.left_today is not None:
        rooms.append(who.left_today - queued - kept)
    return PhoneLoad(
        phone=facts.phone,
        available=is_available(facts, rules, now_ms=now_ms),
        load=waiting,
        room=min(rooms),
        rpm=effective_rpm(who.pace),
        wide_room=PARKED_AHEAD * ahead - waiting - parked,
        rests_ms=(hours.next_open(who.windows, now_ms) or now_ms + AT_REST_MS) - now_ms,
        spent=who.left_today is not None and who.left_today <= queued + kept,
        keeps_units=who.left_today is not None and who.left_today > queued,
        failures=sum(at > now_ms - HEALTH_MS for at in facts.failures),
        restriction=_restriction(facts, now_ms),
        removed=not facts.sessions,
    )


def _kept_for_retries(who: Sender, queued: int, now_ms: int) -> int:
    """Units of the day that are not given away yet: a retry without one waits for tomorrow, and its job with it.

    What failed a moment ago comes back and wants one; which of these have come back already is not known, so all count
    until the longest wait is over. One more is kept until nothing else waits: a message whose outcome is unknown has
    used its unit up, and its retry takes another.
    """
    comes_back = sum(at > now_ms - DELAY_CEILING_MS for at in who.facts.failures)
    is_last = not queued and who.left_today == 1
    return comes_back + (0 if is_last else 1)


def _restriction(facts: PhoneFacts, now_ms: int) -> Reason | None:
    if not facts.restriction or facts.restricted_until <= now_ms:
        return None
    return Reason.CAPPED if facts.restriction == Reason.CAPPED else Reason.TIME_LOCKED


class Sticky(msgspec.Struct, frozen=True):
    phone: str
    at_ms: int
    warm_at_ms: int = 0
    """When the recipient last wrote to this number; 0 is never."""

    def is_warm(self, now_ms: int) -> bool:
        """A conversation both sides take part in stays on its number."""
        return self.warm_at_ms > 0 and now_ms - self.warm_at_ms < WARM_MS


class To(msgspec.Struct, frozen=True):
    phone: str


class NotNow(msgspec.Struct, frozen=True):
    reason: Reason


class Fleet:
    """The numbers while one chunk is routed. What may be chosen freely stands in a heap (or, for `round_robin`, in a
    ring), since a scan of ten thousand for each contact is too slow; restricted numbers stay out of both."""

    def __init__(self, loads: Iterable[PhoneLoad], *, strategy: Strategy = "sticky", turn: int = 0) -> None:
        """`turn` is how many tasks of the job have been routed: the ring goes on from there with no state of its own,
        whichever router is next."""
        self.loads = {load.phone: load for load in loads}
        self._strategy = strategy
        available = sorted((load for load in self.loads.values() if load.available), key=lambda load: load.phone)
        free = [load for load in available if load.takes_new]
        self.restricted = tuple(load.phone for load in available if not load.takes_new)
        """Numbers that could serve people they know; whom they know is worth asking for these alone."""
        self._none_left = self._why_none(available, free)
        self._heap = [self._ranked(load) for load in free]
        self._all_locked = not free
        """No number may start a chat: what is new is parked at one, so that those behind it get their turn."""
        self._locked = [self._ranked(load) for load in available] if self._all_locked else []
        heapify(self._heap)
        heapify(self._locked)
        first = turn % len(free) if free else 0
        self._ring = deque(load for load in (*free[first:], *free[:first]) if load.room > 0)

    def route(
        self, sticky: Sticky | None, *, named: str | None = None, known: Collection[str] = frozenset(), now_ms: int
    ) -> To | NotNow:
        """The number for one contact, or why there is none at the moment; what is chosen is counted at once.

        `known` are the numbers that have talked with this contact (of the restricted ones; others need not be asked).
        """
        decision = self._choose(sticky, named, known, now_ms)
        if isinstance(decision, To):
            self.count(decision.phone)
        return decision

    def count(self, phone: str) -> None:
        """One more task waits for this number, whoever sent it there."""
        load = self.loads.get(phone)
        if load is None:
            return
        load.load += 1
        load.room -= 1
        load.wide_room -= 1
        if load.available and (load.takes_new or self._all_locked):
            heap = self._heap if load.takes_new else self._locked
            # Most often it is the best one that was chosen; of others an entry that no longer holds stays behind.
            put = heapreplace if heap and heap[0][-1] == phone else heappush
            put(heap, self._ranked(load))

    def uncount(self, phone: str) -> None:
        """One of those that were counted does not come after all."""
        load = self.loads[phone]
        load.load -= 1
        load.room += 1
        load.wide_room += 1
        if load.available and (load.takes_new or self._all_locked):
            heappush(self._heap if load.takes_new else self._locked, self._ranked(load))

    def room_in_ms(self, named: str | None = None) -> int:
        """When it is worth asking again after `WAITING_FOR_ROOM`."""
        # Without a name it waits for those that are full: an idle number has room already and is not what it needs.
        asked = [x for x in self.loads.values() if x.available and (x.phone == named if named else x.room <= 0)]
        return min((load.room_in_ms for load in asked if load.takes_new or named), default=LOOK_AGAIN_MS[1])

    def _choose(self, sticky: Sticky | None, named: str | None, known: Collection[str], now_ms: int) -> To | NotNow:
        if named is not None:
            return self._named(named)
        if sticky is not None and sticky.is_warm(now_ms) and not self._was_removed(sticky.phone):
            # It has to wait for its number whatever happens, so that queue is the place; the job goes on behind it.
            # Room is waited for only where something makes room: behind a number that is gone all others would wait.
            load = self.loads.get(sticky.phone)
            has_room = load is None or not load.available or load.wide_room > 0
            return To(sticky.phone) if has_room else NotNow(Reason.WAITING_FOR_ROOM)
        if sticky is not None and self._keeps(sticky, known, now_ms):
            # A queue that is only full for the moment is worth the wait: the conversation stays on its number.
            return self._named(sticky.phone)
        return self._free_choice(known)

    def _was_removed(self, phone: str) -> bool:
        """All its sessions are gone, so nobody could ever answer from it."""
        load = self.loads.get(phone)
        return load is not None and load.removed

    def _keeps(self, sticky: Sticky, known: Collection[str], now_ms: int) -> bool:
        """Whether a cold chat goes on where it began."""
        load = self.loads.get(sticky.phone)
        if self._strategy != "sticky" or load is None or now_ms - sticky.at_ms >= STICKY_MS:
            return False
        return load.available and not load.spent and (load.takes_new or load.phone in known)

    def _named(self, phone: str) -> To | NotNow:
        load = self.loads.get(phone)
        if load is None:
            return NotNow(Reason.NO_SESSIONS_AVAILABLE)
        return To(phone) if load.room > 0 else NotNow(Reason.WAITING_FOR_ROOM)

    def _free_choice(self, known: Collection[str]) -> To | NotNow:
        """Those that take anybody, and of the restricted ones those that know this contact."""
        able = [load for load in map(self.loads.get, known) if load and load.available and not load.takes_new]
        with_room = [load for load in able if load.room > 0]
        if self._strategy == "round_robin":
            best = self._next_in_ring() or min(with_room, key=self._ranked, default=None)
        else:
            top = self._top(self._heap)
            best = min([load for load in (top, *with_room) if load], key=self._ranked) if with_room else top
        best = best or (None if able else self._top(self._locked))
        if best is not None:
            return To(best.phone)
        return NotNow(Reason.WAITING_FOR_ROOM if able else self._none_left)

    def _top(self, heap: list[tuple[int, int, str]]) -> PhoneLoad | None:
        """The best of a heap; entries that were counted on since, or have no room left, fall out on the way."""
        while heap:
            load = self.loads[heap[0][-1]]
            if load.room > 0 and heap[0] == self._ranked(load):
                return load
            heappop(heap)
        return None

    def _next_in_ring(self) -> PhoneLoad | None:
        while self._ring:
            load = self._ring.popleft()
            if load.room > 0:
                self._ring.append(load)
                return load
        return None

    def _ranked(self, load: PhoneLoad) -> tuple[int, int, str]:
        return (load.failures if self._strategy == "health_based" else 0, load.load, load.phone)

    @staticmethod
    def _why_none(available: list[PhoneLoad], free: list[PhoneLoad]) -> Reason:
        if free:
            return Reason.WAITING_FOR_ROOM
        restrictions = (load.restriction for load in available)
        return next((reason for reason in restrictions if reason is not None), Reason.NO_SESSIONS_AVAILABLE)
