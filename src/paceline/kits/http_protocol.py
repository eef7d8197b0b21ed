"""uvicorn's HTTP/1.1 with what it leaves open: errors in our shape, limits, and an end to callers that never finish.

httptools reads what comes, quickly and leniently; what it takes and we do not is refused here. A request's head must be
there after some seconds, and so must the rest of a body that was answered before it ended. A body that is being read is
minded by `bodies`, an answer that is not by `http_reader`, an idle connection by uvicorn. Neighbours: `http_brief` has
the requests that need no parser, `http` serves with this.
"""

import asyncio
import json
import uuid
from typing import Any
from urllib.parse import unquote

import httptools
import structlog
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from paceline.kits.http_brief import BriefProtocol
from paceline.kits.http_cycle import Cycle
from paceline.kits.http_reader import READ_SECONDS, Reader
from paceline.kits.problem import Problem

log = structlog.stdlib.get_logger(__name__)

HEAD_SECONDS = 30.0
"""As long as a piece of a body may take. Nobody needs it; thousands of half requests would need it all."""
UNREAD_LIMIT = 65_536
"""Unless uvicorn is told another one (`h11_max_incomplete_event_size`; h11 is what it was made for)."""

WHOLE = "paceline_whole"
"""Stands in the scope of a request whose body has come to its end, whether or not anybody has read it."""


