"""One of a few, as buttons side by side: which part of a list is shown. Each may say how many there are."""

from collections.abc import Awaitable, Callable, Mapping

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from paceline.dashboard.parts.text import text


class Choices:
    def __init__(self, label: str, options: Mapping[str, str], on_change: Callable[[], Awaitable[None]]) -> None:
        """`options` are value to word; the first one is chosen."""
        self.value = next(iter(options))
        self._on_change = on_change
        self._words = dict(options)
        self._buttons: dict[str, tuple[ui.element, TextElement]] = {}
        with ui.element("div").classes("choices").props(f'role="group" aria-label="{label}"'):
            for value, word in options.items():
                made = ui.element("button").props('type="button"').classes("choice")
                made.on("click", lambda _, chosen=value: self._choose(chosen), [])
                with made:
                    self._buttons[value] = (made, text("span", word))
        self._mark()

    def count(self, counts: Mapping[str, int]) -> None:
        """How many are behind each; those without any are not offered, unless it is the chosen one."""
        for value, (made, words) in self._buttons.items():
            if value in counts:
                words.text = f"{self._words[value]} {counts[value]:,}"
                made.set_visibility(counts[value] > 0 or value in ("", self.value))

    async def _choose(self, value: str) -> None:
        self.value = value
        self._mark()
        await self._on_change()

    def _mark(self) -> None:
        for value, (made, _) in self._buttons.items():
            made.props["aria-pressed"] = "true" if value == self.value else "false"
            made.update()
