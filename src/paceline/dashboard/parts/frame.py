"""What stands around every page: the menu, the heading, who is logged in."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nicegui import context, ui

from paceline.dashboard.parts.icons import icon
from paceline.dashboard.parts.text import text

if TYPE_CHECKING:
    from paceline.dashboard.parts.page import Visit

HEAD = """
<link rel="stylesheet" href="/static/paceline.css">
<link rel="stylesheet" href="/static/work.css">
<script src="/static/theme.js"></script>
"""


@contextmanager
def frame(visit: "Visit") -> Iterator[None]:
    ui.add_head_html(HEAD)
    _menu(visit)
    with ui.element("div").classes("page").props('id="content" tabindex="-1"'):
        yield


class Heading(ui.element):
    """The page's one `h1`; what is put inside stands at its right."""

    def __init__(self, title: str, lead: str = "") -> None:
        with ui.element("div").classes("page-head"):
            with ui.element("div"):
                self.title = text("h1", title).props('dir="auto"')
                self.lead = text("p", lead, "lead").props('dir="auto"')
            super().__init__("div")
            self.classes("page-tools")


def heading(title: str, *, lead: str = "") -> Heading:
    return Heading(title, lead)


def _menu(visit: "Visit") -> None:
    # Imported late: the list of pages needs the parts, and this part needs the list.
    from paceline.dashboard.pages import PAGES

    layout = context.client.layout
    with ui.element("a").props('href="#content"').classes("skip") as skip:
        text("span", "Skip to the content")
    with ui.element("nav").props('aria-label="Main"').classes("menu") as menu:
        with ui.element("a").props('href="/"').classes("brand"):
            ui.element("img").props('src="/static/mark.svg" alt="" width="24" height="24"')
            text("span", "Paceline")
        with ui.element("ul").classes("menu-list"):
            for page in PAGES:
                if page.icon:
                    lit = page.path in (visit.page.path, visit.page.under)
                    current = 'aria-current="page"' if lit else ""
                    with ui.element("li"), ui.element("a").props(f'href="{page.path}" {current}'):
                        icon(page.icon)
                        text("span", page.title)
        with ui.element("div").classes("menu-foot"):
            _foot(visit)
    skip.move(layout, target_index=0)
    menu.move(layout, target_index=1)


def _foot(visit: "Visit") -> None:
    who = visit.visitor
    with ui.element("div").classes("menu-who"):
        text("span", who.key_name).props('dir="auto"')
        text("span", ", ".join(scope for scope in ("admin", "send", "read") if scope in who.scopes), "quiet")
    with (
        ui.element("button").props('type="button" data-theme-switch aria-label="Light or dark"').classes("icon-button")
    ):
        icon("theme")
    with (
        ui.element("form").props('method="post" action="/logout"'),
        ui.element("button").props('type="submit" aria-label="Log out"').classes("icon-button"),
    ):
        icon("logout")
