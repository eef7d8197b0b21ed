"""A moment, said in the viewer's own timezone by their browser."""

from typing import Literal

from nicegui.element import Element

Form = Literal["relative", "clock", "exact"]


class When(Element, component="when.js"):
    """`relative` is "12 s ago" with the exact time on hover, `clock` "14:05" and the date if it is another day."""

    def __init__(self, ms: int | None = None, form: Form = "relative", *, none: str = "–") -> None:
        super().__init__()
        self.props["form"] = form
        self.props["none"] = none
        self.props["ms"] = ms

    def set(self, ms: int | None) -> None:
        if ms != self.props["ms"]:
            self.props["ms"] = ms
            self.update()
