"""Phones that are due: taking them, applying what the policy decided, bringing back what waited for its time."""

from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import msgspec
import structlog

from paceline.policy.dispatch import Decision, Idle, Send, Wait
from paceline.policy.facts import PhoneFacts
from paceline.store.caller import Answer, Caller
from paceline.store.rows import Row, facts_of

log = structlog.stdlib.get_logger(__name__)

HEADS = 8
"""Tasks looked at per phone: enough that a few that cannot go do not cost a round each."""


class Due(Answer, frozen=True):
    phones: list[PhoneFacts] = []
    next_at: int | None = None
    unreadable: list[str] = []
    """What is stored about them is not as we write it. Their lease ends by itself."""


class Released(Answer, frozen=True):
    released: int = 0
    next_at: int | None = None


class FleetPhone(msgspec.Struct, frozen=True):
    facts: PhoneFacts
    queued: tuple[int, int, int]
    parked: int = 0
    singles: int = 0
    """Single sends that wait for it, those for later among them."""

    @property
    def held(self) -> int:
        """All that it has to do some time. A single send that waits already counts twice: which are for later is not
        known, and none must be left out."""
        return sum(self.queued) + self.parked + self.singles

    def ahead_of(self, priority: int) -> int:
        """What would go before a new task of that priority."""
        return sum(self.queued[priority - 1 :]) + (1 if self.facts.unsettled else 0)

    def without(self, resting: Sequence[int]) -> "FleetPhone":
        """The same without so many tasks of each priority. Of a paused job they are parked when they come to the head,
        so they are taken for parked as far as there are any."""
        aside = min(self.parked, sum(resting))
        queued = []
        for waiting, rests in zip(self.queued, resting, strict=True):
            parked = min(aside, rests)
            aside -= parked
            queued.append(max(0, waiting - (rests - parked)))
        low, mid, high = queued
        return FleetPhone(self.facts, (low, mid, high), self.parked - min(self.parked, sum(resting)), self.singles)


class _Look(Answer, frozen=True):
    row: Row = []
    heads: list[Row] = []
    more: bool = False
    global_free_at: int = 0
    queued: tuple[int, int, int] = (0, 0, 0)
    parked: int = 0


class _HandedOff(Answer, frozen=True):
    codes: list[str] = []


class Pacers:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def claim_due(self, *, now_ms: int, lease_ms: int, limit: int, brief: bool = False) -> Due:
        """With `brief` the heads of a phone end with the first task that may go, as far as a script can tell."""
        code, *found = await self._caller.rows(
            "claim_due", now=now_ms, lease=lease_ms, limit=limit, heads=HEADS, brief=brief
        )
        if code != "OK":
            return Due(code)
        next_at, *rows = found
        leased_until = now_ms + lease_ms
        phones: list[PhoneFacts] = []
        unreadable: list[str] = []
        for row, heads, more, free_at, due_at in rows:
            try:
                facts = facts_of(
                    row, heads, more=more == 1, global_free_at=free_at, due_at=int(due_at), leased_until=leased_until
                )
                phones.append(facts)
            except (ValueError, TypeError, msgspec.MsgspecError):
                unreadable.append(row[0])
        return Due(code, phones, next_at, unreadable)

    async def look(self, phone: str, *, now_ms: int) -> FleetPhone | None:
        """One phone with its head tasks as a dispatcher would see it now; nothing changes."""
        look = await self._caller.call("look_phone", _Look, phone=phone, now=now_ms, heads=HEADS)
        if not look.row:
            return None
        facts = facts_of(look.row, look.heads, more=look.more, global_free_at=look.global_free_at)
        return FleetPhone(facts, look.queued, look.parked)

    async def hand_off(
        self, decisions: Sequence[tuple[PhoneFacts, Decision]], *, now_ms: int, handoff_ttl_ms: int, api: bool = False
    ) -> list[str]:
        """Applies each, or says why not. With `api` a task waits to be posted to the orchestrator instead of going
        straight into an outbox."""
        until = now_ms + handoff_ttl_ms
        orders = [
            {
                "phone": facts.phone, "version": facts.version, "leasedUntil": facts.leased_until,
                "steps": decision.steps, "final": _final(decision.final, handoff_until=until, api=api),
            }
            for facts, decision in decisions
        ]  # fmt: skip
        return (await self._caller.call("hand_off", _HandedOff, now=now_ms, orders=orders)).codes

    async def release_due(self, *, now_ms: int, limit: int) -> Released:
        return await self._caller.call("release_due", Released, now=now_ms, limit=limit)

    async def fleet(self, *, page: int = 500) -> list[FleetPhone]:
        """Every phone, read page by page so that no single call stalls Redis."""
        return [phone async for phones in self.fleet_pages(page) for phone in phones]

    async def fleet_pages(self, limit: int) -> AsyncIterator[list[FleetPhone]]:
        """Without those of which something cannot be read: they are nobody's to fill, and the others go on."""
        for offset in count(0, limit):
            rows = await self._caller.rows("fleet_page", offset=offset, limit=limit)
            yield [phone for row in rows if (phone := _fleet_phone(row)) is not None]
            if len(rows) < limit:
                return

    async def queue_status(self, keys_by_name: Sequence[tuple[str, str, str]]) -> dict[str, int]:
        """Lengths of the named queues: (name, command, key)."""
        lengths = await self._caller.read(*[(command, key) for _, command, key in keys_by_name])
        return {name: int(length) for (name, _, _), length in zip(keys_by_name, lengths, strict=True)}


def _fleet_phone(found: Row) -> FleetPhone | None:
    try:
        row, low, mid, high, parked, singles = found
        return FleetPhone(facts_of(row), (low, mid, high), parked, singles)
    except (ValueError, TypeError, msgspec.MsgspecError):
        log.warning("what is stored about a number cannot be read", phone=found[0][0])
        return None


def _final(final: Send | Wait | Idle, *, handoff_until: int, api: bool) -> dict[str, Any]:
    if isinstance(final, Send):
        head = final.head
        also: dict[str, Any] = {} if final.cap is None else {"cap": final.cap}
        also |= {"api": True} if api else {}
        also |= {"single": True} if head.single else {}
        return {
            "kind": "send", "entry": head.entry, "task": head.task, "to": head.to, "priority": head.priority,
            "expiresAt": head.expires_at, "session": final.session_id, "sendAfter": final.send_after_ms,
            "gapMs": final.gap.ms, "gapKey": final.gap.key, "day": final.day, "handoffUntil": handoff_until, **also,
        }  # fmt: skip
    if isinstance(final, Wait):
        gap = {} if final.gap is None else {"gapMs": final.gap.ms, "gapKey": final.gap.key}
        return {"kind": "wait", "until": final.until_ms, "reason": final.reason, **gap}
    return {"kind": "idle"}
