"""A TCP proxy before Redis that can lose replies: the command arrives and is executed, the answer never comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.port = 0
        self.drop_reply_to: bytes | None = None
        self.seen: list[bytes] = []
        """What was sent through it, one entry per read."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_unix_connection(self._socket)
        cut = False

        async def answers() -> None:
            while data := await up_reader.read(65_536):
                if cut:
                    break
                writer.write(data)
                await writer.drain()
            writer.close()

        back = asyncio.create_task(answers())
        try:
            while data := await reader.read(65_536):
                self.seen.append(data)
                cut = self.drop_reply_to is not None and self.drop_reply_to in data
                up_writer.write(data)
                await up_writer.drain()
        finally:
            up_writer.close()
            await back

    def count(self, command: bytes) -> int:
        return sum(data.count(command) for data in self.seen)


@asynccontextmanager
async def proxied(socket: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(socket)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield proxy
