"""One connection to Redis that all calls of a process share: sent as they come, answered in their order.

A pool takes a connection for each call, and with it most of the time a call takes. Here calls that are made together go
out together, and Redis writes them to the disk together. Nothing is ever repeated: when the connection breaks or an
answer takes too long, whoever waits is told, and the next call makes a new one. No call may block in Redis, or all
would. Neighbour: `client`.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ConnectionError, InvalidResponse, NoScriptError, RedisError, ResponseError

Command = Sequence[str | bytes | int | float]
SILENT = 2
"""Timeouts without a word, and the connection counts as dead."""
CHECKS = 10
"""In each timeout: one ends at most a tenth late."""


class Wire:
    def __init__(self, pool: ConnectionPool, timeout_s: float) -> None:
        """`pool` knows how to connect; none of its connections is taken. It must set no socket timeout."""
        self._pool = pool
        self._timeout_s = timeout_s
        self._line: _Line | None = None
        self._dialing = asyncio.Lock()

    async def call(self, *commands: Command) -> list[Any]:
        """The answers in the order of the commands; the first error among them is raised."""
        if not commands:
            return []
        packed = b"".join(map(_packed, commands))
        line = self._line
        if line is None or not line.is_open:
            async with asyncio.timeout(self._timeout_s):
                line = await self._dial()
        answers = await line.ask(packed, len(commands))
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    async def close(self) -> None:
        if self._line is not None:
            self._line.end(ConnectionError("the link was closed"))
            await self._line.gone()

    async def _dial(self) -> "_Line":
        async with self._dialing:
            # Of those who found it closed together, the first made a new one.
            if self._line is None or not self._line.is_open:
                connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]
                await connection.connect()  # type: ignore[no-untyped-call]
                self._line = _Line(connection, self._timeout_s)
            return self._line


class _Question:
    """So many answers in a row belong to one call."""

    def __init__(self, count: int, loop: asyncio.AbstractEventLoop) -> None:
        self.answers: list[Any] = []
        self.count = count
        self.asked_s = loop.time()
        self.done: asyncio.Future[list[Any]] = loop.create_future()


class _Line(asyncio.Protocol):
    """An open connection. What comes is read where it arrives: the client library has a coroutine for each answer, and
    that costs more than the answer. Callers that go away take nothing with them: what they asked is answered to
    nobody."""

    def __init__(self, connection: AbstractConnection, timeout_s: float) -> None:
        if (writer := connection._writer) is None:  # The client library has no other way to what it opened.
            raise ConnectionError("the connection is gone")
        self._connection = connection
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(
            encoding="utf-8", protocolError=InvalidResponse, replyError=_refused, notEnoughData=_NOTHING
        )
        self._asked: deque[_Question] = deque()
        self._heard_s = self._loop.time()
        self._transport = writer.transport
        self._transport.set_protocol(self)
        self._tasks = [asyncio.create_task(self._mind(), name="redis-mind")]
        self.is_open = True

    async def ask(self, packed: bytes, count: int) -> list[Any]:
        if self._transport.is_closing():
            self.end(ConnectionError("the connection is gone"))
            raise ConnectionError("the connection is gone")
        question = _Question(count, self._loop)
        self._asked.append(question)
        # As much as the system takes goes out at once; the rest as it can. Who asks is counted, so it is bounded.
        self._transport.write(packed)
        return await question.done

    def end(self, error: Exception) -> None:
        """Everybody who waits is told; it is not known what became of what they asked."""
        if not self.is_open:
            return
        self.is_open = False
        for task in self._tasks:
            task.cancel()
        for question in self._asked:
            if not question.done.done():
                question.done.set_exception(error)
        self._asked.clear()
        self._tasks.append(asyncio.create_task(self._connection.disconnect(nowait=True), name="redis-close"))

    async def gone(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def data_received(self, data: bytes) -> None:
        self._heard_s = self._loop.time()
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not _NOTHING:
                self._take(answer)
        except Exception as error:
            # Also what no one thought of, like an answer that is no text: a line that nobody reads must not look open.
            self.end(_told(error))

    def connection_lost(self, error: Exception | None) -> None:
        self.end(_told(error) if error else ConnectionError("Redis closed the connection"))

    async def _mind(self) -> None:
        """One clock for all who wait: a timer for each call would cost more than the call."""
        while True:
            await asyncio.sleep(self._timeout_s / CHECKS)
            now_s = self._loop.time()
            for question in self._asked:
                if now_s - question.asked_s < self._timeout_s:
                    break
                # Answers come in their order: one that is late goes to nobody, and those behind it may be in time.
                if not question.done.done():
                    question.done.set_exception(TimeoutError("an answer takes too long"))
            # Only a line that is silent for longer is given up.
            if self._asked and now_s - max(self._heard_s, self._asked[0].asked_s) >= SILENT * self._timeout_s:
                self.end(ConnectionError("no answer for too long"))

    def _take(self, answer: Any) -> None:
        if isinstance(answer, hiredis.PushNotification):
            return
        if not self._asked:
            raise ConnectionError("an answer that nobody asked for")
        question = self._asked[0]
        question.answers.append(answer)
        if len(question.answers) == question.count:
            self._asked.popleft()
            if not question.done.done():
                question.done.set_result(question.answers)


_NOTHING = object()
"""Of what came, no whole answer is left."""


def _refused(words: str) -> ResponseError:
    """An error that Redis answered with (`client.refusal` tells what it means)."""
    return NoScriptError(words) if words.startswith("NOSCRIPT ") else ResponseError(words)


def _told(error: Exception) -> Exception:
    return error if isinstance(error, RedisError | OSError) else ConnectionError(f"the line broke: {error!r}")


def _packed(command: Command) -> bytes:
    packed: bytes = hiredis.pack_command(tuple(command))  # type: ignore[arg-type]  # its stub says: one word only
    return packed
