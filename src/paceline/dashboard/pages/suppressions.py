"""Who must not be written to: the list, adding to it by hand or from a file, taking somebody off."""

import re
from typing import Any

from nicegui import ui

from paceline.client.answers_lists import Suppression, SuppressionsImported
from paceline.dashboard.parts import work
from paceline.dashboard.parts.acting import act, confirm, notify
from paceline.dashboard.parts.drop import Drop, File
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.words import count

ROWS = 100
BY_HAND = 10_000
"""As many as the gateway takes at once as JSON; a longer list is a file."""
_COLUMNS = [
    Column("to", "Number"),
    Column("reason", "Reason", classes="words"),
    Column("source", "By"),
    Column("at", "Since", "when"),
    Column("actions", "Actions", "actions", quiet=True),
]
_BETWEEN = re.compile(r"[\n,;]")


async def build(visit: Visit) -> None:
    lead = "Nobody on this list is written to, also if a job was accepted before. It is checked again at every send."
    with heading("Suppressions", lead=lead):
        button("Export as CSV", lambda: _export(visit))
    with ui.element("div").classes("columns"):
        _listed(visit)
        with ui.element("div").classes("stack"):
            if visit.may("send"):
                _Adding(visit)
                _Importing(visit)
            if visit.may("admin"):
                _Erasing(visit)


def _listed(visit: Visit) -> None:
    async def lift(_: str, to: str) -> None:
        words = "They can be written to again. If they asked to be left alone, leave them on the list."
        if await confirm(f"Take {work.number(to)} off the list?", words, "Take off the list", danger=True):
            await act(visit, visit.api.suppressions.remove(to), "Taken off the list.")

    with Panel("On the list", classes="panel--flush") as panel:
        table = Table("Suppressed numbers", _COLUMNS, none="Nobody.", on_change=visit.live.now, on_act=lift).classes(
            "cards"
        )

    async def refresh() -> None:
        page = await visit.api.suppressions.list(cursor=table.cursor, limit=ROWS)
        panel.empty("Nobody is on the list." if not page.items and not table.cursor else "")
        table.show([row(one, may_lift=visit.may("admin")) for one in page.items], next_cursor=page.next_cursor)

    visit.live.add(refresh, panel, every_seconds=5)


async def _export(visit: Visit) -> None:
    found = await act(visit, visit.api.suppressions.export_csv())
    if found is not None:
        ui.download.content(found, "suppressions.csv", "text/csv")


class _Adding:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        with Panel("Add") as panel, ui.element("div").classes("stack"):
            self._numbers = Field("Numbers, one on each line", kind="textarea", rows=4, spellcheck="false")
            self._reason = Field("Reason", maxlength=200)
            with ui.element("div").classes("row"):
                button("Add to the list", self._add, kind="main")
        panel.recover()

    async def _add(self) -> None:
        numbers = [part.strip() for part in _BETWEEN.split(self._numbers.value) if part.strip()]
        if not numbers or len(numbers) > BY_HAND:
            self._numbers.set_fault("No number yet." if not numbers else f"At most {BY_HAND:,}; import a file instead.")
            return
        self._numbers.set_fault("")
        added = await act(self._visit, self._visit.api.suppressions.add(numbers, self._reason.value.strip()))
        if added is not None:
            known = len(numbers) - added.added
            notify(f"{added.added:,} added." + (f" {known:,} were on the list already." if known else ""))
            self._numbers.set_value("")
            self._reason.set_value("")


class _Importing:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        with Panel("Import a file") as panel, ui.element("div").classes("stack"):
            hint = "CSV with a column “to”, and “reason” if you like"
            Drop("Drop a CSV file here, or choose one", self._came, hint=hint, accept=".csv,text/csv", small=True)
            self._outcome = ui.element("div").classes("stack").props('role="status"')
        panel.recover()

    async def _came(self, file: File) -> None:
        self._outcome.clear()
        done = await act(self._visit, self._visit.api.suppressions.import_csv(file.data))
        if done is not None:
            with self._outcome:
                _imported(file.name, done)


def _imported(name: str, done: SuppressionsImported) -> None:
    bad = count(len(done.rejected), "bad row") if done.rejected else "no bad row"
    text("p", f"{name}: {done.added:,} added, {done.duplicates:,} there already, {bad}").props('dir="auto"')
    if done.rejected:
        columns = [Column("line", "Line", "number"), Column("to", "Number"), Column("why", "Why")]
        rows = [{"id": str(one.line), "line": one.line, "to": one.to, "why": one.code} for one in done.rejected]
        Table("Bad rows", columns, none="").classes("boxed").show(rows)


class _Erasing:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        with Panel("Erase a person") as panel, ui.element("div").classes("stack"):
            text("p", "What waits for them is canceled, and their number leaves every job, message and event.", "hint")
            self._number = Field("Number")
            with ui.element("div").classes("row"):
                button("Erase…", self._erase, kind="danger")
        panel.recover()

    async def _erase(self) -> None:
        number = self._number.value.strip()
        self._number.set_fault("" if number else "Whose data?")
        words = "This cannot be undone. Their place on this list stays, if they have one."
        if number and await confirm(f"Erase {number}?", words, "Erase", danger=True):
            done = await act(self._visit, self._visit.api.recipients.erase(number))
            if done is not None:
                rest = f" {done.open:,} are with a worker: ask again later." if done.open else ""
                notify(f"Erased in {count(done.erased, 'place')}, {count(done.canceled, 'message')} canceled.{rest}")
                self._number.set_value("")


def row(one: Suppression, *, may_lift: bool) -> dict[str, Any]:
    return {
        "id": one.to,
        "to": work.number(one.to),
        "reason": one.reason,
        "source": "their own “stop”" if one.source == "inbound" else one.source,
        "at": one.at,
        "actions": [{"name": "lift", "label": "Take off", "title": f"Take {one.to} off the list"}] if may_lift else [],
    }


PAGE = Page("/suppressions", "Suppressions", build, icon="suppressions", scope="read")
