"""One kind of number, walked from cell to cell: first as if there were always more to do, then until it is empty.

What a number holds while the router has more for it is known at every moment: its queue is filled to `min(ahead, budget
left today)`, and those whom it found asleep are parked. So "how many has it been given by then" is a closed form, and
the moment at which a job has been given out is found by asking that of all kinds. `forecast` does; from there on each
number empties what it holds. What happens within a cell, `work` knows.
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from paceline.policy.facts import Rules
from paceline.policy.trust import DAY_MS
from paceline.policy.work import ALMOST, State, Work
from paceline.policy.workday import NEVER, Cell, Groups, Kind, cells, pace_of


class Emptied(msgspec.Struct, frozen=True):
    """How a number came to the end of what it held."""

    finish_ms: int
    days: dict[int, float]
    """Messages by the day they went out on."""
    met: frozenset[str]
    """What it had to wait for on the way: DAILY_CAP, HOURS, RECIPIENT_HOURS."""


class Walk:
    def __init__(self, kind: Kind, groups: Groups, shares: Sequence[float], *, ahead: int, rules: Rules, now_ms: int):
        self.kind = kind
        self._groups = groups
        self._shares = shares
        self._rules = rules
        self._now_ms = now_ms
        self._work = Work(kind, shares, ahead=ahead, rules=rules, now_ms=now_ms)
        self._next_day = now_ms // DAY_MS
        self._starts: list[int] = []
        self._pieces: list[tuple[Cell, State]] = []
        self._state = State(-1, float(kind.used_today), 0.0, tuple(kind.parked * share for share in shares))

    def one_more_day(self) -> None:
        for cell in self._cells(self._next_day):
            if cell.end > self._now_ms:
                self._starts.append(max(cell.start, self._now_ms))
                state = self._work.entered(cell, self._state)
                self._pieces.append((cell, state))
                self._state = self._work.step(cell, state, cell.end)
        self._next_day += 1

    @property
    def edges(self) -> list[int]:
        """Where something changes."""
        return self._starts

    @property
    def sent(self) -> float:
        return self._state.sent

    @property
    def each_ms(self) -> float:
        """What a message takes it in the long run."""
        return pace_of(self.kind, self.kind.shifts[0], self._rules).each_ms

    @property
    def starts_ms(self) -> int:
        """When its first message may go."""
        first = (
            self._work.start(cell)
            for cell, state in self._pieces
            if cell.is_open
            and cell.awake
            and (cell.shift.cap is None or state.used < cell.shift.cap)
            and cell.end > self._work.start(cell)
        )
        return next(first, NEVER)

    def open_spans(self, day: int) -> list[tuple[int, int]]:
        return [(cell.start, cell.end) for cell in self._cells(day) if cell.is_open and cell.awake]

    def given(self, at: int) -> float:
        """How many it has been given by then: sent, parked, queued."""
        cell, state = self._at(at)
        return state.sent + state.gone + sum(state.parked) + self._work.queue(cell, state, at)

    def queue(self, at: int) -> float:
        return self._work.queue(*self._at(at), at)

    def sent_by(self, at: int) -> float:
        return self._at(at)[1].sent

    def emptied(self, at: int, queue: float, until: int = NEVER) -> Emptied:
        """From `at` on it gets nothing more."""
        cell, state = self._at(at)
        days = self._days(at)
        holds = [parked + queue * share for parked, share in zip(state.parked, self._shares, strict=True)]
        met = self._met_so_far(at)
        finish, day, place = at, at // DAY_MS, at
        while sum(holds) > ALMOST and place < min(until, at + 400 * DAY_MS):
            for cell in self._cells(day):
                if cell.end <= place:
                    continue
                state = self._work.entered(cell, state) if cell.start >= place else state
                for index in cell.never:
                    holds[index] = 0.0
                before = state.sent
                state, done_at = self._work.empty(cell, state, max(place, cell.start), min(cell.end, until), holds)
                if state.sent > before:
                    days[cell.date] = days.get(cell.date, 0.0) + state.sent - before
                    finish = max(finish, done_at)
                if sum(holds) <= ALMOST:
                    break
                met |= self._met(cell, state, holds)
                if cell.end >= until:
                    break
            day += 1
            place = day * DAY_MS
        return Emptied(finish if sum(holds) <= ALMOST or until < NEVER else NEVER, days, frozenset(met))

    def _met(self, cell: Cell, state: State, holds: list[float]) -> set[str]:
        if not cell.is_open:
            return {"HOURS"}
        if cell.shift.cap is not None and state.used >= cell.shift.cap - ALMOST:
            return {"DAILY_CAP"}
        return {"RECIPIENT_HOURS"} if sum(holds[index] for index in cell.awake) <= ALMOST else set()

    def _met_so_far(self, at: int) -> set[str]:
        """What stopped it while there was always more to do."""
        met = set()
        for cell, state in self._pieces:
            if cell.end > at:
                break
            if cell.shift.cap is not None and state.used >= cell.shift.cap - ALMOST:
                met.add("DAILY_CAP")
            elif not cell.is_open and state.date >= self._pieces[0][1].date and cell.start > self._now_ms:
                met.add("HOURS")
        return met

    # Where it is

    def _cells(self, day: int) -> tuple[Cell, ...]:
        return cells(self.kind.zone, self.kind.shifts, self._groups, day)

    def _at(self, at: int) -> tuple[Cell, State]:
        while self._next_day * DAY_MS <= at:
            self.one_more_day()
        cell, state = self._pieces[bisect_right(self._starts, at) - 1]
        return cell, self._work.step(cell, state, at)

    def _days(self, at: int) -> dict[int, float]:
        days: dict[int, float] = {}
        ends = [state.sent for _, state in self._pieces[1:]]
        for (cell, state), end in zip(self._pieces, [*ends, self._state.sent], strict=True):
            if cell.start > at:
                break
            end_sent = end if cell.end <= at else self._work.step(cell, state, at).sent
            if end_sent > state.sent:
                days[cell.date] = days.get(cell.date, 0.0) + end_sent - state.sent
        return days
