"""Routes about the whole fleet: start and stop, pause and resume, SmartGuard, what happened."""

from typing import Annotated, Any

from litestar import get, post
from litestar.params import QueryParameter

from paceline.apidoc import KEY
from paceline.dispatcher.guard import SmartGuard
from paceline.dispatcher.schemas import EventPage, FleetAnswer, GuardAnswer, Paused, Running, ToggleRequest
from paceline.edge import Keys, holder
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, read_body
from paceline.store.operators import INCIDENTS_KEPT, JOB_EVENTS_KEPT
from paceline.store.store import Store

_CURSOR = "nextCursor of the page before: so many of the newest are skipped"
IncidentOffset = Annotated[int, QueryParameter(ge=0, le=INCIDENTS_KEPT, description=_CURSOR)]
IncidentLimit = Annotated[int, QueryParameter(ge=1, le=INCIDENTS_KEPT, description="incidents in a page")]
EventOffset = Annotated[int, QueryParameter(ge=0, le=JOB_EVENTS_KEPT, description=_CURSOR)]
EventLimit = Annotated[int, QueryParameter(ge=1, le=1_000, description="events in a page")]
Kind = Annotated[str, QueryParameter(max_length=64, description="only incidents of this kind")]
JobId = Annotated[str, QueryParameter(name="jobId", max_length=64, description="only events of this job")]


def fleet_routes(store: Store, guard: SmartGuard, keys: Keys, clock: Clock) -> list[Handler]:
    return [*_running(store, keys, clock), *_smartguard(store, guard, keys, clock), *_history(store, keys)]


def _running(store: Store, keys: Keys, clock: Clock) -> list[Handler]:
    deciding: dict[str, Any] = {
        "status_code": 200, "tags": ["Fleet"], "guards": [keys.requires("admin")], "security": KEY,
    }  # fmt: skip

    async def set_stopped(stopped: bool, request: AnyRequest) -> Running:
        now_ms = clock.now_ms()
        state = await store.operators.stop(stopped, by=holder(request), now_ms=now_ms)
        # Also if nothing changed: whoever pressed before may have died between the two steps.
        if not stopped:
            await store.operators.look_at_all(now_ms=now_ms)
        return Running(running=not state.stopped)

    async def set_paused(paused: bool, request: AnyRequest) -> Paused:
        now_ms = clock.now_ms()
        state = await store.operators.pause(paused, by=holder(request), now_ms=now_ms)
        if not paused:
            await store.operators.look_at_all(now_ms=now_ms)
        return Paused(paused=state.paused, reason=state.reason, since=state.since)

    @get("/fleet", summary="Is the fleet running?", tags=["Fleet"], guards=[keys.requires("read")], security=KEY)
    async def fleet() -> FleetAnswer:
        """Whether the dispatchers work and sending is allowed; if it is paused, by whom and since when."""
        state = await store.operators.fleet()
        return FleetAnswer(
            running=not state.stopped, paused=state.paused, paused_reason=state.reason, paused_at=state.since
        )

    @post("/start", summary="Start the dispatchers", **deciding)
    async def start(request: AnyRequest) -> Running:
        """All of them, wherever they run. A first boot runs without being told."""
        return await set_stopped(False, request)

    @post("/stop", summary="Stop the dispatchers", **deciding)
    async def stop(request: AnyRequest) -> Running:
        """Routing, pacing, retries and SmartGuard rest, also after a restart. What workers hold is still settled."""
        return await set_stopped(True, request)

    @post("/fleet/pause", summary="Pause all sending", **deciding)
    async def pause(request: AnyRequest) -> Paused:
        """Nothing is handed over or claimed any more. What a worker has claimed still goes out."""
        return await set_paused(True, request)

    @post("/fleet/resume", summary="Resume sending", **deciding)
    async def resume(request: AnyRequest) -> Paused:
        """Also after the breaker tripped; it counts from nothing again."""
        return await set_paused(False, request)

    return [fleet, start, stop, pause, resume]


def _smartguard(store: Store, guard: SmartGuard, keys: Keys, clock: Clock) -> list[Handler]:
    common: dict[str, Any] = {"tags": ["SmartGuard"], "security": KEY}

    async def status() -> GuardAnswer:
        known = await store.operators.guard_status(setting=guard.enabled)
        return GuardAnswer(
            enabled=known.enabled,
            tick_ms=guard.tick_ms,
            last_tick=known.last_tick,
            last_action_at=known.last_action_at,
        )

    @get("/smartguard/status", summary="Is SmartGuard watching?", guards=[keys.requires("read")], **common)
    async def guard_status() -> GuardAnswer:
        """Whether it slows numbers down by itself, when it last looked and when it last did something."""
        return await status()

    @post(
        "/smartguard/enable",
        status_code=200,
        summary="Switch SmartGuard on or off",
        guards=[keys.requires("admin")],
        opt={"body": ToggleRequest},
        **common,
    )
    async def guard_enable(request: AnyRequest) -> GuardAnswer:
        """For all dispatchers, until it is switched again. Overrides it has set stay."""
        asked = await read_body(request, ToggleRequest)
        await store.operators.toggle_guard(
            asked.enabled, setting=guard.enabled, by=holder(request), now_ms=clock.now_ms()
        )
        return await status()

    return [guard_status, guard_enable]


def _history(store: Store, keys: Keys) -> list[Handler]:
    reading: dict[str, Any] = {"tags": ["History"], "guards": [keys.requires("read")], "security": KEY}

    @get("/incidents", summary="What an operator should know", **reading)
    async def incidents(cursor: IncidentOffset = 0, limit: IncidentLimit = 50, kind: Kind = "") -> EventPage:
        """The last 200."""
        found = await store.operators.incidents()
        return _page([line for line in found if kind in ("", line.get("kind"))], cursor, limit)

    @get("/jobs/events", summary="Jobs as they come and end", **reading)
    async def job_events(cursor: EventOffset = 0, limit: EventLimit = 100, job_id: JobId = "") -> EventPage:
        """The last 2,000."""
        found = await store.operators.job_events()
        return _page([line for line in found if job_id in ("", line.get("jobId"))], cursor, limit)

    return [incidents, job_events]


def _page(lines: list[dict[str, Any]], offset: int, limit: int) -> EventPage:
    more = len(lines) > offset + limit
    return EventPage(items=lines[offset : offset + limit], next_cursor=str(offset + limit) if more else None)
