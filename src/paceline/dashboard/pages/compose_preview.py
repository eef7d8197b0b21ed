"""The message as its recipients would get it, one after the other."""

from nicegui import ui

from paceline.dashboard.audience import Audience, fill
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.text import text


class Preview:
    def __init__(self) -> None:
        self._place = 0
        self._audience: Audience | None = None
        self._text = ""
        with ui.element("div").classes("preview"):
            with ui.element("div").classes("preview-head"):
                self._who = text("span", "", "preview-who").props('dir="auto"')
                with ui.element("span").classes("row"):
                    self._back = button("‹", lambda: self._turn(-1), kind="small")
                    self._next = button("›", lambda: self._turn(1), kind="small")
            self._back.props('aria-label="The recipient before"')
            self._next.props('aria-label="The next recipient"')
            with ui.element("div").classes("bubble").props('aria-live="polite"'):
                self._image = ui.element("img").props('alt="The image that is sent"').classes("bubble-image")
                self._body = text("p", "", "bubble-text").props('dir="auto"')
            self._missing = text("p", "", "field-fault")
        self.picture("")
        self.show(None, "")

    def picture(self, address: str) -> None:
        """Where this browser has the image."""
        self._image.props["src"] = address
        self._image.set_visibility(bool(address))
        self._image.update()

    def show(self, audience: Audience | None, words: str) -> None:
        if audience is not self._audience:
            self._place = 0
        self._audience, self._text = audience, words
        people = audience.shown if audience else ()
        person = people[self._place] if people else None
        filled = fill(words, person.vars if person else {})
        self._who.text = f"To {person.to}" if person else "To nobody yet"
        self._body.text = filled.text or "…"
        shown = ", ".join(filled.missing) if person else ""
        self._missing.text = f"Has no value for {shown}: this recipient would be refused." if shown else ""
        self._back.set_visibility(len(people) > 1)
        self._next.set_visibility(len(people) > 1)

    def _turn(self, by: int) -> None:
        people = self._audience.shown if self._audience else ()
        self._place = (self._place + by) % max(1, len(people))
        self.show(self._audience, self._text)
