"""Long polls: workers that wait for a task wait in this process, not in Redis.

One channel wakes the one whose outbox got something; one batched look a second stands behind it, for wake-ups that were
lost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

from paceline.kits.clock import monotonic_ms
from paceline.store.store import Store

CHECK_MS = 1_000
_TOPIC = "outbox:"

T = TypeVar("T")


class Waiters:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def wake(self, session: str) -> None:
        for event in self._waiting.get(session, ()):
            event.set()

    def ring(self, topic: str) -> None:
        """A wake-up from the channel; those of others are not for us."""
        if topic.startswith(_TOPIC):
            self.wake(topic.removeprefix(_TOPIC))

    async def check(self, now_ms: int) -> int:
        """One question for all who wait. Returns when to ask again."""
        sessions = list(self._waiting)
        for session in await self._store.outbox.waiting(sessions) if sessions else ():
            self.wake(session)
        return now_ms + CHECK_MS

    async def poll(
        self,
        session: str,
        ask: Callable[[], Awaitable[T]],
        *,
        found: Callable[[T], bool],
        timeout_ms: int,
        until_gone: Callable[[], Awaitable[object]],
    ) -> T | None:
        """Ask, and again at each wake-up, until something is found or the time is over. None if the caller went away: a
        task must not be given to a connection nobody reads."""
        deadline_ms = monotonic_ms() + timeout_ms
        gone = asyncio.ensure_future(until_gone())
        try:
            with _Place(self._waiting, session) as event:
                while True:
                    event.clear()
                    answer = await ask()
                    left_ms = deadline_ms - monotonic_ms()
                    if found(answer) or left_ms <= 0:
                        return answer
                    if not await _wake_or_end(event, gone, left_ms):
                        return None
        finally:
            gone.cancel()


async def _wake_or_end(event: asyncio.Event, gone: asyncio.Future[Any], left_ms: int) -> bool:
    """False when the caller is gone."""
    woken: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({woken, gone}, timeout=left_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()
    return not gone.done()


class _Place:
    """A place among those who wait, taken before the first look so that nothing slips between look and wait."""

    def __init__(self, waiting: dict[str, set[asyncio.Event]], session: str) -> None:
        self._waiting = waiting
        self._session = session
        self._event = asyncio.Event()

    def __enter__(self) -> asyncio.Event:
        self._waiting.setdefault(self._session, set()).add(self._event)
        return self._event

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        place = self._waiting[self._session]
        place.discard(self._event)
        if not place:
            del self._waiting[self._session]
