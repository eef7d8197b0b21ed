"""One connection to Redis that all calls of a process share: sent as they come, answered in their order.

A pool takes a connection for each call, and with it most of the time a call takes. Here calls that are made together go
out together, and Redis writes them to the disk together. Nothing is ever repeated: when the connection breaks or an
answer takes too long, whoever waits is told, and the next call makes a new one. No call may block in Redis, or all
would. Neighbour: `client`.
"""

import asyncio
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection, ConnectionPool
from redis.exceptions import ConnectionError, RedisError, ResponseError

Command = Sequence[str | int | float]
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


class _Line:
    """An open connection, with a task that writes and one that reads. Callers that go away take nothing with them: what
    they asked is answered to nobody."""

    def __init__(self, connection: AbstractConnection, timeout_s: float) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._more = asyncio.Event()
        self._asked: deque[_Question] = deque()
        self._heard_s = self._loop.time()
        if (writer := connection._writer) is not None:
            # What is written goes out at once, not when all that is ready to run has run.
            writer.transport.set_write_buffer_limits(high=0)
        self._tasks = [
            asyncio.create_task(self._speak(), name="redis-write"),
            asyncio.create_task(self._listen(), name="redis-read"),
            asyncio.create_task(self._mind(), name="redis-mind"),
        ]
        self.is_open = True

    async def ask(self, packed: bytes, count: int) -> list[Any]:
        is_sent = not self._unsent and self._sends_at_once(packed)
        question = _Question(count, self._loop)
        self._asked.append(question)
        if not is_sent:
            self._unsent.append(packed)
            self._more.set()
        return await question.done

    def _sends_at_once(self, packed: bytes) -> bool:
        """Whether the system took it: then Redis has it while we go on with something else."""
        writer = self._connection._writer  # The client library has no other way that need not be waited for.
        if writer is None or writer.is_closing() or writer.transport.get_write_buffer_size():
            return False
        writer.write(packed)
        return True

    def end(self, error: Exception) -> None:
        """Everybody who waits is told; it is not known what became of what they asked."""
        self.is_open = False
        for task in self._tasks:
            task.cancel()
        for question in self._asked:
            if not question.done.done():
                question.done.set_exception(error)
        self._asked.clear()

    async def gone(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.disconnect(nowait=True)

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

    async def _speak(self) -> None:
        try:
            while True:
                await self._more.wait()
                self._more.clear()
                packed, self._unsent = b"".join(self._unsent), []
                if not self._connection.is_connected:
                    # The client library would make a new one by itself, whose answers nobody reads.
                    raise ConnectionError("the connection is gone")
                await self._connection.send_packed_command(packed, check_health=False)
        except Exception as error:
            self.end(_told(error))

    async def _listen(self) -> None:
        try:
            while True:
                self._take(await self._next())
        except Exception as error:
            # Also what no one thought of, like an answer that is no text: a line that nobody reads must not look open.
            self.end(_told(error))
        finally:
            await self._connection.disconnect(nowait=True)

    async def _next(self) -> Any:
        try:
            return await self._connection.read_response(timeout=math.inf)
        except ResponseError as error:
            return error

    def _take(self, answer: Any) -> None:
        if not self._asked:
            raise ConnectionError("an answer that nobody asked for")
        self._heard_s = self._loop.time()
        question = self._asked[0]
        question.answers.append(answer)
        if len(question.answers) == question.count:
            self._asked.popleft()
            if not question.done.done():
                question.done.set_result(question.answers)


def _told(error: Exception) -> Exception:
    return error if isinstance(error, RedisError | OSError) else ConnectionError(f"the line broke: {error!r}")


def _packed(command: Command) -> bytes:
    packed: bytes = hiredis.pack_command(tuple(command))  # type: ignore[arg-type]  # its stub says: one word only
    return packed
