"""Hot routes: a request for one of them goes to its handler without the framework in between.

The framework's way to a handler (routing, parameters, response objects) is a good part of a short request. A route says
`opt={"direct": True}`; it must take the request alone, have a path without parameters and answer with encoded JSON. Its
guards, its body limit and its place in the documentation are the framework's as ever, and so is every other method
of its path. Neighbour: `web`, which calls this.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Litestar, Request, Response
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import Receive, Send

from paceline.kits.headers import header

OnError = Callable[[Request[Any, Any, Any], Exception], Response[dict[str, Any]]]


class _Route:
    """What the framework knows of a handler, asked once."""

    def __init__(self, handler: HTTPRouteHandler) -> None:
        self.handler = handler
        self.guards: list[Callable[..., Awaitable[None]]] = list(handler.resolve_guards())  # type: ignore[arg-type]
        self.answer: Callable[..., Awaitable[Response[bytes]]] = handler.fn
        self.most_bytes = handler.resolve_request_max_body_size() or math.inf


class _Request(Request[Any, Any, Any]):
    """The framework's, with a shorter way to its body."""

    most_bytes: float

    async def body(self) -> bytes:
        if not isinstance(self._body, bytes):
            announced = header(self.scope, b"content-length") or ""
            if announced.isdigit() and int(announced) > self.most_bytes:
                raise RequestEntityTooLarge
            self._body = await self._received()
        return self._body

    async def _received(self) -> bytes:
        """`bodies` minds the time it takes, and callers that go away."""
        body, is_more = bytearray(), True
        while is_more:
            message: Any = await self.receive()
            body += message["body"]
            is_more = message.get("more_body", False)
            if len(body) > self.most_bytes:
                raise RequestEntityTooLarge
        return bytes(body)


class Direct:
    def __init__(self, app: Litestar, on_error: OnError) -> None:
        self._app = app
        self._on_error = on_error
        self._routes = {
            (method, route.path): _Route(handler)
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if handler.opt.get("direct")
            for method in handler.http_methods
        }

    async def takes(self, scope: Any, receive: Receive, send: Send) -> bool:
        """Answers the request if it is for one of these routes."""
        route = self._routes.get((scope["method"], scope["path"]))
        if route is None:
            return False
        scope["app"] = scope["litestar_app"] = self._app
        scope["route_handler"], scope["path_template"], scope["path_params"] = route.handler, scope["path"], {}
        request = _Request(scope, receive, send)
        request.most_bytes = route.most_bytes
        try:
            content, status = await _answer(route, request)
        except Exception as error:
            await self._on_error(request, error).to_asgi_response(None, request)(scope, receive, send)
        else:
            await _send(content, status, send)
        return True


async def _answer(route: _Route, request: _Request) -> tuple[bytes, int]:
    for guard in route.guards:
        await guard(request, route.handler)
    response = await route.answer(request)
    return response.content, response.status_code or route.handler.status_code


async def _send(content: bytes, status: int, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})
