"""How the store reaches Redis. Two calls: run a script, or read with plain commands. Nothing else exists.

redis-py repeats a write whose reply was lost; here retries are off, and everything that writes is a script that is
idempotent by id, so the caller may repeat it knowingly. A script that Redis forgot (restart, SCRIPT FLUSH) has not
run: it is sent again.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ConnectionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
)

from paceline.domain.errors import Unavailable
from paceline.store.keys import WAKE_CHANNEL
from paceline.store.scripts import Script
from paceline.store.wire import Command, Wire

TIMEOUT_S = 10.0
BLOCKING = frozenset({"XREAD"})
"""What may wait in Redis, for less than the timeout: it must not keep others waiting."""
WAITING = 64
"""As many may do so at once, each on a connection of its own; a further one waits its turn."""


def topics(message: str) -> list[str]:
    """One wake-up may name several outboxes: `outbox:a,b`."""
    kind, _, names = message.partition(":")
    return [f"{kind}:{name}" for name in names.split(",")] if names else [kind]


class Link(Protocol):
    """What the store needs of Redis. Production has `RedisLink`; the World has one that can crash and lose replies."""

    is_shared: bool
    """Whether many use it at once, on one event loop."""

    async def run(self, script: Script, argument: bytes) -> Any: ...

    async def read(self, *commands: Command) -> list[Any]: ...


class RedisLink:
    is_shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        terms: dict[str, Any] = {
            "socket_connect_timeout": TIMEOUT_S,
            "retry": Retry(NoBackoff(), 0),
            "decode_responses": True,
        }
        self._wire = Wire(aioredis.ConnectionPool.from_url(url, socket_timeout=None, **terms), TIMEOUT_S)
        waiting = aioredis.BlockingConnectionPool.from_url(
            url, max_connections=WAITING, timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S, **terms
        )
        self._waiting = aioredis.Redis(connection_pool=waiting)
        # How the client library shapes answers (INFO as a dictionary).
        self._shapes: dict[Any, Callable[[Any], Any]] = {**self._waiting.response_callbacks}

    async def run(self, script: Script, argument: bytes) -> Any:
        with _translated():
            try:
                (answer,) = await self._wire.call(("EVALSHA", script.sha, 0, argument))
            except NoScriptError:
                (answer,) = await self._wire.call(("EVAL", script.source, 0, argument))
            return answer

    async def read(self, *commands: Command) -> list[Any]:
        with _translated():
            verbs = [str(command[0]) for command in commands]
            if not BLOCKING.isdisjoint(verbs):
                return await self._wait(*commands)
            answers = await self._wire.call(*commands)
        for index, verb in enumerate(verbs):
            if verb in self._shapes:
                answers[index] = self._shapes[verb](answers[index])
        return answers

    async def _wait(self, *commands: Command) -> list[Any]:
        pipeline = self._waiting.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return await pipeline.execute()

    async def time_ms(self) -> int:
        seconds, micros = (await self.read(("TIME",)))[0]
        return int(seconds) * 1000 + int(micros) // 1000

    async def wakes(self) -> AsyncIterator[str]:
        """Every wake-up, for as long as the connection lives. A subscriber waits without a socket timeout."""
        client = aioredis.Redis.from_url(
            self._url, socket_timeout=None, retry=Retry(NoBackoff(), 0), decode_responses=True
        )
        try:
            async with client.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe(WAKE_CHANNEL)
                async for message in pubsub.listen():
                    for topic in topics(message["data"]):
                        yield topic
        except _UNAVAILABLE as error:
            raise Unavailable("the wake-up channel is gone") from error
        finally:
            await client.aclose()

    async def close(self) -> None:
        await self._wire.close()
        await self._waiting.aclose()


_UNAVAILABLE = (
    ConnectionError,
    TimeoutError,
    BusyLoadingError,
    OutOfMemoryError,
    ReadOnlyError,
    OSError,
    asyncio.TimeoutError,
)
_REFUSED = re.compile(r"(^|-)(OOM|MISCONF|BUSY|READONLY|MASTERDOWN|NOREPLICAS|LOADING) ")
"""A full memory or disk, and the like. Redis 6.2 wraps what stopped a script into an error of its own, as text."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _UNAVAILABLE as error:
        raise Unavailable(f"Redis does not answer: {type(error).__name__}") from error
    except ResponseError as error:
        raise refusal(str(error)) from error


def refusal(words: str) -> Exception:
    """What an error that Redis answered with means."""
    found = _REFUSED.search(words)
    return Unavailable(f"Redis refuses: {found[2]}") if found else ResponseError(words)


__all__ = ["Command", "Link", "RedisError", "RedisLink"]
