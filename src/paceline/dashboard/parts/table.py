"""Rows, one page at a time. Sorting, filtering and paging are the service's work: the table only asks for them.

    table = Table("Jobs", [Column("sent", "Sent", "number")], none="No jobs yet.", on_change=visit.live.now)
    page = await api.jobs.list(cursor=table.cursor)
    table.show([{"id": …, "sent": …}], next_cursor=page.next_cursor)

A cell is a plain value, or for some kinds a dict:
    text     "words", or {"text", "href"?, "title"?, "note"?, "tone"?}
    number   an int, or None
    when     Unix ms, or None; ticks by itself
    next     the same of something to come: what is past is now
    state    {"text", "tone": good|warn|bad|plain|busy, "title"?}
    bar      {"text", "max", "title"?} and {"value", "tone"?}, or several of these in "parts"
    actions  [{"name", "label", "danger"?, "why"? (why it cannot be pressed), "title"?}]
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nicegui.element import Element
from nicegui.events import GenericEventArguments

Kind = Literal["text", "number", "when", "next", "state", "bar", "actions"]
Row = dict[str, Any]
"""`id` names it and stays the same; `tone` colours the whole row; the rest are cells by their column's name."""


@dataclass(frozen=True)
class Column:
    name: str
    label: str
    kind: Kind = "text"
    sort: bool = False
    first: Literal["up", "down"] = "up"
    """Which way a first click sorts."""
    quiet: bool = False
    """The label is for screen readers only."""
    classes: str = ""


class Table(Element, component="table.js"):
    """`on_change` is called when another page or order was asked for; `on_act(action, row id)` for a row's button."""

    def __init__(
        self,
        caption: str,
        columns: Sequence[Column],
        *,
        none: str,
        on_change: Callable[[], Awaitable[None]] | None = None,
        on_act: Callable[[str, str], Awaitable[None]] | None = None,
        sort: str = "",
        descending: bool = False,
        picks: bool = False,
        wide: bool = False,
    ) -> None:
        super().__init__()
        self.sort = sort
        self.descending = descending
        self.picked: list[str] = []
        self._on_change = on_change
        self._on_act = on_act
        self._cursors = [""]
        self._next: str | None = None
        self.props.update(
            caption=caption,
            columns=[asdict(column) for column in columns],
            rows=[],
            none=none,
            note="",
            sort=sort,
            descending=descending,
            back=False,
            more=False,
            picks=picks,
            picked=[],
            wide=wide,
        )
        self.on("sort", self._sorted)
        self.on("page", self._turned)
        self.on("act", self._acted)
        self.on("pick", self._picked)

    @property
    def cursor(self) -> str:
        """Of the page that is shown; empty is the first."""
        return self._cursors[-1]

    def show(self, rows: Sequence[Row], *, next_cursor: str | None = None, note: str = "") -> None:
        """In place: what has not changed is not touched, and a table that has not changed is not even sent."""
        self._next = next_cursor
        shown = {"rows": list(rows), "note": note, "back": len(self._cursors) > 1, "more": bool(next_cursor)}
        if any(self.props.get(name) != value for name, value in shown.items()):
            self.props.update(shown)
            self.update()

    def rewind(self) -> None:
        """Back to the first page: another filter was set."""
        self._cursors = [""]

    def unpick(self) -> None:
        self.picked = self.props["picked"] = []
        self.update()

    async def _sorted(self, event: GenericEventArguments) -> None:
        self.sort = self.props["sort"] = event.args["by"]
        self.descending = self.props["descending"] = bool(event.args["descending"])
        self.rewind()
        await self._changed()

    async def _turned(self, event: GenericEventArguments) -> None:
        if event.args == 1 and self._next:
            self._cursors.append(self._next)
        elif event.args == -1 and len(self._cursors) > 1:
            self._cursors.pop()
        await self._changed()

    async def _acted(self, event: GenericEventArguments) -> None:
        if self._on_act is not None:
            await self._on_act(event.args["name"], event.args["id"])

    def _picked(self, event: GenericEventArguments) -> None:
        self.picked = self.props["picked"] = [str(one) for one in event.args]
        self.update()

    async def _changed(self) -> None:
        self.update()
        if self._on_change is not None:
            await self._on_change()
