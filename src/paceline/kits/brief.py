"""Brief requests: what a hot route is asked again and again goes from the wire to its handler in one step.

A caller that keeps its connection sends the same head with every request, byte for byte. Of a head that was read once,
by the parser and with all its checks, everything is known: one that is the same needs no parser, no ASGI and no task.
That holds for requests with nothing special about them. A handler that finds anything special lets the long way have
the request, before it has counted or stored anything, so every refusal is made there and only there. Neighbours:
`http_protocol` sees what comes, `service` knows which heads are worth keeping, `direct` has the long way.
"""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from paceline.kits.logging import answering

log = structlog.stdlib.get_logger(__name__)
T = TypeVar("T")

HEAD_END = b"\r\n\r\n"
HEAD_BYTES = 1_024
HEAD_LINES = 24
"""Of a head that is remembered: each costs far more in memory than its bytes."""
HEADS_KEPT = 4_096
"""Heads that are remembered: one for each caller and length of a body. Some twenty megabytes at most; then anew."""


JSON_LINES = (
    b"content-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\nx-content-type-options: nosniff\r\n"
)
"""Of every answer that is JSON."""


class Begun(NamedTuple):
    """A request that was taken, and the lines for the head of its answer. It awaits tickets alone."""

    work: Coroutine[Any, None, bytes]
    lines: bytes = b""


class BriefRoute(Protocol):
    def facts(self, headers: Mapping[bytes, bytes]) -> Any:
        """What a head says, for all requests that have it; None if they are not brief."""

    def begin(self, facts: Any, body: bytes, request_id: str) -> Begun | None:
        """None if there is anything special about it; then nothing may have been counted."""


class Head(NamedTuple):
    length: int
    """Of the body behind it."""
    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    status: int
    """Of an answer that is no refusal."""
    route: BriefRoute
    facts: Any


class Ticket:
    """What a brief request waits with, where a task has a future: who answers it goes on with the request at once."""

    __slots__ = ("_answer", "_error", "_is_done", "resume")

    def __init__(self) -> None:
        self.resume: Callable[[], None] | None = None
        self._answer: Any = None
        self._error: BaseException | None = None
        self._is_done = False

    def done(self) -> bool:
        return self._is_done

    def set_result(self, answer: Any) -> None:
        self._answer, self._is_done = answer, True
        if self.resume is None:
            return
        try:
            self.resume()
        except Exception:
            # Those whose answers came with this one wait for theirs.
            log.exception("a brief request could not be gone on with")

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self.set_result(None)

    def take(self, task: "asyncio.Task[Any]") -> None:
        """The end of a task."""
        if task.cancelled():
            self.set_exception(RuntimeError("it was cut off"))
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())

    def __await__(self) -> Generator[Any, None, Any]:
        if not self._is_done:
            yield self
        if self._error is not None:
            raise self._error
        return self._answer


_beside: set[asyncio.Task[Any]] = set()
"""The event loop does not keep them."""


async def beside(work: Coroutine[Any, Any, T], request_id: str) -> T:
    """For the rare step that has to await more than tickets. Whoever steps us may be at another request."""
    ticket = Ticket()
    with answering(request_id):
        task = asyncio.create_task(work, name="brief")
    _beside.add(task)
    task.add_done_callback(_beside.discard)
    task.add_done_callback(ticket.take)
    found: T = await ticket
    return found


class Connection(Protocol):
    transport: asyncio.Transport

    def end_brief(self) -> None: ...

    def default_lines(self) -> bytes: ...


class _Nobody:
    """Waits for more of a brief request: all of it has come."""

    def set(self) -> None: ...


class Exchange:
    """A brief request and its answer on the wire, where uvicorn has a cycle: the connection asks both the same."""

    __slots__ = ("_connection", "disconnected", "keep_alive", "response_complete")
    message_event = _Nobody()
    response_started = False

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.disconnected = False
        self.keep_alive = True
        self.response_complete = False

    @property
    def connection(self) -> Any:
        return self._connection

    def answer(self, status: int, lines: bytes, body: bytes) -> None:
        """All of it at once; to nobody, if the caller has gone. Nothing else was written since it came, so there is
        room."""
        connection, self.response_complete = self._connection, True
        if not self.disconnected:
            if not self.keep_alive:
                lines += b"connection: close\r\n"
            connection.transport.write(b"%b%b%b\r\n%b" % (STATUS_LINE[status], connection.default_lines(), lines, body))
            if not self.keep_alive:
                connection.transport.close()
        connection.end_brief()
