"""What an operator may decide about a number: each decision checked, applied and answered.

Neighbours: `routes_numbers` is its HTTP, `store.operators` applies it in one script, `watching` shows what came of it.
"""

from msgspec import UNSET

from paceline.dispatcher.schemas import (
    CooldownCleared,
    PacerRequest,
    PacerView,
    QueueCanceled,
    Requeued,
    RpmAnswer,
)
from paceline.dispatcher.watching import Watching, effective_rpm, rpm_source, unknown_session
from paceline.domain.errors import BadRequest, Conflict
from paceline.policy.facts import Rules, sender
from paceline.store.store import Store

_FIELDS = {
    "min_delay_ms": "minDelayMs",
    "max_delay_ms": "maxDelayMs",
    "burst_limit": "burstLimit",
    "burst_cooldown_ms": "burstCooldownMs",
    "rpm": "rpm",
}


class Operator:
    def __init__(self, store: Store, rules: Rules, watching: Watching) -> None:
        self._store = store
        self._rules = rules
        self._watching = watching

    async def set_pacer(self, session: str, asked: PacerRequest, *, by: str, now_ms: int) -> PacerView:
        """Keeps what is named, forgets what is null."""
        named = {name: value for field, name in _FIELDS.items() if (value := getattr(asked, field)) is not UNSET}
        if not named:
            raise BadRequest("INVALID_REQUEST", f"name at least one of {', '.join(_FIELDS.values())}", field="body")
        answer = await self._store.operators.set_pacer(
            session,
            set_={name: value for name, value in named.items() if value is not None},
            remove=[name for name, value in named.items() if value is None],
            by=by,
            now_ms=now_ms,
        )
        if answer.code == "UNKNOWN_SESSION":
            raise unknown_session()
        if answer.code == "INVERTED":
            # Named is the one that was sent; if both were, the lower end.
            field = "minDelayMs" if named.get("minDelayMs") is not None else "maxDelayMs"
            kept = {"minDelayMs": answer.min_delay_ms, "maxDelayMs": answer.max_delay_ms}
            raise BadRequest("INVALID_REQUEST", "minDelayMs would be over maxDelayMs", field=field, details=kept)
        return await self._watching.pacer(session, now_ms=now_ms)

    async def set_rpm(self, session: str, rpm: int | None, *, by: str, now_ms: int) -> RpmAnswer:
        """It may exceed the number's trust; then the incident says so."""
        before = await self._watching.look(session)
        trusted = self._rules.policy.level(before.facts.created_at, now_ms=now_ms).rpm
        exceeds = rpm is not None and rpm > trusted
        answer = await self._store.operators.set_rpm(session, rpm, exceeds_trust=exceeds, by=by, now_ms=now_ms)
        if answer.code == "UNKNOWN_SESSION":
            raise unknown_session()
        after = await self._watching.look(session)
        return RpmAnswer(
            session_id=session,
            phone=answer.phone,
            rpm=after.facts.rpm_override,
            source=rpm_source(after),
            effective_rpm=effective_rpm(sender(after.facts, self._rules, now_ms=now_ms)),
        )

    async def clear_cooldown(self, session: str, *, by: str, now_ms: int) -> CooldownCleared:
        answer = await self._store.operators.clear_cooldown(session, by=by, now_ms=now_ms)
        if answer.code == "UNKNOWN_SESSION":
            raise unknown_session()
        return CooldownCleared(cleared=answer.changed)

    async def requeue(self, session: str, *, by: str, now_ms: int) -> Requeued:
        answer = await self._store.operators.requeue(session, liveness_ms=self._rules.liveness_ms, by=by, now_ms=now_ms)
        if answer.code == "UNKNOWN_SESSION":
            raise unknown_session()
        if answer.code == "NOT_RESTORED":
            raise Conflict("NOT_RESTORED", "no session of this number is connected", field="sessionId")
        return Requeued(requeued=answer.waiting)

    async def cancel_queue(self, session: str, *, by: str, now_ms: int) -> QueueCanceled:
        """Everything that waits for the number ends; nothing vanishes."""
        phone = await self._watching.phone_of(session)
        done = await self._store.operators.cancel_queue(session, phone, by=by, now_ms=now_ms)
        return QueueCanceled(canceled=done.canceled, failed=done.failed, open=done.open)
