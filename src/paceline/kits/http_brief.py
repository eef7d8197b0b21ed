"""Brief requests on a connection: which bytes are one, for certain, and which head is worth keeping for the next.

The parser reads the first request with a head; those that are the same to the byte need it no more, and its state
between two requests is the same whether it has seen them or not. Neighbours: `brief` says what they are,
`http_protocol` has everything else about a connection.
"""

import asyncio
from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from paceline.kits.brief import HEAD_END, Exchange
from paceline.kits.http_cycle import lines_of


class BriefProtocol(HttpToolsProtocol):
    _briefly: Any = None
    """The service, if it answers brief requests."""
    _is_at_start = False
    """What comes next is the beginning of a request, for certain."""
    _begun = _ended = 0
    """Requests of which that came with the last bytes; more than one begun if one ended before."""
    _default: tuple[Any, bytes] = None, b""
    """The headers of every answer, and their lines; of all connections."""
    _idle_until_s: float | None = None
    """Until when the connection may rest between two requests; None while it does not."""
    _idle_timer: asyncio.TimerHandle | None = None
    """One for all its rests: to make and cancel one for each would cost every request."""
    _answered: RequestResponseCycle | None = None
    """The request that is being answered. `cycle` is the newest, which may wait behind it."""
    _is_forwarded = False
    """A proxy said something about the caller of the newest request."""
    _unread = 0
    """Bytes that came since the parser last had something whole to tell: part of a head, or of what follows a body."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        service = self.app.app if isinstance(self.app, ProxyHeadersMiddleware) else self.app
        self._briefly = service if getattr(service, "is_brief", False) else None

    def end_brief(self) -> None:
        if self.pipeline or self._unread or self._idle_timer is None or self.transport.is_closing():
            self.on_response_complete()
            return
        # The same for the one case that is left.
        self.server_state.total_requests += 1
        self._idle_until_s = self.loop.time() + self.timeout_keep_alive

    def default_lines(self) -> bytes:
        headers, lines = BriefProtocol._default
        if headers is not self.server_state.default_headers:
            # uvicorn makes them anew each second.
            headers = self.server_state.default_headers
            lines = lines_of(headers)
            BriefProtocol._default = headers, lines
        return lines

    def scope_of(self, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
        """Of a brief request that has to be told more than its handler knows."""
        # Not that of the parser: it may be reading the next request by now.
        return {
            "type": "http", "asgi": {"version": self.asgi_version, "spec_version": "2.3"}, "http_version": "1.1",
            "server": self.server, "client": self.client, "scheme": self.scheme, "root_path": self.root_path,
            "state": self.app_state.copy(), "method": method, "path": path, "raw_path": path.encode(),
            "query_string": b"", "headers": headers,
        }  # fmt: skip

    def _take_briefly(self, data: bytes) -> bool:
        """Whether it is one whole request, and one that needs no more than its handler."""
        before = self.cycle
        if not before.response_complete or self.pipeline or self.flow.write_paused or self.transport.is_closing():
            return False
        end = data.find(HEAD_END) + len(HEAD_END)
        head = self._briefly.heads.get(data[:end])
        if head is None or len(data) != end + head.length:
            return False
        answered, exchange = self._answered, Exchange(self)
        self.cycle = self._answered = exchange  # type: ignore[assignment]  # it has what a connection needs of one
        if not self._briefly.answer_briefly(head, data[end:], exchange):
            self.cycle, self._answered = before, answered
            return False
        self._idle_until_s = None
        return True

    def _remember(self, data: bytes) -> bool:
        """Whether this was one whole request and nothing else. Its head is then worth keeping, if it is for a hot route
        and says nothing that has to be looked at each time."""
        if self._begun != 1 or self._ended != 1 or self.cycle.scope is not self.scope:
            return False
        end = data.find(HEAD_END) + len(HEAD_END)
        head, headers = data[:end], dict(self.headers)
        # A line may end otherwise for the parser than for us; and who cannot tell how long a body is must not guess.
        if head.count(b"\n") != head.count(b"\r\n") or b"transfer-encoding" in headers:
            return False
        length = int(headers.get(b"content-length", b"0"))
        if len(data) != end + length:
            return False
        if self.cycle.keep_alive and not self.expect_100_continue and not self._is_forwarded:
            self._briefly.remember(head, self.scope, length)
        return True
