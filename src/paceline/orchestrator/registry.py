"""The registry of sessions as an operator sees it: what may be registered, and what is there."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from paceline.domain.errors import BadRequest, Conflict, NotFound
from paceline.domain.numbers import canonical
from paceline.domain.times import moment_ms
from paceline.kits.rng import Rng
from paceline.policy.hours import is_zone
from paceline.store.sessions import SessionView
from paceline.store.store import Store

DRIVERS = ("simulated",)
MAX_SESSIONS_PER_PHONE = 4
"""WhatsApp links at most four devices to an account."""
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""It names files and containers too, hence no leading dash."""
"""It becomes a directory, a container's name and part of a key."""


class SessionRequest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    phone: Annotated[str, Meta(max_length=64, examples=["+972 54-123-4567"])]
    session_id: Annotated[str, Meta(max_length=64)] | None = None
    driver: Annotated[str, Meta(max_length=64)] = "simulated"
    created_at: (
        Annotated[int | str, Meta(description="when the number began: Unix milliseconds, or ISO 8601")] | None
    ) = None
    timezone: Annotated[str, Meta(max_length=64)] | None = None
    tags: Annotated[list[Annotated[str, Meta(min_length=1, max_length=64)]], Meta(max_length=32)] = []


class SessionPage(msgspec.Struct, frozen=True, rename="camel"):
    items: list[SessionView]
    next_cursor: str | None


class Registry:
    def __init__(self, store: Store, rng: Rng) -> None:
        self._store = store
        self._rng = rng

    async def register(self, request: SessionRequest, *, now_ms: int) -> tuple[SessionView, bool]:
        """The session, and whether it is new. The same session and number again is no mistake."""
        phone = canonical(request.phone)
        if phone is None:
            raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="phone")
        session = request.session_id if request.session_id is not None else f"s-{self._rng.getrandbits(64):016x}"
        if not SESSION_ID.fullmatch(session):
            raise BadRequest("INVALID_ID", "1 to 64 of A-Z a-z 0-9 _ -", field="sessionId")
        if request.driver not in DRIVERS:
            raise BadRequest("UNKNOWN_DRIVER", f"known drivers: {', '.join(DRIVERS)}", field="driver")
        if request.timezone is not None and not is_zone(request.timezone):
            raise BadRequest("INVALID_TIMEZONE", "a name of the IANA list, such as Asia/Jerusalem", field="timezone")
        code = await self._store.sessions.register(
            session,
            phone,
            driver=request.driver,
            created_at_ms=_created_at(request.created_at, now_ms),
            timezone=request.timezone,
            tags=request.tags,
            limit=MAX_SESSIONS_PER_PHONE,
            now_ms=now_ms,
        )
        if code == "TAKEN":
            raise Conflict("TAKEN", "this sessionId belongs to another number", field="sessionId")
        if code == "PHONE_FULL":
            message = f"a number has at most {MAX_SESSIONS_PER_PHONE} sessions"
            raise Conflict("PHONE_FULL", message, field="phone", details={"limit": MAX_SESSIONS_PER_PHONE})
        return await self.get(session, now_ms=now_ms), code == "OK"

    async def get(self, session: str, *, now_ms: int) -> SessionView:
        view = await self._store.sessions.get(session, now_ms=now_ms) if SESSION_ID.fullmatch(session) else None
        if view is None:
            raise NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")
        return view

    async def page(self, cursor: str, limit: int, *, now_ms: int) -> SessionPage:
        items, next_cursor = await self._store.sessions.page(cursor, limit, now_ms=now_ms)
        return SessionPage(items, next_cursor)


def _created_at(value: int | str | None, now_ms: int) -> int:
    """A number whose age nobody states is new, so it starts cold."""
    if value is None:
        return now_ms
    at = moment_ms(value)
    if at is None:
        message = "must be Unix milliseconds, or ISO 8601 with an offset such as 2026-01-31T09:00:00+02:00"
        raise BadRequest("INVALID_TIME", message, field="createdAt")
    if at > now_ms:
        raise BadRequest("INVALID_TIME", "lies in the future", field="createdAt")
    return at
