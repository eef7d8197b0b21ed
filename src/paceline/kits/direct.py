"""Hot routes: a request for one of them goes to its handler without the framework in between.

The framework's way to a handler (routing, parameters, response objects) is a good part of a short request. A route says
`opt={"direct": True}`; it must take the request alone, have a path without parameters and answer with encoded JSON. Its
guards, its body limit and its place in the documentation are the framework's as ever, and so is every other method
of its path. Neighbour: `web`, which calls this.
"""

from collections.abc import Callable
from typing import Any

from litestar import Litestar, Request, Response
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import Receive, Send

OnError = Callable[[Request[Any, Any, Any], Exception], Response[dict[str, Any]]]


class Direct:
    def __init__(self, app: Litestar, on_error: OnError) -> None:
        self._app = app
        self._on_error = on_error
        self._handlers = {
            (method, route.path): handler
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if handler.opt.get("direct")
            for method in handler.http_methods
        }

    async def takes(self, scope: Any, receive: Receive, send: Send) -> bool:
        """Answers the request if it is for one of these routes."""
        handler = self._handlers.get((scope["method"], scope["path"]))
        if handler is None:
            return False
        scope["app"] = scope["litestar_app"] = self._app
        scope["route_handler"], scope["path_template"], scope["path_params"] = handler, scope["path"], {}
        request: Request[Any, Any, Any] = Request(scope, receive, send)
        try:
            content, status = await _answer(handler, request)
        except Exception as error:
            await self._on_error(request, error).to_asgi_response(None, request)(scope, receive, send)
        else:
            await _send(content, status, send)
        return True


async def _answer(handler: HTTPRouteHandler, request: Request[Any, Any, Any]) -> tuple[bytes, int]:
    for guard in handler.resolve_guards():
        await guard(request, handler)  # type: ignore[misc]  # the framework made each of them awaitable
    response: Response[bytes] = await handler.fn(request)
    return response.content, response.status_code or handler.status_code


async def _send(content: bytes, status: int, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})
