"""What happened, newest first."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NotRequired, TypedDict

from nicegui.element import Element


class Item(TypedDict):
    id: str
    at: int
    text: str
    note: NotRequired[str]
    tone: NotRequired[str]
    href: NotRequired[str]
    link: NotRequired[str]
    """What the link says."""


class Feed(Element, component="feed.js"):
    """`short` bounds its height; `on_more` is called for older items."""

    def __init__(
        self, label: str, *, short: bool = False, on_more: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        super().__init__()
        self.props.update(items=[], more=False, short=short, label=label)
        if on_more is not None:
            self.on("more", lambda _: on_more(), [])

    def show(self, items: Sequence[Item], *, more: bool = False) -> None:
        self.props.update(items=list(items), more=more)
        self.update()
