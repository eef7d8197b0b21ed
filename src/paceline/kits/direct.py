"""Hot routes: a request for one of them goes to its handler without the framework in between.

The framework's way to a handler (routing, parameters, request and response objects) is a good part of a short request.
A route says `opt={"direct": answer}`, a function that takes the request and gives its answer as encoded JSON; its path
has no parameters. Its guards, its body limit, its status and its place in the documentation are the framework's as
ever, and so is every other method of its path. With `opt={"brief": …}` too, requests with nothing special about them
have a shorter way still (`brief`). Neighbour: `web`, which calls this.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from litestar import Litestar, Request, Response
from litestar.exceptions.http_exceptions import RequestEntityTooLarge
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import Receive

from paceline.kits import queries
from paceline.kits.brief import BriefRoute
from paceline.kits.headers import header

OnError = Callable[[Request[Any, Any, Any], Exception], Response[dict[str, Any]]]


class Out(Protocol):
    """Where an answer goes: message by message, as ASGI has it, or whole."""

    async def __call__(self, message: Any) -> None: ...

    async def whole(self, status: int, content: bytes) -> None: ...


class Route:
    """What the framework knows of a handler, asked once."""

    def __init__(self, handler: HTTPRouteHandler) -> None:
        self.handler = handler
        self.guards: list[Callable[..., Awaitable[None]]] = list(handler.resolve_guards())  # type: ignore[arg-type]
        self.answer: Callable[[Asked], Awaitable[bytes]] = handler.opt["direct"]
        self.most_bytes = handler.resolve_request_max_body_size() or math.inf
        self.brief: BriefRoute | None = handler.opt.get("brief")


class Asked:
    """A request: what guards and handlers of such routes need of the framework's, under the same names."""

    __slots__ = ("_body", "_most_bytes", "_receive", "scope")

    def __init__(self, scope: Any, receive: Receive, most_bytes: float, body: bytes | None) -> None:
        """`body` is the whole of it, if it is at hand."""
        self.scope = scope
        self._receive = receive
        self._most_bytes = most_bytes
        self._body = body

    @property
    def auth(self) -> Any:
        return self.scope["auth"]

    async def body(self) -> bytes:
        if self._body is None:
            announced = header(self.scope, b"content-length") or ""
            if announced.isdigit() and int(announced) > self._most_bytes:
                raise RequestEntityTooLarge
            self._body = await self._received()
        elif len(self._body) > self._most_bytes:
            raise RequestEntityTooLarge
        return self._body

    async def _received(self) -> bytes:
        """`bodies` minds the time it takes, and callers that go away."""
        body, is_more = bytearray(), True
        while is_more:
            message: Any = await self._receive()
            body += message["body"]
            is_more = message.get("more_body", False)
            if len(body) > self._most_bytes:
                raise RequestEntityTooLarge
        return bytes(body)


class Direct:
    def __init__(self, app: Litestar, on_error: OnError) -> None:
        self._app = app
        self._on_error = on_error
        self._routes = {
            (method, route.path): Route(handler)
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if handler.opt.get("direct")
            for method in handler.http_methods
        }

    @property
    def is_brief(self) -> bool:
        """Whether any of them has the shorter way."""
        return any(route.brief is not None for route in self._routes.values())

    def route(self, scope: Any) -> Route | None:
        return self._routes.get((scope["method"], scope["path"]))

    async def answer(self, route: Route, scope: Any, receive: Receive, out: Out, *, body: bytes | None = None) -> None:
        scope["route_handler"], scope["path_template"] = route.handler, scope["path"]
        asked = Asked(scope, receive, route.most_bytes, body)
        try:
            for guard in route.guards:
                await guard(asked, route.handler)
            await queries.check(asked)
            content = await route.answer(asked)
        except Exception as error:
            await self.refuse(error, scope, receive, out)
        else:
            await out.whole(route.handler.status_code, content)

    async def refuse(self, error: Exception, scope: Any, receive: Receive, out: Out) -> None:
        scope["app"] = scope["litestar_app"] = self._app
        scope["path_params"] = {}
        request: Request[Any, Any, Any] = Request(scope, receive, out)
        await self._on_error(request, error).to_asgi_response(None, request)(scope, receive, out)
