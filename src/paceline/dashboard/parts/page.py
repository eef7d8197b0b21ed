"""A page, and one visit of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nicegui import ui

from paceline.dashboard.parts.live import Live
from paceline.dashboard.parts.text import text

if TYPE_CHECKING:
    from paceline.client import AsyncOperator
    from paceline.dashboard.visitors import Ending, Visitor, Visitors


@dataclass(frozen=True)
class Page:
    path: str
    """`/jobs/{job_id}`: what stands in braces is in `Visit.params`."""
    title: str
    build: "Callable[[Visit], Awaitable[None]]"
    icon: str = ""
    """Its name in `icons`; with one it stands in the menu."""
    scope: str = ""
    """What a key needs to see it at all."""
    under: str = ""
    """The path of the page whose menu entry is lit, for pages that have none of their own."""


class Visit:
    """One browser looking at one page."""

    live: Live
    """Keeps the page fresh, and leads to the door when the login has ended."""

    def __init__(
        self,
        visitor: "Visitor",
        visitors: "Visitors",
        page: Page,
        params: Mapping[str, str],
        query: Mapping[str, str],
    ) -> None:
        self.visitor = visitor
        self.page = page
        self.params = params
        self.query = query
        self._visitors = visitors

    @property
    def api(self) -> "AsyncOperator":
        return self.visitor.api

    def may(self, scope: str) -> bool:
        return self.visitor.may(scope)

    def missing(self, scope: str) -> None:
        with ui.element("div").classes("state state--empty"):
            text("p", f"This page needs a key with the “{scope}” scope. Yours has: {', '.join(self.visitor.scopes)}.")

    def watch(self) -> None:
        """Called once, inside the page."""
        self.live = Live(self)

    def seen(self) -> None:
        self._visitors.seen(self.visitor)

    async def ended(self) -> "Ending | None":
        """Why this visit is over, if it is: also because nobody has looked for long."""
        if not self.visitor.ended and self._visitors.find(self.visitor.token) is None:
            await self.end("idle")
        return self.visitor.ended

    async def end(self, why: "Ending") -> None:
        await self._visitors.end(self.visitor, why)
