"""The sessions' HTTP for operators: the registry, their life cycle, linking, and what is known of their past."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, QueryParameter

from paceline.apidoc import KEY
from paceline.domain.drivers import DRIVERS
from paceline.domain.errors import Conflict
from paceline.domain.numbers import canonical
from paceline.edge import Keys, holder
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, read_body
from paceline.orchestrator.linking import CommandGiven, Linking, PairingAnswer, QrAnswer
from paceline.orchestrator.qr import asked_for, picture
from paceline.orchestrator.registry import EventPage, Registry, SessionChange, SessionPage, SessionRequest
from paceline.orchestrator.routes_audit import AuditPage, AuditPages
from paceline.store.session_views import SessionFilter, SessionView
from paceline.store.wishes import Wish

Cursor = Annotated[str, QueryParameter(max_length=64, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="items in a page")]
Tag = Annotated[str, QueryParameter(max_length=64, description="only sessions that have this tag")]
Phone = Annotated[str, QueryParameter(max_length=64, description="only sessions of this number, in any notation")]
ConnectionWord = Literal["STOPPED", "STARTING", "SCAN_QR", "CONNECTED", "RECONNECTING", "FAILED", ""]
RestrictionWord = Literal["NONE", "COOLDOWN", "TIME_LOCKED", "CAPPED", "QUARANTINED", ""]
StatusWord = Literal[
    "REMOVING", "QUARANTINED", "LOGGED_OUT", "LINK_BLOCKED", "STOPPED", "FAILED", "SCAN_QR", "STARTING",
    "RECONNECTING", "PAUSED", "RESTRICTED", "WORKING", "",
]  # fmt: skip
"""Spelled out for the documentation; a test holds them against `domain.sessions`."""
Connection = Annotated[ConnectionWord, QueryParameter(description="only sessions with this `connection`")]
Restriction = Annotated[RestrictionWord, QueryParameter(description="only sessions with this `restriction`")]
Status = Annotated[StatusWord, QueryParameter(description="only sessions with this `status`")]
Force = Annotated[bool, QueryParameter(description="also if messages wait; they stay with the number")]
Format = Annotated[Literal["json", "png", "svg", ""], QueryParameter(description="else the Accept header decides")]

SECRET_HEADERS = {"Cache-Control": "no-store", "Pragma": "no-cache"}
"""Whoever finds a code in a cache can link a device."""


class Acted(msgspec.Struct, frozen=True, rename="camel"):
    status: str
    changed: bool
    """False: it was so already."""
    session: SessionView


class Restarted(msgspec.Struct, frozen=True):
    status: str
    restarted: str


class Removing(msgspec.Struct, frozen=True):
    status: str
    removing: bool
    """Its worker is ended first; then the session is gone."""


def session_routes(
    registry: Registry, linking: Linking, audit: AuditPages | None, keys: Keys, clock: Clock
) -> list[Handler]:
    admin: dict[str, Any] = {
        "guards": [keys.requires("admin")],
        "security": KEY,
        "tags": ["Sessions"],
    }
    reading = {**admin, "guards": [keys.requires("read")]}
    return [
        *_registry_routes(registry, clock, admin, reading),
        *_wish_routes(registry, clock, admin),
        *_linking_routes(registry, linking, clock, admin),
        *_past_routes(registry, audit, clock, reading),
    ]


def _registry_routes(registry: Registry, clock: Clock, admin: dict[str, Any], reading: dict[str, Any]) -> list[Handler]:
    @get("/api/sessions", summary="All sessions", **reading)
    async def list_sessions(
        *,
        cursor: Cursor = "",
        limit: Limit = 100,
        connection: Connection = "",
        restriction: Restriction = "",
        status: Status = "",
        tag: Tag = "",
        phone: Phone = "",
    ) -> SessionPage:
        """In the order of their ids; those that fit all that is asked for."""
        wanted = SessionFilter(connection, restriction, status, tag, canonical(phone) or phone)
        return await registry.page(cursor, limit, wanted, now_ms=clock.now_ms())

    @post(
        "/api/sessions",
        summary="Register a session of a number",
        opt={"body": SessionRequest},
        status_code=201,
        responses={200: ResponseSpec(SessionView, description="It was there already")},
        **admin,
    )
    async def create_session(request: AnyRequest) -> Response[SessionView]:
        """At most four sessions a number. `createdAt` is for a number that is older than its session here. What a
        profile says counts where the request says nothing."""
        body = await read_body(request, SessionRequest)
        view, is_new = await registry.register(body, by=holder(request), now_ms=clock.now_ms())
        return Response(view, status_code=201 if is_new else 200)

    @get("/api/sessions/{session_id:str}", summary="One session", **reading)
    async def get_session(session_id: FromPath[str]) -> SessionView:
        """What is wished for it, what its worker said last, and what it holds."""
        return await registry.get(session_id, now_ms=clock.now_ms())

    @patch(
        "/api/sessions/{session_id:str}",
        summary="Change what is known of a session",
        opt={"body": SessionChange},
        **admin,
    )
    async def change_session(request: AnyRequest, session_id: FromPath[str]) -> SessionView:
        """`createdAt` and `timezone` are the number's; what is left out or null stays."""
        body = await read_body(request, SessionChange)
        return await registry.change(session_id, body, by=holder(request), now_ms=clock.now_ms())

    @delete("/api/sessions/{session_id:str}", summary="Remove a session", status_code=202, **admin)
    async def remove_session(request: AnyRequest, session_id: FromPath[str], force: Force = False) -> Removing:
        """Its worker ends, then it is gone; asked again meanwhile, it is the same. 409 TASKS_WAITING while its worker
        holds messages, or while any wait for the number and this is its last session. With `force` it goes all the
        same: what is queued belongs to the number and waits there, NOT_CONNECTED, until the number has a session again
        or its validity ends; what the worker held ends UNKNOWN_OUTCOME."""
        await registry.wish(session_id, "remove", by=holder(request), now_ms=clock.now_ms(), force=force)
        return Removing("ok", removing=True)

    return [list_sessions, create_session, get_session, change_session, remove_session]


