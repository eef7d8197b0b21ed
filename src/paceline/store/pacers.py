"""Phones that are due: taking them, applying what the policy decided, bringing back what waited for its time."""

from collections.abc import Sequence
from typing import Any

import msgspec

from paceline.policy.dispatch import Decision, Idle, Send, Wait
from paceline.policy.facts import PhoneFacts
from paceline.store.caller import Answer, Caller

HEADS = 8
"""Tasks looked at per phone: enough that a few that cannot go do not cost a round each."""


class Due(Answer, frozen=True):
    phones: list[PhoneFacts] = []
    next_at: int | None = None


class Released(Answer, frozen=True):
    released: int = 0
    next_at: int | None = None


class FleetPhone(msgspec.Struct, frozen=True):
    facts: PhoneFacts
    queued: tuple[int, int, int]
    parked: int = 0

    def ahead_of(self, priority: int) -> int:
        """What would go before a new task of that priority."""
        return sum(self.queued[priority - 1 :]) + (1 if self.facts.unsettled else 0)


class FleetPage(Answer, frozen=True):
    phones: list[FleetPhone] = []


class Look(Answer, frozen=True):
    facts: PhoneFacts | None = None
    queued: tuple[int, int, int] = (0, 0, 0)
    parked: int = 0


class Pacers:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def claim_due(self, *, now_ms: int, lease_ms: int, limit: int) -> Due:
        return await self._caller.call("claim_due", Due, now=now_ms, lease=lease_ms, limit=limit, heads=HEADS)

    async def look(self, phone: str, *, now_ms: int) -> FleetPhone | None:
        """One phone with its head tasks as a dispatcher would see it now; nothing changes."""
        answer = await self._caller.call("look_phone", Look, phone=phone, now=now_ms, heads=HEADS)
        return None if answer.facts is None else FleetPhone(answer.facts, answer.queued, answer.parked)

    async def hand_off(
        self, facts: PhoneFacts, decision: Decision, *, now_ms: int, handoff_ttl_ms: int, api: bool = False
    ) -> str:
        """With `api` the task waits to be posted to the orchestrator instead of going straight into an outbox."""
        final = _final(decision.final, handoff_until=now_ms + handoff_ttl_ms, api=api)
        answer = await self._caller.call(
            "hand_off", Answer, phone=facts.phone, version=facts.version, now=now_ms, steps=decision.steps, final=final
        )
        return answer.code

    async def release_due(self, *, now_ms: int, limit: int) -> Released:
        return await self._caller.call("release_due", Released, now=now_ms, limit=limit)

    async def fleet(self, *, page: int = 500) -> list[FleetPhone]:
        """Every phone, read page by page so that no single call stalls Redis."""
        found: list[FleetPhone] = []
        while True:
            answer = await self._caller.call("fleet_page", FleetPage, offset=len(found), limit=page)
            found += answer.phones
            if len(answer.phones) < page:
                return found

    async def queue_status(self, keys_by_name: Sequence[tuple[str, str, str]]) -> dict[str, int]:
        """Lengths of the named queues: (name, command, key)."""
        lengths = await self._caller.read(*[(command, key) for _, command, key in keys_by_name])
        return {name: int(length) for (name, _, _), length in zip(keys_by_name, lengths, strict=True)}


def _final(final: Send | Wait | Idle, *, handoff_until: int, api: bool) -> dict[str, Any]:
    if isinstance(final, Send):
        cap = {} if final.cap is None else {"cap": final.cap}
        cap |= {"api": True} if api else {}
        return {
            "kind": "send", "entry": final.head.entry, "session": final.session_id, "sendAfter": final.send_after_ms,
            "gapMs": final.gap.ms, "gapKey": final.gap.key, "day": final.day, "handoffUntil": handoff_until, **cap,
        }  # fmt: skip
    if isinstance(final, Wait):
        gap = {} if final.gap is None else {"gapMs": final.gap.ms, "gapKey": final.gap.key}
        return {"kind": "wait", "until": final.until_ms, "reason": final.reason, **gap}
    return {"kind": "idle"}
