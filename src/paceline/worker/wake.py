"""Sleeping until something happens, as a port: the cores know neither asyncio nor the World's scheduler.

`main` wakes at once through asyncio, the World through its own scheduler; `ClockWake` needs nothing but a clock.
"""

from typing import Protocol

from paceline.kits.clock import Clock


class Wake(Protocol):
    """Sleep that another coroutine of the same worker can cut short."""

    async def wait_ms(self, ms: int) -> None: ...
    def notify(self) -> None: ...


class ClockWake:
    """Sleeps in steps on a clock; a notification is noticed at the next step."""

    def __init__(self, clock: Clock, step_ms: int = 200) -> None:
        self._clock = clock
        self._step_ms = step_ms

    async def wait_ms(self, ms: int) -> None:
        await self._clock.sleep_ms(min(ms, self._step_ms))

    def notify(self) -> None:
        return
