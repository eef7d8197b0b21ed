"""What every request passes before a page sees it: whose it is, where it comes from, and which headers go back.

A foreign page can make a browser send requests to us, even open a WebSocket. So whatever changes something, and every
socket, must come from a page of ours (`Origin`); and the cookie is `SameSite=Strict` besides.
"""

import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nicegui import Client
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.dashboard.visitors import Visitor, Visitors

VISITOR = "paceline.visitor"
"""Where a request's scope holds its visitor."""
NONCE = "paceline.nonce"
SOCKET = "/_nicegui_ws/"
DOOR = "/login"
OPEN_PATHS = (DOOR, "/health", "/favicon.ico")
OPEN_FOLDERS = ("/static/", "/_nicegui/")
"""Without a login: the door itself, and files that are the same for everybody."""
STRANGERS_BODY = 4_096
"""Bytes: a key and what a form has around it."""
VISITORS_BODY = 65 * 1_048_576
"""The largest file a page takes, and what a form has around it."""
ENDLESS = VISITORS_BODY + 1

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # Nothing is told to others. With no-referrer browsers would not name the origin of our own login form either.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_POLICY = (
    # NiceGUI compiles its templates in the browser, so 'unsafe-eval' is needed, and sets styles of elements. Scripts in
    # a page run only with the nonce of this answer: a script that came in with somebody's text does not.
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def cookie_name(is_https: bool) -> str:
    """Browsers take the longer name only from a secure page of this very host."""
    return "__Host-paceline" if is_https else "paceline"


class Guard:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, visitors: Visitors) -> None:
        self.app = app
        self._visitors = visitors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        visitor = scope[VISITOR] = self._visitors.find(connection.cookies.get(cookie_name(_is_https(scope)), ""))
        scope[NONCE] = secrets.token_urlsafe(16)
        path: str = scope["path"]
        if not _is_ours(connection):
            await _refuse(scope, receive, send, "this request does not come from a page of this dashboard")
        elif path.startswith(SOCKET) and not _is_page_of(connection, visitor):
            await _refuse(scope, receive, send, "log in first")
        elif visitor is None and not _is_open(connection):
            answer = RedirectResponse(DOOR, status_code=303)
            await answer(scope, receive, _with_headers(scope, send))
        elif visitor is None and _body_bytes(connection) > STRANGERS_BODY:
            await _refuse(scope, receive, send, "this is too long for a key", status=413)
        elif _body_bytes(connection) > VISITORS_BODY:
            await _refuse(scope, receive, send, "this file is too large", status=413)
        else:
            if visitor is not None and scope["type"] == "http":
                self._visitors.seen(visitor)
            await self.app(scope, receive, _with_headers(scope, send))


class Nonces:
    """Inside NiceGUI, before anything is compressed: its own scripts get the nonce of this answer.

    What pages hold comes into the HTML as JSON without a `<`, so every tag found here is the template's.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def sending(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_html(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    marked = body.replace(b"<script", b'<script nonce="%s"' % scope[NONCE].encode())
                    MutableHeaders(scope=start)["content-length"] = str(len(marked))
                    await send(start)
                    await send({"type": "http.response.body", "body": marked})

        await self.app(scope, receive, sending)


def _is_html(message: Message) -> bool:
    return MutableHeaders(scope=message).get("content-type", "").startswith("text/html")


def _is_ours(connection: HTTPConnection) -> bool:
    """Reading is free: without our cookie, which a foreign page cannot send along, there is nothing to read."""
    is_socket = connection.scope["type"] == "websocket" or connection.scope["path"].startswith(SOCKET)
    if not is_socket and connection.scope["method"] in ("GET", "HEAD"):
        return True
    origin = connection.headers.get("origin")
    if origin is None:
        # Browsers name the origin of what posts and of every socket; of a socket's plain requests they say this.
        return connection.headers.get("sec-fetch-site") == "same-origin"
    return urlsplit(origin).netloc == connection.headers.get("host", "")


def _is_open(connection: HTTPConnection) -> bool:
    path: str = connection.scope["path"]
    if connection.scope["type"] == "http" and connection.scope["method"] not in ("GET", "HEAD"):
        return path == DOOR
    return path in OPEN_PATHS or path.startswith((*OPEN_FOLDERS, SOCKET))


def _body_bytes(connection: HTTPConnection) -> int:
    """As announced, and the server reads no more than that. A body of unknown length counts as too long."""
    if "transfer-encoding" in connection.headers:
        return ENDLESS
    announced = connection.headers.get("content-length", "0")
    return int(announced) if announced.isascii() and announced.isdigit() else ENDLESS


def _is_page_of(connection: HTTPConnection, visitor: Visitor | None) -> bool:
    """A socket belongs to a page, and a page to one visitor."""
    page = Client.instances.get(parse_qs(connection.url.query).get("client_id", [""])[0])
    return visitor is not None and page is not None and page.request.scope.get(VISITOR) is visitor


def _is_https(scope: Scope) -> bool:
    return scope["scheme"] in ("https", "wss")


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str, *, status: int = 403) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await PlainTextResponse(why, status_code=status)(scope, receive, _with_headers(scope, send))


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Any = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers["Content-Security-Policy"] = _POLICY.format(nonce=scope[NONCE])
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
