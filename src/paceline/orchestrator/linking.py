"""Linking a session to its number: the QR and pairing codes a worker shows, and what a worker is told to do about it.

A code links a device to the number, so it is kept for as long as it is valid and no longer, stands in no history and no
log, and no answer with one may be stored on the way. Neighbours: `inbound` hears the workers, `routes_sessions` the
operators.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from paceline.domain.errors import BadRequest, Conflict, NotFound, RequestError
from paceline.kits.rng import Rng
from paceline.orchestrator.waiters import Waiters
from paceline.store.session_views import SessionView
from paceline.store.store import Store
from paceline.store.wishes import CommandKind, Secret

CODE_BYTES = 2_953
"""A QR code holds no more; a QR text of WhatsApp is a tenth of that."""
SHOWN_MS = 60_000
"""How long a code counts that comes without a time: WhatsApp's first one lives that long."""
LONGEST_MS = 600_000
COMMAND_MS = 120_000
"""A worker that does not hear of it within this time is away, and what was asked for is to be asked again."""
PAIRING_WAIT_MS = 25_000
"""How long a caller waits for a pairing code; the worker hears of it at its next poll."""

SECRETS = ("qr", "pairingCode")
"""Fields of a worker's event that never reach a history."""


class CommandGiven(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    command_id: str
    kind: str
    expires_at: int
    """The worker does it before then or not at all; `lastCommand` of the session tells the end."""


class QrAnswer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    qr: str
    expires_at: int


class PairingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    code: str
    expires_at: int


class Linking:
    def __init__(self, store: Store, rng: Rng, waiters: Waiters) -> None:
        self._store = store
        self._rng = rng
        self._waiters = waiters

    async def qr(self, view: SessionView, *, now_ms: int) -> QrAnswer:
        found = await self._store.fleet.qr(view.session_id, now_ms=now_ms)
        if found is None:
            _refuse_linked(view)
            raise NotFound("NO_QR", "no QR code is shown now; ask again", details={"connection": view.connection})
        return QrAnswer("ok", found.value, found.until)

    async def tell(self, session: str, kind: CommandKind, *, by: str, now_ms: int) -> CommandGiven:
        """Has the worker do something. Asked again before it ended, it is the same command."""
        given = await self._store.fleet.give_command(
            session,
            kind,
            command_id=f"c-{self._rng.getrandbits(64):016x}",
            until_ms=now_ms + COMMAND_MS,
            by=by,
            now_ms=now_ms,
        )
        _raise_for(given.code)
        return CommandGiven("ok", given.id, kind, given.until)

    async def pairing_code(
        self, session: str, *, by: str, now_ms: Callable[[], int], until_gone: Callable[[], Awaitable[object]]
    ) -> PairingAnswer:
        """Asks the worker for a code and waits for it. What is shown now is given again: each new one ends the last."""
        shown = await self._store.fleet.pairing(session, now_ms=now_ms())
        if shown is not None:
            return PairingAnswer("ok", shown.value, shown.until)
        command = await self.tell(session, "pair", by=by, now_ms=now_ms())

        async def look() -> Secret | RequestError | None:
            found = await self._store.fleet.pairing(session, now_ms=now_ms())
            return found or await self._failure(session, command.command_id, now_ms())

        answer = await self._waiters.poll(
            f"linking:{session}",
            look,
            found=lambda answer: answer is not None,
            timeout_ms=PAIRING_WAIT_MS,
            until_gone=until_gone,
        )
        if isinstance(answer, RequestError):
            raise answer
        if answer is None:
            raise Conflict("NO_PAIRING_CODE", "its worker has not got a code yet; ask again")
        return PairingAnswer("ok", answer.value, answer.until)

    async def _failure(self, session: str, command_id: str, now_ms: int) -> RequestError | None:
        view = await self._store.sessions.get(session, now_ms=now_ms)
        last = view.last_command if view else None
        if last is None or last.id != command_id or last.ok:
            return None
        return Conflict("NO_PAIRING_CODE", f"the worker could not get a code: {last.error or 'no reason given'}")


def _raise_for(code: str) -> None:
    errors: dict[str, RequestError] = {
        "UNKNOWN_SESSION": NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId"),
        "REMOVING": Conflict("SESSION_REMOVING", "this session is being removed"),
        "NOT_RUNNING": Conflict("NOT_RUNNING", "no worker of this session runs; start it first"),
        "LINKED": Conflict("ALREADY_LINKED", "this session is linked already"),
        "NOT_LINKED": Conflict("NOT_LINKED", "this session is not linked"),
    }
    if code in errors:
        raise errors[code]


def _refuse_linked(view: SessionView) -> None:
    if view.authorisation == "LINKED":
        raise Conflict("ALREADY_LINKED", "this session is linked; there is no QR code to scan")
    if view.desired != "running" or view.connection in ("STOPPED", "FAILED"):
        raise Conflict("NOT_RUNNING", "no worker of this session runs; start it first")


def shown_code(data: dict[str, Any], field: str, *, now_ms: int) -> Secret:
    """A code out of a worker's event, with its end by our clock."""
    text, ms = data.get(field), data.get("expiresInMs", SHOWN_MS)
    if not isinstance(text, str) or not 0 < len(text.encode()) <= CODE_BYTES:
        raise BadRequest("MISSING_FIELD", f"needs {field}, at most {CODE_BYTES:,} bytes", field=f"data.{field}")
    if not isinstance(ms, int) or isinstance(ms, bool) or not 0 < ms <= LONGEST_MS:
        raise BadRequest("INVALID_TIME", f"1 to {LONGEST_MS} ms", field="data.expiresInMs")
    return Secret(text, now_ms + ms)


def pairing_in(data: dict[str, Any], *, now_ms: int) -> Secret | None:
    return shown_code(data, "pairingCode", now_ms=now_ms) if "pairingCode" in data else None
