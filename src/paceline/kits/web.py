"""An HTTP service as every one of ours is: one error shape, strict JSON, limits, request ids, its own documentation.

Knows Litestar and nothing of the product. Neighbours: `web_errors` makes answers of errors, `openapi` the document,
`docs_page` draws it as `/docs`, `bodies`, `strict_json` and `queries` mind what comes in, `direct` has the way of hot
routes, `http` serves the application.
"""

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec
import structlog
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, Receive, Send

from paceline.kits import docs_page, openapi, queries, strict_json
from paceline.kits.bodies import Bodies, BodyLimits, at_hand
from paceline.kits.clock import stopwatch_s
from paceline.kits.direct import Direct
from paceline.kits.headers import header
from paceline.kits.http_cycle import cycle_of
from paceline.kits.logging import answering
from paceline.kits.openapi_errors import Catalogue
from paceline.kits.problem import Problem as Problem  # noqa: PLC0414 - those who import `web` need it too
from paceline.kits.web_errors import Translate, answer_of, error_handler

log = structlog.stdlib.get_logger(__name__)
_lines = logging.getLogger(__name__)

MEGABYTE = 1_048_576
BODY_LIMIT = MEGABYTE
"""Far more than any request needs that is not a list of contacts."""

HEAD_LIMIT = 65_536
"""A request's first line and headers, in bytes. The text of a job as CSV stands in the query: 4,096 characters of up to
twelve bytes each."""
JSON = "application/json"
_JSON_LINES = (
    b"content-type: application/json\r\ncontent-length: %b\r\nx-request-id: %b\r\nx-content-type-options: nosniff\r\n"
)
UTF8 = ("utf-8", "utf8", "us-ascii")

ANSWER_HEADERS = "paceline_answer_headers"
"""Under this name in the scope a guard leaves headers for the answer, whatever that turns out to be."""

