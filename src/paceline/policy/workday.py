"""Workdays: when one kind of number may send to whom, cut into cells in which nothing changes.

Calendars come from the same `hours` as the dispatching, daylight saving included, and are kept per UTC day: a fleet has
few kinds of numbers and its recipients few kinds of hours. Neighbours: `walk` goes through the cells, `forecast` adds
up.
"""

from functools import lru_cache
from itertools import pairwise

import msgspec

from paceline.policy import hours
from paceline.policy.facts import Rules
from paceline.policy.pacing import Pace
from paceline.policy.tempo import Tempo, tempo
from paceline.policy.trust import DAY_MS

Windows = tuple[hours.Window, ...]
Groups = tuple[Windows, ...]
"""The hours of the recipients, one entry for each kind of recipient."""

NEVER = 1 << 60
"""Further away than any forecast."""


class Shift(msgspec.Struct, frozen=True):
    """What a number may do from a certain age on."""

    from_ms: int
    pace: Pace
    cap: int | None
    windows: Windows


class Kind(msgspec.Struct, frozen=True):
    """Numbers that are alike in everything the forecast looks at."""

    zone: str
    shifts: tuple[Shift, ...]
    """In order of age; the first has begun."""
    used_today: int = 0
    sends_from_ms: int = 0
    """A slot in the future, or a rest: nothing goes out before."""
    takes_from_ms: int = 0
    """A cool-down or a lock: until then the router gives it nothing new."""
    burst: int = 0
    """How many of the present burst have gone out."""
    heard_ms: int = 0
    """From the wire to the word that a message went out."""
    load: int = 0
    """What waits for it before anything new."""
    parked: int = 0


class Cell(msgspec.Struct, frozen=True, gc=False):
    start: int
    end: int
    date: int
    """The number's own calendar day, which its cap counts in."""
    shift: Shift
    is_open: bool
    awake: tuple[int, ...]
    """Which groups of recipients may be written to."""
    never: tuple[int, ...]
    """Which groups this number can never write to."""


def pace_of(kind: Kind, shift: Shift, rules: Rules, burst: int = 0) -> Tempo:
    return tempo(shift.pace, rules.policy.typing_ms, kind.heard_ms, burst)


@lru_cache(maxsize=16_384)
def cells(zone: str, shifts: tuple[Shift, ...], groups: Groups, day: int) -> tuple[Cell, ...]:
    """The cells of one UTC day, without a gap between them."""
    start, end = day * DAY_MS, (day + 1) * DAY_MS
    cuts = {start, end, *(shift.from_ms for shift in shifts if start < shift.from_ms < end)}
    midnight = hours.day_ends_at(zone, start)
    while midnight < end:
        cuts.add(midnight)
        midnight = hours.day_ends_at(zone, midnight)
    sides = {shift.windows for shift in shifts} | set(groups)
    for windows in sides:
        cuts.update(edge for span in spans(windows, day) for edge in span)
    edges = sorted(cuts)
    return tuple(_cell(zone, shifts, groups, at, until) for at, until in pairwise(edges))


def _cell(zone: str, shifts: tuple[Shift, ...], groups: Groups, at: int, until: int) -> Cell:
    day = at // DAY_MS
    shift = next(shift for shift in reversed(shifts) if shift.from_ms <= at or shift is shifts[0])
    return Cell(
        at,
        until,
        _date(zone, at),
        shift,
        _within(spans(shift.windows, day), at),
        tuple(index for index, windows in enumerate(groups) if _within(spans(windows, day), at)),
        tuple(index for index, windows in enumerate(groups) if not meet(windows + shift.windows, day)),
    )


@lru_cache(maxsize=16_384)
def spans(windows: Windows, day: int) -> tuple[tuple[int, int], ...]:
    """When all of the windows are open, within one UTC day."""
    found, at, end = [], day * DAY_MS, (day + 1) * DAY_MS
    while at < end:
        opening = hours.next_open(windows, at)
        if opening is None or opening >= end:
            break
        closing = hours.closes_at(windows, opening)
        until = end if closing is None else min(end, closing)
        found.append((opening, until))
        at = max(until, at + 1)
    return tuple(found)


@lru_cache(maxsize=4_096)
def meet(windows: Windows, day: int) -> bool:
    """Whether there is ever a moment at which all are open."""
    return hours.next_open(windows, day * DAY_MS) is not None


@lru_cache(maxsize=16_384)
def _date(zone: str, at: int) -> int:
    """The local calendar day, as the instant it began."""
    return hours.day_starts_at(zone, at)


def _within(found: tuple[tuple[int, int], ...], at: int) -> bool:
    return any(start <= at < end for start, end in found)
