"""A service as its callers meet it: every request has an id, a bound for its head and its body, and is watched.

The outermost layer. Behind it are the framework and, for hot routes, `direct` and `brief`. Neighbours: `web` makes one,
`http` serves it.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import structlog
from litestar import Litestar, Request
from litestar.types import ASGIApp, Receive, Send

from paceline.kits.bodies import FREE_BYTES, Bodies, BodyLimits, at_hand
from paceline.kits.brief import HEAD_BYTES, HEAD_LINES, HEADS_KEPT, JSON_LINES, Exchange, Head
from paceline.kits.brief_run import Run
from paceline.kits.clock import stopwatch_s
from paceline.kits.direct import Direct
from paceline.kits.headers import header
from paceline.kits.http_cycle import cycle_of
from paceline.kits.logging import answering
from paceline.kits.problem import Problem
from paceline.kits.web_errors import answer_of

log = structlog.stdlib.get_logger(__name__)
_lines = logging.getLogger(__name__)

HEAD_LIMIT = 65_536
"""A request's first line and headers, in bytes. The text of a job as CSV stands in the query: 4,096 characters of up to
twelve bytes each."""
ANSWER_HEADERS = "paceline_answer_headers"
"""Under this name in the scope a guard leaves headers for the answer, whatever that turns out to be."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Watch = Callable[[str, str, int, float], None]
"""Told of every answer: method, route (its template), status, seconds."""


class Service:
    """Its id is in its answer and in every line that is logged meanwhile."""

    def __init__(self, app: Litestar, direct: Direct) -> None:
        self.litestar = app
        self._direct = direct
        self._app: ASGIApp = app
        self._bodies = Bodies()
        self._methods = _methods_by_path(app)
        self._watch: Watch = lambda _method, _route, _status, _seconds: None
        self.is_brief = direct.is_brief
        """Whether there are brief requests here."""
        self.heads: dict[bytes, Head] = {}
        """Of these, as they came. The callers' keys are in them, so they stay in this process' memory."""

    def watch_with(self, watch: Watch) -> None:
        self._watch = watch

    def hold_to(self, limits: BodyLimits) -> None:
        self._bodies = Bodies(limits)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, out = stopwatch_s(), _Out(scope, send, self._methods)
        with answering(out.request_id):
            await self._answer(scope, receive, out)
            # The route, not the path: a path may hold somebody's number.
            self.answered(scope["method"], scope.get("path_template", ""), out.status, began_s, out.request_id)

    def answered(self, method: str, route: str, status: int, began_s: float, request_id: str) -> None:
        took_s = stopwatch_s() - began_s
        self._watch(method, route, status, took_s)
        # Asked before the line is made: of most requests nobody wants one.
        level = logging.INFO if status >= 400 else logging.DEBUG
        if _lines.isEnabledFor(level):
            about = {"method": method, "route": route, "status": status, "request_id": request_id}
            log.log(level, "request", **about, took_ms=round(took_s * 1000))

    def remember(self, head: bytes, scope: Any, length: int) -> None:
        """The head of a request that came in one piece and is being answered, if one like it may be brief."""
        route = self._direct.route(scope)
        if route is None or route.brief is None or length > FREE_BYTES or len(head) > HEAD_BYTES:
            return
        if len(scope["headers"]) > HEAD_LINES:
            return
        headers = dict(reversed(scope["headers"]))
        is_plain = headers.get(b"content-type") == b"application/json" and not scope["query_string"]
        if not is_plain or b"content-encoding" in headers or b"x-request-id" in headers:
            return
        if (facts := route.brief.facts(headers)) is None:
            return
        if len(self.heads) >= HEADS_KEPT:
            self.heads.clear()
        method, path, status = scope["method"], scope["path"], route.handler.status_code
        self.heads[head] = Head(length, method, path, scope["headers"], status, route.brief, facts)

    def answer_briefly(self, head: Head, body: bytes, exchange: Exchange) -> bool:
        """False if it has to go the long way."""
        began_s, request_id = stopwatch_s(), next(_ids)
        begun = head.route.begin(head.facts, body, request_id)
        if begun is None:
            return False
        Run(self, head, exchange, begun, request_id=request_id, began_s=began_s).step()
        return True

    async def refuse_briefly(self, error: Exception, scope: Any, request_id: str, send: Send) -> None:
        """What the long way answers to such an error."""
        out = _Out(scope, send, self._methods)
        out.request_id = request_id
        await self._direct.refuse(error, scope, _nothing, out)

    async def _answer(self, scope: Any, receive: Receive, out: "_Out") -> None:
        if _head_bytes(scope) > HEAD_LIMIT:
            message = "the URL and the headers are too long"
            problem = Problem(431, "HEADERS_TOO_LARGE", message, details={"limit": HEAD_LIMIT})
            await answer_of(problem).to_asgi_response(None, Request(scope))(scope, receive, out)
            return
        route = self._direct.route(scope)
        if route is not None and (body := at_hand(scope, out.cycle)) is not None:
            await self._direct.answer(route, scope, receive, out, body=body)
            return
        with self._bodies.reading(scope, receive) as reading:
            if route is not None:
                await self._direct.answer(route, scope, reading, out)
            else:
                await self._app(scope, reading, out)


