"""A stand-in of Telegram's Bot API on a real socket: answers what the test tells it to, and remembers what it was
sent."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

OK = {"ok": True, "result": {"message_id": 1}}


@dataclass
class BotApi:
    port: int = 0
    paths: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    answers: list[tuple[int, Any, dict[str, str]]] = field(default_factory=list)
    """Status, body (bytes as they are) and headers of the next answers; then everything is taken."""
    silent: bool = False
    """Takes the request and never answers."""
    rude: bool = False
    """Hangs up without an answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        return [body["text"] for body in self.bodies]

    def then(self, status: int, body: Any, **headers: str) -> None:
        self.answers.append((status, body, headers))

    def then_too_many(self, seconds: int) -> None:
        self.then(
            429,
            {
                "ok": False,
                "error_code": 429,
                "description": f"Too Many Requests: retry after {seconds}",
                "parameters": {"retry_after": seconds},
            },
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
            body = json.loads(await reader.readexactly(length))
            self.paths.append(head.split(" ")[1])
            self.bodies.append(body)
            if self.silent:
                await reader.read()
            elif not self.rude:
                writer.write(self._answer())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self) -> bytes:
        status, body, headers = self.answers.pop(0) if self.answers else (200, OK, {})
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + content


@asynccontextmanager
async def bot_api() -> AsyncIterator[BotApi]:
    api = BotApi()
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    api.port = server.sockets[0].getsockname()[1]
    try:
        yield api
    finally:
        server.close()
