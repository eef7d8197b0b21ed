"""A line: when the first, the fifth, the five-hundredth message that waits for one number goes out.

The same cells, pace and caps as a forecast walks through, but kept as stretches, so that each of thousands of single
sends a second is told its own time for the price of a look-up. Neighbours: `workday` cuts the cells, `tempo` knows the
pace, the gateway's picture keeps a line for numbers with the same figures.
"""

from bisect import bisect_right

from paceline.policy.facts import Rules
from paceline.policy.kinds import HORIZON_DAYS
from paceline.policy.tempo import Tempo
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import Cell, Kind, cells, pace_of

_EVERYBODY = ((),)
"""Recipients without hours of their own."""


class Line:
    """What waits for the number is not the kind's to know here: whoever asks says at which place, and has the kind made
    for people the number knows, or for those who wait until it takes new ones."""

    def __init__(self, kind: Kind, rules: Rules, *, now_ms: int) -> None:
        self._kind = kind
        self._rules = rules
        self._now_ms = now_ms
        self._days = iter(range(now_ms // DAY_MS, now_ms // DAY_MS + HORIZON_DAYS))
        self._firsts: list[int] = []
        """Which place each stretch begins with."""
        self._stretches: list[tuple[int, Tempo, bool]] = []
        """Its beginning, its pace, and whether the number comes to it without a rest."""
        self._known = 0
        self._date, self._used, self._busy_until = -1, kind.used_today, 0

    def at(self, place: int) -> int | None:
        """When it is heard that the message at this place, 1 is the next, went out; None if that is not in sight."""
        while place > self._known:
            day = next(self._days, None)
            if day is None:
                return None
            for cell in cells(self._kind.zone, self._kind.shifts, _EVERYBODY, day):
                if cell.end > self._now_ms:
                    self._add(cell)
        index = bisect_right(self._firsts, place) - 1
        start, tempo, is_busy = self._stretches[index]
        nth = place - self._firsts[index] + 1
        return round(start + (nth * tempo.each_ms if is_busy else tempo.time_for(nth)) + tempo.heard_ms)

    def _add(self, cell: Cell) -> None:
        if cell.date != self._date:
            # A new day has its budget whole.
            self._used = self._used if self._date == -1 else 0
            self._date = cell.date
        start = max(cell.start, self._now_ms, self._kind.sends_from_ms, self._kind.takes_from_ms)
        if not cell.is_open or start >= cell.end:
            return
        tempo = pace_of(self._kind, cell.shift, self._rules, 0 if self._known else self._kind.burst)
        is_busy = self._busy_until == start
        able = int((cell.end - start) / tempo.each_ms if is_busy else tempo.sent_in(cell.end - start))
        if cell.shift.cap is not None:
            able = min(able, max(0, cell.shift.cap - self._used))
        if able <= 0:
            return
        self._firsts.append(self._known + 1)
        self._stretches.append((start, tempo, is_busy))
        self._known += able
        self._used += able
        is_full = cell.shift.cap is not None and self._used >= cell.shift.cap
        self._busy_until = 0 if is_full else cell.end
