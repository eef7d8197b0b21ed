"""A row of figures, each with a word below it."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from nicegui.element import Element


class Tile(TypedDict):
    label: str
    value: NotRequired[int | str]
    at: NotRequired[int]
    """Instead of a value: a moment, with how long until then below it."""
    of: NotRequired[int]
    note: NotRequired[str]
    href: NotRequired[str]
    """Where the note leads."""
    tone: NotRequired[str]


class Tiles(Element, component="tiles.js"):
    def __init__(self) -> None:
        super().__init__()
        self.props["tiles"] = []

    def show(self, tiles: Sequence[Tile]) -> None:
        self.props["tiles"] = list(tiles)
        self.update()
