"""The registry of sessions as an operator sees it: what may be registered, what is there, and what is wished for it.

Neighbours: `linking` for codes and commands to workers, `routes_sessions` for its HTTP. What follows from a wish is the
provisioner's.
"""

import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paceline.domain.drivers import DRIVERS, is_simulated
from paceline.domain.errors import BadRequest, Conflict, NotFound, RequestError
from paceline.domain.numbers import canonical
from paceline.domain.profiles import is_profile_id
from paceline.domain.proxies import Proxy, is_proxy_id, read_proxy
from paceline.domain.sessions import OPERATOR
from paceline.domain.times import moment_ms
from paceline.kits.rng import Rng
from paceline.policy.hours import is_zone
from paceline.store.session_views import SessionFilter, SessionView
from paceline.store.store import Store
from paceline.store.wishes import Wish

MAX_SESSIONS_PER_PHONE = 4
"""WhatsApp links at most four devices to an account."""
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""It becomes a directory, a container's name and part of a key, hence no leading dash."""
DIRECT = "direct"

Tag = Annotated[str, Meta(min_length=1, max_length=64)]
Tags = Annotated[list[Tag], Meta(max_length=32)]
CreatedAt = Annotated[int | str, Meta(description="when the number began: Unix milliseconds, or ISO 8601")]


class SessionRequest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    phone: Annotated[str, Meta(max_length=64, examples=["+972 54-123-4567"])]
    session_id: Annotated[str, Meta(max_length=64)] | None = None
    driver: Annotated[str, Meta(max_length=64)] = "simulated"
    proxy: (
        Annotated[str, Meta(max_length=1_024, description='an id or URL of the pool, or "direct" for none')] | None
    ) = None
    profile: Annotated[str, Meta(max_length=64, description="an id of the pool; its settings are defaults")] | None = (
        None
    )
    created_at: CreatedAt | None = None
    timezone: Annotated[str, Meta(max_length=64)] | None = None
    tags: Tags = []


class SessionChange(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    created_at: CreatedAt | None = None
    timezone: Annotated[str, Meta(max_length=64)] | None = None
    tags: Tags | None = None


class SessionPage(msgspec.Struct, frozen=True, rename="camel"):
    items: list[SessionView]
    next_cursor: str | None


class EventPage(msgspec.Struct, frozen=True, rename="camel"):
    items: list[dict[str, Any]]
    """What its worker said, newest first: event, at, receivedAt, eventId, data. The last 200 are kept."""
    next_cursor: str | None


class Registry:
    def __init__(
        self, store: Store, rng: Rng, *, per_phone: int = MAX_SESSIONS_PER_PHONE, simulated_only: bool = False
    ) -> None:
        self._store = store
        self._per_phone = per_phone
        self._simulated_only = simulated_only
        self.rng = rng

    async def register(self, request: SessionRequest, *, by: str, now_ms: int) -> tuple[SessionView, bool]:
        """The session, and whether it is new. The same session and number again is no mistake."""
        phone = canonical(request.phone)
        if phone is None:
            raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="phone")
        session = request.session_id if request.session_id is not None else f"s-{self.rng.getrandbits(64):016x}"
        if not SESSION_ID.fullmatch(session):
            raise BadRequest("INVALID_ID", "1 to 64 of A-Z a-z 0-9 _ -", field="sessionId")
        if request.driver not in DRIVERS:
            raise BadRequest("UNKNOWN_DRIVER", f"known drivers: {', '.join(DRIVERS)}", field="driver")
        if self._simulated_only and not is_simulated(request.driver):
            message = "the demo policy has no limits and is for simulated numbers; start with another PACELINE_POLICY"
            raise Conflict("DEMO_POLICY", message, field="driver")
        _check_zone(request.timezone)
        code = await self._store.sessions.register(
            session,
            phone,
            driver=request.driver,
            created_at_ms=_created_at(request.created_at, now_ms),
            timezone=request.timezone,
            tags=request.tags,
            limit=self._per_phone,
            by=by,
            direct=_is_direct(request),
            proxy=_proxy(request.proxy),
            profile=_profile(request.profile),
            now_ms=now_ms,
        )
        if code == "PHONE_FULL":
            message = f"a number has at most {self._per_phone} sessions"
            raise Conflict("PHONE_FULL", message, field="phone", details={"limit": self._per_phone})
        _raise_for(code)
        return await self.get(session, now_ms=now_ms), code == "OK"

    async def get(self, session: str, *, now_ms: int) -> SessionView:
        view = await self._store.sessions.get(session, now_ms=now_ms) if SESSION_ID.fullmatch(session) else None
        if view is None:
            raise _unknown()
        return view

    async def page(self, cursor: str, limit: int, wanted: SessionFilter, *, now_ms: int) -> SessionPage:
        items, next_cursor = await self._store.sessions.page(cursor, limit, now_ms=now_ms, wanted=wanted)
        return SessionPage(items, next_cursor)

    async def change(self, session: str, change: SessionChange, *, by: str, now_ms: int) -> SessionView:
        """What an operator knows better: the number's age and timezone, the session's tags. The rest stays."""
        _check_zone(change.timezone)
        created_at = None if change.created_at is None else _created_at(change.created_at, now_ms)
        code = await self._store.sessions.change(
            session, created_at_ms=created_at, timezone=change.timezone, tags=change.tags, by=by, now_ms=now_ms
        )
        _raise_for(code)
        return await self.get(session, now_ms=now_ms)

    async def wish(self, session: str, wish: Wish, *, by: str, now_ms: int, force: bool = False) -> bool:
        """Whether it changed anything: what is so already is no mistake."""
        answer = await self._store.fleet.wish(session, wish, reason=OPERATOR, by=by, now_ms=now_ms, force=force)
        if answer.code == "TASKS_WAITING":
            why = "messages wait for this number and this is its last session" if answer.last else "it holds messages"
            details = {"waiting": answer.waiting}
            raise Conflict("TASKS_WAITING", f"{why}; repeat with force=true to remove it all the same", details=details)
        _raise_for(answer.code)
        return answer.changed

    async def events(self, session: str, cursor: str, limit: int, *, now_ms: int) -> EventPage:
        await self.get(session, now_ms=now_ms)
        places = _places(await self._store.sessions.events(session))
        after = _place(cursor)
        left = [(place, event) for place, event in places if after is None or place < after]
        last = left[limit - 1][0] if len(left) > limit else None
        return EventPage([event for _, event in left[:limit]], f"{last[0]}-{last[1]}" if last else None)