def _wish_routes(registry: Registry, clock: Clock, admin: dict[str, Any]) -> list[Handler]:
    async def act(request: AnyRequest, session: str, wish: Wish) -> Acted:
        changed = await registry.wish(session, wish, by=holder(request), now_ms=clock.now_ms())
        return Acted("ok", changed, await registry.get(session, now_ms=clock.now_ms()))

    acting: dict[str, Any] = {"status_code": 200, **admin}

    @post("/api/sessions/{session_id:str}/start", summary="Start a session", **acting)
    async def start(request: AnyRequest, session_id: FromPath[str]) -> Acted:
        """A worker is wanted. Of one that failed or was logged out it is a new beginning; one that runs goes on."""
        return await act(request, session_id, "start")

    @post("/api/sessions/{session_id:str}/stop", summary="Stop a session", **acting)
    async def stop(request: AnyRequest, session_id: FromPath[str]) -> Acted:
        """Its worker finishes the message it holds and ends. The link to the number and what waits for it stay."""
        return await act(request, session_id, "stop")

    @post("/api/sessions/{session_id:str}/restart", summary="Restart a session", **acting)
    async def restart(request: AnyRequest, session_id: FromPath[str]) -> Acted:
        """Another worker instead of the present one; of a stopped session the same as a start."""
        return await act(request, session_id, "restart")

    @post("/api/sessions/{session_id:str}/pause", summary="Pause a session", **acting)
    async def pause(request: AnyRequest, session_id: FromPath[str]) -> Acted:
        """It stays connected and gets no task. Another session of the number goes on sending."""
        return await act(request, session_id, "pause")

    @post("/api/sessions/{session_id:str}/resume", summary="Resume a paused session", **acting)
    async def resume(request: AnyRequest, session_id: FromPath[str]) -> Acted:
        """It gets tasks again."""
        return await act(request, session_id, "resume")

    @post("/session/restart/{session_id:str}", summary="Restart a session (older clients)", **acting)
    async def restart_older(request: AnyRequest, session_id: FromPath[str]) -> Restarted:
        """The same as `POST /api/sessions/{session_id}/restart`."""
        await registry.wish(session_id, "restart", by=holder(request), now_ms=clock.now_ms())
        return Restarted("ok", session_id)

    return [start, stop, restart, pause, resume, restart_older]


