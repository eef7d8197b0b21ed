"""The worker protocol over HTTP, with httpx. Every call has a time limit and every error is translated here."""

import asyncio
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from paceline.kits.clock import monotonic_ms
from paceline.worker.book import SendError
from paceline.worker.protocol import (
    CLAIM_TIMEOUT_SECONDS,
    Blocked,
    ByRaw,
    ClaimAnswer,
    Handle,
    HelloAnswer,
    NotWanted,
    ProtocolError,
    ProtocolUnavailable,
    RequestRefused,
    StaleEpoch,
    WorkerEvent,
)

# An orchestrator that needs longer is in trouble; asking again is then as good as waiting.
_CALL_TIMEOUT_SECONDS = 10.0
_CONNECT_TIMEOUT_SECONDS = 5.0
# A file is on the same network; a lease is four times as long.
_MEDIA_TIMEOUT_SECONDS = 30.0
# More than any answer that is an error.
_ERROR_LIMIT = 65_536
# What the orchestrator takes of an error message.
_MESSAGE_LIMIT = 1_024

# Answers that say nothing about the request itself: too slow, too many, or the server is in trouble.
_TRY_LATER = frozenset({408, 429})

# Bytes that are no UTF-8 raise an error of their own.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)

_Answer = TypeVar("_Answer")


class _ExtendAnswer(msgspec.Struct, rename="camel"):
    lease_until_ms: int


class _Told(msgspec.Struct):
    """What the orchestrator itself says to a report; a page of something in between is no word of it."""

    status: Literal["ok"]


class _Problem(msgspec.Struct):
    """As `kits.problem` has it."""

    code: str
    message: str
    details: dict[str, Any]


class _Refusal(msgspec.Struct):
    error: _Problem


class HttpProtocol:
    """One session's line to the orchestrator."""

    def __init__(
        self, base_url: str, session_id: str, secret: str, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._outbox = f"/api/worker/sessions/{session_id}/outbox"
        self._hello = f"/api/worker/sessions/{session_id}/hello"
        self._session_id = session_id
        self._silent_since_ms: int | None = None
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"X-Webhook-Secret": secret, "Content-Type": "application/json"},
            timeout=httpx.Timeout(_CALL_TIMEOUT_SECONDS, connect=_CONNECT_TIMEOUT_SECONDS),
            # HTTP_PROXY and the like are for the way to WhatsApp, never for the way to the orchestrator.
            trust_env=False,
            transport=transport,
        )

    def unanswered_ms(self) -> int:
        """How long ago the first call failed since the last that was answered, however it was answered."""
        return 0 if self._silent_since_ms is None else monotonic_ms() - self._silent_since_ms

    async def close(self) -> None:
        await self._client.aclose()

    async def hello(self, *, instance_id: str, life_id: str, journal_id: str, driver: str) -> HelloAnswer:
        body = {"instanceId": instance_id, "lifeId": life_id, "journalId": journal_id, "driver": driver}
        return await self._ask(self._hello, body, HelloAnswer)

    async def claim(self, *, epoch: int, commands_only: bool = False) -> ClaimAnswer:
        if commands_only:
            body = {"epoch": epoch, "commandsOnly": True}
            return await self._ask(f"{self._outbox}/claim?timeout=0", body, ClaimAnswer)
        path = f"{self._outbox}/claim?timeout={CLAIM_TIMEOUT_SECONDS}"
        return await self._ask(path, {"epoch": epoch}, ClaimAnswer, wait_seconds=CLAIM_TIMEOUT_SECONDS + 10.0)

    async def ack(self, handle: Handle, *, epoch: int, whatsapp_id: str) -> None:
        await self._ask(f"{self._outbox}/ack", _named(handle) | {"epoch": epoch, "whatsappId": whatsapp_id}, _Told)

    async def nack(self, handle: Handle, *, epoch: int, not_sent: bool, error: SendError | None) -> None:
        body = _named(handle) | {"epoch": epoch, "notSent": not_sent}
        if error is not None:
            # A library's message may be a page long; a report refused for its length would be no report at all.
            body["error"] = SendError(error.code, error.message[:_MESSAGE_LIMIT])
        await self._ask(f"{self._outbox}/nack", body, _Told)

    async def extend(self, handle: ByRaw, *, epoch: int) -> int:
        answer = await self._ask(f"{self._outbox}/extend", _named(handle) | {"epoch": epoch}, _ExtendAnswer)
        return answer.lease_until_ms

    async def media(self, ref: str, *, size: int) -> bytes:
        path, content = f"/api/worker/media/{quote(ref, safe='')}", bytearray()
        try:
            async with (
                asyncio.timeout(_MEDIA_TIMEOUT_SECONDS),
                self._client.stream("GET", path, params={"sessionId": self._session_id}) as response,
            ):
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > max(size, _ERROR_LIMIT):
                        raise ProtocolUnavailable(f"{path}: more than the {size} bytes it should have")
        except (httpx.HTTPError, TimeoutError) as error:
            raise ProtocolUnavailable(f"{path}: {error!r}") from error
        if not response.is_success:
            raise error_of(response.status_code, bytes(content))
        return bytes(content)

    async def webhook(self, event: WorkerEvent) -> None:
        await self._ask("/api/webhook", event, _Told)

    async def _ask(
        self, path: str, body: object, answer: type[_Answer], *, wait_seconds: float = _CALL_TIMEOUT_SECONDS
    ) -> _Answer:
        content = await self._post(path, body, wait_seconds=wait_seconds)
        try:
            return msgspec.json.decode(content, type=answer)
        except _UNREADABLE as error:
            raise ProtocolUnavailable(f"{path}: unreadable answer: {error}") from error

    async def _post(self, path: str, body: object, *, wait_seconds: float = _CALL_TIMEOUT_SECONDS) -> bytes:
        timeout = httpx.Timeout(wait_seconds, connect=_CONNECT_TIMEOUT_SECONDS)
        try:
            response = await self._client.post(path, content=msgspec.json.encode(body), timeout=timeout)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            self._note_silence()
            raise ProtocolUnavailable(f"{path}: {error!r}", maybe_done=False) from error
        except httpx.HTTPError as error:
            self._note_silence()
            raise ProtocolUnavailable(f"{path}: {error!r}") from error
        self._silent_since_ms = None
        if not response.is_success:
            raise error_of(response.status_code, response.content)
        return response.content

    def _note_silence(self) -> None:
        if self._silent_since_ms is None:
            self._silent_since_ms = monotonic_ms()


def error_of(status: int, content: bytes) -> ProtocolError:
    """The protocol error that an answer without success stands for. Whatever stands between us and the orchestrator
    answers in a shape of its own; then nobody has heard us yet, whatever the status says."""
    is_refusal = httpx.codes.is_client_error(status) and status not in _TRY_LATER
    try:
        said = msgspec.json.decode(content, type=_Refusal).error
    except _UNREADABLE:
        return (Blocked if is_refusal else ProtocolUnavailable)(f"{status} UNREADABLE")
    if status == httpx.codes.CONFLICT and said.code == "STALE_EPOCH":
        return StaleEpoch(said.message)
    if status == httpx.codes.CONFLICT and said.code == "NOT_WANTED":
        return NotWanted(said.message)
    if is_refusal:
        return RequestRefused(status, said.code, said.message)
    return ProtocolUnavailable(f"{status} {said.code}: {said.message}")


def _named(handle: Handle) -> dict[str, object]:
    if isinstance(handle, ByRaw):
        return {"raw": handle.raw}
    return {"taskId": handle.task_id, "token": handle.token}
