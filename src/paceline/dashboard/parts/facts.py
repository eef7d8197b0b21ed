"""A short list of facts: a word, and what it says. A fact that has nothing to say is left out."""

from collections.abc import Sequence
from dataclasses import dataclass

from nicegui import ui

from paceline.dashboard.parts.inputs import link
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.when import Form, When


@dataclass(frozen=True)
class Fact:
    word: str
    value: str | int | None
    href: str = ""
    when: Form | None = None
    """The value is a time, shown so."""
    note: str = ""
    """Said below it, in smaller words."""
    share: float | None = None
    """0 to 1: a meter below it."""


class Facts:
    """Rebuilt only when a fact has changed."""

    def __init__(self, classes: str = "facts") -> None:
        self._list = ui.element("dl").classes(classes)
        self._shown: Sequence[Fact] = ()

    def show(self, facts: Sequence[Fact]) -> None:
        facts = [fact for fact in facts if fact.value not in (None, "", 0)]
        if facts == self._shown:
            return
        self._shown = facts
        self._list.clear()
        with self._list:
            for fact in facts:
                with ui.element("div"):
                    text("dt", fact.word)
                    with ui.element("dd").props('dir="auto"'):
                        _value(fact)
                        _below(fact)


def _value(fact: Fact) -> None:
    if fact.when is not None:
        When(int(fact.value or 0), fact.when)
    elif fact.href:
        link(str(fact.value), fact.href)
    else:
        text("span", str(fact.value))


def _below(fact: Fact) -> None:
    if fact.share is not None:
        tone = "bad" if fact.share >= 1 else "plain"
        with ui.element("span").classes("meter-track").props('aria-hidden="true"'):
            ui.element("span").classes(f"meter-fill meter-fill--{tone}").style(f"width: {min(1, fact.share):.0%}")
    if fact.note:
        text("small", fact.note, "cell-note")
