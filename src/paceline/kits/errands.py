"""Pieces of work that run beside a loop, one at a time under each name: who is slow holds up nobody else."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.stdlib.get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class Errands:
    """At most `at_once` run at the same time; the others wait for their turn."""

    def __init__(self, at_once: int = 16) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def busy(self) -> frozenset[str]:
        return frozenset(self._running)

    async def run(self, name: str, work: Work) -> None:
        """Begin it and come back at once. A name that is busy is refused."""
        if name in self._running:
            raise ValueError(f"{name!r} is under way")
        self._running[name] = asyncio.create_task(self._do(name, work), name=f"errand {name}")

    async def settled(self) -> None:
        """Until nothing is under way."""
        while self._running:
            await asyncio.wait(self._running.values())

    async def close(self) -> None:
        """Cancel what is under way and wait until it is gone."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # One that was canceled before its first step could not do it itself.
        self._running.clear()

    async def _do(self, name: str, work: Work) -> None:
        try:
            async with self._turns:
                await work()
        except Exception:
            log.exception("errand failed", errand=name)
        finally:
            self._running.pop(name, None)
