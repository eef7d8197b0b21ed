"""Running a step again and again: it says when it wants to be called next, and a wake-up may come earlier.

The step itself is a plain coroutine with the time as its argument, which virtual time drives without this module.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog

from paceline.kits.clock import Clock

log = structlog.stdlib.get_logger(__name__)

Step = Callable[[int], Awaitable[int | None]]
"""Does what is due at that time and returns when something will be due next; None when nothing is in sight."""


def in_turn(step: Step, rest_ms: int) -> Step:
    """One step for several loops. Those that come within `rest_ms` of the last one leave it at that, so that what comes
    together is done together; unless that one asked to be called again at once: then they go on side by side."""
    next_ms, is_behind = 0, False

    async def turn(now_ms: int) -> int | None:
        nonlocal next_ms, is_behind
        # A turn that seems to lie further ahead was before the clock was set back.
        if not is_behind and now_ms < next_ms <= now_ms + rest_ms:
            return next_ms
        next_ms = now_ms + rest_ms
        due_ms = await step(now_ms)
        is_behind = due_ms == now_ms
        return due_ms

    return turn


class Bell:
    """Wakes everybody who waits for a topic. A ring while nobody waits is kept for the next one who does."""

    def __init__(self) -> None:
        self._events: dict[str, set[asyncio.Event]] = {}

    def listener(self, topic: str) -> asyncio.Event:
        event = asyncio.Event()
        self._events.setdefault(topic, set()).add(event)
        return event

    def ring(self, topic: str) -> None:
        for event in self._events.get(topic, ()):
            event.set()


async def keep_listening(
    line: Callable[[], AsyncIterator[str]],
    ring: Callable[[str], None],
    clock: Clock,
    *,
    idle_ms: int,
    expected: type[Exception],
) -> None:
    """For ever: every wake-up that comes over the line is rung. What is missed while it is down costs an idle sleep."""
    away = False
    while True:
        try:
            async for topic in line():
                away = False
                ring(topic)
        except expected as error:
            if not away:
                log.warning("no wake-ups until the store is back", reason=str(error))
            away = True
        await clock.sleep_ms(idle_ms)


async def keep_stepping(
    step: Step, clock: Clock, bell: asyncio.Event, *, idle_ms: int, expected: type[Exception]
) -> None:
    """For ever. `expected` is what a step raises when its store is away: told once, tried again until it is back."""
    away = False
    while True:
        bell.clear()
        try:
            due_ms = await step(clock.now_ms())
        except expected as error:
            if not away:
                log.warning("the store is away; going on when it is back", task=_task(), reason=str(error))
            away, due_ms = True, None
        else:
            if away:
                log.info("the store is back", task=_task())
            away = False
        pause_ms = idle_ms if due_ms is None else min(idle_ms, due_ms - clock.now_ms())
        if away:
            # A bell that rings while the store is away must not make this a busy loop.
            await clock.sleep_ms(idle_ms)
        else:
            await _wait(bell, pause_ms)


def _task() -> str:
    task = asyncio.current_task()
    return task.get_name() if task else ""


async def _wait(bell: asyncio.Event, ms: int) -> None:
    # Others get their turn even if the bell rings without end.
    await asyncio.sleep(0)
    # Not `wait_for`: on Python 3.11 it swallows a cancellation that meets a ring, and the loop would never stop.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0, ms) / 1000):
            await bell.wait()
