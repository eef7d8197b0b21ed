"""The gateway's picture of the fleet, at most a second old: for choosing a number at accept and for forecasts.

No promise rests on it: what must hold is checked again by the scripts when a task is accepted, handed over, claimed.
"""

from collections.abc import Iterable

import msgspec

from paceline.domain.jobs import Strategy
from paceline.policy import forecast
from paceline.policy.facts import Rules, Sender, sender
from paceline.policy.forecast import Capacity
from paceline.policy.routing import Fleet, PhoneLoad, phone_load
from paceline.store.jobs import SINGLE_SENDS_LIMIT
from paceline.store.pacers import FleetPhone
from paceline.store.store import Store

PICTURE_AGE_MS = 1_000


class Estimate(msgspec.Struct, frozen=True):
    finish_ms: int | None
    will_expire: int = 0


class Picture:
    def __init__(
        self, phones: Iterable[FleetPhone], unrouted: dict[str, int], rules: Rules, strategy: Strategy = "sticky"
    ) -> None:
        self.phones = {phone.facts.phone: phone for phone in phones}
        self._unrouted = unrouted
        self._rules = rules
        self._strategy: Strategy = strategy

    def fleet(self, *, priority: int, turn: int, now_ms: int) -> Fleet:
        """The numbers as a single send may choose among them; `turn` counts those sends, for round_robin."""
        loads = (self._load(phone, priority, now_ms) for phone in self.phones.values())
        return Fleet(loads, strategy=self._strategy, turn=turn)

    def sender(self, phone: str, *, now_ms: int) -> Sender:
        return sender(self.phones[phone].facts, self._rules, now_ms=now_ms)

    def job(self, job_id: str, rest: int, *, phone: str | None, start_ms: int, expires_ms: int | None) -> Estimate:
        """When a job with `rest` tasks still to route will be done; what of it comes too late."""
        queued = sum(_waiting(seen) for seen in self._serving(phone))
        others = (left for other, left in self._unrouted.items() if other != job_id)
        if phone is not None:
            # The other jobs spread over all numbers; this one has one of them.
            others = (-(-left // len(self.phones)) for left in others)
        waiting = forecast.ahead_of(rest, queued=queued, others=others)
        capacities = self._capacities(phone, start_ms)
        finish = forecast.finish_ms(waiting, capacities, now_ms=start_ms)
        if not capacities or expires_ms is None or (finish is not None and finish <= expires_ms):
            return Estimate(finish)
        late = waiting - forecast.done_by(expires_ms, capacities, now_ms=start_ms)
        return Estimate(finish, min(rest, max(0, late)))

    def single(self, phone: str, *, priority: int, start_ms: int) -> int | None:
        waiting = self.phones[phone].ahead_of(priority) + 1
        return forecast.finish_ms(waiting, self._capacities(phone, start_ms), now_ms=start_ms)

    def _serving(self, phone: str | None) -> list[FleetPhone]:
        return list(self.phones.values()) if phone is None else [self.phones[phone]] if phone in self.phones else []

    def _capacities(self, phone: str | None, start_ms: int) -> list[Capacity]:
        found = (forecast.capacity(seen.facts, self._rules, now_ms=start_ms) for seen in self._serving(phone))
        return forecast.limited([kind for kind in found if kind is not None], self._rules.global_rpm)

    def _load(self, phone: FleetPhone, priority: int, now_ms: int) -> PhoneLoad:
        return phone_load(
            phone.facts,
            self._rules,
            waiting=phone.ahead_of(priority),
            parked=phone.parked,
            ahead=SINGLE_SENDS_LIMIT,
            now_ms=now_ms,
        )


class Watcher:
    """Looks at the fleet, and not again before the picture is a second old."""

    def __init__(self, store: Store, rules: Rules, strategy: Strategy = "sticky") -> None:
        self._store = store
        self._rules = rules
        self._strategy: Strategy = strategy
        self._picture = Picture((), {}, rules, strategy)
        self._looked_at_ms = -PICTURE_AGE_MS

    async def look(self, now_ms: int, *, fresh: bool = False) -> Picture:
        if fresh or now_ms - self._looked_at_ms >= PICTURE_AGE_MS:
            phones = await self._store.pacers.fleet()
            self._picture = Picture(phones, await self._store.jobs.unrouted(), self._rules, self._strategy)
            self._looked_at_ms = now_ms
        return self._picture


def _waiting(phone: FleetPhone) -> int:
    return phone.ahead_of(1) + phone.parked
