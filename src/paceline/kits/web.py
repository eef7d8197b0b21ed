"""An HTTP service as every one of ours is: one error shape, strict JSON, limits, request ids, its own documentation.

Knows Litestar and nothing of the product: what an error of the product means over HTTP, a `translate` function tells.
Neighbours: `docs_page` draws `/docs`, `http` serves the application.
"""

import re
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import structlog
from litestar import Litestar, MediaType, Request, Response, Router, get
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from paceline.kits import docs_page
from paceline.kits.clock import monotonic_ms

log = structlog.stdlib.get_logger(__name__)

MEGABYTE = 1_048_576
BODY_LIMIT = MEGABYTE
"""Far more than any request needs that is not a list of contacts."""

ANSWER_HEADERS = "paceline_answer_headers"
"""Under this name in the scope a guard leaves headers for the answer, whatever that turns out to be."""

AnyRequest = Request[Any, Any, Any]
Handler = HTTPRouteHandler
T = TypeVar("T")

_CODES = {
    400: "INVALID_REQUEST",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "BODY_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    500: "INTERNAL",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_MISSING_PARAMETER = re.compile(r"Missing required \w+ parameter '(?P<name>[^']+)'")
_NAMED_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `(?P<name>[^`]*)`")


class Problem(Exception):
    """An error as a caller sees it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = {**({"field": field} if field else {}), **(details or {})}
        self.retry_after_seconds = retry_after_seconds


Translate = Callable[[Exception], Problem | None]


async def read_body(request: AnyRequest, kind: type[T]) -> T:
    """The JSON body as that type. Strict: wrong types, unknown and missing fields are refused by name."""
    content_type, _ = request.content_type
    if content_type != "application/json":
        raise Problem(415, "UNSUPPORTED_MEDIA_TYPE", "send JSON with Content-Type: application/json")
    return decode(await request.body(), kind)


def decode(body: bytes, kind: type[T], *, inside: str = "") -> T:
    """`inside` names the field that holds this JSON as a string."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        field, message = _field_of(str(error), inside)
        raise Problem(400, "INVALID_REQUEST", message, field=field) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "INVALID_JSON", "the body is not valid JSON", field=inside or None) from error
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
    error_codes: Mapping[str, str],
) -> "Service":
    """The application with everything around its routes. A route names its body as `opt={"body": SomeStruct}`, and what
    it takes beside JSON as `opt={"text_bodies": {"text/csv": "an example"}}`; one that is no JSON at all as
    `opt={"content": {"multipart/form-data": {"schema": …}}}`."""

    pages: list[str] = []

    @get("/docs", include_in_schema=False, media_type=MediaType.HTML)
    async def docs(request: AnyRequest) -> Response[str]:
        if not pages:
            pages.append(docs_page.render(_openapi(request.app), error_codes))
        return Response(pages[0], headers={"Content-Security-Policy": docs_page.CONTENT_SECURITY_POLICY})

    @get("/openapi.json", include_in_schema=False)
    async def openapi(request: AnyRequest) -> dict[str, Any]:
        return _openapi(request.app)

    app = Litestar(
        route_handlers=[*routes, docs, openapi],
        exception_handlers={Exception: _error_handler(translate)},
        openapi_config=OpenAPIConfig(
            title=title,
            version=version,
            description=description,
            use_handler_docstrings=True,
            # Litestar's own pages would answer in shapes of their own; ours are `/openapi.json` and `/docs`.
            render_plugins=[JsonRenderPlugin()],
            openapi_router=Router("/.openapi", route_handlers=[], include_in_schema=False, before_request=_hidden),
            components=Components(
                security_schemes={
                    "apiKey": SecurityScheme(type="apiKey", name="X-API-KEY", security_scheme_in="header"),
                }
            ),
        ),
        request_max_body_size=BODY_LIMIT,
        logging_config=None,
    )
    return Service(app)


class Service:
    """The outermost layer: every request has an id, in its answer and in every line that is logged meanwhile."""

    def __init__(self, app: Litestar) -> None:
        self.litestar = app
        self._app: ASGIApp = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            await self._answer(request_id, scope, receive, send)

    async def _answer(self, request_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        started_ms, status = monotonic_ms(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]
                message["headers"] = [*message["headers"], *headers, *scope.get(ANSWER_HEADERS, ())]  # type: ignore[misc]
            await send(message)

        await self._app(scope, receive, sending)
        # The route, not the path: a path may hold somebody's number.
        route = scope.get("path_template", "")
        write = log.info if status >= 400 else log.debug
        write("request", method=scope["method"], route=route, status=status, took_ms=monotonic_ms() - started_ms)  # type: ignore[typeddict-item]


def _request_id(scope: Scope) -> str:
    """The caller's own id, if it is a plausible one, so that both sides' logs can be laid side by side."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value.decode("latin-1")):
            return value.decode("latin-1")
    return uuid.uuid4().hex


def _error_handler(translate: Translate) -> Callable[[AnyRequest, Exception], Response[dict[str, Any]]]:
    def handle(_request: AnyRequest, error: Exception) -> Response[dict[str, Any]]:
        problem = error if isinstance(error, Problem) else translate(error)
        if problem is not None:
            return _answer_of(problem)
        if isinstance(error, HTTPException) and error.status_code < 500:
            return _answer_of(_framework_problem(error), error.headers)
        # Without the error's own words: they may hold what a caller sent us.
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("request failed", error=type(error).__name__, where=where)
        return _answer_of(Problem(500, "INTERNAL", "something went wrong on our side; the request id tells us what"))

    return handle


def _framework_problem(error: HTTPException) -> Problem:
    code = _CODES.get(error.status_code, "INVALID_REQUEST")
    if isinstance(error, ValidationException) and isinstance(error.extra, list) and error.extra:
        first = error.extra[0]
        return Problem(400, code, str(first.get("message", "")), field=str(first.get("key", "")))
    if missing := _MISSING_PARAMETER.match(error.detail):
        return Problem(400, code, f"the parameter {missing['name']!r} is missing", field=missing["name"])
    messages = {404: "there is no such path", 405: "this path does not take that method", 413: "the body is too large"}
    return Problem(error.status_code, code, messages.get(error.status_code, "the request cannot be read"))


def _answer_of(problem: Problem, headers: Mapping[str, str] | None = None) -> Response[dict[str, Any]]:
    error: dict[str, Any] = {"code": problem.code, "message": problem.message, "details": problem.details}
    headers = dict(headers or {})
    if problem.retry_after_seconds is not None:
        error["retryAfterSeconds"] = problem.retry_after_seconds
        headers["Retry-After"] = str(problem.retry_after_seconds)
    if problem.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="paceline"'
    return Response({"error": error}, status_code=problem.status, headers=headers, media_type=MediaType.JSON)


def _field_of(error: str, inside: str) -> tuple[str | None, str]:
    """The field a msgspec message is about, as a caller would write it: `contacts[3].to`."""
    match = _WHERE.match(error)
    what, path = (match["what"], match["path"] or "") if match else (error, "")
    named = _NAMED_FIELD.match(what)
    parts = [inside, path.removeprefix("."), named["name"] if named else ""]
    return ".".join(part for part in parts if part) or None, what


async def _hidden(_request: AnyRequest) -> None:
    raise NotFoundException


def _openapi(app: Litestar) -> dict[str, Any]:
    """Litestar's document with the bodies that we decode ourselves added to it."""
    known = getattr(app.state, "openapi", None)
    if known is not None:
        return known  # type: ignore[no-any-return]
    document = app.openapi_schema.to_schema()
    bodies: dict[tuple[str, str], Any] = {}
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for route in app.routes:
        for handler in getattr(route, "route_handlers", ()):
            for method in getattr(handler, "http_methods", ()):
                if "content" in handler.opt:
                    request_body = {"required": True, "content": handler.opt["content"]}
                    document["paths"][route.path_format][method.lower()]["requestBody"] = request_body
                if "body" in handler.opt:
                    bodies[route.path_format, method.lower()] = handler.opt["body"]
                    texts[route.path_format, method.lower()] = handler.opt.get("text_bodies", {})
    kinds = list(dict.fromkeys(bodies.values()))
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    document.setdefault("components", {}).setdefault("schemas", {}).update(components)
    for (path, method), kind in bodies.items():
        content: dict[str, Any] = {"application/json": {"schema": schemas[kinds.index(kind)]}}
        for media_type, example in texts[path, method].items():
            content[media_type] = {"schema": {"type": "string"}, "example": example}
        document["paths"][path][method]["requestBody"] = {"required": True, "content": content}
    app.state.openapi = document
    return document
