"""API keys: making one, listing them, revoking one. Neighbours: `routes_keys` is their HTTP, `paceline.edge` holds
callers to them.

A key is shown once, to whoever made it, and kept as a hash. A record outlives its key, because every job names the key
that asked for it.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.domain.errors import BadRequest, Conflict, NotFound
from paceline.edge import BOOTSTRAP_ID, SCOPES, digest
from paceline.gateway.schemas import Out
from paceline.kits.secrets import new_key
from paceline.store.guards import ApiKeyRecord
from paceline.store.store import Store

PREFIX = "pk_"
MAX_KEYS = 1_000
"""Every service reads all of them once a second, and compares with each; this many cost it about a millisecond."""
DAY_MS = 86_400_000
KEPT_MS = (366 + 365 + 365) * DAY_MS
"""How long the record of an ended key is kept at least: a job may lie a year ahead, be valid for a year, and its
summary stays for a year at most (`JOBS_KEPT_DAYS`)."""

Scope = Literal["send", "read", "admin"]
State = Literal["live", "expired", "revoked"]


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=100, examples=["CRM production"])]
    """Who or what will use it."""
    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=3, description="`admin` includes the others")]
    expires_in_days: Annotated[int, Meta(ge=1, le=3_650)] | None = None
    rate_per_minute: (
        Annotated[int, Meta(ge=0, le=1_000_000, description="requests; 0 is no limit of its own")] | None
    ) = None
    """Left out, KEY_RATE_PER_MINUTE counts."""


class KeyView(Out, frozen=True, kw_only=True):
    key_id: str
    name: str
    scopes: list[str]
    state: State
    created_at: int
    created_by: str
    """The id of the key that made it."""
    expires_at: int | None
    rate_per_minute: int | None
    revoked_at: int | None
    revoked_by: str | None


class KeyCreated(KeyView, frozen=True, kw_only=True):
    key: str
    """Shown this once."""


class KeyPage(Out, frozen=True, kw_only=True):
    items: list[KeyView]
    next_cursor: str | None


class ApiKeys:
    def __init__(
        self, store: Store, *, new_id: Callable[[int], str], new_secret: Callable[[str], str] = new_key
    ) -> None:
        """`new_secret` must be unguessable, so it is no seeded source; a test may bring its own."""
        self._guards = store.guards
        self._new_id = new_id
        self._new_secret = new_secret

    async def create(self, asked: KeyRequest, *, by: str, now_ms: int) -> KeyCreated:
        # It is shown in terminals: a name must not be able to steer one.
        if not asked.name.isprintable() or not asked.name.strip():
            raise BadRequest("INVALID_REQUEST", "must be printable characters, not only spaces", field="name")
        key = self._new_secret(PREFIX)
        record = ApiKeyRecord(
            key_id=self._new_id(now_ms),
            digest=digest(key.encode()),
            scopes=[scope for scope in SCOPES if scope in asked.scopes],
            name=asked.name.strip(),
            created_at=now_ms,
            created_by=by,
            expires_at=None if asked.expires_in_days is None else now_ms + asked.expires_in_days * DAY_MS,
            rate_per_minute=asked.rate_per_minute,
        )
        code = await self._guards.create_key(record, ended_before_ms=now_ms - KEPT_MS, limit=MAX_KEYS)
        if code == "KEYS_FULL":
            raise Conflict("KEYS_FULL", "there are too many API keys", details={"limit": MAX_KEYS})
        return KeyCreated(key=key, **_fields(record, now_ms))

    async def revoke(self, key_id: str, *, by: str, now_ms: int) -> KeyView:
        """Again is no error: the first time stays."""
        if key_id == BOOTSTRAP_ID:
            raise Conflict("BOOTSTRAP_KEY", "this is the key of the setting API_KEY; change the setting and restart")
        record = await self._guards.revoke_key(key_id, by=by, now_ms=now_ms)
        if record is None:
            raise NotFound("UNKNOWN_KEY", "there is no such key", field="keyId")
        return key_view(record, now_ms=now_ms)

    async def page(self, cursor: str, limit: int, *, now_ms: int) -> KeyPage:
        """In the order of their ids, which is that of their making; also those that have ended."""
        later = sorted((record for record in await self._guards.api_keys() if record.key_id > cursor), key=_id)
        items = [key_view(record, now_ms=now_ms) for record in later[:limit]]
        return KeyPage(items=items, next_cursor=items[-1].key_id if len(later) > limit else None)


def _id(record: ApiKeyRecord) -> str:
    return record.key_id


def key_view(record: ApiKeyRecord, *, now_ms: int) -> KeyView:
    return KeyView(**_fields(record, now_ms))


def _fields(record: ApiKeyRecord, now_ms: int) -> dict[str, Any]:
    """What may be shown: everything but the hash."""
    return {
        "key_id": record.key_id,
        "name": record.name,
        "scopes": record.scopes,
        "state": _state(record, now_ms),
        "created_at": record.created_at,
        "created_by": record.created_by,
        "expires_at": record.expires_at,
        "rate_per_minute": record.rate_per_minute,
        "revoked_at": record.revoked_at,
        "revoked_by": record.revoked_by or None,
    }


def _state(record: ApiKeyRecord, now_ms: int) -> State:
    if record.revoked_at is not None:
        return "revoked"
    return "expired" if record.expires_at is not None and record.expires_at <= now_ms else "live"
