"""A brief request from when it was taken to its answer: its coroutine, stepped by whoever answers its tickets.

A task of its own and the futures it waits with would cost as much as the work. Neighbour: `brief`.
"""

import asyncio
from typing import Any, Protocol

from paceline.kits.brief import JSON_LINES, Begun, Exchange, Head, Ticket
from paceline.kits.http_cycle import lines_of
from paceline.kits.logging import answering


class _Service(Protocol):
    def answered(self, method: str, route: str, status: int, began_s: float, request_id: str) -> None: ...

    async def refuse_briefly(self, error: Exception, scope: Any, request_id: str, send: Any) -> None: ...


class Run:
    __slots__ = ("_began_s", "_begun", "_exchange", "_head", "_request_id", "_service")

    def __init__(
        self, service: _Service, head: Head, exchange: Exchange, begun: Begun, *, request_id: str, began_s: float
    ) -> None:
        self._service = service
        self._head = head
        self._exchange = exchange
        self._request_id = request_id
        self._began_s = began_s
        self._begun = begun

    def step(self) -> None:
        """On to the next ticket that is open, or to the end."""
        try:
            ticket: Ticket = self._begun.work.send(None)
            while ticket.done():
                ticket = self._begun.work.send(None)
            ticket.resume = self.step
        except StopIteration as end:
            content: bytes = end.value
            lines = JSON_LINES % (len(content), self._request_id.encode())
            self._answer(self._head.status, lines + self._begun.lines, content)
        except Exception as error:
            self._refuse(error)

    def _answer(self, status: int, lines: bytes, content: bytes) -> None:
        self._exchange.answer(status, lines, content)
        self._service.answered(self._head.method, self._head.path, status, self._began_s, self._request_id)

    def _refuse(self, error: Exception) -> None:
        """By a task, since the framework makes that answer."""
        tasks: set[asyncio.Task[None]] = self._exchange.connection.tasks
        with answering(self._request_id):
            task = asyncio.create_task(self._refused(error), name="brief-refused")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _refused(self, error: Exception) -> None:
        head, messages = self._head, []

        async def keep(message: Any) -> None:
            messages.append(message)

        scope = self._exchange.connection.scope_of(head.method, head.path, head.headers)
        await self._service.refuse_briefly(error, scope, self._request_id, keep)
        start, *rest = messages
        content = b"".join([message.get("body", b"") for message in rest])
        self._answer(start["status"], lines_of(start["headers"]) + self._begun.lines, content)