class _Out:
    """The way of an answer, with the headers that every one has."""

    __slots__ = ("_methods", "_scope", "_send", "cycle", "request_id", "status")

    def __init__(self, scope: Any, send: Send, methods: Mapping[str, bytes]) -> None:
        self.request_id = _request_id(scope)
        self.status = 0
        self.cycle = cycle_of(send)
        self._scope = scope
        self._send = send
        self._methods = methods

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            sent = message["headers"]
            if allowed := self._allowed():
                sent = [*(header for header in sent if header[0].lower() != b"allow"), (b"allow", allowed)]
            own = [(b"x-request-id", self.request_id.encode()), (b"x-content-type-options", b"nosniff")]
            message["headers"] = [*sent, *own, *self._scope.get(ANSWER_HEADERS, ())]
        await self._send(message)

    async def whole(self, status: int, content: bytes) -> None:
        """Encoded JSON, in one go where the server is ours."""
        length = b"%d" % len(content)
        if self.cycle is not None:
            lines = JSON_LINES % (len(content), self.request_id.encode())
            if more := self._scope.get(ANSWER_HEADERS):
                lines += b"".join([b"%b: %b\r\n" % header for header in more])
            if self.cycle.answer(status, lines, content):
                self.status = status
                return
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": content, "more_body": False})

    def _allowed(self) -> bytes:
        """What OPTIONS answers. The framework names the methods of one of a path's handlers."""
        asked = self._scope["method"] == "OPTIONS" and self.status == 204
        return self._methods.get(str(self._scope.get("path_template", "")), b"") if asked else b""


async def _nothing() -> Any:
    """All of its body has come."""
    raise RuntimeError("nobody reads a request that is refused")


def _methods_by_path(app: Litestar) -> dict[str, bytes]:
    found: dict[str, set[str]] = {}
    for route in app.routes:
        found.setdefault(route.path_format, set()).update(getattr(route, "methods", ()))
    return {path: ", ".join(sorted(methods)).encode() for path, methods in found.items()}


def _request_id(scope: Any) -> str:
    """The caller's own id, if it is a plausible one, so that both sides' logs can be laid side by side."""
    given = header(scope, b"x-request-id")
    return given if given and _REQUEST_ID.fullmatch(given) else next(_ids)


def _new_ids() -> Iterator[str]:
    """128 bits of chance each, drawn for many at once: the system takes longer to be asked than to answer."""
    while True:
        drawn = os.urandom(16 * 256).hex()
        yield from (drawn[at : at + 32] for at in range(0, len(drawn), 32))


_ids = _new_ids()


def _head_bytes(scope: Any) -> int:
    words = list(chain.from_iterable(scope["headers"]))
    # Two more a word: a colon and a space, a line's end.
    return len(scope.get("raw_path") or b"") + len(scope["query_string"]) + sum(map(len, words)) + 2 * len(words)
