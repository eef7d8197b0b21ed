"""Named, supervised background tasks: a loop that raises is logged and restarted, a shutdown waits for all of
them.

Used by the composition roots of the services. A bare `asyncio.create_task` dies in silence and takes its work
with it; nothing of ours uses one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import structlog

from paceline.kits.clock import monotonic_ms

log = structlog.stdlib.get_logger(__name__)

Loop = Callable[[], Awaitable[None]]


class Backoff:
    """Growing pauses between restarts: first, doubled each time, capped; back to the first after a long
    life."""

    def __init__(self, *, first_ms: int, max_ms: int, healthy_after_ms: int = 30_000) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._healthy_after_ms = healthy_after_ms
        self._failures = 0

    def after_life_of(self, lived_ms: int) -> int:
        """The pause before the next start, for something that just ended after `lived_ms`."""
        if lived_ms >= self._healthy_after_ms:
            self._failures = 0
        pause_ms = min(self._first_ms << self._failures, self._max_ms)
        # Bounded, or a loop that fails for a year would compute with numbers of many digits.
        self._failures = min(self._failures + 1, 30)
        return pause_ms


class Supervisor:
    """Runs loops under a name until `stop`. A loop that returns is finished; one that raises starts again.

    As a context manager it stops them on the way out, whatever the reason.
    """

    def __init__(self, *, first_pause_ms: int = 100, max_pause_ms: int = 10_000, grace_ms: int = 5_000) -> None:
        self._first_pause_ms = first_pause_ms
        self._max_pause_ms = max_pause_ms
        self._grace_ms = grace_ms
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, loop: Loop) -> None:
        """Start `loop` under a name that no running task has."""
        running = self._tasks.get(name)
        if running is not None and not running.done():
            raise ValueError(f"a task named {name!r} is already running")
        self._tasks[name] = asyncio.create_task(self._keep_running(name, loop), name=name)

    async def stop(self) -> None:
        """Cancel all and wait until they are gone, `grace_ms` at most."""
        tasks = [task for task in self._tasks.values() if not task.done()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, stuck = await asyncio.wait(tasks, timeout=self._grace_ms / 1000)
        for task in stuck:
            log.error("task did not stop", task=task.get_name(), grace_ms=self._grace_ms)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _keep_running(self, name: str, loop: Loop) -> None:
        backoff = Backoff(first_ms=self._first_pause_ms, max_ms=self._max_pause_ms)
        while True:
            started_ms = monotonic_ms()
            try:
                await loop()
                return
            except Exception:
                pause_ms = backoff.after_life_of(monotonic_ms() - started_ms)
                log.exception("task failed; starting it again", task=name, pause_ms=pause_ms)
            await asyncio.sleep(pause_ms / 1000)
