"""The fleet as the routers of one process see it: read once for all of them, and counted on as they route.

No promise rests on it: it steers the filling of queues, and the scripts check what must hold. Neighbours: `router`
asks, `policy.routing` chooses.
"""

from collections import Counter

from paceline.domain.jobs import Strategy
from paceline.policy.facts import Rules
from paceline.policy.routing import Fleet, phone_load
from paceline.store.pacers import FleetPhone
from paceline.store.store import Store

FLEET_AGE_MS = 250
"""How old the picture may be; of a large fleet older, since reading it takes longer."""
PHONES_AT_ONCE = 1_000
"""So many numbers are read in some tens of milliseconds of Redis."""
OLDEST = 20
"""Times `FLEET_AGE_MS`: a number that was lost is not filled for longer."""


class FleetWatch:
    def __init__(self, store: Store, rules: Rules, *, route_ahead: int, age_ms: int = FLEET_AGE_MS) -> None:
        self._store = store
        self._rules = rules
        self._route_ahead = route_ahead
        self._age_ms = age_ms
        self._phones: list[FleetPhone] = []
        self._read_at_ms = -age_ms
        self._is_reading = False
        self._routed: Counter[str] = Counter()
        """What was routed since the reading began, by number."""
        self._fleets: dict[tuple[int, Strategy], Fleet] = {}

    def is_fresh(self, now_ms: int) -> bool:
        return now_ms - self._read_at_ms < FLEET_AGE_MS

    async def look(self, priority: int, strategy: Strategy, *, turn: int, now_ms: int, fresh: bool = False) -> Fleet:
        """The numbers as a job of that priority may choose among them. While one reads, the others go on with what was
        read before, unless they want it `fresh`."""
        is_old = now_ms - self._read_at_ms >= self._age_ms * min(OLDEST, max(1, len(self._phones) // PHONES_AT_ONCE))
        is_wanted = not self.is_fresh(now_ms) if fresh else is_old and not (self._is_reading and self._phones)
        if is_wanted:
            await self._read(now_ms)
        if (priority, strategy) not in self._fleets:
            self._fleets[priority, strategy] = self._made(priority, strategy, turn, now_ms)
        return self._fleets[priority, strategy]

    def note(self, chosen_by: Fleet, phone: str) -> None:
        """A task goes to this number: the fleet that chose it knows, the others are told."""
        self._routed[phone] += 1
        for fleet in self._fleets.values():
            if fleet is not chosen_by:
                fleet.count(phone)

    async def _read(self, now_ms: int) -> None:
        self._is_reading = True
        self._routed.clear()
        try:
            self._phones = await self._store.pacers.fleet()
        finally:
            self._is_reading = False
        self._read_at_ms = now_ms
        self._fleets.clear()

    def _made(self, priority: int, strategy: Strategy, turn: int, now_ms: int) -> Fleet:
        loads = (
            phone_load(
                phone.facts,
                self._rules,
                waiting=phone.ahead_of(priority) + self._routed[phone.facts.phone],
                parked=phone.parked,
                ahead=self._route_ahead,
                now_ms=now_ms,
            )
            for phone in self._phones
        )
        return Fleet(loads, strategy=strategy, turn=turn)
