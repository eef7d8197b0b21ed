"""SmartGuard's loop: every few seconds one dispatcher asks the policy about each number and applies its answer.

The tick is taken in Redis, so it is one ticker however many dispatchers run; a change names what it was decided on, so
that neither a second ticker nor an operator's press is overwritten.
"""

from paceline.policy.facts import Rules
from paceline.policy.smartguard import decide, guard_facts
from paceline.store.pacers import FleetPhone
from paceline.store.store import Store

PAGE = 500


class SmartGuard:
    def __init__(self, store: Store, rules: Rules, *, enabled: bool, tick_ms: int) -> None:
        """`enabled` is the setting; it counts until an operator says otherwise."""
        self._store = store
        self._rules = rules
        self.enabled = enabled
        self.tick_ms = tick_ms
        self.changes = 0

    async def step(self, now_ms: int) -> int | None:
        """Takes the tick if it is due. Returns when the next one is; None while there is none."""
        tick = await self._store.operators.guard_tick(tick_ms=self.tick_ms, setting=self.enabled, now_ms=now_ms)
        if tick.code == "OK":
            await self._look_at_the_fleet(now_ms)
        return tick.next_at

    async def _look_at_the_fleet(self, now_ms: int) -> None:
        async for phones in self._store.pacers.fleet_pages(PAGE):
            for phone in phones:
                await self._look_at(phone, now_ms)

    async def _look_at(self, phone: FleetPhone, now_ms: int) -> None:
        facts = phone.facts
        if facts.rpm_override is None and not facts.failures:
            return
        asked = guard_facts(facts, self._rules, queue=sum(phone.queued), now_ms=now_ms)
        change = decide(asked, now_ms=now_ms)
        if change is None:
            return
        code = await self._store.operators.guard_change(
            facts, change.rpm, change.reason, setting=self.enabled, now_ms=now_ms
        )
        self.changes += code == "OK"
