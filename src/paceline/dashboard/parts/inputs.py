"""Buttons, links, fields and choices: the browser's own elements, so that keyboard and screen readers just work."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from nicegui import ui
from nicegui.element import Element
from nicegui.events import GenericEventArguments

from paceline.dashboard.parts.text import text


def button(label: str, do: Callable[[], Any], *, kind: str = "", why_not: str = "") -> ui.element:
    """`kind` is main, danger, small or nothing. With `why_not` it cannot be pressed, and says why."""
    classes = " ".join(f"button--{one}" for one in kind.split())
    made = ui.element("button").props('type="button"').classes(f"button {classes}")
    with made:
        text("span", label)
    if why_not:
        made.props["disabled"] = True
        made.props["title"] = why_not
    else:
        made.on("click", lambda _: do(), [])
    return made


def link(label: str, href: str, classes: str = "") -> ui.element:
    made = ui.element("a").classes(classes)
    made.props["href"] = href
    with made:
        text("span", label)
    return made


class Field(Element, component="field.js"):
    """A labelled field. `kind` is text, search, number, textarea, select or datetime-local; `options` are of a select,
    value to label. Tells of every change, a search after a short rest."""

    def __init__(
        self,
        label: str,
        *,
        kind: str = "text",
        value: str = "",
        options: Mapping[str, str] | None = None,
        hint: str = "",
        on_change: Callable[[str], Any] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__()
        self._on_change = on_change
        self.props["label"] = label
        self.props["kind"] = kind
        self.props["value"] = value
        self.props["hint"] = hint
        self.props["options"] = [{"value": one, "label": words} for one, words in (options or {}).items()]
        self.props["attributes"] = attributes
        self.value = value
        self.on("change", self._changed)

    def set_value(self, value: str) -> None:
        if value != self.value:
            self.value = self.props["value"] = value
            self.update()

    def set_options(self, options: Mapping[str, str]) -> None:
        """Of a select, value to label."""
        self.props["options"] = [{"value": one, "label": words} for one, words in options.items()]
        self.update()

    def set_hint(self, hint: str) -> None:
        if hint != self.props["hint"]:
            self.props["hint"] = hint
            self.update()

    def undo(self, value: str) -> None:
        """A change was not wanted after all."""
        self.value = self.props["value"] = value
        self.props["undone"] = self.props.get("undone", 0) + 1
        self.update()

    def forbid(self, why: str) -> None:
        """It shows its value, cannot be changed, and says why."""
        self.props["attributes"] = {**self.props["attributes"], "disabled": True, "title": why}
        self.update()

    def set_fault(self, why: str) -> None:
        """What is wrong with it, said beside it; nothing again with an empty word."""
        self.props["fault"] = why
        self.update()

    def hidden_label(self) -> Self:
        self.props["label-hidden"] = True
        return self

    def _changed(self, event: GenericEventArguments) -> Any:
        self.value = self.props["value"] = str(event.args)
        return self._on_change(self.value) if self._on_change else None
