"""Hands: a fleet taken together into a few sorts of numbers, each on its way through the days.

For questions that walk through weeks, where what one number does in one minute is nothing: all that a sort may do is
added up, its caps, its pace, and how they grow. Neighbours: `kinds` counts the numbers, `workday` knows their hours,
`overnight` walks.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from paceline.policy import hours
from paceline.policy.facts import Rules
from paceline.policy.kinds import Group
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import NEVER, Kind, Shift, Windows, pace_of, spans

HANDS = 12
"""So many sorts, whatever the fleet."""
STEP_MS = DAY_MS // 4
"""Numbers of one sort that come of age, or end their rest, within this time do so together."""


class Calendar:
    """When windows are open, on the way from stretch to stretch."""

    def __init__(self, windows: Windows, start_ms: int, end_ms: int) -> None:
        self.edges: list[int] = []
        """They open and close in turn."""
        for day in range(start_ms // DAY_MS, end_ms // DAY_MS + 1):
            for opens, closes in spans(windows, day):
                if self.edges and self.edges[-1] == opens:
                    self.edges[-1] = closes
                else:
                    self.edges += (opens, closes)
        self.is_open = False

    def enter(self, at: float) -> None:
        self.is_open = bisect_right(self.edges, at) % 2 == 1


class Level(NamedTuple):
    """What numbers that are taken together may do from a moment on, all of them."""

    from_ms: int
    windows: Windows
    each_ms: float
    cap: int


class Hands:
    """Numbers of one sort on their way through the days."""

    def __init__(self, members: Sequence[Group], before: float, rules: Rules, *, now_ms: int) -> None:
        largest = max(members, key=lambda member: member[1])[0]
        count = sum(number for _, number in members)
        self.zone = largest.zone
        self.held = sum(number * (kind.load + kind.parked + before) for kind, number in members)
        self.levels = _levels(members, rules)
        self.level = self.levels[0]
        self.calendars: list[Calendar] = []
        """Of each level."""
        self._place = 0
        self._sends_from = sum(number * max(now_ms, kind.sends_from_ms) for kind, number in members) / count
        self._used = float(sum(number * kind.used_today for kind, number in members))
        self._midnight = hours.day_ends_at(self.zone, now_ms)

    def enter(self, at: float) -> bool:
        """Whether it is open then."""
        while self._place + 1 < len(self.levels) and self.levels[self._place + 1].from_ms <= at:
            self._place += 1
            self.level = self.levels[self._place]
        if at >= self._midnight:
            self._used = 0.0
            self._midnight = hours.day_ends_at(self.zone, int(at))
        return self.calendars[self._place].is_open

    def able(self, start: int, end: int) -> float:
        start_ms = max(start, self._sends_from)
        if start_ms >= end:
            return 0.0
        return min((end - start_ms) / self.level.each_ms, max(0.0, self.level.cap - self._used))

    def send(self, able: float, waiting: float) -> tuple[float, float]:
        """How many go of what it held before, and then of those that wait."""
        first = min(able, self.held)
        sent = min(able - first, waiting)
        self.held -= first
        self._used += first + sent
        return first, sent


def taken_together(groups: Sequence[Group], rules: Rules, *, before: int, now_ms: int) -> list[Hands]:
    """As far as they have to be; the smallest beyond count as the largest. `before` is what waits for all of them."""
    sorts: dict[object, list[Group]] = {}
    for sort in (_each, _of_an_hour, _of_a_zone):
        sorts = {}
        for kind, count in groups:
            sorts.setdefault(sort(kind, now_ms), []).append((kind, count))
        if len(sorts) <= HANDS:
            break
    largest, *others = sorted(sorts.values(), key=lambda members: -sum(count for _, count in members))
    for members in others[HANDS - 1 :]:
        largest += members
    each = before / max(1, sum(count for _, count in groups))
    return [Hands(members, each, rules, now_ms=now_ms) for members in (largest, *others[: HANDS - 1])]


def _each(kind: Kind, _now_ms: int) -> object:
    return kind


def _of_an_hour(kind: Kind, now_ms: int) -> object:
    """With the same hours now and at each age to come, and about the same rest."""
    windows = tuple(shift.windows for shift in kind.shifts)
    return kind.zone, windows, max(0, kind.sends_from_ms - now_ms) // STEP_MS


def _of_a_zone(kind: Kind, _now_ms: int) -> object:
    return kind.zone


def _levels(members: Sequence[Group], rules: Rules) -> list[Level]:
    """All they may do, from one time at which some of them come of age to the next; the hours are those of most."""
    changes: dict[int, list[tuple[Kind, Shift, int]]] = defaultdict(list)
    for kind, count in members:
        changes[0].append((kind, kind.shifts[0], count))
        for before, shift in pairwise(kind.shifts):
            at = shift.from_ms if len(members) == 1 else -(-shift.from_ms // STEP_MS) * STEP_MS
            changes[at] += ((kind, before, -count), (kind, shift, count))
    rate, cap, windows = 0.0, 0, Counter[Windows]()
    found = []
    for at, changed in sorted(changes.items()):
        for kind, shift, count in changed:
            rate += count / pace_of(kind, shift, rules).each_ms
            cap += count * (NEVER if shift.cap is None else shift.cap)
            windows[shift.windows] += count
        found.append(Level(at, windows.most_common(1)[0][0], 1 / rate, cap))
    return found
