"""What workers say about themselves and about messages. Repeated and out-of-order events do no harm.

MESSAGE_SENT and an ack are one fact, MESSAGE_FAILED and a nack are one fact; both end in `settling`. Of what people
write only one thing is looked at, whether it says stop (`stops`); it is neither kept nor logged.
"""

from typing import Any

import msgspec

from paceline.domain import sessions
from paceline.domain.errors import BadRequest, NotFound
from paceline.domain.ids import parse_task_id
from paceline.domain.numbers import person
from paceline.domain.text import TEXT_LIMIT
from paceline.orchestrator import linking
from paceline.orchestrator.settling import Settling, Word
from paceline.orchestrator.stops import Stop, StopRules, Stops
from paceline.store.caller import Answer
from paceline.store.store import Store

RESTRICTION_KINDS = ("TIME_LOCKED", "CAPPED", "NONE")
FIRST_MS = 1_000_000_000_000
"""A time before this (September 2001) was meant in seconds."""
MAX_RESTRICTION_MS = 366 * 86_400_000
"""A limit that is stated for longer than a year is a mistake in somebody's units."""

ERROR_LIMIT = 256
QUIET_LIMIT_MS = 366 * 86_400_000
INBOUND_ID_LIMIT = 128
"""WhatsApp's message ids are a quarter of that."""

_PROOFS = {"MESSAGE_SENT": "sent", "MESSAGE_DELIVERED": "delivered", "MESSAGE_READ": "read"}
_HEARD = {"CONNECTED", "MESSAGE_DELIVERED", "MESSAGE_READ", "MESSAGE_RECEIVED"}
_KNOWN = {
    *_PROOFS, "QR", "CONNECTED", "DISCONNECTED", "PING", "ERROR", "MESSAGE_FAILED", "MESSAGE_RECEIVED", "RESTRICTION",
    "LINK_BLOCKED", "COMMAND_DONE",
}  # fmt: skip


