"""The probe goes through real proxies: HTTP CONNECT and SOCKS5 with a password, names resolved at the proxy."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from paceline.orchestrator import proxy_checks
from paceline.orchestrator.proxy_checks import probe

TARGET = "there.invalid"
"""No resolver knows it: whoever reached it asked the proxy for the name."""
SECRET = "canary-word"


class FakeProxy:
    """Both protocols on one port. Answers for the target itself, and remembers which name it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuses = False
        self.hangs = False
        self._done = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.hangs:
                await self._done.wait()
            elif (first := await reader.readexactly(1)) == b"\x05":
                await self._socks(reader, writer)
            else:
                await self._http(first + await reader.readuntil(b"\r\n\r\n"), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def end(self) -> None:
        self._done.set()

    async def _http(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        self.asked.append(head.split()[1].decode())
        status = "407 Proxy Authentication Required" if self.refuses else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x05\x02")
        await reader.readexactly(1)
        name = await reader.readexactly((await reader.readexactly(1))[0])
        word = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x01\x01" if self.refuses else b"\x01\x00")
        if self.refuses:
            return
        _, _, _, kind = await reader.readexactly(4)
        assert (name, word, kind) == (b"user", SECRET.encode(), 3), "the name must be resolved at the proxy"
        self.asked.append((await reader.readexactly((await reader.readexactly(1))[0])).decode())
        await reader.readexactly(2)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()


@pytest.fixture
async def proxy() -> AsyncIterator[tuple[FakeProxy, int]]:
    fake = FakeProxy()
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    async with server:
        yield fake, server.sockets[0].getsockname()[1]
        fake.end()


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
async def test_a_good_proxy_is_asked_for_the_name(proxy: tuple[FakeProxy, int], scheme: str) -> None:
    fake, port = proxy
    assert await probe(f"{scheme}://user:{SECRET}@127.0.0.1:{port}", f"http://{TARGET}/") == ""
    assert TARGET in fake.asked[0]


@pytest.mark.parametrize(
    ("scheme", "target", "fault"),
    [
        pytest.param("http", f"http://{TARGET}/", "the proxy answered 407", id="forwarding"),
        pytest.param("http", f"https://{TARGET}/", "the proxy refused", id="CONNECT"),
        pytest.param("socks5h", f"https://{TARGET}/", "the proxy refused", id="SOCKS"),
    ],
)
async def test_a_wrong_password_is_a_fault(proxy: tuple[FakeProxy, int], scheme: str, target: str, fault: str) -> None:
    fake, port = proxy
    fake.refuses = True
    found = await probe(f"{scheme}://user:{SECRET}@127.0.0.1:{port}", target)
    assert found.startswith(fault)
    assert SECRET not in found


async def test_one_that_never_answers(proxy: tuple[FakeProxy, int], monkeypatch: pytest.MonkeyPatch) -> None:
    fake, port = proxy
    fake.hangs = True
    monkeypatch.setattr(proxy_checks, "TIMEOUT_S", 0.2)
    assert await probe(f"http://user:{SECRET}@127.0.0.1:{port}", f"https://{TARGET}/") == "no answer in time"


async def test_one_that_is_not_there() -> None:
    found = await probe(f"socks5h://user:{SECRET}@127.0.0.1:1", f"https://{TARGET}/")
    assert found.startswith("no connection")
    assert SECRET not in found


async def test_what_speaks_no_socks_is_a_fault_and_no_error() -> None:
    """One such line in an upload (an HTTP proxy's port behind socks5h://) ended every round: no proxy was checked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await probe(f"socks5h://user:{SECRET}@127.0.0.1:{port}", f"https://{TARGET}/")
    assert found.startswith("no connection")
    assert SECRET not in found
