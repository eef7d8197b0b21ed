"""When single sends will go out: each behind what waits for its number at that moment, for the price of a look-up.

Part of one picture, so what was queued at the look and what was sent since then is all there is to count. Neighbours:
`picture` keeps it, `policy.line` knows the times.
"""

from typing import NamedTuple

from paceline.policy.facts import Rules
from paceline.policy.kinds import Maker
from paceline.policy.line import Line
from paceline.store.pacers import FleetPhone

SECOND_MS = 1_000


class _Kin(NamedTuple):
    """Numbers with the same figures share their line. What `maker` makes of them is then the same object, so its id
    says it."""

    maker: Maker
    lines: dict[int, Line]


class Singles:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._added: dict[str, list[int]] = {}
        """Sends for each number since the look, by priority."""
        self._lines: dict[str, tuple[int, Line | None]] = {}
        """Of each number, for the present second."""
        self._kin: dict[int, _Kin] = {}

    def one_more(self, seen: FleetPhone, priority: int, *, now_ms: int, start_ms: int) -> int | None:
        """Behind all that were given to the number before. One for later goes then, or when what waits now is gone."""
        phone, second = seen.facts.phone, now_ms // SECOND_MS
        kept = self._lines.get(phone)
        if kept is None or kept[0] != second:
            kept = self._lines[phone] = (second, self._line(seen, now_ms))
        line = kept[1]
        if line is None:
            return None
        added = self._added.setdefault(phone, [0, 0, 0])
        when = line.at(seen.ahead_of(priority) + sum(added[priority - 1 :]) + 1)
        if start_ms <= now_ms:
            added[priority - 1] += 1
            return when
        if when is None or when >= start_ms:
            return when
        then = self._line(seen, start_ms)
        return None if then is None else then.at(1)

    def _line(self, seen: FleetPhone, at_ms: int) -> Line | None:
        second = at_ms // SECOND_MS
        if second not in self._kin:
            self._kin[second] = _Kin(Maker(self._rules, at_ms), {})
        maker, lines = self._kin[second]
        # The message it is busy with has a place too.
        kind = maker.of(seen.facts, load=1 if seen.facts.unsettled else 0)
        if kind is None:
            return None
        if id(kind) not in lines:
            lines[id(kind)] = Line(kind, self._rules, now_ms=at_ms)
        return lines[id(kind)]
