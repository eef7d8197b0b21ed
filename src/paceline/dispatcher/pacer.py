"""Due phones: facts in, the policy's decision applied in one script, the next due time out. No state of its own."""

from collections.abc import Sequence
from random import Random

from paceline.dispatcher.measures import Measures
from paceline.kits.failpoint import failpoint
from paceline.policy.dispatch import Send, decide
from paceline.policy.facts import PhoneFacts, Rules
from paceline.store.store import Store

LEASE_MS = 5_000
"""A dispatcher that dies between looking and handing over delays a phone by this much."""
BATCH = 100
"""Phones in one call of a script. Some milliseconds of Redis, and one write to the disk for all of them."""


class Pacer:
    def __init__(
        self,
        store: Store,
        rules: Rules,
        rng: Random,
        *,
        handoff_ttl_ms: int,
        api: bool = False,
        measures: Measures | None = None,
    ) -> None:
        self._store = store
        self._rules = rules
        self._rng = rng
        self._handoff_ttl_ms = handoff_ttl_ms
        self._api = api
        self._measures = measures or Measures()
        self.handed_off = 0
        self.refused = 0

    async def step(self, now_ms: int) -> int | None:
        """Serves what is due. Returns when the next phone is; None when none waits."""
        due = await self._store.pacers.claim_due(now_ms=now_ms, lease_ms=LEASE_MS, limit=BATCH, brief=True)
        if due.phones:
            await self._serve(due.phones, now_ms)
        # What was just decided may be due again at once (a step was made, nothing was sent), so look again.
        return now_ms if due.phones else due.next_at

    async def _serve(self, phones: Sequence[PhoneFacts], now_ms: int) -> None:
        decided = [(facts, decide(facts, self._rules, now_ms=now_ms, rng=self._rng)) for facts in phones]
        codes = await self._store.pacers.hand_off_all(
            decided, now_ms=now_ms, handoff_ttl_ms=self._handoff_ttl_ms, api=self._api
        )
        sends = [
            (facts, decision.final, code)
            for (facts, decision), code in zip(decided, codes, strict=True)
            if isinstance(decision.final, Send)
        ]
        if sends:
            failpoint("handed-off")
        given = [
            (final.head.task, final.session_id, max(0, now_ms - facts.due_at))
            for facts, final, code in sends
            if code == "OK"
        ]
        self.handed_off += len(given)
        self.refused += len(sends) - len(given)
        await self._measures.handed_off(given)
