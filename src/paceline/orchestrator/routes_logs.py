"""The end of a worker's log over HTTP, wherever its runner keeps it."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from litestar import get
from litestar.params import FromPath, QueryParameter

from paceline.apidoc import KEY
from paceline.domain.errors import Unavailable
from paceline.edge import Keys
from paceline.kits.clock import Clock
from paceline.kits.logging import redact_string
from paceline.kits.web import Handler
from paceline.orchestrator.registry import Registry
from paceline.orchestrator.runners.base import RunnerAway

ReadLogs = Callable[[str, int], Awaitable[list[str]]]
"""`Runner.logs`."""
Lines = Annotated[int, QueryParameter(ge=1, le=1_000, description="how many of the last lines")]


class LogsAnswer(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    lines: Annotated[list[str], msgspec.Meta(description="the oldest first")]


async def no_logs(_session: str, _lines: int) -> list[str]:
    return []


def logs_route(registry: Registry, read: ReadLogs, keys: Keys, clock: Clock) -> Handler:
    @get(
        "/api/sessions/{session_id:str}/logs",
        summary="The end of what its worker printed",
        guards=[keys.requires("admin")],
        security=KEY,
        tags=["Sessions"],
    )
    async def logs(session_id: FromPath[str], lines: Lines = 100) -> LogsAnswer:
        """Empty if it has not run yet, or if somebody else runs it. 503 while the engine that holds it does not
        answer."""
        await registry.get(session_id, now_ms=clock.now_ms())
        try:
            found = await read(session_id, lines)
        except RunnerAway as error:
            raise Unavailable("whoever runs the workers does not answer") from error
        # Workers redact what they log; what a library of theirs prints on its own they cannot.
        return LogsAnswer(session_id, [redact_string(line) for line in found])

    return logs
