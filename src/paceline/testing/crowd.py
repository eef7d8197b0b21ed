"""A World of thousands who do something at the same time: orders to Redis are under way while others take their steps.

Redis and this process then work side by side, and a system call carries many orders instead of one. Orders are carried
out in the order in which they were sent and answered in that order, so one seed is still one run. Neighbour: `soak`.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from paceline.store.client import Command
from paceline.store.scripts import Script
from paceline.testing.ports import SimLink
from paceline.testing.sim import Sim
from paceline.testing.steps import Faults, Order, Point, ProcessDied, Request, Thread

UNDER_WAY = 64
"""More orders than that are not sent before an answer is taken."""


class CrowdSim(Sim):
    def __init__(self, seed: int, start_ms: int, faults: Faults) -> None:
        super().__init__(seed, start_ms, faults)
        self._under_way: deque[tuple[Thread, Order, int]] = deque()
        """Who sent which order, and in which life of the process it was sent for."""

    def run(self, until: Callable[[], bool], *, deadline_ms: int, max_steps: int) -> bool:
        ended = super().run(until, deadline_ms=deadline_ms, max_steps=max_steps)
        while self._under_way:
            self._take()
        return ended

    def _collect(self) -> None:
        while self._under_way and (not self._ready or len(self._under_way) >= UNDER_WAY):
            self._take()

    def _settle_down(self, thread: Thread, request: Request) -> None:
        """An order goes out at once, and a point needs no turn of its own: there is enough between an order and its
        answer."""
        if isinstance(request, Order):
            self._send(thread, request)
        elif isinstance(request, Point):
            self._answer(thread, request)
            if thread.alive:
                self._settle_down(thread, self._resume(thread))
        else:
            super()._settle_down(thread, request)

    def _send(self, thread: Thread, order: Order) -> None:
        if not self._goes_wrong(thread, order.process, refusable=True):
            order.send()
            self._under_way.append((thread, order, order.process.crashes))
        elif thread.alive:
            self._ready.append(thread)

    def _take(self) -> None:
        thread, order, life = self._under_way.popleft()
        thread.value = order.take()
        if not thread.alive:
            return
        if order.process.crashes != life:
            thread.value, thread.error = None, ProcessDied(f"{order.process.name} died")
        else:
            self._goes_wrong_after(thread, order.process, losable=True)
        self._step(thread)


class CrowdLink(SimLink):
    """Nobody outside listens: what they would note down of millions of orders is not read."""

    async def run(self, script: Script, argument: bytes) -> Any:
        return await Order(
            self._process, lambda: self._redis.begin_run(script, argument), lambda: self._carried_out(script)
        )

    async def read(self, *commands: Command) -> list[Any]:
        found: list[Any] = await Order(self._process, lambda: self._redis.begin_read(*commands), self._redis.end)
        return found

    def _carried_out(self, script: Script) -> Any:
        (answer,) = self._redis.end()
        self._wake(script)
        return answer