def _linking_routes(registry: Registry, linking: Linking, clock: Clock, admin: dict[str, Any]) -> list[Handler]:
    telling: dict[str, Any] = {"status_code": 202, **admin}

    @post("/api/sessions/{session_id:str}/logout", summary="Log a session out", **telling)
    async def logout(request: AnyRequest, session_id: FromPath[str]) -> CommandGiven:
        """Its worker ends the link to the number and stops; `authorisation` is LOGGED_OUT then. A start links anew."""
        await registry.get(session_id, now_ms=clock.now_ms())
        return await linking.tell(session_id, "logout", by=holder(request), now_ms=clock.now_ms())

    @get(
        "/api/sessions/{session_id:str}/qr",
        summary="The QR code to scan",
        responses={200: ResponseSpec(QrAnswer, description="JSON, or a picture: image/png, image/svg+xml")},
        **admin,
    )
    async def qr(request: AnyRequest, session_id: FromPath[str], format: Format = "") -> Response[Any]:
        """404 NO_QR while none is shown, 409 when none will be. It changes every 20 s or so."""
        view = await registry.get(session_id, now_ms=clock.now_ms())
        shown = await linking.qr(view, now_ms=clock.now_ms())
        kind = format or asked_for(request.headers.get("accept", ""))
        if kind == "json":
            return Response(shown, headers=SECRET_HEADERS)
        media_type = "image/png" if kind == "png" else "image/svg+xml"
        return Response(picture(shown.qr, kind), media_type=media_type, headers=SECRET_HEADERS)

    @post(
        "/api/sessions/{session_id:str}/pairing-code",
        summary="A code to type into the phone instead of scanning",
        status_code=200,
        **admin,
    )
    async def pairing_code(request: AnyRequest, session_id: FromPath[str]) -> Response[PairingAnswer]:
        """Waits until the worker has one, half a minute at most (409 NO_PAIRING_CODE)."""
        await registry.get(session_id, now_ms=clock.now_ms())
        answer = await linking.pairing_code(
            session_id, by=holder(request), now_ms=clock.now_ms, until_gone=lambda: until_gone(request)
        )
        return Response(answer, headers=SECRET_HEADERS)

    @post("/api/sessions/{session_id:str}/simulated/scan", summary="Scan the QR code of a simulated session", **telling)
    async def scan(request: AnyRequest, session_id: FromPath[str]) -> CommandGiven:
        """As a person with the phone would. Only where there is no phone: 409 for every other driver."""
        view = await registry.get(session_id, now_ms=clock.now_ms())
        if view.driver not in DRIVERS or not DRIVERS[view.driver].simulated:
            raise Conflict("NOT_SIMULATED", "this number's own phone has to scan it")
        return await linking.tell(session_id, "scan", by=holder(request), now_ms=clock.now_ms())

    return [logout, qr, pairing_code, scan]


def _past_routes(registry: Registry, audit: AuditPages | None, clock: Clock, reading: dict[str, Any]) -> list[Handler]:
    @get("/api/sessions/{session_id:str}/events", summary="What its worker said", **reading)
    async def events(session_id: FromPath[str], cursor: Cursor = "", limit: Limit = 100) -> EventPage:
        """Newest first; the last 200 are kept. Pings, codes and what people wrote are not among them."""
        return await registry.events(session_id, cursor, limit, now_ms=clock.now_ms())

    @get("/api/sessions/{session_id:str}/history", summary="What was decided about it, and what it sent", **reading)
    async def history(session_id: FromPath[str], cursor: Cursor = "", limit: Limit = 100) -> AuditPage:
        """Newest first: bindings, operators' actions, confirmed sends. Also of a session that was removed."""
        page = AuditPage([]) if audit is None else await audit.page("", session_id, cursor, limit)
        if not page.items and not cursor:
            await registry.get(session_id, now_ms=clock.now_ms())
        return page

    return [events, history]


async def until_gone(request: AnyRequest) -> None:
    """Until the caller has hung up; the body was read, so nothing else can come."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
