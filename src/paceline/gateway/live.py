"""Events as they happen, over an open connection (server-sent events).

Each connection reads the stream itself, from its own place: nothing is queued for it, so a slow reader costs no memory.
One that takes nothing for a while is cut, and goes on with `Last-Event-ID`. Neighbours: `routes_events` opens them,
`telling` makes the data.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from anyio import create_task_group
from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from paceline.domain.errors import TooMany, Unavailable
from paceline.gateway.telling import Telling
from paceline.kits.clock import Clock, monotonic_ms
from paceline.store.store import Store

log = structlog.stdlib.get_logger(__name__)

HEARTBEAT_MS = 15_000
"""Below the idle timeout of every proxy we know (30 s and more)."""
PATIENCE_MS = 30_000
"""How long a reader may take nothing of what it was sent."""
LIFE_MS = 900_000
"""Then it is ended, and the reader comes back by itself, perhaps to another gateway."""
BATCH = 100
WAIT_MS = 4_000
"""One blocking read; the link gives up after 10 s."""

CALM_MS = 50


@dataclass(frozen=True)
class Reader:
    """Who reads, and what."""

    wants: Callable[[str], bool]
    may_read: Callable[[], Awaitable[bool]]
    """Asked before each piece: a revoked or expired key reads no further."""


class Tide:
    """Rings for everybody who waits for new events. One blocking read for a whole process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._next = asyncio.Event()

    def next(self) -> asyncio.Event:
        """Set with the next ring. Taken before a look, no ring after that look is missed."""
        return self._next

    def ring(self) -> None:
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    async def step(self, now_ms: int) -> int | None:
        """To be called again soon: what comes within `CALM_MS` is one ring."""
        place = await self._store.events.newest()
        await self._store.events.wait(place, WAIT_MS)
        self.ring()
        return now_ms + CALM_MS


class Live:
    """The open connections of one gateway."""

    def __init__(
        self,
        store: Store,
        telling: Telling,
        tide: Tide,
        clock: Clock,
        *,
        limit: int = 100,
        heartbeat_ms: int = HEARTBEAT_MS,
        patience_ms: int = PATIENCE_MS,
        life_ms: int = LIFE_MS,
    ) -> None:
        self._store = store
        self._telling = telling
        self._tide = tide
        self._clock = clock
        self._limit = limit
        self._heartbeat_ms = heartbeat_ms
        self._patience_ms = patience_ms
        self._life_ms = life_ms
        self.open = 0

    async def stream(self, place: str | None, reader: Reader) -> "EventStream":
        """From that place on, or from now."""
        if place is None:
            place = await self._store.events.newest()
        # Last, and nothing is awaited between this and its being counted: many who come at once do not slip through.
        if self.open >= self._limit:
            message = f"this gateway serves {self._limit} streams at once"
            raise TooMany("TOO_MANY_STREAMS", message, retry_after_seconds=10)
        return EventStream(self, place, reader)

    async def pump(self, place: str, reader: Reader, send: Send) -> None:
        ends_ms = monotonic_ms() + self._life_ms
        # With its place from the start: a reader that is cut before the first event goes on here and misses none.
        await self._put(send, b"retry: 2000\nid: %b\n\n" % place.encode())
        said_ms = monotonic_ms()
        told_gap = False
        while monotonic_ms() < ends_ms and await reader.may_read():
            rung = self._tide.next()
            found = await self._store.events.after(place, limit=BATCH, wants=reader.wants)
            if found.behind and not told_gap:
                await self._put(send, b"event: gap\ndata: {}\n\n")
            told_gap = found.behind
            if found.events:
                told = await self._telling.all_told(found.events)
                lines = [
                    b"id: %b\nevent: %b\ndata: %b\n\n" % (event.id.encode(), event.type.encode(), body)
                    for event, body in zip(found.events, told, strict=True)
                ]
                await self._put(send, b"".join(lines))
                said_ms = monotonic_ms()
            place = found.place
            if not found.more:
                await _within(max(0, said_ms + self._heartbeat_ms - monotonic_ms()), rung)
            # Also while much happens that this reader does not want. With its place, or it would come back to where
            # the last event it wanted was, which may be kept no more.
            if monotonic_ms() - said_ms >= self._heartbeat_ms:
                await self._put(send, b": still here\nid: %b\n\n" % place.encode())
                said_ms = monotonic_ms()

    async def _put(self, send: Send, chunk: bytes) -> None:
        """Waits while the reader's end is full, but not for ever: then it is cut (TimeoutError)."""
        async with asyncio.timeout(self._patience_ms / 1000):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


class EventStream(Response[bytes]):
    def __init__(self, live: Live, place: str, reader: Reader) -> None:
        # Proxies would otherwise keep it until it ends.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(b"", media_type="text/event-stream", headers=headers)
        self._live, self._place, self._reader = live, place, reader

    def to_asgi_response(self, *_arguments: Any, **_options: Any) -> ASGIResponse:
        return _Streaming(self._live, self._place, self._reader, {**self.headers})


class _Streaming(ASGIResponse):
    _should_set_content_length = False

    def __init__(self, live: Live, place: str, reader: Reader, headers: dict[str, str]) -> None:
        super().__init__(media_type="text/event-stream", headers=headers)
        self._live, self._place, self._reader = live, place, reader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._live.open += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.open -= 1

    async def send_body(self, send: Send, receive: Receive) -> None:
        async with create_task_group() as group:

            async def until_it_leaves() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(until_it_leaves)
            try:
                await self._live.pump(self._place, self._reader, send)
            except TimeoutError:
                log.info("a reader of events was too slow")
            except Unavailable:
                log.info("a stream of events ended: the store is away")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()


async def _within(ms: int, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ms / 1000):
            await event.wait()
