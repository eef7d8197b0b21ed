"""What an operator sees of the numbers: pace, queue, limits, and why each waits. Reads only.

Neighbours: `store.operators` brings the facts, the policies judge them, `schemas` says how the answer looks.
"""

from random import Random

from paceline.dispatcher.schemas import (
    ExplainAnswer,
    MetricsPage,
    PacerPage,
    PacerView,
    SessionMetrics,
    Waiting,
)
from paceline.domain.errors import NotFound
from paceline.domain.reasons import Reason
from paceline.policy import pacing
from paceline.policy.explain import NO_KNOWN_END, explain, sentence
from paceline.policy.facts import Rules, Sender, sender
from paceline.policy.restriction import Standing, standing
from paceline.store.operators import LastMinute, WatchedPhone
from paceline.store.store import Store

CONNECTED = "CONNECTED"


def unknown_session() -> NotFound:
    return NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")


class Watching:
    def __init__(self, store: Store, rules: Rules, rng: Random) -> None:
        self._store = store
        self._rules = rules
        self._rng = rng

    async def phone_of(self, session: str) -> str:
        phone = await self._store.operators.phone_of(session)
        if phone is None:
            raise unknown_session()
        return phone

    async def look(self, session: str) -> WatchedPhone:
        """The number of a session as it is now."""
        found = await self._store.operators.watch([await self.phone_of(session)])
        if not found:
            raise unknown_session()
        return found[0]

    async def pacer(self, session: str, *, now_ms: int) -> PacerView:
        return pacer_view(await self.look(session), self._rules, now_ms=now_ms)

    async def pacers(self, offset: int, limit: int, *, now_ms: int) -> PacerPage:
        # One more than asked for tells whether there is another page.
        phones = await self._store.operators.phones(offset, limit + 1)
        found = await self._store.operators.watch(phones[:limit])
        return PacerPage(
            items=[pacer_view(phone, self._rules, now_ms=now_ms) for phone in found],
            next_cursor=str(offset + limit) if len(phones) > limit else None,
        )

    async def metrics(self, after: str, limit: int, *, now_ms: int) -> MetricsPage:
        sessions, cursor = await self._store.sessions.page(after, limit, now_ms=now_ms)
        connected = {view.session_id: view.phone for view in sessions if view.connection == CONNECTED}
        watched = await self._store.operators.watch(list(dict.fromkeys(connected.values())))
        by_phone = {phone.facts.phone: phone for phone in watched}
        minutes = await self._store.operators.last_minute(list(connected.items()), now_ms=now_ms)
        items = [
            session_metrics(session, by_phone[phone], minute, self._rules, now_ms=now_ms)
            for (session, phone), minute in zip(connected.items(), minutes, strict=True)
            if phone in by_phone
        ]
        return MetricsPage(items=items, next_cursor=cursor)

    async def explain(self, session: str, *, now_ms: int) -> ExplainAnswer:
        phone = await self.phone_of(session)
        seen = await self._store.pacers.look(phone, now_ms=now_ms)
        if seen is None:
            raise unknown_session()
        found = explain(seen.facts, self._rules, now_ms=now_ms, rng=self._rng)
        return ExplainAnswer(
            session_id=session,
            phone=phone,
            queue_len=sum(seen.queued),
            parked=seen.parked,
            decision=found.decision,
            rule=found.rule,
            until=found.until,
            text=found.text,
            facts=found.facts,
            heads=list(found.heads),
        )


