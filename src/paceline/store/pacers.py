"""Phones that are due: taking them, applying what the policy decided, bringing back what waited for its time."""

from collections.abc import AsyncIterator, Sequence
from itertools import count, repeat
from typing import Any, Literal

import msgspec
import structlog

from paceline.domain.states import Byte
from paceline.policy.dispatch import RECHECK_MS, Decision, Idle, Send, Wait
from paceline.policy.facts import PhoneFacts
from paceline.store.caller import Answer, Caller
from paceline.store.looks import PlainLooks, Taken
from paceline.store.plain import in_order, pages, pairs
from paceline.store.rows import Pace, Row, facts_of
from paceline.store.scripts import ScriptConfig

log = structlog.stdlib.get_logger(__name__)

HEADS = 8
"""Tasks looked at per phone: enough that a few that cannot go do not cost a round each."""
CAP_RECHECK_MS = 1_000
"""A message that would have gone over the cap by what it was decided on: the next look knows better."""


class Due(Answer, frozen=True):
    phones: list[PhoneFacts] = []
    next_at: int | None = None
    taken: int = 0
    """How many were due. Some may have been put back: too much came with the others."""
    unreadable: list[str] = []
    """What is stored about them is not as we write it. Their lease ends by itself."""


class Released(Answer, frozen=True):
    released: int = 0
    next_at: int | None = None
    forgets: bool = False
    """More is to be forgotten."""


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


class Pacers:
    def __init__(self, caller: Caller, config: ScriptConfig) -> None:
        self._caller = caller
        self._has_ceilings = config.global_rpm > 0 or config.frequency_cap > 0
        """What the whole fleet, or a person, has had must be asked with the rest."""
        self._plain_looks = PlainLooks(caller)

    async def claim_due(self, *, now_ms: int, lease_ms: int, limit: int, brief: bool = False, api: bool = False) -> Due:
        """With `brief` the heads of a phone end with the first task that may go, as far as the store can tell. `api` as
        for `hand_off`."""
        code, *found = await self._caller.rows("claim_due", now=now_ms, lease=lease_ms, limit=limit)
        if code != "OK":
            return Due(code)
        next_at, flags, due = found
        leased_until = now_ms + lease_ms
        taken = [(phone, int(float(at))) for phone, at in zip(due[::2], due[1::2], strict=True)]
        phones: list[PhoneFacts] = []
        if brief and taken and not (api or self._has_ceilings):
            phones = await self._plain_looks.of(taken, flags, now_ms=now_ms, leased_until=leased_until)
        seen = {facts.phone for facts in phones}
        others = [one for one in taken if one[0] not in seen]
        unreadable = await self._look(others, phones, flags, now_ms=now_ms, leased_until=leased_until, brief=brief)
        return Due(code, phones, next_at, len(taken), unreadable)

    async def _look(
        self,
        taken: Sequence[Taken],
        phones: list[PhoneFacts],
        flags: Sequence[str | None],
        *,
        now_ms: int,
        leased_until: int,
        brief: bool,
    ) -> list[str]:
        """Adds the facts of those that were taken, all in one step; returns those that cannot be read."""
        if not taken:
            return []
        due = [word for one in taken for word in one]
        rows = await self._caller.rows("look_due", now=now_ms, due=due, heads=HEADS, brief=brief)
        unreadable: list[str] = []
        for phone, facts, pace, sends, marks, seen, heads, more, free_at, due_at in rows:
            try:
                phones.append(
                    facts_of(
                        [phone, facts, pace, sends, marks, seen, flags], heads, more=more == 1,
                        global_free_at=int(free_at), due_at=int(due_at), leased_until=leased_until,
                    )
                )  # fmt: skip
            except (ValueError, TypeError, msgspec.MsgspecError):
                unreadable.append(phone)
        return unreadable

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
        orders = {
            place: (
                facts.phone, f'["{facts.version}",', str(facts.leased_until), decision.steps or False,
                *_applied(facts, decision.final, now_ms=now_ms, api=api),
            )
            for place, (facts, decision) in enumerate(decisions)
        }  # fmt: skip
        until, codes = str(now_ms + handoff_ttl_ms), ["OK"] * len(decisions)
        plain = [] if api or self._has_ceilings else [at for at in orders if _is_plain(decisions[at][1], orders[at])]
        if plain:
            rows = in_order(_plain(at, orders[at], str(now_ms)) for at in plain)
            left = await self._caller.rows("hand_plain", **_together(rows, until, leased_until=orders[plain[0]][2]))
            for at in set(plain).difference(rows[place - 1][2] for place in left):
                del orders[at]
        if orders:
            self._plain_looks.see_more([decisions[at][0].phone for at in orders])
            for at, order in orders.items():
                if _asks_too_little(*decisions[at], order, now_ms):
                    orders[at] = _looked_again(decisions[at][0], order, now_ms)
            asked = list(orders.values())
            found = await self._caller.rows("hand_off", now=now_ms, handoffUntil=until, orders=asked)
            for at, code in zip(orders, found, strict=True):
                codes[at] = code
        return codes

    async def release_due(self, *, now_ms: int, limit: int, forget: int = 0) -> Released:
        """What waited for its time comes back. With `forget`, messages that went out longer ago than they are kept are
        dropped, those of so many settlings."""
        return await self._caller.call("release_due", Released, now=now_ms, limit=limit, forget=forget)

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


