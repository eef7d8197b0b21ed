"""A customer's receiver on this machine: real sockets, answers as the test says, remembers what came."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from standardwebhooks.webhooks import Webhook


@dataclass
class Call:
    headers: dict[str, str]
    body: bytes

    def verified(self, secret: str) -> dict[str, object]:
        """The body, if the reference library accepts its signature. It compares with the real clock."""
        found: dict[str, object] = Webhook(secret).verify(self.body, self.headers)
        return found


@dataclass
class Receiver:
    port: int = 0
    statuses: list[int] = field(default_factory=list)
    """What it answers, one after the other; then 200."""
    extra: str = ""
    """Further header lines of its answers."""
    calls: list[Call] = field(default_factory=list)
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    """While this is clear it takes a request and answers nothing."""

    def __post_init__(self) -> None:
        self.hold.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"

    def ids(self) -> list[str]:
        return [call.headers["webhook-id"] for call in self.calls]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")[1:-2]
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.calls.append(Call(headers, body))
            await self.hold.wait()
            status = self.statuses.pop(0) if self.statuses else 200
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Length: 2\r\n{self.extra}Connection: close\r\n\r\nok".encode()
            )
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.close()
        await server.wait_closed()
