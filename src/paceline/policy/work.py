"""Work: what a number gets done within one cell, while there is always more to do, and while it only empties what it
holds.

Counts are fractions, since a kind stands for many numbers and a group of recipients for a share. Neighbours: `workday`
cuts the cells, `tempo` knows the pace, `walk` goes from cell to cell.
"""

from collections.abc import Sequence

import msgspec

from paceline.policy.facts import Rules
from paceline.policy.routing import PARKED_AHEAD
from paceline.policy.workday import Cell, Kind, pace_of

PARKING_MS = 50
"""What it takes to put one sleeper aside. All numbers do it side by side, so only that it takes time matters."""
ALMOST = 1e-6
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


class Work:
    def __init__(self, kind: Kind, shares: Sequence[float], *, ahead: int, rules: Rules, now_ms: int) -> None:
        self._kind = kind
        self._shares = shares
        self._ahead = ahead
        self._rules = rules
        self._now_ms = now_ms

    def step(self, cell: Cell, state: State, until: int) -> State:
        """On to `until`, with as much to do as it can."""
        if not cell.is_open:
            return State(state.date, state.used, state.sent, state.parked, state.gone)
        start = self.start(cell)
        if state.sent >= self._kind.load:
            # It has sent what it held, and until then it gets nothing.
            start = max(start, self._kind.takes_from_ms)
        able = self._able(cell, state, start, until)
        if not self._takes(until):
            able = min(able, max(0.0, self._kind.load - state.sent))
        awake = sum(self._shares[index] for index in cell.awake)
        never = sum(self._shares[index] for index in cell.never)
        asleep = max(0.0, 1.0 - awake - never)
        if asleep < ALMOST and not never and not any(state.parked):
            return State(state.date, state.used + able, state.sent + able, state.parked, state.gone, able > 0)
        ready = sum(state.parked[index] for index in cell.awake)
        back = min(able, ready)
        parked = [
            count * (1 - back / ready) if index in cell.awake and ready else count
            for index, count in enumerate(state.parked)
        ]
        room = max(0.0, PARKED_AHEAD * self._ahead - sum(parked)) if until > start and self._takes(until) else 0.0
        fresh = able - back
        if asleep > ALMOST:
            fresh = min(fresh, room * awake / asleep)
        looked_at = fresh / awake if awake > ALMOST else 0.0
        if awake <= ALMOST and asleep > ALMOST and able > 0:
            # It finds nobody awake and puts one after the other aside, many a second.
            looked_at = min(room, (until - start) / PARKING_MS) / asleep
        for index, share in enumerate(self._shares):
            if index not in cell.awake and index not in cell.never:
                parked[index] += looked_at * share
        sent = back + fresh
        return State(
            state.date, state.used + sent, state.sent + sent, tuple(parked), state.gone + looked_at * never, sent > 0
        )

    def empty(self, cell: Cell, state: State, start: int, until: int, holds: list[float]) -> tuple[State, int]:
        """The same without anything new; takes what goes out off `holds`."""
        awake = sum(holds[index] for index in cell.awake)
        start = max(start, self._kind.sends_from_ms)
        if not cell.is_open or awake <= ALMOST or start >= until:
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
        tempo = pace_of(self._kind, cell.shift, self._rules, self._burst(state))
        count = (until - start) / tempo.each_ms if state.is_busy else tempo.sent_in(until - start)
        return count if cell.shift.cap is None else min(count, max(0.0, cell.shift.cap - state.used))

    def _time_for(self, cell: Cell, state: State, start: int, count: float) -> float:
        tempo = pace_of(self._kind, cell.shift, self._rules, self._burst(state))
        return (count * tempo.each_ms if state.is_busy else tempo.time_for(count)) + tempo.heard_ms

    def _burst(self, state: State) -> int:
        return self._kind.burst if not state.sent else 0

    def queue(self, cell: Cell, state: State, at: int) -> float:
        rest = max(0.0, self._kind.load - state.sent)
        if not self._takes(at):
            return rest
        cap = cell.shift.cap
        bound = float(self._ahead) if cap is None else min(float(self._ahead), max(0.0, cap - state.used))
        return max(rest, bound)

    def _takes(self, at: int) -> bool:
        return at >= self._kind.takes_from_ms

    def start(self, cell: Cell) -> int:
        return max(cell.start, self._now_ms, self._kind.sends_from_ms)

    def entered(self, cell: Cell, state: State) -> State:
        """A new day has its budget whole."""
        if state.date == cell.date:
            return state
        used = state.used if state.date == -1 else 0.0
        return State(cell.date, used, state.sent, state.parked, state.gone, state.is_busy)
