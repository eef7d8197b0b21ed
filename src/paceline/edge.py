"""The HTTP edge that the services share: what our errors are over HTTP, and who may ask.

Keys are stored hashed. What a caller presents is hashed too and compared with every stored hash in constant time, so
neither the answer's time nor a stolen Redis tells a key.
"""

import hashlib
import hmac
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from paceline import __version__
from paceline.domain.codes import CODES
from paceline.domain.errors import Forbidden, RequestError, Unauthorized, Unavailable
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, Problem, Service, create_service
from paceline.store.guards import ApiKeyRecord
from paceline.store.store import Store

BOOTSTRAP_ID = "bootstrap"
SCOPES = ("send", "read", "admin")
KEYS_AGE_MS = 1_000
"""How soon a new or revoked key is noticed."""


def service(*, name: str, description: str, routes: list[Handler]) -> Service:
    return create_service(
        title=f"Paceline {name}",
        version=__version__,
        description=description,
        routes=routes,
        translate=translate,
        error_codes=CODES,
    )


def translate(error: Exception) -> Problem | None:
    if isinstance(error, RequestError):
        return Problem(
            error.status,
            error.code,
            error.message,
            details=error.details,
            retry_after_seconds=error.retry_after_seconds,
        )
    if isinstance(error, Unavailable):
        message = "the store cannot serve this now; the request may be repeated"
        return Problem(503, "UNAVAILABLE", message, retry_after_seconds=error.retry_after_seconds)
    return None


def digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


class Keys:
    """Who holds a key, and what it is good for."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: list[ApiKeyRecord] = []
        self._read_at_ms = -KEYS_AGE_MS

    async def save_bootstrap(self, key: str) -> None:
        record = ApiKeyRecord(BOOTSTRAP_ID, digest(key.encode()), list(SCOPES))
        await self._store.guards.save_key(record)

    def requires(self, scope: str) -> Guard:
        async def guard(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
            connection.scope["auth"] = await self.admit(_presented(connection), scope)

        return guard

    async def admit(self, key: bytes | None, scope: str) -> ApiKeyRecord:
        found = None if key is None else await self._find(digest(key))
        if found is None:
            raise Unauthorized("UNAUTHORIZED", "send a valid key as X-API-KEY or Authorization: Bearer")
        if scope not in found.scopes and "admin" not in found.scopes:
            raise Forbidden("FORBIDDEN", f"this key has no {scope!r} scope", details={"scope": scope})
        return found

    async def _find(self, presented: str) -> ApiKeyRecord | None:
        now_ms = self._clock.now_ms()
        if now_ms - self._read_at_ms >= KEYS_AGE_MS:
            self._known = await self._store.guards.api_keys()
            self._read_at_ms = now_ms
        # All are compared, whichever matches: the time taken says nothing.
        matches = [record for record in self._known if hmac.compare_digest(record.digest, presented)]
        return matches[0] if matches else None


def holder(request: AnyRequest) -> str:
    """The id of the key that a guarded request came with."""
    record: ApiKeyRecord = request.auth
    return record.key_id


def _presented(connection: ASGIConnection[Any, Any, Any, Any]) -> bytes | None:
    key = connection.headers.get("x-api-key")
    if not key:
        kind, _, key = connection.headers.get("authorization", "").partition(" ")
        key = key.strip() if kind.lower() == "bearer" else ""
    # Headers are decoded as Latin-1; these are the bytes that were sent.
    return key.encode("latin-1") if key else None
