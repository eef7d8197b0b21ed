"""A piece of a page: a heading, and below it one of four states: loading, empty, something to show, or why not."""

from types import TracebackType
from typing import Self

from nicegui import ui

from paceline.client import Forbidden, PacelineError, Refused, Unreachable
from paceline.dashboard.parts.text import text


def said(error: PacelineError) -> str:
    """An error in the operator's words; the service's own where it has some."""
    if isinstance(error, Forbidden):
        return f"Your key may not do this: {error.message}"
    if isinstance(error, Refused):
        return error.message
    return str(error)


class Panel:
    """`with Panel("Incidents") as panel:` puts elements into it. Given to `Live.add`, it shows how asking goes."""

    def __init__(self, title: str = "", *, classes: str = "") -> None:
        with ui.element("section").classes(f"panel {classes}") as self.section:
            self.head: ui.element | None = None
            if title:
                with ui.element("div").classes("panel-head") as self.head:
                    text("h2", title)
            self._error = ui.element("div").classes("state state--error").props('role="alert"')
            with self._error:
                self._why = text("p", "")
            self._loading = ui.element("div").classes("state state--loading").props('role="status"')
            with self._loading:
                text("p", "Loading…")
            self._empty = ui.element("div").classes("state state--empty")
            self.body = ui.element("div").classes("panel-body")
        self._show(loading=True)
        self.section.props('aria-busy="true"')

    def __enter__(self) -> Self:
        self.body.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.body.__exit__(kind, error, trace)

    def empty(self, words: str = "") -> None:
        """Nothing to show, and what that means; without words there is something again."""
        self._is_empty = bool(words)
        if words:
            self._empty.clear()
            with self._empty:
                text("p", words)

    _is_empty = False
    _has_shown = False

    def fail(self, error: PacelineError) -> None:
        # A panel does ask again; whoever pressed a button has to know that nobody does it for them.
        self._why.text = f"{error}. Asking again." if isinstance(error, Unreachable) else said(error)
        # What was there stays, marked as old; a panel that never had anything shows only why.
        self._show(error=True, content=self._has_shown and not self._is_empty)
        self.section.classes(add="panel--old" if self._has_shown else "")

    def recover(self) -> None:
        self._has_shown = True
        self._show(empty=self._is_empty, content=not self._is_empty)
        self.section.classes(remove="panel--old").props(remove="aria-busy")

    def _show(self, *, loading: bool = False, empty: bool = False, error: bool = False, content: bool = False) -> None:
        self._loading.set_visibility(loading)
        self._empty.set_visibility(empty)
        self._error.set_visibility(error)
        self.body.set_visibility(content)
