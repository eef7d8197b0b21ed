"""Calls of the same kind that come together go to Redis together: one script for many orders, one write to the disk.

The first goes at once; those that come while as many calls are under way as may be, or are too few for a further one,
wait for one of them and go as one, so nobody waits for a timer. They go before the answers of that call are given out:
Redis is at work again while we are.
Neighbour: `caller`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from paceline.domain.errors import Unavailable

Order = Any
"""What one of them asks for."""


class Answered(Protocol):
    """Where an answer goes: a future, or what stands for one (`kits.brief.Ticket`)."""

    def done(self) -> bool: ...

    def set_result(self, answer: Any, /) -> None: ...

    def set_exception(self, error: Exception, /) -> None: ...


class Gather:
    def __init__(
        self, call: Callable[[list[Order]], Awaitable[list[Any]]], *, most: int, abreast: int = 1, enough: int = 1
    ) -> None:
        """`call` answers each order in its place, with an error if only that one failed; at most so many go in one
        call, and so many calls are under way at once, each further one with `enough` orders."""
        self._call = call
        self._most = most
        self._abreast = abreast
        self._enough = enough
        self._waiting: list[tuple[Order, Answered]] = []
        self._going: set[asyncio.Task[None]] = set()
        self._starting: asyncio.Task[None] | None = None

    def ask(self, order: Order) -> Awaitable[Any]:
        answered = asyncio.get_running_loop().create_future()
        self.tell(order, answered)
        return answered

    def tell(self, order: Order, answered: Answered) -> None:
        self._waiting.append((order, answered))
        self._start()

    def _start(self) -> None:
        under_way, wanted = len(self._going), self._enough if self._going else 1
        # One that has not begun yet takes all that come with it.
        if self._starting is not None or under_way >= self._abreast or len(self._waiting) < wanted:
            return
        task = self._starting = asyncio.create_task(self._go(), name="gather")
        self._going.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._going.discard(task)
        if self._starting is task:
            # It was cut off before it had begun.
            self._starting = None

    async def _go(self) -> None:
        self._starting = None
        together, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        # Who went away before it was sent wants it no longer.
        together = [(order, answered) for order, answered in together if not answered.done()]
        try:
            answers = await self._call([order for order, _ in together]) if together else []
        except Exception as error:
            # It is not known what became of any of them; each is told, and may repeat it. Those behind them need not
            # find it out one timeout after the other.
            self._fail_all(together, error)
            return
        except asyncio.CancelledError:
            self._fail_all(together, Unavailable("the process ends"))
            raise
        finally:
            # At once: whoever asks before the task counts as ended must find its place free.
            self._going.discard(asyncio.current_task())
        try:
            if self._waiting:
                self._start()
                # It is on its way when we go on.
                await asyncio.sleep(0)
        finally:
            _give(together, answers)

    def _fail_all(self, together: list[tuple[Order, Answered]], error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        _fail(together + waiting, error)


def _give(together: list[tuple[Order, Answered]], answers: list[Any]) -> None:
    for (order, answered), answer in zip(together, answers, strict=True):
        if isinstance(answer, Exception):
            _fail([(order, answered)], answer)
        elif not answered.done():
            answered.set_result(answer)


class Alone:
    """The same where nobody else is: each order is a call of its own."""

    def __init__(self, call: Callable[[list[Order]], Awaitable[list[Any]]]) -> None:
        self._call = call

    async def ask(self, order: Order) -> Any:
        (answer,) = await self._call([order])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(self, order: Order, answered: Answered) -> None:
        raise RuntimeError("whoever is alone is driven by hand and waits for each call")


def _fail(orders: list[tuple[Order, Answered]], error: Exception) -> None:
    # Whoever goes on with it at once adds where it came by; the next is told the error as it was.
    raised = error.__traceback__
    for _, answered in orders:
        if not answered.done():
            answered.set_exception(error.with_traceback(raised))
