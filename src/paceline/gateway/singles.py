"""When single sends will go out: each behind what waits for its number at that moment, for the price of a look-up.

Part of one picture, so what was queued at the look and what was sent since then is all there is to count. Neighbours:
`picture` keeps it, `policy.line` knows the times.
"""

from typing import NamedTuple

from paceline.policy.facts import Rules
from paceline.policy.kinds import Maker
from paceline.policy.line import Line
from paceline.policy.pacing import MINUTE_MS
from paceline.store.pacers import FleetPhone

SECOND_MS = 1_000


class _Kin(NamedTuple):
    """Numbers with the same figures share their line. What `maker` makes of them is then the same object, so its id
    says it."""

    maker: Maker
    lines: dict[int, Line]


class Singles:
    def __init__(self, rules: Rules, waiting: int = 0) -> None:
        """`waiting` is what was queued for all numbers at the look; it counts under a ceiling for the fleet."""
        self._rules = rules
        self._before = waiting
        """That, and the sends since: all that goes before the next one under a ceiling for the fleet."""
        self._apart_ms = MINUTE_MS / rules.global_rpm if rules.global_rpm else 0.0
        self._added: dict[tuple[str, bool], list[int]] = {}
        """Sends for each number since the look, by priority; those that wait for the end of its lock apart."""
        self._lines: dict[tuple[str, bool], tuple[int, Line | None]] = {}
        """Of each number, for the present second; for those that wait for its lock another."""
        self._kin: dict[int, _Kin] = {}

    def one_more(
        self, seen: FleetPhone, priority: int, *, now_ms: int, start_ms: int, is_locked: bool = False
    ) -> int | None:
        """Behind all that were given to the number before. One for later goes then, or when what waits now is gone; a
        new chat on a locked number (`is_locked`) when the lock ends, behind those that are parked for it."""
        key, second = (seen.facts.phone, is_locked), now_ms // SECOND_MS
        kept = self._lines.get(key)
        if kept is None or kept[0] != second:
            kept = self._lines[key] = (second, self._line(seen, now_ms, is_locked))
        line = kept[1]
        if line is None:
            return None
        added = self._added.setdefault(key, [0, 0, 0])
        parked = seen.parked if is_locked else 0
        when = line.at(seen.ahead_of(priority) + parked + sum(added[priority - 1 :]) + 1)
        if when is not None and self._apart_ms:
            when = max(when, round(now_ms + self._before * self._apart_ms))
        if start_ms <= now_ms:
            added[priority - 1] += 1
            # What waits for a lock takes no turn of the others.
            self._before += not is_locked
            return when
        if when is None or when >= start_ms:
            return when
        then = self._line(seen, start_ms, is_locked)
        return None if then is None else then.at(1)

    def one_less(self, phone: str) -> None:
        """One for now, of priority 1, that does not come after all."""
        added = self._added.get((phone, False))
        # Of a number that cannot send nothing was counted.
        if added is not None and added[0] > 0:
            added[0] -= 1
            self._before -= 1

    def _line(self, seen: FleetPhone, at_ms: int, is_locked: bool) -> Line | None:
        second = at_ms // SECOND_MS
        if second not in self._kin:
            self._kin[second] = _Kin(Maker(self._rules, at_ms), {})
        maker, lines = self._kin[second]
        # The message it is busy with has a place too.
        kind = maker.of(seen.facts, load=1 if seen.facts.unsettled else 0, is_known=not is_locked)
        if kind is None:
            return None
        if id(kind) not in lines:
            lines[id(kind)] = Line(kind, self._rules, now_ms=at_ms)
        return lines[id(kind)]
