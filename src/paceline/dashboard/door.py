"""Login and logout: plain HTML that works before anything else does.

A key is tried at the gateway, which says what it may do. Tries that fail are counted for each address and for all:
against guessing stands the length of the keys, this bounds the noise.
"""

from html import escape
from typing import Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from paceline.client import PacelineError, Refused, Unauthorized, Urls
from paceline.dashboard.guarding import NONCE, VISITOR, cookie_name
from paceline.dashboard.visitors import Visitor, Visitors, ask_with
from paceline.kits.clock import Clock
from paceline.kits.logging import register_secret
from paceline.kits.ratelimit import Meter

TRIES_PER_MINUTE = 10
"""A person with a password manager needs one."""
ALL_TRIES_PER_MINUTE = 120
ADDRESSES_METERED = 1_000
KEY_LIMIT = 512

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · Paceline</title>
<link rel="icon" href="/static/mark.svg">
<link rel="stylesheet" href="/static/paceline.css">
<script src="/static/theme.js"></script>
</head>
<body class="door">
<main class="door-card">
<p class="brand"><img src="/static/mark.svg" alt="" width="28" height="28">Paceline</p>
<h1>Log in</h1>
{word}
<form method="post" action="/login">
<label for="key">API key</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus maxlength="{limit}"
 aria-describedby="hint">
<button class="button button--main" type="submit">Log in</button>
<p id="hint" class="hint">What the key may do decides what you see. On the machine that runs
<code>paceline up</code> it is in <code>data/api-key</code>, of the demo in <code>data/demo/api-key</code>.</p>
</form>
</main>
</body>
</html>
"""


def routes(urls: Urls, visitors: Visitors, clock: Clock) -> APIRouter:
    router = APIRouter()
    meter = Meter(ADDRESSES_METERED)

    @router.get("/login")
    async def show(request: Request, ended: str = "") -> Response:
        if request.scope[VISITOR] is not None:
            return RedirectResponse("/", status_code=303)
        return _page(request, _ENDINGS.get(ended, ""))

    @router.post("/login")
    async def login(request: Request, key: str = Form("", max_length=KEY_LIMIT)) -> Response:
        tries = Tries(meter, request, clock.now_ms())
        if not tries.allowed:
            return _page(request, "Too many tries. Wait a minute.", status=429)
        if not (key.strip() and key.isascii() and key.isprintable()):
            tries.count()
            return _page(request, "This is not a valid key.", status=401)
        api = ask_with(urls, key.strip())
        try:
            own = await api.keys.own()
        except PacelineError as error:
            tries.count()
            await api.close()
            return _page(request, *_refusal(error))
        # Only now: what anybody may post must not fill a list.
        register_secret(key.strip())
        visitor = Visitor(api, own.key_id, own.name, frozenset(own.scopes), clock.now_ms())
        await visitors.welcome(visitor)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(value=visitor.token, **_cookie(request))
        return answer

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        visitor: Visitor | None = request.scope[VISITOR]
        if visitor is not None:
            await visitors.end(visitor, "logout")
        answer = RedirectResponse("/login?ended=logout", status_code=303)
        answer.delete_cookie(**_cookie(request))
        return answer

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return router


_ENDINGS = {
    "logout": "You are logged out.",
    "key": "The key is no longer valid: it was revoked or has expired.",
    "idle": "You were logged out, because nobody looked for eight hours.",
    "room": "You were logged out, because others needed the room.",
    "stopped": "The dashboard was started again. Log in once more.",
}


def _cookie(request: Request) -> dict[str, Any]:
    is_https = request.url.scheme == "https"
    return {"key": cookie_name(is_https), "path": "/", "httponly": True, "samesite": "strict", "secure": is_https}


def _page(request: Request, word: str = "", status: int = 200) -> Response:
    told = f'<p class="door-word" role="alert">{escape(word)}</p>' if word else ""
    page = _PAGE.format(word=told, limit=KEY_LIMIT).replace("<script", f'<script nonce="{request.scope[NONCE]}"')
    return HTMLResponse(page, status_code=status)


class Tries:
    """Those that failed, from this address and from all; whoever has a key is not counted."""

    def __init__(self, meter: Meter, request: Request, now_ms: int) -> None:
        address = request.client.host if request.client else ""
        asked = [(address, TRIES_PER_MINUTE), ("*", ALL_TRIES_PER_MINUTE)]
        self._meter = meter
        self._verdicts = [(name, meter.ask(name, per_minute, now_ms)) for name, per_minute in asked]

    @property
    def allowed(self) -> bool:
        return all(verdict.allowed for _, verdict in self._verdicts)

    def count(self) -> None:
        for name, verdict in self._verdicts:
            self._meter.count(name, verdict)


def _refusal(error: PacelineError) -> tuple[str, int]:
    if isinstance(error, Unauthorized):
        return f"The gateway says: {error.message}.", 401
    if isinstance(error, Refused):
        return f"The gateway says: {error.message}.", 502
    return "The gateway does not answer. Is it running? Try again in a moment.", 502
