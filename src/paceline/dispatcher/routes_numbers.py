"""Routes about single numbers: their pacers, their metrics, why they wait, and an operator's decisions on them."""

from typing import Annotated, Any

from litestar import get, post
from litestar.params import FromPath, QueryParameter

from paceline.apidoc import KEY
from paceline.dispatcher.operators import Operator
from paceline.dispatcher.schemas import (
    CooldownCleared,
    ExplainAnswer,
    MetricsPage,
    PacerPage,
    PacerRequest,
    PacerView,
    QueueCanceled,
    Requeued,
    RpmAnswer,
    RpmRequest,
)
from paceline.dispatcher.watching import Watching
from paceline.domain.errors import BadRequest
from paceline.edge import Keys, holder
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, Problem, T, read_body
from paceline.policy.pacing import ALLOWED_RPM

Offset = Annotated[int, QueryParameter(ge=0, le=10_000_000, description="nextCursor of the page before")]
Cursor = Annotated[str, QueryParameter(max_length=64, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=1_000, description="items in a page")]


def number_routes(watching: Watching, operator: Operator, keys: Keys, clock: Clock) -> list[Handler]:
    return [*_looking(watching, keys, clock), *_pacing(operator, keys, clock), *_deciding(operator, keys, clock)]


def _looking(watching: Watching, keys: Keys, clock: Clock) -> list[Handler]:
    reading: dict[str, Any] = {"tags": ["Numbers"], "guards": [keys.requires("read")], "security": KEY}

    @get("/pacers", summary="Every number's pace, queue and why it waits", **reading)
    async def list_pacers(cursor: Offset = 0, limit: Limit = 100) -> PacerPage:
        """In the order of their registration."""
        return await watching.pacers(cursor, limit, now_ms=clock.now_ms())

    @get("/sessions/metrics", summary="Every connected session's last minute, rate and limits", **reading)
    async def session_metrics(cursor: Cursor = "", limit: Limit = 100) -> MetricsPage:
        """In the order of their ids. A page may hold fewer than `limit`: only those that are connected are shown."""
        return await watching.metrics(cursor, limit, now_ms=clock.now_ms())

    @get("/sessions/{session_id:str}/explain", summary="What a number does now, and why", **reading)
    async def explain(session_id: FromPath[str]) -> ExplainAnswer:
        """The decision the dispatcher would make at this moment, with the facts it rests on. Changes nothing."""
        return await watching.explain(session_id, now_ms=clock.now_ms())

    return [list_pacers, session_metrics, explain]


def _pacing(operator: Operator, keys: Keys, clock: Clock) -> list[Handler]:
    changing: dict[str, Any] = {
        "status_code": 200, "tags": ["Numbers"], "guards": [keys.requires("admin")], "security": KEY,
    }  # fmt: skip

    @post("/pacers/{session_id:str}", summary="Set a number's pacing", opt={"body": PacerRequest}, **changing)
    async def set_pacer(request: AnyRequest, session_id: FromPath[str]) -> PacerView:
        """Kept until it is set to null; it goes before an rpm override and trust."""
        asked = await _read(request, PacerRequest)
        return await operator.set_pacer(session_id, asked, by=holder(request), now_ms=clock.now_ms())

    @post("/sessions/{session_id:str}/rpm", summary="Override a number's rate", opt={"body": RpmRequest}, **changing)
    async def set_rpm(request: AnyRequest, session_id: FromPath[str]) -> RpmAnswer:
        """It holds for all sessions of the number and may exceed its trust. null removes it, SmartGuard's too."""
        asked = await _read(request, RpmRequest)
        return await operator.set_rpm(session_id, asked.rpm, by=holder(request), now_ms=clock.now_ms())

    return [set_pacer, set_rpm]


def _deciding(operator: Operator, keys: Keys, clock: Clock) -> list[Handler]:
    deciding: dict[str, Any] = {
        "status_code": 200, "tags": ["Numbers"], "guards": [keys.requires("admin")], "security": KEY,
    }  # fmt: skip

    @post("/sessions/{session_id:str}/cooldown/clear", summary="End a cool-down early", **deciding)
    async def clear_cooldown(request: AnyRequest, session_id: FromPath[str]) -> CooldownCleared:
        """A cool-down only. What the platform laid on the number and a quarantine stay."""
        return await operator.clear_cooldown(session_id, by=holder(request), now_ms=clock.now_ms())

    @post("/sessions/{session_id:str}/queue/requeue", summary="A quarantined number is restored", **deciding)
    async def requeue(request: AnyRequest, session_id: FromPath[str]) -> Requeued:
        """Its queue goes on, on the same number. 409 while no session of it is connected."""
        return await operator.requeue(session_id, by=holder(request), now_ms=clock.now_ms())

    @post("/sessions/{session_id:str}/queue/cancel", summary="Cancel all that waits for a number", **deciding)
    async def cancel_queue(request: AnyRequest, session_id: FromPath[str]) -> QueueCanceled:
        """Each message ends `canceled`; one that may have gone out ends `failed` with UNKNOWN_OUTCOME."""
        return await operator.cancel_queue(session_id, by=holder(request), now_ms=clock.now_ms())

    return [clear_cooldown, requeue, cancel_queue]


async def _read(request: AnyRequest, kind: type[T]) -> T:
    """The body; a rate that is none of the allowed ones is told which are."""
    try:
        return await read_body(request, kind)
    except Problem as problem:
        if problem.details.get("field") != "rpm":
            raise
        allowed = {"allowed": list(ALLOWED_RPM)}
        message = f"must be one of {', '.join(map(str, ALLOWED_RPM))}, or null"
        raise BadRequest("INVALID_RPM", message, field="rpm", details=allowed) from problem
