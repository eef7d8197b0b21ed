"""What went out and what came back, as values; and what a reply means: an answer, or an error of the tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar

import msgspec

from paceline.client.calls import Service
from paceline.client.errors import REFUSALS, BadAnswer, PacelineError, Refused, Unavailable, Unreachable

AWAY = (502, 503, 504)
"""Asked again later, these may be answered: the gateway cannot reach its store, or a proxy not the gateway."""
IN_FLIGHT = "IDEMPOTENCY_IN_FLIGHT"

T = TypeVar("T")


@dataclass(frozen=True)
class Ask:
    """A step: send this."""

    service: Service
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes | None = None
    waits_seconds: float = 0.0


@dataclass(frozen=True)
class Pause:
    """A step: wait."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Lost:
    """No reply. `maybe_done`: the request may have arrived."""

    why: str
    maybe_done: bool


class _Error(msgspec.Struct, frozen=True, rename="camel"):
    code: str
    message: str
    details: dict[str, Any] = {}
    retry_after_seconds: float | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Error


def read(reply: Reply, kind: type[T], where: str) -> T:
    try:
        if kind is NoneType:
            return None  # type: ignore[return-value]  # as below
        if kind is str:
            return reply.body.decode()  # type: ignore[return-value]  # T is str then, which mypy cannot follow
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Both name a field or a place, never a value.
        words = f"{where} does not answer like a service of Paceline: {error}"
        raise BadAnswer(words, status=reply.status) from error


def error_of(heard: Reply | Lost, where: str, tries: int) -> PacelineError:
    if isinstance(heard, Lost):
        return Unreachable(f"no answer from {where}: {heard.why}", maybe_done=heard.maybe_done, tries=tries)
    said = _said(heard)
    if heard.status in AWAY:
        reason = f"{said.code}: {said.message}" if said else "not in the words of Paceline"
        words = f"{where} answered {heard.status}: {reason}"
        return Unavailable(words, status=heard.status, retry_after_seconds=retry_after(heard), tries=tries)
    if said is None:
        # It may be a whole page of somebody else's, so nothing of it is repeated.
        return BadAnswer(f"{where} answered {heard.status}: not in the words of Paceline", status=heard.status)
    return REFUSALS.get(heard.status, Refused)(
        where,
        heard.status,
        said.code,
        said.message,
        details=said.details,
        retry_after_seconds=retry_after(heard),
        request_id=heard.headers.get("x-request-id"),
        tries=tries,
    )


def retry_after(heard: Reply | Lost) -> float | None:
    """What the other side asked for, in seconds. A date, which a proxy might send, is not understood."""
    if isinstance(heard, Lost):
        return None
    header = heard.headers.get("retry-after", "").strip()
    if header.isascii() and header.isdigit():
        return float(header)
    said = _said(heard)
    return said.retry_after_seconds if said else None


def in_flight(heard: Reply) -> bool:
    said = _said(heard)
    return heard.status == 409 and said is not None and said.code == IN_FLIGHT


def _said(reply: Reply) -> _Error | None:
    try:
        return msgspec.json.decode(reply.body, type=_ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