class WorkerEvent(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    event: str
    timestamp: int
    event_id: str
    data: dict[str, Any] = {}


class Inbound:
    def __init__(
        self, store: Store, settling: Settling, stop: StopRules | None = None, *, tell_text: bool = False
    ) -> None:
        self._store = store
        self._settling = settling
        self._stops = Stops(store, stop or StopRules())
        self._tell_text = tell_text

    async def receive(self, event: WorkerEvent, *, now_ms: int) -> None:
        if event.event not in _KNOWN:
            raise BadRequest("UNKNOWN_EVENT", f"{event.event!r} is not an event of a worker", field="event")
        event = msgspec.structs.replace(event, timestamp=heard_at(event, now_ms=now_ms))
        if event.event in _PROOFS:
            await self._proof(event, now_ms)
        elif event.event == "MESSAGE_FAILED":
            await self._failed(event, now_ms)
        elif event.event == "RESTRICTION":
            await self._restricted(event, now_ms)
        elif event.event == "MESSAGE_RECEIVED":
            await self._received(event, now_ms)
        elif event.event == "COMMAND_DONE":
            await self._command_done(event, now_ms)
        changes = _session_changes(event, now_ms)
        record = None if event.event == "PING" else _record(event, now_ms)
        answer = await self._store.sessions.event(
            event.session_id,
            now_ms=now_ms,
            at_ms=event.timestamp,
            event=record,
            epoch=_number(event, "epoch"),
            word=event.event_id,
            quiet_ms=_quiet_ms(event),
            **changes,
        )
        _known(answer)

    async def _proof(self, event: WorkerEvent, now_ms: int) -> None:
        task, wire_id = _task(event), _text(event, "whatsappId")
        await self._settling.sent(event.session_id, task, wire_id, proof=_PROOFS[event.event], now_ms=now_ms)

    async def _failed(self, event: WorkerEvent, now_ms: int) -> None:
        """The same fact as a nack, if it names its claim (`token`, `epoch`): a late one must not settle another try."""
        task, error = _task(event), event.data.get("error")
        code, message = _error(error)
        token, epoch = _number(event, "token"), _number(event, "epoch")
        if token is None or epoch is None:
            return
        word = Word(event.session_id, epoch, task, token)
        await self._settling.failed(word, code, message, not_sent=event.data.get("notSent") is True, now_ms=now_ms)

    async def _restricted(self, event: WorkerEvent, now_ms: int) -> None:
        kind, until_ms = _restriction(event, now_ms)
        answer = await self._store.sessions.restriction(
            event.session_id,
            kind,
            until_ms,
            epoch=_number(event, "epoch"),
            word=event.event_id,
            at_ms=event.timestamp,
            now_ms=now_ms,
        )
        _known(answer)

    async def _received(self, event: WorkerEvent, now_ms: int) -> None:
        """Who wrote, not what. A sender that is no number (a group, a LID) has no conversation that we could keep."""
        sender, wire_id = person(_text(event, "from")), _text(event, "whatsappId")
        said = event.data.get("text")
        says_stop = isinstance(said, str) and self._stops.says_stop(said)
        if sender is None:
            if says_stop:
                _known(await self._stops.unresolved(_stop(event, wire_id), now_ms=now_ms))
            return
        answer = await self._store.sessions.received(
            event.session_id,
            sender,
            at_ms=event.timestamp,
            now_ms=now_ms,
            whatsapp_id=wire_id[:INBOUND_ID_LIMIT],
            text=said[:TEXT_LIMIT] if self._tell_text and isinstance(said, str) else None,
        )
        _known(answer)
        if says_stop:
            _known(await self._stops.heard(_stop(event, wire_id), sender, answer.phone, now_ms=now_ms))

    async def _command_done(self, event: WorkerEvent, now_ms: int) -> None:
        """What the worker was told to do has an end; one that we do not know of (any more) changes nothing."""
        command, ok, error = _text(event, "commandId"), event.data.get("ok") is True, event.data.get("error")
        answer = await self._store.fleet.end_command(
            event.session_id,
            command,
            ok=ok,
            now_ms=now_ms,
            error=error[:ERROR_LIMIT] if isinstance(error, str) else None,
            pairing=linking.pairing_in(event.data, now_ms=now_ms) if ok else None,
        )
        _known(answer)


def _stop(event: WorkerEvent, wire_id: str) -> Stop:
    return Stop(event.session_id, _text(event, "from"), wire_id, event.timestamp)


def heard_at(event: WorkerEvent, *, now_ms: int) -> int:
    """A worker's clock may be ahead; an event from the future would outlive all that follow it."""
    return max(0, min(event.timestamp, now_ms))


def _known(answer: Answer) -> None:
    if answer.code == "UNKNOWN_SESSION":
        raise NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")


def _restriction(event: WorkerEvent, now_ms: int) -> tuple[str, int | None]:
    kind, until = _text(event, "kind"), event.data.get("until")
    if kind not in RESTRICTION_KINDS:
        raise BadRequest("INVALID_REQUEST", f"kind is one of {', '.join(RESTRICTION_KINDS)}", field="data.kind")
    if kind == "NONE":
        return kind, None
    if until is None:
        raise BadRequest("MISSING_FIELD", f"{kind} needs until", field="data.until")
    if not isinstance(until, int) or isinstance(until, bool) or not FIRST_MS < until <= now_ms + MAX_RESTRICTION_MS:
        raise BadRequest("INVALID_TIME", "until is a time in ms, at most 366 days from now", field="data.until")
    return kind, until


def _session_changes(event: WorkerEvent, now_ms: int) -> dict[str, Any]:
    """What an event means for its session, by the table."""
    change = sessions.told(event.event, _number(event, "code"), str(event.data.get("reason", "")))
    if change is None:
        return {}
    fields = ("connection", "authorisation", "quarantine", "failed", "alarm")
    shown = {"qr": linking.shown_code(event.data, "qr", now_ms=now_ms)} if event.event == "QR" else {}
    return {name: getattr(change, name) for name in fields} | shown


def _quiet_ms(event: WorkerEvent) -> int | None:
    """For how long its worker has not heard WhatsApp, as a ping tells (nonsense is not believed). What came from there
    tells that it was now."""
    if event.event in _HEARD:
        return 0
    quiet_ms = _number(event, "quietMs") if event.event == "PING" else None
    return quiet_ms if quiet_ms is not None and 0 <= quiet_ms <= QUIET_LIMIT_MS else None


def _record(event: WorkerEvent, now_ms: int) -> str:
    """For the session's history; what people wrote stays out of it."""
    data = {key: value for key, value in event.data.items() if key not in ("text", "caption", *linking.SECRETS)}
    return msgspec.json.encode(
        {"event": event.event, "at": event.timestamp, "receivedAt": now_ms, "eventId": event.event_id, "data": data}
    ).decode()


def _error(error: Any) -> tuple[str, str]:
    if isinstance(error, dict) and isinstance(error.get("code"), str):
        return error["code"][:64], str(error.get("message", ""))[:1_024]
    raise BadRequest("MISSING_FIELD", "MESSAGE_FAILED needs error.code", field="data.error.code")


def _number(event: WorkerEvent, field: str) -> int | None:
    value = event.data.get(field)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:16])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _task(event: WorkerEvent) -> str:
    task = _text(event, "messageId")
    if parse_task_id(task) is None:
        raise NotFound("UNKNOWN_TASK", "there is no such task", field="data.messageId")
    return task


def _text(event: WorkerEvent, field: str) -> str:
    value = event.data.get(field)
    if not isinstance(value, str) or not value:
        raise BadRequest("MISSING_FIELD", f"{event.event} needs {field}", field=f"data.{field}")
    return value
