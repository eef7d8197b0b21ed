"""Turns: what goes out before a job is through, as the router and the numbers' queues have it.

Jobs of one priority take turns, so of another one as much goes before as of this one. A higher priority goes first, all
of it; a lower one never. What is paused does not run, what is for later begins then, and a job that names a number
takes turns at that number alone. Neighbours: `prospect` asks, `crew` counts on the same numbers, the store fills in the
other jobs.
"""

from collections.abc import Collection, Iterable

import msgspec

from paceline.policy.facts import PhoneFacts


class Other(msgspec.Struct, frozen=True, gc=False):
    """Another job, and what of it no number has yet."""

    rest: int
    priority: int = 1
    phone: str | None = None
    """The one it names."""
    is_paused: bool = False
    next_ms: int = 0
    """When the next of the rest is due,"""
    each_ms: float = 0.0
    """and how much later each further one, if it is spread."""

    def due_by(self, at_ms: int) -> int:
        if self.is_paused or at_ms < self.next_ms:
            return 0
        return min(self.rest, 1 + int((at_ms - self.next_ms) / self.each_ms)) if self.each_ms else self.rest


class Mine(msgspec.Struct, frozen=True):
    """The job that is asked about."""

    size: int
    """Its tasks that no number has yet."""
    start_ms: int
    last_ms: int
    """When the last of them is due."""
    priority: int = 1
    phone: str | None = None


def is_ready(facts: PhoneFacts) -> bool:
    """It takes work now: nothing that somebody has to undo holds it, and a session that may send is connected."""
    return _is_free(facts) and any(one.connection == "CONNECTED" and not one.paused for one in facts.sessions)


def is_expected(facts: PhoneFacts) -> bool:
    """It will, as soon as it is back: nobody told it to rest."""
    return _is_free(facts) and any(not one.paused for one in facts.sessions)


def _is_free(facts: PhoneFacts) -> bool:
    return not (facts.quarantined or facts.fleet_paused or facts.fleet_stopped)


def holders(fleet: Collection[PhoneFacts]) -> frozenset[str]:
    """The numbers that take work. Who is away gets nothing new while others are there; if nobody is, all who are not
    paused will come back or nothing goes."""
    ready = [facts.phone for facts in fleet if is_ready(facts)]
    return frozenset(ready or (facts.phone for facts in fleet if is_expected(facts)))


def ahead(mine: Mine, others: Iterable[Other], holders: Collection[str]) -> int:
    """How many tasks of other jobs that are due when it begins (of a spread one: when its last is due) have been given
    out when it is through. `holders` are the numbers that take work now."""
    due_ms = max(mine.start_ms, mine.last_ms)
    return sum(_before(mine, mine.size, other, other.due_by(due_ms), holders) for other in others)


def joining(mine: Mine, others: Iterable[Other], holders: Collection[str], finish_ms: int) -> int:
    """The same of what becomes due on the way to `finish_ms`: it takes turns with what is left of this job by then."""
    due_ms, found = max(mine.start_ms, mine.last_ms), 0
    for other in others:
        begins_ms = max(due_ms, other.next_ms)
        more = other.due_by(finish_ms) - other.due_by(due_ms)
        if more > 0:
            left = round(mine.size * (finish_ms - begins_ms) / (finish_ms - mine.start_ms))
            found += _before(mine, left, other, more, holders)
    return found


def _before(mine: Mine, size: int, other: Other, due: int, holders: Collection[str]) -> int:
    if not due or other.priority < mine.priority:
        return 0
    numbers = max(1, len(holders))
    if other.phone == mine.phone:
        return due if other.priority > mine.priority else min(due, size)
    if mine.phone is None:
        # At that number it meets one of as many parts of this job as there are numbers; the others are free of it.
        return min(due, -(-size // numbers)) if other.phone in holders else 0
    if other.phone is not None:
        return 0
    part = -(-due // numbers)
    return part if other.priority > mine.priority else min(part, size)
