"""A caller that never finishes is let go, one that is only slow between requests is not, and what is no HTTP is told so
in our shape."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from paceline.kits.http_protocol import Protocol

PATIENCE_SECONDS = 20.0


class Quick(Protocol):
    head_seconds = 0.2


async def app(scope: Any, _receive: Any, send: Any) -> None:
    """Answers at once, whatever is still to come."""
    if scope["type"] == "http":
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return int(head.split()[1]), await self._reader.readexactly(length)

    async def rest(self) -> bytes:
        """Until the other side hangs up."""
        return await asyncio.wait_for(self._reader.read(), PATIENCE_SECONDS)

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=Quick, lifespan="off", log_config=None))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup()
    port = server.servers[0].sockets[0].getsockname()[1]
    opened = Connection(*await asyncio.open_connection("127.0.0.1", port))
    yield opened
    opened.close()
    server.should_exit = True
    await server.shutdown()


def error_of(answer: tuple[int, bytes]) -> tuple[int, str]:
    content = json.loads(answer[1])
    assert content["error"]["message"]
    assert content["error"]["details"] == {}
    return answer[0], content["error"]["code"]


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "], ids=["nothing", "a line", "a head"]
)
async def test_a_head_that_never_ends_is_a_408_and_the_connection_ends(connection: Connection, begun: bytes) -> None:
    await connection.send(begun)
    assert error_of(await connection.answer()) == (408, "BODY_TIMEOUT")
    assert await connection.rest() == b""


async def test_the_rest_of_a_body_that_was_answered_already_is_waited_for_a_while_only(connection: Connection) -> None:
    await connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
    assert await connection.answer() == (200, b"ok")
    await connection.send(b"some of it")
    assert await connection.rest() == b""


async def test_a_connection_between_two_requests_is_kept(connection: Connection) -> None:
    """Longer than a head may take: how long, the time for idle connections says."""
    for _ in range(2):
        await connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await connection.answer() == (200, b"ok")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.rest(), 2 * Quick.head_seconds)


async def test_what_is_no_http_is_told_so_in_our_shape(connection: Connection) -> None:
    await connection.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    assert error_of(await connection.answer()) == (400, "INVALID_HTTP")
    assert await connection.rest() == b""


async def test_what_is_wrong_after_the_answer_ends_the_connection_without_a_word(connection: Connection) -> None:
    """uvicorn would fail to answer twice, and log that as a fault of its own."""
    await connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert await connection.answer() == (200, b"ok")
    await connection.send(b"no length\r\n")
    assert await connection.rest() == b""
