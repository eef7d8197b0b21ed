"""One kind of number, walked from cell to cell: first as if there were always more to do, then until it is empty.

What a number holds while the router has more for it is known at every moment: its queue is filled to `min(ahead, budget
left today)`, and those whom it found asleep are parked. So "how many has it been given by then" is a closed form, and
the moment at which a job has been given out is found by asking that of all kinds. `forecast` does; from there on each
number empties what it holds.
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from paceline.policy.facts import Rules
from paceline.policy.routing import PARKED_AHEAD
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import NEVER, Cell, Groups, Kind, cells, pace_of

PARKING_MS = 50
"""What it takes to put one sleeper aside. All numbers do it side by side, so only that it takes time matters."""
_ALMOST = 1e-6
"""Counts are fractions here; less than this is nothing."""


class State(msgspec.Struct, frozen=True, gc=False):
    date: int
    used: float
    sent: float
    parked: tuple[float, ...]
    gone: float = 0.0
    """Given to it and refused, since there is no common hour."""
    is_busy: bool = False
    """It was sending up to this moment: no burst begins anew."""


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
        self._ahead = ahead
        self._rules = rules
        self._now_ms = now_ms
        self._next_day = now_ms // DAY_MS
        self._starts: list[int] = []
        self._pieces: list[tuple[Cell, State]] = []
        self._state = State(-1, float(kind.used_today), 0.0, tuple(kind.parked * share for share in shares))

    def one_more_day(self) -> None:
        for cell in self._cells(self._next_day):
            if cell.end > self._now_ms:
                self._starts.append(max(cell.start, self._now_ms))
                state = self._entered(cell, self._state)
                self._pieces.append((cell, state))
                self._state = self._step(cell, state, cell.end)
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
            self._start(cell)
            for cell, state in self._pieces
            if cell.is_open
            and cell.awake
            and (cell.shift.cap is None or state.used < cell.shift.cap)
            and cell.end > self._start(cell)
        )
        return next(first, NEVER)

    def open_spans(self, day: int) -> list[tuple[int, int]]:
        return [(cell.start, cell.end) for cell in self._cells(day) if cell.is_open and cell.awake]

    def given(self, at: int) -> float:
        """How many it has been given by then: sent, parked, queued."""
        cell, state = self._at(at)
        return state.sent + state.gone + sum(state.parked) + self._queue(cell, state, at)

    def queue(self, at: int) -> float:
        return self._queue(*self._at(at), at)

    def sent_by(self, at: int) -> float:
        return self._at(at)[1].sent

    def emptied(self, at: int, queue: float, until: int = NEVER) -> Emptied:
        """From `at` on it gets nothing more."""
        cell, state = self._at(at)
        days = self._days(at)
        holds = [parked + queue * share for parked, share in zip(state.parked, self._shares, strict=True)]
        met = self._met_so_far(at)
        finish, day, place = at, at // DAY_MS, at
        while sum(holds) > _ALMOST and place < min(until, at + 400 * DAY_MS):
            for cell in self._cells(day):
                if cell.end <= place:
                    continue
                state = self._entered(cell, state) if cell.start >= place else state
                for index in cell.never:
                    holds[index] = 0.0
                before = state.sent
                state, done_at = self._empty(cell, state, max(place, cell.start), min(cell.end, until), holds)
                if state.sent > before:
                    days[cell.date] = days.get(cell.date, 0.0) + state.sent - before
                    finish = max(finish, done_at)
                if sum(holds) <= _ALMOST:
                    break
                met |= self._met(cell, state, holds)
                if cell.end >= until:
                    break
            day += 1
            place = day * DAY_MS
        return Emptied(finish if sum(holds) <= _ALMOST or until < NEVER else NEVER, days, frozenset(met))

    # Within one cell

    def _step(self, cell: Cell, state: State, until: int) -> State:
        """On to `until`, with as much to do as it can."""
        if not cell.is_open:
            return State(state.date, state.used, state.sent, state.parked, state.gone)
        start = self._start(cell)
        if state.sent >= self.kind.load:
            # It has sent what it held, and until then it gets nothing.
            start = max(start, self.kind.takes_from_ms)
        able = self._able(cell, state, start, until)
        if not self._takes(until):
            able = min(able, max(0.0, self.kind.load - state.sent))
        awake = sum(self._shares[index] for index in cell.awake)
        never = sum(self._shares[index] for index in cell.never)
        asleep = max(0.0, 1.0 - awake - never)
        if asleep < _ALMOST and not never and not any(state.parked):
            return State(state.date, state.used + able, state.sent + able, state.parked, state.gone, able > 0)
        ready = sum(state.parked[index] for index in cell.awake)
        back = min(able, ready)
        parked = [
            count * (1 - back / ready) if index in cell.awake and ready else count
            for index, count in enumerate(state.parked)
        ]
        room = max(0.0, PARKED_AHEAD * self._ahead - sum(parked)) if until > start and self._takes(until) else 0.0
        fresh = able - back
        if asleep > _ALMOST:
            fresh = min(fresh, room * awake / asleep)
        looked_at = fresh / awake if awake > _ALMOST else 0.0
        if awake <= _ALMOST and asleep > _ALMOST and able > 0:
            # It finds nobody awake and puts one after the other aside, many a second.
            looked_at = min(room, (until - start) / PARKING_MS) / asleep
        for index, share in enumerate(self._shares):
            if index not in cell.awake and index not in cell.never:
                parked[index] += looked_at * share
        sent = back + fresh
        return State(
            state.date, state.used + sent, state.sent + sent, tuple(parked), state.gone + looked_at * never, sent > 0
        )

    def _empty(self, cell: Cell, state: State, start: int, until: int, holds: list[float]) -> tuple[State, int]:
        """The same without anything new; takes what goes out off `holds`."""
        awake = sum(holds[index] for index in cell.awake)
        start = max(start, self.kind.sends_from_ms)
        if not cell.is_open or awake <= _ALMOST or start >= until:
            return State(state.date, state.used, state.sent, state.parked, state.gone), start
        sent = min(awake, self._able(cell, state, start, until))
        for index in cell.awake:
            holds[index] *= 1 - sent / awake
        done_at = start + self._time_for(cell, state, start, sent)
        state = State(state.date, state.used + sent, state.sent + sent, state.parked, state.gone, sent > 0)
        return state, round(done_at)

    def _able(self, cell: Cell, state: State, start: int, until: int) -> float:
        if until <= start:
            return 0.0
        tempo = pace_of(self.kind, cell.shift, self._rules, self._burst(state))
        count = (until - start) / tempo.each_ms if state.is_busy else tempo.sent_in(until - start)
        return count if cell.shift.cap is None else min(count, max(0.0, cell.shift.cap - state.used))

    def _time_for(self, cell: Cell, state: State, start: int, count: float) -> float:
        tempo = pace_of(self.kind, cell.shift, self._rules, self._burst(state))
        return (count * tempo.each_ms if state.is_busy else tempo.time_for(count)) + tempo.heard_ms

    def _burst(self, state: State) -> int:
        return self.kind.burst if not state.sent else 0

    def _queue(self, cell: Cell, state: State, at: int) -> float:
        rest = max(0.0, self.kind.load - state.sent)
        if not self._takes(at):
            return rest
        cap = cell.shift.cap
        bound = float(self._ahead) if cap is None else min(float(self._ahead), max(0.0, cap - state.used))
        return max(rest, bound)

    def _takes(self, at: int) -> bool:
        return at >= self.kind.takes_from_ms

    def _start(self, cell: Cell) -> int:
        return max(cell.start, self._now_ms, self.kind.sends_from_ms)

    def _met(self, cell: Cell, state: State, holds: list[float]) -> set[str]:
        if not cell.is_open:
            return {"HOURS"}
        if cell.shift.cap is not None and state.used >= cell.shift.cap - _ALMOST:
            return {"DAILY_CAP"}
        return {"RECIPIENT_HOURS"} if sum(holds[index] for index in cell.awake) <= _ALMOST else set()

    def _met_so_far(self, at: int) -> set[str]:
        """What stopped it while there was always more to do."""
        met = set()
        for cell, state in self._pieces:
            if cell.end > at:
                break
            if cell.shift.cap is not None and state.used >= cell.shift.cap - _ALMOST:
                met.add("DAILY_CAP")
            elif not cell.is_open and state.date >= self._pieces[0][1].date and cell.start > self._now_ms:
                met.add("HOURS")
        return met

    # Where it is

    def _entered(self, cell: Cell, state: State) -> State:
        """A new day has its budget whole."""
        if state.date == cell.date:
            return state
        used = state.used if state.date == -1 else 0.0
        return State(cell.date, used, state.sent, state.parked, state.gone, state.is_busy)

    def _cells(self, day: int) -> tuple[Cell, ...]:
        return cells(self.kind.zone, self.kind.shifts, self._groups, day)

    def _at(self, at: int) -> tuple[Cell, State]:
        while self._next_day * DAY_MS <= at:
            self.one_more_day()
        cell, state = self._pieces[bisect_right(self._starts, at) - 1]
        return cell, self._step(cell, state, at)

    def _days(self, at: int) -> dict[int, float]:
        days: dict[int, float] = {}
        ends = [state.sent for _, state in self._pieces[1:]]
        for (cell, state), end in zip(self._pieces, [*ends, self._state.sent], strict=True):
            if cell.start > at:
                break
            end_sent = end if cell.end <= at else self._step(cell, state, at).sent
            if end_sent > state.sent:
                days[cell.date] = days.get(cell.date, 0.0) + end_sent - state.sent
        return days
