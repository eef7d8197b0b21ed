"""A caller that never finishes is let go, one that is only slow between requests is not, and what is no HTTP is told so
in our shape."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from paceline.kits.http_protocol import UNREAD_LIMIT, Protocol

PATIENCE_SECONDS = 20.0


class Quick(Protocol):
    head_seconds = 0.2


class Impatient(Protocol):
    read_seconds = 0.05


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, whatever is still to come; `/echo` with the body, when that is whole."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
    if scope["type"] == "http":
        content, is_more = b"ok", scope["path"] == "/echo"
        while is_more:
            message = await receive()
            content, is_more = content + message.get("body", b""), message.get("more_body", False)
        headers = [(b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def word(self) -> bytes:
        return await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)

    async def bytes_of(self, count: int) -> bytes:
        return await asyncio.wait_for(self._reader.readexactly(count), PATIENCE_SECONDS)

    async def answer(self) -> tuple[int, bytes]:
        head = await self.word()
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return int(head.split()[1]), await self._reader.readexactly(length)

    async def rest(self) -> bytes:
        """Until the other side hangs up."""
        return await asyncio.wait_for(self._reader.read(), PATIENCE_SECONDS)

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    async with connected(app) as opened:
        yield opened


@asynccontextmanager
async def connected(to: Any, protocol: type[Protocol] = Quick, **terms: Any) -> AsyncIterator[Connection]:
    server = uvicorn.Server(uvicorn.Config(to, port=0, http=protocol, lifespan="off", log_config=None, **terms))
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


async def test_one_that_rests_for_too_long_ends() -> None:
    async with connected(app, timeout_keep_alive=1) as resting:
        for _ in range(3):
            await resting.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert await resting.answer() == (200, b"ok")
        assert await resting.rest() == b""


FORWARDED = b"X-Forwarded-For: 192.0.2.7\r\n"


@pytest.mark.parametrize(("forwarded", "told"), [(b"", b"127.0.0.1"), (FORWARDED, b"192.0.2.7")])
async def test_a_proxy_on_the_same_host_says_who_asks(forwarded: bytes, told: bytes) -> None:
    async def telling(scope: Any, _receive: Any, send: Any) -> None:
        content = scope["client"][0].encode()
        headers = [(b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async with connected(telling) as connection:
        for sent, expected in ((forwarded, told), (b"", b"127.0.0.1")):
            await connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + sent + b"\r\n")
            assert await connection.answer() == (200, expected)


async def test_what_is_no_http_is_told_so_in_our_shape(connection: Connection) -> None:
    await connection.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    assert error_of(await connection.answer()) == (400, "INVALID_HTTP")
    assert await connection.rest() == b""


class Wire(asyncio.Transport):
    """Where all that is sent comes in one piece, as it may and seldom does."""

    def __init__(self, *, closes: bool = True) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_read = True
        self._closes = closes

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        pass

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self._closes and bool(self.written)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


async def test_who_never_waits_for_an_answer_is_read_no_faster_than_answered() -> None:
    """Requests in a row are answered one after the other; meanwhile nothing more may come in."""
    config = uvicorn.Config(app, http=Quick, log_config=None)
    protocol, wire = Quick(config, ServerState(), {}), Wire(closes=False)
    protocol.connection_made(wire)
    most, left = 0, 40
    while len(wire.written) < 400:
        if left and wire.is_read:
            protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 10)
            left -= 1
        most = max(most, len(protocol.pipeline))
        await asyncio.sleep(0)
    assert most <= 10
    protocol.connection_lost(None)


async def test_what_is_wrong_and_too_long_is_refused_once() -> None:
    config = uvicorn.Config(app, http=Quick, log_config=None)
    protocol, wire = Quick(config, ServerState(), {}), Wire()
    protocol.connection_made(wire)
    protocol.data_received(b"SSH-2.0-" + b"a" * UNREAD_LIMIT)
    protocol.data_received(b"and more of it")
    assert len(wire.written) == 1


async def test_what_is_wrong_after_the_answer_ends_the_connection_without_a_word(connection: Connection) -> None:
    """uvicorn would fail to answer twice, and log that as a fault of its own."""
    await connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert await connection.answer() == (200, b"ok")
    await connection.send(b"no length\r\n")
    assert await connection.rest() == b""


ECHO = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
CHUNKED = ECHO + b"Transfer-Encoding: chunked\r\n\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"


@pytest.mark.parametrize("cut", [10, 100, 175, 178], ids=["in the line", "in the head", "in the body", "not at all"])
async def test_who_offers_another_protocol_is_answered_in_this_one_with_its_body(
    connection: Connection, cut: int
) -> None:
    """As Java's client does with the first request of every connection. The parser would take the body for the other
    protocol's, and the caller would wait for ever."""
    sent = ECHO + OFFER + b"Content-Length: 3\r\n\r\nabc"
    await connection.send(sent[:cut])
    await asyncio.sleep(0)
    await connection.send(sent[cut:] + ECHO + b"Content-Length: 0\r\n\r\n")
    assert [await connection.answer(), await connection.answer()] == [(200, b"okabc"), (200, b"ok")]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", id="two hosts"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", id="another version"),
        pytest.param(b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", id="another host in the address"),
        pytest.param(b"GET http://b@a/ HTTP/1.1\r\nHost: a\r\n\r\n", id="a name before the host"),
        pytest.param(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", id="a tunnel"),
        pytest.param(ECHO + b"Transfer-Encoding: gzip, chunked\r\n\r\n", id="a packed body"),
        pytest.param(ECHO + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", id="two ways to end"),
    ],
)
async def test_what_could_be_understood_in_two_ways_is_refused(connection: Connection, sent: bytes) -> None:
    await connection.send(sent)
    assert error_of(await connection.answer()) == (400, "INVALID_HTTP")
    assert await connection.rest() == b""


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(b"http://a:1/x%20y?b=c/d", b"/x y b=c/d", id="path and query"),
        pytest.param(b"HTTPS://A:1/", b"/ ", id="in capitals"),
        pytest.param(b"http://a:1", b"/ ", id="no path"),
        pytest.param(b"/x?y=http://a:1/z", b"/x y=http://a:1/z", id="an address in the query"),
        pytest.param(b"ftp://a:1/x", b"ftp://a:1/x ", id="another scheme is no path of ours"),
    ],
)
async def test_who_takes_us_for_a_proxy_is_served_all_the_same(target: bytes, expected: bytes) -> None:
    """RFC 9112 says so: the whole address where others send a path."""

    async def telling(scope: Any, _receive: Any, send: Any) -> None:
        told = scope["path"].encode() + b" " + scope["query_string"]
        headers = [(b"content-length", b"%d" % len(told))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": told})

    async with connected(telling) as connection:
        await connection.send(b"GET " + target + b" HTTP/1.1\r\nHost: a:1\r\n\r\n")
        assert await connection.answer() == (200, expected)


@pytest.mark.parametrize("begun", [b"GET /", ECHO + b"X: "], ids=["line", "head"])
async def test_a_head_that_is_not_whole_after_64_kb_is_a_431(connection: Connection, begun: bytes) -> None:
    await connection.send(begun + b"a" * UNREAD_LIMIT)
    assert error_of(await connection.answer()) == (431, "HEADERS_TOO_LARGE")


async def test_what_stands_behind_a_body_has_the_same_limit(connection: Connection) -> None:
    await connection.send(ECHO + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert await connection.word() == b"HTTP/1.1 100 Continue\r\n\r\n"
    await connection.send(b"0\r\nX: " + b"a" * UNREAD_LIMIT)
    assert error_of(await connection.answer()) == (431, "HEADERS_TOO_LARGE")


async def test_what_stands_behind_a_body_is_left_out(connection: Connection) -> None:
    await connection.send(CHUNKED + b"3\r\nabc\r\n0\r\nX-API-KEY: a\r\n\r\n" + CHUNKED + b"0\r\n\r\n")
    assert [await connection.answer(), await connection.answer()] == [(200, b"okabc"), (200, b"ok")]


async def test_an_answer_that_is_owed_comes_before_the_end_for_what_follows_it(connection: Connection) -> None:
    """Two requests at once, of which the second is none: its refusal must not be taken for the first one's answer."""
    await connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nno request\r\n\r\n")
    assert await connection.answer() == (200, b"ok")
    assert await connection.rest() == b""


async def test_after_the_rest_of_an_answered_body_the_connection_is_kept(connection: Connection) -> None:
    await connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n")
    assert await connection.answer() == (200, b"ok")
    await connection.send(b"the rest")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.rest(), 2 * Quick.head_seconds)


async def test_a_websocket_is_not_held_to_the_time_of_a_head(connection: Connection) -> None:
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    await connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + key + b"\r\n")
    assert (await connection.word()).startswith(b"HTTP/1.1 101 ")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.rest(), 2 * Quick.head_seconds)


