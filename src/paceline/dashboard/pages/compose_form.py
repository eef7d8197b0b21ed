"""The form of a new job: who, what, and when. It fills a draft and tells of every change."""

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
from nicegui import ui

from paceline.dashboard.audience import Audience, Unreadable, read_file, read_text
from paceline.dashboard.draft import Draft
from paceline.dashboard.pages.compose_file import FileBox
from paceline.dashboard.parts.drop import Drop, File
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.words import count

MODES = {"message": "Text", "image": "Image with a caption", "document": "Document with a caption"}
PRIORITIES = {"1": "Normal", "2": "High", "3": "Highest"}
BROWSER_SECONDS = 5.0
"""For one question to the viewer's browser, on a slow line or a busy machine."""


class Form:
    def __init__(
        self, visit: Visit, draft: Draft, on_change: Callable[[], None], on_picture: Callable[[str], None]
    ) -> None:
        self._visit = visit
        self._draft = draft
        self._on_change = on_change
        self._on_picture = on_picture
        self._fields: dict[str, Field] = {}
        # One reading after the other: an older list never replaces a newer one, and a plan waits for the last.
        self._reading = asyncio.Lock()
        with Panel("Recipients") as people, ui.element("div").classes("stack"):
            self._recipients()
        with Panel("Message") as message, ui.element("div").classes("stack"):
            self._message()
        with Panel("When and how") as options:
            self._options()
        for panel in (people, message, options):
            panel.recover()

    def check(self) -> bool:
        """Whether the draft can be planned; what is wrong stands beside its field."""
        is_good = self._draft.check()
        for name, made in self._fields.items():
            made.set_fault(self._draft.faults.get(name, ""))
        self._file.set_fault(self._draft.faults.get("file", ""))
        return is_good

    async def settle(self) -> None:
        """Until the draft has all that was filled in. The time is of the viewer's timezone, which only their browser
        knows."""
        await self._file.settle()
        async with self._reading:
            pass
        self._draft.send_at, self._draft.send_at_fault = None, ""
        typed = self._fields["send_at"].value
        if not typed:
            return
        asking = f"new Date({msgspec.json.encode(typed).decode()}).getTime()"
        try:
            found = await ui.run_javascript(asking, timeout=BROWSER_SECONDS)
        except TimeoutError:
            self._draft.send_at_fault = "Your browser has not said when that is. Plan again."
            return
        if typed != self._fields["send_at"].value:
            await self.settle()
        elif isinstance(found, int | float):
            self._draft.send_at = int(found)
        else:
            # Not a number, which JSON has no word for.
            self._draft.send_at_fault = "This is no time."

    # Recipients

    def _recipients(self) -> None:
        self._fields["audience"] = Field(
            "Numbers, one on each line, or a table whose first row names its columns",
            kind="textarea",
            on_change=self._typed,
            rows=6,
            spellcheck="false",
            placeholder="+44 7700 900301\n+44 7700 900302",
        )
        self._drop = Drop(
            "Drop a CSV file here, or choose one",
            self._dropped,
            hint="A column of numbers; every other column can be named in the text.",
            accept=".csv,.txt,text/csv,text/plain",
        )
        with ui.element("div").classes("found") as self._found:
            self._found_words = text("p", "").props('role="status" dir="auto"')
            self._forget = button("Remove the file", self._without_file, kind="small")
        self._found.set_visibility(False)

    async def _typed(self, words: str) -> None:
        async with self._reading:
            if not words.strip():
                self._take(None)
                return
            try:
                self._take(await asyncio.to_thread(read_text, words))
            except Unreadable as error:
                self._take(None)
                self._fields["audience"].set_fault(f"This cannot be used: {error}.")

    async def _dropped(self, file: File) -> None:
        async with self._reading:
            try:
                audience = await asyncio.to_thread(read_file, file.data)
            except Unreadable as error:
                self._drop.set_fault(f"{file.name} cannot be used: {error}.")
                return
            self._fields["audience"].set_visibility(False)
            self._take(audience, file.name)

    def _without_file(self) -> None:
        self._fields["audience"].set_visibility(True)
        self._fields["audience"].set_value("")
        self._take(None)

    def _take(self, audience: Audience | None, file_name: str = "") -> None:
        self._draft.audience = audience
        self._fields["audience"].set_fault("")
        self._found.set_visibility(audience is not None)
        self._forget.set_visibility(bool(file_name))
        if audience is not None:
            self._found_words.text = _summary(audience, file_name)
        self._offer(audience.columns if audience else ())
        self._on_change()

    # Message

    def _message(self) -> None:
        self._field("mode", "Kind", kind="select", options=MODES, value="message")
        self._file = FileBox(self._visit, self._attached)
        self._field("text", "Text", kind="textarea", rows=6)
        self._offers = ui.element("div").classes("offers")
        self._offer(())

    def _offer(self, columns: tuple[str, ...]) -> None:
        """Buttons that put a column's name into the text."""
        self._offers.clear()
        with self._offers:
            if columns:
                text("span", "Put in:", "quiet")
            for name in columns:
                button(f"{{{{{name}}}}}", partial(self._put_in, name), kind="small")

    def _put_in(self, name: str) -> None:
        field = self._fields["text"]
        glue = "" if not field.value or field.value[-1].isspace() else " "
        field.set_value(f"{field.value}{glue}{{{{{name}}}}}")
        self._set("text", field.value)

    def _attached(self, ref: str, picture: str) -> None:
        self._on_picture(picture)
        if ref != self._draft.media_ref:
            self._draft.media_ref = ref
            self._on_change()

    # When and how

    def _options(self) -> None:
        with ui.element("div").classes("form-grid"):
            self._fields["send_at"] = Field(
                "Not before", kind="datetime-local", hint="Your own time. Empty: now.", on_change=self._timed
            )
            self._field(
                "spread_minutes", "Spread over minutes", kind="number", min=0, hint="Empty: as fast as it may go."
            )
            self._field(
                "validity_hours", "Good for hours", kind="number", min=0, hint="Then it expires. Empty: 30 days."
            )
            self._field("priority", "Priority", kind="select", options=PRIORITIES, value="1")
            self._field("phone", "From this number only", hint="Empty: any number.")
            self._field("tags", "Tags", hint="To find it again; commas between.")

    def _timed(self, _: str) -> None:
        self._fields["send_at"].set_fault("")
        self._on_change()

    # Any field

    def _field(self, name: str, label: str, **given: object) -> None:
        def changed(value: str) -> None:
            self._set(name, value)

        self._fields[name] = Field(label, on_change=changed, **given)  # type: ignore[arg-type]

    def _set(self, name: str, value: str) -> None:
        setattr(self._draft, name, value)
        if name == "mode":
            self._file.ask_for(value)
        if name in self._draft.faults:
            self.check()
        self._on_change()


def _summary(audience: Audience, file_name: str) -> str:
    parts = [count(audience.count, "recipient")]
    if file_name:
        parts[0] = f"{file_name}: {parts[0]}"
    if audience.number_column:
        parts.append(f"numbers from “{audience.number_column}”")
    if audience.columns:
        parts.append(f"columns: {', '.join(audience.columns)}")
    return " · ".join(parts)