AnyRequest = Request[Any, Any, Any]
Handler = HTTPRouteHandler
T = TypeVar("T")

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_NAMED_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `(?P<name>[^`]*)`")


Watch = Callable[[str, str, int, float], None]
"""Told of every answer: method, route (its template), status, seconds."""


async def read_body(
    request: AnyRequest,
    kind: type[T],
    *,
    any_text: bool = False,
    part_of: Callable[[bytes, T], strict_json.Part] | None = None,
) -> T:
    """The JSON body as that type. Strict: wrong types, unknown, missing and doubled fields are refused by name, and NUL
    characters unless `any_text`. `part_of` counts the large part of a large body (`strict_json.check`)."""
    if header(request.scope, b"content-type") != JSON:
        _check_type(request)
    body = await request.body()
    decoded = decode(body, kind)
    if strict_json.is_plain(body, kind):
        return decoded
    part = part_of(body, decoded) if part_of and len(body) > strict_json.AT_ONCE_BYTES else None
    await strict_json.check(body, any_text=any_text, part=part)
    return decoded


def _check_type(request: AnyRequest) -> None:
    content_type, parameters = Request[Any, Any, Any](request.scope).content_type
    if content_type != JSON:
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "send JSON with Content-Type: application/json")
    if parameters.get("charset", "utf-8").lower() not in UTF8:
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "send JSON as UTF-8", field="Content-Type")


def decode(body: bytes, kind: type[T], *, inside: str = "") -> T:
    """`inside` names the field that holds this JSON as a string."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        field, message = _field_of(str(error), inside)
        raise Problem(400, "INVALID_REQUEST", message, field=field) from error
    except msgspec.DecodeError as error:
        # Where, and what kind of thing was expected; never what stood there.
        raise Problem(400, "INVALID_JSON", f"the body is not valid JSON: {error}", field=inside or None) from error
    except UnicodeDecodeError as error:
        raise Problem(400, "INVALID_JSON", "the JSON is not UTF-8", field=inside or None) from error
    except RecursionError as error:
        raise Problem(400, "INVALID_JSON", "the JSON is nested too deeply", field=inside or None) from error


def json_answer(content: bytes, status: int) -> Response[bytes]:
    """An answer that is encoded already."""
    return Response(content, status_code=status, media_type=MediaType.JSON)


def create_service(
    *,
    title: str,
    version: str,
    description: str,
    routes: Sequence[Handler],
    translate: Translate,
    reference: openapi.Reference,
    catalogue: Catalogue,
    security_schemes: Mapping[str, SecurityScheme],
) -> "Service":
    """The application with everything around its routes. A route names its body as `opt={"body": SomeStruct}`, and what
    it takes beside JSON as `opt={"text_bodies": {"text/csv": "an example"}}`; one that is no JSON at all as
    `opt={"content": {"multipart/form-data": {"schema": …}}}`. With `"body_optional": True` it may be left out."""

    documents: list[dict[str, Any]] = []
    pages: list[str] = []

    def document(app: Litestar) -> dict[str, Any]:
        """Made when somebody first asks: most processes are never asked."""
        if not documents:
            documents.append(openapi.document(app, reference, catalogue))
        return documents[0]

    @get("/docs", include_in_schema=False, media_type=MediaType.HTML)
    async def docs(request: AnyRequest) -> Response[str]:
        if not pages:
            pages.append(docs_page.render(document(request.app), catalogue.codes))
        return Response(pages[0], headers={"Content-Security-Policy": docs_page.CONTENT_SECURITY_POLICY})

    @get("/openapi.json", include_in_schema=False)
    async def openapi_json(request: AnyRequest) -> dict[str, Any]:
        return document(request.app)

    app = Litestar(
        route_handlers=[*routes, docs, openapi_json],
        guards=[queries.known_only],
        exception_handlers={Exception: error_handler(translate)},
        openapi_config=OpenAPIConfig(
            title=title,
            version=version,
            description=description,
            use_handler_docstrings=True,
            # Litestar's own pages would answer in shapes of their own; ours are `/openapi.json` and `/docs`.
            render_plugins=[JsonRenderPlugin()],
            openapi_router=Router("/.openapi", route_handlers=[], include_in_schema=False, before_request=_hidden),
            components=Components(security_schemes=dict(security_schemes)),
        ),
        request_max_body_size=BODY_LIMIT,
        logging_config=None,
    )
    return Service(app, Direct(app, error_handler(translate)))


class Service:
    """The outermost layer: every request has an id, in its answer and in every line that is logged meanwhile."""

    def __init__(self, app: Litestar, direct: Direct) -> None:
        self.litestar = app
        self._direct = direct
        self._app: ASGIApp = app
        self._bodies = Bodies()
        self._methods = _methods_by_path(app)
        self._watch: Watch = lambda _method, _route, _status, _seconds: None

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
            method, route = scope["method"], scope.get("path_template", "")
            took_s = stopwatch_s() - began_s
            self._watch(method, route, out.status, took_s)
            # Asked before the line is made: of most requests nobody wants one.
            level = logging.INFO if out.status >= 400 else logging.DEBUG
            if _lines.isEnabledFor(level):
                log.log(level, "request", method=method, route=route, status=out.status, took_ms=round(took_s * 1000))

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
            lines = _JSON_LINES % (length, self.request_id.encode())
            if more := self._scope.get(ANSWER_HEADERS):
                lines += b"".join([b"%b: %b\r\n" % header for header in more])
            if self.cycle.answer(status, lines, content):
                self.status = status
                return
        headers = [(b"content-type", JSON.encode()), (b"content-length", length)]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": content, "more_body": False})

    def _allowed(self) -> bytes:
        """What OPTIONS answers. The framework names the methods of one of a path's handlers."""
        asked = self._scope["method"] == "OPTIONS" and self.status == 204
        return self._methods.get(str(self._scope.get("path_template", "")), b"") if asked else b""


def _methods_by_path(app: Litestar) -> dict[str, bytes]:
    found: dict[str, set[str]] = {}
    for route in app.routes:
        found.setdefault(route.path_format, set()).update(getattr(route, "methods", ()))
    return {path: ", ".join(sorted(methods)).encode() for path, methods in found.items()}


def _request_id(scope: Any) -> str:
    """The caller's own id, if it is a plausible one, so that both sides' logs can be laid side by side."""
    given = header(scope, b"x-request-id")
    return given if given and _REQUEST_ID.fullmatch(given) else os.urandom(16).hex()


def _head_bytes(scope: Any) -> int:
    words = list(chain.from_iterable(scope["headers"]))
    # Two more a word: a colon and a space, a line's end.
    return len(scope.get("raw_path") or b"") + len(scope["query_string"]) + sum(map(len, words)) + 2 * len(words)


def _field_of(error: str, inside: str) -> tuple[str | None, str]:
    """The field a msgspec message is about, as a caller would write it: `contacts[3].to`."""
    match = _WHERE.match(error)
    what, path = (match["what"], match["path"] or "") if match else (error, "")
    named = _NAMED_FIELD.match(what)
    parts = [inside, path.removeprefix("."), named["name"] if named else ""]
    return ".".join(part for part in parts if part) or None, what


async def _hidden(_request: AnyRequest) -> None:
    raise NotFoundException