def _places(events: list[dict[str, Any]]) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    """Each with its place: when it came, and which it was of those of the same moment."""
    found: list[tuple[tuple[int, int], dict[str, Any]]] = []
    for event in reversed(events):
        at = int(event["receivedAt"])
        found.append(((at, found[-1][0][1] + 1 if found and found[-1][0][0] == at else 0), event))
    return found[::-1]


def _place(cursor: str) -> tuple[int, int] | None:
    if not cursor:
        return None
    at, _, nth = cursor.partition("-")
    if not all(part.isascii() and part.isdigit() and len(part) <= 16 for part in (at, nth)):
        raise BadRequest("INVALID_REQUEST", "not a cursor of this list", field="cursor")
    return int(at), int(nth)


def _is_direct(request: SessionRequest) -> bool:
    return request.proxy == DIRECT or (request.proxy is None and not DRIVERS[request.driver].needs_proxy)


def _proxy(given: str | None) -> str | None:
    if given is None or given == DIRECT or is_proxy_id(given):
        return None if given == DIRECT else given
    proxy = read_proxy(given)
    if isinstance(proxy, Proxy):
        return proxy.url
    raise BadRequest("INVALID_URL", f"the proxy {proxy.reason}", field="proxy")


def _profile(given: str | None) -> str | None:
    if given is not None and not is_profile_id(given):
        raise BadRequest("INVALID_ID", "not an id of a profile", field="profile")
    return given


def _check_zone(name: str | None) -> None:
    if name is not None and not is_zone(name):
        raise BadRequest("INVALID_TIMEZONE", "a name of the IANA list, such as Asia/Jerusalem", field="timezone")


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


def _unknown() -> NotFound:
    return NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")


def _raise_for(code: str) -> None:
    mixed = "a fleet is real or simulated, never both; remove the sessions of the other kind first"
    full = f"a number has at most {MAX_SESSIONS_PER_PHONE} sessions"
    errors: dict[str, RequestError] = {
        "UNKNOWN_SESSION": _unknown(),
        "REMOVING": Conflict("SESSION_REMOVING", "this session is being removed"),
        "TAKEN": Conflict("TAKEN", "this sessionId belongs to another number", field="sessionId"),
        "PHONE_FULL": Conflict("PHONE_FULL", full, field="phone", details={"limit": MAX_SESSIONS_PER_PHONE}),
        "SIMULATED_BESIDE_REAL": Conflict("SIMULATED_BESIDE_REAL", mixed, field="driver"),
        "UNKNOWN_PROXY": NotFound("UNKNOWN_PROXY", "there is no such proxy in the pool", field="proxy"),
        "PROXY_BAD": Conflict("PROXY_BAD", "this proxy is marked bad", field="proxy"),
        "PROXY_FULL": Conflict("PROXY_FULL", "as many sessions hold this proxy as may", field="proxy"),
        "PROXY_STICKY": Conflict("PROXY_STICKY", "this number keeps another proxy", field="proxy"),
        "UNKNOWN_PROFILE": NotFound("UNKNOWN_PROFILE", "there is no such profile", field="profile"),
        "PROFILE_IN_USE": Conflict("PROFILE_IN_USE", "another session has this profile", field="profile"),
    }
    if code in errors:
        raise errors[code]
