"""The application: every page of `pages` inside the frame, behind the guard."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from nicegui import app as nicegui_app
from nicegui import ui
from starlette.staticfiles import StaticFiles

from paceline.client import Urls
from paceline.dashboard import door
from paceline.dashboard.guarding import VISITOR, Guard, Nonces
from paceline.dashboard.pages import PAGES
from paceline.dashboard.parts.frame import frame
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.visitors import Visitors
from paceline.kits.clock import Clock

STATIC = Path(__file__).parent / "static"
RECONNECT_SECONDS = 20.0
"""A phone that changes its network, or a laptop lid closed for a moment, keeps its page."""


def create_app(urls: Urls, clock: Clock) -> tuple[Guard, Visitors]:
    """Once a process: NiceGUI has one application."""
    visitors = Visitors(clock.now_ms)
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    outer.include_router(door.routes(urls, visitors, clock))
    outer.mount("/static", StaticFiles(directory=STATIC))
    for page in PAGES:
        ui.page(page.path, title=f"{page.title} · Paceline")(_shown(page, visitors))
    # Inside NiceGUI's own layers: what it compresses can no longer be marked.
    nicegui_app.add_middleware(Nonces)
    # Quasar draws a bar over the page at every request, in a colour of its own and without a name for screen readers.
    nicegui_app.config.quasar_config["loadingBar"]["skipHijack"] = True
    ui.run_with(
        outer,
        title="Paceline",
        favicon=STATIC / "mark.svg",
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=RECONNECT_SECONDS,
        show_welcome_message=False,
    )
    return Guard(outer, visitors), visitors


def _shown(page: Page, visitors: Visitors) -> Callable[[Request], Awaitable[None]]:
    async def show(request: Request) -> None:
        params: dict[str, Any] = {**request.path_params}
        visit = Visit(request.scope[VISITOR], visitors, page, params, dict(request.query_params))
        with frame(visit):
            # Also a page that asks for nothing by itself has to notice that its login has ended.
            visit.watch()
            if page.scope and not visit.may(page.scope):
                visit.missing(page.scope)
            else:
                await page.build(visit)

    return show
