"""The platform of the contract tests, and both kinds of client for it: one test says what both must do.

`async` asks the application in this process; `sync` asks it over a real socket, from a thread.
"""

import asyncio
import contextlib
import inspect
import random
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import uvicorn

from contract.conftest import contract_redis, platform  # noqa: F401 - fixtures
from contract.platform import ADMIN_KEY, Platform
from paceline.client import AsyncPaceline, Paceline
from paceline.client.talking import Outside


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """The application on a socket of its own; its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        # Whoever connects before the server is up waits in the backlog.
        listener.listen()
        server = _Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await task


@dataclass
class Naps:
    """Instead of sleeping: remembers how long it would have been."""

    seconds: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    async def asleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def outside(**more: Any) -> Outside:
    return Outside(rng=random.Random(1), **more)


class Client:
    """Either client, asked in the same way: `await c(c.api.jobs.get, job_id)`, `await c.all(c.api.jobs.each())`."""

    def __init__(self, api: Any) -> None:
        self.api = api

    async def __call__(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if inspect.iscoroutinefunction(method):
            return await method(*args, **kwargs)
        return await asyncio.to_thread(method, *args, **kwargs)

    async def all(self, found: Any) -> list[Any]:
        if hasattr(found, "__aiter__"):
            return [item async for item in found]
        return await asyncio.to_thread(list, found)

    async def first(self, found: Any, number: int) -> list[Any]:
        """So many of what has no end."""
        if hasattr(found, "__aiter__"):
            items = [await anext(found) for _ in range(number)]
            await found.aclose()
            return items
        items = [await asyncio.to_thread(next, found) for _ in range(number)]
        found.close()
        return items


@pytest.fixture(params=["async", "sync"])
async def c(request: pytest.FixtureRequest, platform: Platform) -> AsyncIterator[Client]:  # noqa: F811
    naps = Naps()
    if request.param == "async":
        transport = httpx.ASGITransport(platform.services["gateway"])
        async with AsyncPaceline("http://paceline", ADMIN_KEY, transport=transport, sleep=naps.asleep) as api:
            yield Client(api)
        return
    async with serving(platform.services["gateway"]) as url:
        with Paceline(url, ADMIN_KEY, sleep=naps.sleep) as blocking:
            yield Client(blocking)