class Protocol(BriefProtocol):
    head_seconds = HEAD_SECONDS
    read_seconds = READ_SECONDS
    _reader: Reader
    _owed: asyncio.TimerHandle | None = None
    _is_in_body = False
    """The head was read, the end of its body was not."""
    _is_refused = False
    """What came cannot be read on; what still comes is thrown away."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reader = Reader(transport, self.loop, self.read_seconds)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        # uvicorn tells the newest request alone; a stream before it would go on for nobody.
        self.pipeline.clear()
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)
        self._reader.forget()
        self._stop_watching()
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.expect()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader.forget()

    def data_received(self, data: bytes) -> None:
        if self._is_refused or (self._is_at_start and self._take_briefly(data)):
            return
        self._idle_until_s = None
        self._unread += len(data)
        self._begun = self._ended = 0
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")
        if not self._is_refused and self._unread > (self.config.h11_max_incomplete_event_size or UNREAD_LIMIT):
            self._refuse(Problem(431, "HEADERS_TOO_LARGE", "the URL and the headers are too long", closes=True))
        self._is_at_start = self._briefly is not None and not self._is_refused and self._remember(data)
        self._watch()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun += 2 if self._ended else 1
        self._is_forwarded = False

    def on_header(self, name: bytes, value: bytes) -> None:
        # What stands behind a body is nobody's: the answer may have gone out already.
        if self._is_in_body:
            return
        name, value = name.lower(), value.rstrip(b" \t")
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        elif name.startswith(b"x-forwarded-"):
            self._is_forwarded = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            # Nothing is begun for a request that is read a second time, or goes to another protocol.
            self.scope["method"] = self.parser.get_method().decode("ascii")
            return
        self._unread = 0
        self._check_head()
        target = self._target()
        self._is_in_body = True
        self._begin(target)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._unread, self._is_in_body = 0, False
        self._ended += 1
        self.scope[WHOLE] = True  # type: ignore[literal-required]
        super().on_message_complete()
        if self.cycle.response_complete:
            self._rest()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            else:
                self._rest()
            # uvicorn reads on after each answer; a caller who never waits for one would fill our memory.
            if not self.pipeline:
                self.flow.resume_reading()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Where uvicorn would answer in plain text. Without the parser's own words: they may quote what was sent."""
        self._refuse(Problem(400, "INVALID_HTTP", "this is not a request of HTTP/1.1", closes=True))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _begin(self, target: bytes) -> None:
        raw_path, _, self.scope["query_string"] = target.partition(b"?")
        path = raw_path.decode("ascii")
        self.scope["raw_path"], self.scope["path"] = raw_path, unquote(path) if "%" in path else path
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version = self.parser.get_http_version()
        before = self.cycle
        keeps = version != "1.0" and self.parser.should_keep_alive()
        # By their places: so many names would be a good part of a short request.
        self.cycle = Cycle(
            self.scope, self.transport, self.flow, self.logger, self.access_logger, self.access_log,
            self.server_state.default_headers, asyncio.Event(), self.expect_100_continue, keeps,
            self.on_response_complete,
        )  # fmt: skip
        app = self.app
        if isinstance(app, ProxyHeadersMiddleware) and not self._is_forwarded:
            # It reads what a proxy says of the caller; nobody said anything.
            app = app.app
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, app)
        else:
            # Requests that do not wait for each other's answer are answered one after the other.
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def _target(self) -> bytes:
        """Path and query. Who takes us for a proxy says the host before them, too: the same as beside them."""
        scheme, _, rest = self.url.partition(b"://")
        if scheme.lower() not in (b"http", b"https"):
            return self.url
        host, _, path = rest.partition(b"/")
        if host.lower() != dict(self.headers).get(b"host", b"").lower():
            raise ValueError("another host")
        return b"/" + path

    def _check_head(self) -> None:
        """What the parser lets pass. Each could be understood otherwise by whoever stands between us and the caller."""
        version, hosts = self.parser.get_http_version(), 0
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding" and value.lower() != b"chunked":
                raise ValueError("another transfer encoding")
        if version not in ("1.0", "1.1") or hosts > 1 or (version == "1.1" and not hosts):
            raise ValueError("another version, or not one host")

    def _upgrade(self, rest: bytes) -> None:
        """To WebSockets, for a service that has any. Who offers another protocol may be answered in this one, but the
        parser takes the rest for that protocol's: so the request is read again, without the offer."""
        if self._should_upgrade():
            self.handle_websocket_upgrade()
        elif self.scope["method"] == "CONNECT":
            self.send_400_response("")
        else:
            words = self.scope["method"].encode(), self.url, self.parser.get_http_version().encode()
            kept = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
            self.parser, self._unread = httptools.HttpRequestParser(self), 0
            self.data_received(b"".join([b"%b %b HTTP/%b\r\n" % words, *kept, b"\r\n", rest]))

    def _refuse(self, problem: Problem) -> None:
        """What came cannot be read on. An answer that has begun cannot be taken back, nor may another request's be
        given in its place: then the end of the connection is all that is left to say."""
        self._is_refused = True
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self._is_in_body:
            self.cycle.keep_alive = False
            return
        is_begun = self.cycle.response_started if is_answering else self._is_in_body
        if not is_begun and not self.pipeline:
            self._answer(problem)
        self.transport.close()

    def _answer(self, problem: Problem) -> None:
        body = json.dumps(problem.content()).encode()
        head = (
            b"content-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\nconnection: close\r\n\r\n"
            % (len(body), uuid.uuid4().hex.encode())
        )
        self.transport.write(STATUS_LINE[problem.status] + head + body)

    def _rest(self) -> None:
        """Nothing is owed on either side: the connection is idle, and kept for a while."""
        self._stop_watching()
        if not self.transport.is_closing():
            self._idle_until_s = self.loop.time() + self.timeout_keep_alive
            if self._idle_timer is None:
                self._idle_timer = self.loop.call_at(self._idle_until_s, self._end_idle)

    def _end_idle(self) -> None:
        """It may have begun to rest anew since the timer was set, or be at work."""
        self._idle_timer = None
        if self._idle_until_s is None:
            return
        if self.loop.time() >= self._idle_until_s:
            self.timeout_keep_alive_handler()
        else:
            self._idle_timer = self.loop.call_at(self._idle_until_s, self._end_idle)

    def _watch(self) -> None:
        """Whether the caller owes us bytes that nobody else waits for: a head, or the rest of an answered body."""
        is_between = self.cycle is None or self.cycle.response_complete
        is_resting = self._idle_until_s is not None and not self._unread
        # A WebSocket has left them, and is its own protocol's.
        is_gone = self.transport.is_closing() or self not in self.connections
        if not is_between or is_resting or is_gone:
            self._stop_watching()
        elif self._owed is None:
            self._owed = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_watching(self) -> None:
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _give_up(self) -> None:
        log.info("a caller did not finish its request", seconds=self.head_seconds)
        if not self._is_in_body:
            self._answer(Problem(408, "BODY_TIMEOUT", "the request did not come in time", closes=True))
        self.transport.close()
