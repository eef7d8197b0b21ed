"""Something that is on or off: its state in words, and the button that changes it."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.when import When


class Switch:
    def __init__(
        self, label: str, off: str, on: str, press: Callable[[], Awaitable[None]], *, why_not: str = ""
    ) -> None:
        """`off` stands on the button while it is on. With `why_not` it cannot be pressed, and says why."""
        self.is_on = True
        with ui.element("div").classes("switch"):
            with ui.element("p").classes("switch-state").props('aria-live="polite"'):
                text("span", label, "switch-label")
                self._chip = text("span", "", "chip")
                self._since = When(None, none="")
            self._off = button(off, press, why_not=why_not)
            self._on = button(on, press, kind="main", why_not=why_not)
        for made, word in ((self._off, off), (self._on, on)):
            made.props["aria-label"] = f"{word} {label.lower()}"

    def show(self, is_on: bool, words: str, *, since: int | None = None) -> None:
        self.is_on = is_on
        self._chip.text = words
        self._chip.classes(replace=f"chip chip--{'good' if is_on else 'warn'}")
        self._since.set(since)
        self._off.set_visibility(is_on)
        self._on.set_visibility(not is_on)
