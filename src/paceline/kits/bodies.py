"""What a body may cost while it comes in: time, memory, and no unpacking at all.

How large one body may be, its route says and the framework holds. Here is what that leaves open: a body that never
comes, many large ones at once, and small ones that unpack to large ones. Only what reads a body is held to this, so a
guard has let its caller in before. Neighbours: `web.Service` puts this around every request, `http` minds the time a
request's head takes.
"""

import asyncio
import contextlib
import math
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from litestar.types import Receive

from paceline.kits.headers import header
from paceline.kits.http_cycle import Cycle
from paceline.kits.http_protocol import WHOLE
from paceline.kits.problem import Problem

FREE_BYTES = 65_536
"""Of every body. What is small is served also while large bodies take all the room: health, stop, a worker's report."""
RETRY_AFTER_SECONDS = 2
WHOLE_FACTOR = 20
"""The whole body may take this many times what a piece may: ten minutes, enough for 32 MB at half a megabit."""
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")

Message = MutableMapping[str, Any]


@dataclass(frozen=True)
class BodyLimits:
    piece_seconds: float = 30
    """How long a caller may send nothing while we wait for more of its body."""
    room_bytes: int = 64 * 1_048_576
    """Bodies that are held in memory at once, all together."""


def at_hand(scope: Any, cycle: Cycle | None) -> bytes | None:
    """A body that has come and costs nothing more: no room, no time."""
    if cycle is None or WHOLE not in scope or header(scope, b"content-encoding") is not None:
        return None
    body = cycle.whole_body
    return body if body is not None and len(body) <= FREE_BYTES else None


class Bodies:
    """The room all bodies of a process share."""

    def __init__(self, limits: BodyLimits | None = None) -> None:
        self.limits = limits or BodyLimits()
        self._held = 0

    def reading(self, scope: Any, receive: Receive) -> AbstractContextManager[Receive]:
        """`receive` under these limits. What the body took is given back when the request has ended."""
        if scope["method"] in _WITHOUT_BODY:
            # Nobody reads their bodies; what waits on such a request waits for its caller to hang up.
            return contextlib.nullcontext(receive)
        return _Body(self, scope, receive)

    def give_back(self, held: int) -> None:
        self._held -= held

    def take(self, wanted: int) -> None:
        """Refuses rather than waits: two that wait for each other's room would never end. One alone always fits."""
        if self._held and self._held + wanted > self.limits.room_bytes:
            message = "too many large bodies are under way; repeat it"
            raise Problem(503, "BODIES_FULL", message, retry_after_seconds=RETRY_AFTER_SECONDS)
        self._held += wanted


class _Body(AbstractContextManager[Receive]):
    def __init__(self, bodies: Bodies, scope: Any, receive: Receive) -> None:
        self.held = 0
        self._bodies = bodies
        self._scope = scope
        self._receive = receive
        self._until: float | None = None
        self._received = 0
        self._ended = False

    def __enter__(self) -> Receive:
        return self  # type: ignore[return-value]  # a callable object of that shape

    def __exit__(self, *_error: object) -> None:
        self._bodies.give_back(self.held)

    async def __call__(self) -> Message:
        if self._ended:
            # After the body only the caller's going is waited for, for as long as the answer takes.
            return await self._receive()  # type: ignore[return-value]
        if self._until is None:
            self._begin()
        message = await self._piece()
        if message["type"] == "http.disconnect":
            # Nobody reads this answer; it keeps half a body from being taken for a fault of ours.
            raise Problem(400, "INVALID_REQUEST", "the connection ended before the body did", closes=True)
        self._received += len(message.get("body", b""))
        self._hold(self._received)
        self._ended = not message.get("more_body", False)
        return message

    def _begin(self) -> None:
        # One that unpacks a body can be made to unpack a gigabyte from a megabyte.
        if (header(self._scope, b"content-encoding") or "").strip().lower() not in ("identity", ""):
            message = "send the body as it is, without Content-Encoding"
            raise Problem(415, "UNSUPPORTED_ENCODING", message, field="Content-Encoding")
        if WHOLE in self._scope:
            self._until = math.inf
            return
        self._until = asyncio.get_running_loop().time() + WHOLE_FACTOR * self._bodies.limits.piece_seconds
        with contextlib.suppress(ValueError):
            # What is announced is refused before it is sent.
            self._hold(int(header(self._scope, b"content-length") or 0))

    async def _piece(self) -> Message:
        if WHOLE in self._scope:
            # There is nothing to wait for: most bodies come with their head.
            return await self._receive()  # type: ignore[return-value]
        now = asyncio.get_running_loop().time()
        assert self._until is not None
        try:
            async with asyncio.timeout_at(min(self._until, now + self._bodies.limits.piece_seconds)):
                return await self._receive()  # type: ignore[return-value]
        except TimeoutError:
            raise Problem(408, "BODY_TIMEOUT", "the body did not come in time", closes=True) from None

    def _hold(self, total: int) -> None:
        wanted = total - FREE_BYTES - self.held
        if wanted > 0 and not self._is_streamed():
            self._bodies.take(wanted)
            self.held += wanted

    def _is_streamed(self) -> bool:
        """A route that passes its body on piece by piece holds none of it."""
        handler = self._scope.get("route_handler")
        streams = handler is not None and handler.opt.get("streams", False)
        return streams and not (header(self._scope, b"content-type") or "").startswith("multipart/")