@pytest.mark.parametrize("behind", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"], ids=["alone", "with another behind it"])
async def test_a_stream_learns_that_its_caller_is_gone(behind: bytes) -> None:
    """With another request behind it, it did not, and held its place until its own end."""
    asked, is_gone = [], asyncio.Event()

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        is_gone.set()

    async with connected(streaming) as connection:
        await connection.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n" + behind)
        await connection.word()
        connection.close()
        await asyncio.wait_for(is_gone.wait(), PATIENCE_SECONDS)
    assert asked == ["/stream"]


@pytest.mark.parametrize("pieces", [1, 128], ids=["whole", "in pieces"])
@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
async def test_who_never_reads_the_answer_is_let_go(pieces: int, header: bytes) -> None:
    """More of it than the system keeps for them."""
    is_lost = asyncio.Event()

    class Watched(Impatient):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            is_lost.set()

    async def answering(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"%d" % (32 * 2**20))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number in range(pieces):
            await send(
                {"type": "http.response.body", "body": bytes(32 * 2**20 // pieces), "more_body": number < pieces - 1}
            )

    async with connected(answering, Watched) as connection:
        await connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n")
        await asyncio.wait_for(is_lost.wait(), PATIENCE_SECONDS)


ANSWERS: dict[str, list[dict[str, Any]]] = {
    "whole": [{"body": b"abcd"}],
    "in pieces": [{"body": b"ab", "more_body": True}, {"body": b"cd", "more_body": True}, {"body": b""}],
    "too long": [{"body": b"abcde"}],
    "no body": [{}],
}


@pytest.mark.parametrize(
    ("name", "method", "expected"),
    [
        pytest.param("whole", b"GET", b"abcd", id="whole"),
        pytest.param("whole", b"HEAD", b"", id="of which only the head is wanted"),
        pytest.param("in pieces", b"GET", b"abcd", id="in pieces"),
        pytest.param("too long", b"GET", None, id="not as long as it says"),
        pytest.param("no body", b"GET", None, id="without the body it announces"),
    ],
)
async def test_an_answer_comes_as_it_was_given_and_is_never_other_than_its_head_says(
    name: str, method: bytes, expected: bytes | None
) -> None:
    async def answering(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [[b"content-length", b"4"], [b"x-a", b"b"]]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in ANSWERS[name]:
            await send({"type": "http.response.body", **piece})

    async with connected(answering) as connection:
        await connection.send(method + b" / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        closed = await connection.rest()
    async with connected(answering) as connection:
        await connection.send(method + b" / HTTP/1.1\r\nHost: a\r\n\r\n")
        if expected is None:
            assert await connection.rest() == b""
            return
        head = await connection.word()
        assert b"\r\nx-a: b\r\n" in head
        assert await connection.bytes_of(len(expected)) == expected
    assert closed.endswith(b"\r\n\r\n" + expected)
    assert b"connection: close" in closed