def pacer_view(phone: WatchedPhone, rules: Rules, *, now_ms: int) -> PacerView:
    facts = phone.facts
    who = sender(facts, rules, now_ms=now_ms)
    pace = who.pace
    return PacerView(
        phone=facts.phone,
        session_ids=sorted(session.id for session in facts.sessions),
        avg_delay_ms=(pace.min_ms + pace.max_ms) // 2,
        min_delay_ms=pace.min_ms,
        max_delay_ms=pace.max_ms,
        burst_count=pacing.burst_count(pace, facts.sends, who.starts),
        burst_limit=pace.burst_limit,
        burst_cooldown_ms=pace.burst_cooldown_ms,
        rpm=pace.rpm,
        effective_rpm=effective_rpm(who),
        next_slot_at=next_slot_at(who, now_ms),
        queue_len=phone.queue_len,
        parked=phone.parked,
        unsettled=facts.unsettled,
        waiting=waiting(phone, who, now_ms),
        config=facts.pacer,
    )


def session_metrics(
    session: str, phone: WatchedPhone, minute: LastMinute, rules: Rules, *, now_ms: int
) -> SessionMetrics:
    facts = phone.facts
    who = sender(facts, rules, now_ms=now_ms)
    return SessionMetrics(
        session_id=session,
        phone=facts.phone,
        queue_len=phone.queue_len,
        sent_last60s=minute.sent,
        routed_last60s=minute.routed,
        failed_last60s=minute.failed,
        trust_level=who.level.name,
        rpm_default=who.level.rpm,
        rpm_override=facts.rpm_override,
        rpm_source=rpm_source(phone),
        effective_rpm=effective_rpm(who),
        budget_left=who.left_today,
        restriction=restriction(phone, now_ms),
        next_slot_at=next_slot_at(who, now_ms),
        waiting=waiting(phone, who, now_ms),
    )


def effective_rpm(who: Sender) -> float:
    return round(pacing.effective_rpm(who.pace), 2)


def rpm_source(phone: WatchedPhone) -> str | None:
    """An override that another tool wrote, without saying who it is, counts as an operator's."""
    return None if phone.facts.rpm_override is None else phone.facts.rpm_source or "manual"


def next_slot_at(who: Sender, now_ms: int) -> int | None:
    """The next send as far as pace goes. The rest after a message that is still on its way is known, its begin is not:
    now is the earliest it can be."""
    facts, pace = who.facts, who.pace
    gap_ms = facts.gap_ms if facts.gap_key == pace.key else (pace.min_ms + pace.max_ms) // 2
    slot = pacing.next_slot(pace, facts.sends, gap_ms, who.starts)
    slot = max(slot, now_ms + gap_ms) if facts.unsettled else slot
    return slot if slot > now_ms else None


def restriction(phone: WatchedPhone, now_ms: int) -> Standing:
    facts = phone.facts
    return standing(
        quarantined=facts.quarantined,
        cooldown_until=facts.cooldown_until,
        restriction=facts.restriction,
        restricted_until=facts.restricted_until,
        now_ms=now_ms,
    )


def waiting(phone: WatchedPhone, who: Sender, now_ms: int) -> Waiting | None:
    """Why what waits for this number has not gone; None if nothing waits. What holds at this moment goes before what
    was written down at the last look."""
    if not phone.queue_len and not phone.parked:
        return None
    reason, until = _held_by(phone, who, now_ms)
    until = None if until is None or until <= now_ms or reason in NO_KNOWN_END else until
    return Waiting(reason=reason, until=until, text=sentence(reason, until_ms=until, zone=who.zone))


def _held_by(phone: WatchedPhone, who: Sender, now_ms: int) -> tuple[str, int | None]:
    facts = phone.facts
    if facts.fleet_stopped:
        return Reason.STOPPED, None
    if facts.fleet_paused:
        return Reason.FLEET_PAUSED, None
    if facts.quarantined:
        return Reason.QUARANTINED, None
    if not phone.queue_len:
        return phone.parked_reason or Reason.IN_TURN, phone.parked_until
    if facts.unsettled:
        return Reason.UNSETTLED, None
    if phone.wait_reason == Reason.PACING:
        # The look comes before the slot, so that typing fits in; what a person wants to know is the slot.
        return Reason.PACING, next_slot_at(who, now_ms) or phone.wait_until
    return phone.wait_reason or Reason.IN_TURN, phone.wait_until
