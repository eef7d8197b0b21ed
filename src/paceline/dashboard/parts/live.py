"""The one loop that keeps an open page fresh.

Each part is asked again every few seconds; one that fails shows why, is asked less and less often, and recovers by
itself, while the others go on. The loop rests while nobody can see the tab, and ends with the page.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog
from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from paceline.client import PacelineError, Unauthorized
from paceline.kits.clock import monotonic_ms

if TYPE_CHECKING:
    from paceline.dashboard.parts.page import Visit

log = structlog.stdlib.get_logger(__name__)

EVERY_SECONDS = 3.0
LONGEST_SECONDS = 30.0
"""How long a part that keeps failing waits at most."""
TICK_SECONDS = 0.25

Refresh = Callable[[], Awaitable[None]]


class Shows(Protocol):
    """What a part of the page says when its data cannot be had, and that it can again."""

    def fail(self, error: PacelineError) -> None: ...

    def recover(self) -> None: ...


class Silent:
    """For a part whose neighbours on the page tell of the same trouble."""

    def fail(self, error: PacelineError) -> None:
        pass

    def recover(self) -> None:
        pass


class Presence(Element, component="presence.js"):
    """Whether the tab is in view."""


@dataclass(eq=False)
class _Part:
    refresh: Refresh
    shows: Shows
    every_seconds: float
    due_ms: int = 0
    failures: int = 0
    busy: bool = False
    again: bool = False
    """Asked for while it was being asked: the answer on its way may be to an older question."""


class Live:
    def __init__(self, visit: "Visit") -> None:
        self._visit = visit
        self._parts: list[_Part] = []
        # Until the browser has said that somebody looks, and when their day began.
        self._is_seen = False
        self._is_leaving = False
        self._running: set[asyncio.Task[None]] = set()
        self.midnight_ms = 0
        Presence().on("presence", self._presence)
        ui.timer(TICK_SECONDS, self._tick)

    def add(self, refresh: Refresh, shows: Shows, *, every_seconds: float = EVERY_SECONDS) -> None:
        """Asked at once, then every so often."""
        self._parts.append(_Part(refresh, shows, every_seconds))

    async def now(self) -> None:
        """All of it again, after something was changed."""
        for part in self._parts:
            part.due_ms = 0
            part.again = part.busy
        await self._tick()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _tick(self) -> None:
        if self._is_leaving or not self._is_seen:
            return
        if ended := await self._visit.ended():
            self._is_leaving = True
            ui.navigate.to(f"/login?ended={ended}")
            return
        self._visit.seen()
        now_ms = monotonic_ms()
        due = [part for part in self._parts if part.due_ms <= now_ms and not part.busy]
        for part in due:
            # Each on its own: one that waits for an answer must not hold up the others.
            task = asyncio.create_task(self._refresh(part), name="refresh")
            self._running.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a part of a page could not be refreshed", page=self._visit.page.path, exc_info=error)

    async def _refresh(self, part: _Part) -> None:
        part.busy = True
        try:
            await part.refresh()
        except Unauthorized:
            await self._visit.end("key")
        except PacelineError as error:
            part.failures += 1
            part.shows.fail(error)
        except RuntimeError:
            # Asked while the visit ended, which closes its connections; the next look leads to the door.
            if not self._visit.visitor.ended:
                raise
        else:
            part.failures = 0
            part.shows.recover()
        finally:
            part.busy = False
            seconds = min(part.every_seconds * 2**part.failures, LONGEST_SECONDS)
            part.due_ms = 0 if part.again else monotonic_ms() + round(seconds * 1000)
            part.again = False

    def _presence(self, event: GenericEventArguments) -> None:
        self._is_seen = bool(event.args["seen"])
        self.midnight_ms = int(event.args["midnight"])