def _applied(
    facts: PhoneFacts, final: Send | Wait | Idle, *, now_ms: int, api: bool
) -> tuple[str | Literal[False], tuple[Any, ...]]:
    """The phone's pace as it shall be, and what else there is to do, as hand_off.lua reads both."""
    pace = Pace.of(facts.pace_line)
    if facts.last_now > now_ms:
        return False, ("refused", "CLOCK_BACK", pace.last_now)
    # This look was used: a second order from it is stale.
    pace.version, pace.last_now = str(facts.version + 1), str(now_ms)
    if isinstance(final, Idle):
        return pace.line, ("idle",)
    if isinstance(final, Send) and (refused := _refused(facts, final, now_ms)):
        return pace.line, refused
    if final.gap is not None:
        pace.gap_ms, pace.gap_key = str(final.gap.ms), final.gap.key
    if isinstance(final, Wait):
        pace.wait_reason, pace.wait_until = final.reason, str(final.until_ms)
        return pace.line, ("wait", pace.wait_until, final.reason)
    head = final.head
    day, used = with_unit(facts, final.day)
    pace.cap_day, pace.cap_used = day, str(used)
    pace.unsettled, pace.holder, pace.slot = head.task, final.session_id, str(final.send_after_ms)
    pace.more, pace.wait_reason = "1" if facts.more or len(facts.heads) > 1 else "", ""
    return pace.line, (
        "send", head.entry, head.task, head.to, str(head.priority), final.session_id, pace.slot, final.day,
        pace.cap_day != final.day and pace.cap_day, head.single, api,
    )  # fmt: skip


def _asks_too_little(facts: PhoneFacts, decision: Decision, order: tuple[Any, ...], now_ms: int) -> bool:
    """Whether it rests on a task of which only the entry was read, and does something with it, or lets it wait for so
    long that whoever looks would wonder: it may have been canceled, or its person have said stop. Where the clock went
    back (no pace was decided) it does nothing."""
    kind, *rest = order[-1]
    if order[4] is False or all(head.is_seen for head in facts.heads):
        return False
    return bool(decision.steps) or kind == "send" or (kind == "wait" and int(rest[0]) > now_ms + RECHECK_MS)


def _looked_again(facts: PhoneFacts, order: tuple[Any, ...], now_ms: int) -> tuple[Any, ...]:
    """Instead of that the number is due at once, to be seen in full."""
    pace = Pace.of(facts.pace_line)
    pace.version, pace.last_now = str(facts.version + 1), str(now_ms)
    return *order[:3], False, pace.line, ("refused", "CHANGED", str(now_ms))


def _is_plain(decision: Decision, order: tuple[Any, ...]) -> bool:
    """Whether nothing speaks against it, unless something changed since."""
    final = decision.final
    if not isinstance(final, Send) or decision.steps or order[-1][0] != "send":
        return False
    return final.head.state == Byte.ROUTED and not final.head.pinned and final.head.priority == 1


def _plain(at: int, order: tuple[Any, ...], now: str) -> tuple[Any, ...]:
    """The same order as a row, behind its job, its index there and its place."""
    phone, seen, _, _, line, (_, entry, task, to, _, session, send_after, day, unit_day, single, _) = order
    job, _, index = task.partition(":")
    handed = f"{phone} {session} {send_after} {now} {day}" + (f" {unit_day}" if unit_day else "")
    return job, int(index), at, phone, seen, line, entry, task, to, session, handed, single


def _together(rows: Sequence[tuple[Any, ...]], until: str, *, leased_until: str) -> dict[str, Any]:
    """As hand_plain.lua reads them."""
    _, _, _, phones, seen, lines, entries, tasks, people, sessions, handed, singles = zip(*rows, strict=True)
    return {
        "leasedUntil": leased_until, "phones": phones, "seen": seen, "people": people, "entries": entries,
        "sessions": sessions, "tasks": tasks, "handed": handed, "paces": pairs(phones, lines),
        "deadlines": pairs(repeat(until, len(tasks)), tasks), "jobs": pages(rows, Byte.HANDED_OFF),
        "singles": [place for place, is_single in enumerate(singles, start=1) if is_single],
    }  # fmt: skip


def _refused(facts: PhoneFacts, send: Send, now_ms: int) -> tuple[str, str, str] | None:
    """Why it must not go by the facts it was decided on, whatever the policy says."""
    if facts.unsettled:
        return "refused", "UNSETTLED", str(now_ms + RECHECK_MS)
    _, used = with_unit(facts, send.day)
    return ("refused", "CAP", str(now_ms + CAP_RECHECK_MS)) if is_over(used, send.cap) else None


def with_unit(facts: PhoneFacts, day: str) -> tuple[str, int]:
    """Which day a unit is taken of, and how many of it are used with this one. A day counted further than this one (the
    phone's zone was changed) keeps counting: it can only be too strict."""
    return (facts.cap_day, facts.cap_used + 1) if facts.cap_day >= day else (day, 1)


def is_over(used: int, cap: int | None) -> bool:
    return cap is not None and used > cap
