"""An HTTP caller that keeps to no rule: it sends the bytes it is told to, stops when it is answered, never waits long.

Neighbours: `hostile.py` has what it sends, `platform.py` whom it sends it to.
"""

import http.client
import io
import json
import select
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

PATIENCE_SECONDS = 30.0
"""After this a request hangs, which is what these tests are about: no answer takes a second."""
PIECE = 262_144


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """In our one shape."""
        assert self.headers["content-type"].startswith("application/json"), (self.status, self.body[:200])
        content = json.loads(self.body)
        assert set(content) == {"error"}, content
        error: dict[str, Any] = content["error"]
        assert {"code", "message", "details"} <= set(error), error
        assert set(error) <= {"code", "message", "details", "retryAfterSeconds"}, error
        assert error["code"], error
        assert error["message"], error
        return error


def head(method: str, target: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: paceline", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def pieces_of(body: bytes) -> Iterable[bytes]:
    return (body[at : at + PIECE] for at in range(0, len(body), PIECE))


def chunked(pieces: Iterable[bytes]) -> Iterable[bytes]:
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def exchange(url: str, pieces: Iterable[bytes]) -> Answer:
    """One connection: send until there is an answer or nothing more to send, then read the answer."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS) as connection:
        for piece in pieces:
            if not _send(connection, piece):
                break
        response = http.client.HTTPResponse(connection)
        response.begin()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def _send(connection: socket.socket, piece: bytes) -> bool:
    """False as soon as an answer has come, or the other side has hung up."""
    view, until = memoryview(piece), time.monotonic() + PATIENCE_SECONDS
    while view:
        readable, writable, _ = select.select([connection], [connection], [], until - time.monotonic())
        if readable:
            return False
        assert writable, "nothing was read for too long"
        try:
            view = view[connection.send(view) :]
        except ConnectionError:
            return False
    return True


def memory_of(pid: int) -> tuple[int, int]:
    """What the process takes now and what it took at most since `forget_peak`, in bytes."""
    with open(f"/proc/{pid}/status") as status:
        found = dict(line.split(":", 1) for line in cast("io.TextIOWrapper", status))
    return tuple(int(found[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]


def forget_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")
