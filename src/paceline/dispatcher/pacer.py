"""Due phones: facts in, the policy's decision applied by a script, the next due time out. No state of its own."""

from collections.abc import Sequence
from random import Random

import structlog

from paceline.dispatcher.measures import Measures
from paceline.kits.failpoint import failpoint
from paceline.policy.dispatch import Decision, Send, decide
from paceline.policy.facts import PhoneFacts, Rules
from paceline.store.store import Store

log = structlog.stdlib.get_logger(__name__)

LEASE_MS = 5_000
"""A dispatcher that dies between looking and handing over delays a phone by this much."""
BATCH = 200
"""Phones in one call of a script. Some milliseconds of Redis, and one write to the disk for all of them."""
TICK_MS = 8
"""So long after a look that did not find all it could take comes the next one: what falls due meanwhile is served
together, and costs a fraction. Nobody sends later for it: a task is handed over a second and more before its slot."""


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
        """Serves what is due. Returns when to look again, `now_ms` if more is due; None when no phone waits."""
        due = await self._store.pacers.claim_due(
            now_ms=now_ms, lease_ms=LEASE_MS, limit=BATCH, brief=True, api=self._api
        )
        for phone in due.unreadable:
            log.error("what is stored about a number cannot be read", phone=phone)
        if due.phones:
            await self._serve(due.phones, now_ms)
        if due.taken >= BATCH:
            return now_ms
        # What was just decided may be due again at once (a step was made, nothing was sent), so look again soon.
        soon = now_ms + TICK_MS
        return soon if due.taken else due.next_at and max(soon, due.next_at)

    async def _serve(self, phones: Sequence[PhoneFacts], now_ms: int) -> None:
        decided = [(facts, decision) for facts in phones if (decision := self._decide(facts, now_ms)) is not None]
        codes = await self._store.pacers.hand_off(
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

    def _decide(self, facts: PhoneFacts, now_ms: int) -> Decision | None:
        """None if the policy stumbles over it (a timezone this host does not know, say): the others go on."""
        try:
            return decide(facts, self._rules, now_ms=now_ms, rng=self._rng)
        except (ValueError, LookupError, TypeError, ArithmeticError):
            log.exception("a number cannot be decided", phone=facts.phone)
            return None
