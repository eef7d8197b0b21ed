"""Proxies and profiles: how many are left, who holds them, and adding more from a file."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from paceline.client.answers_fleet_sessions import InventoryStatus, Uploaded
from paceline.dashboard.pages.inventory_tables import ProfilesTable, ProxiesTable
from paceline.dashboard.parts.acting import act
from paceline.dashboard.parts.drop import MEGABYTE, Drop, File
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.tiles import Tile, Tiles
from paceline.dashboard.parts.words import count

FILE_BYTES = 5 * MEGABYTE
"""The orchestrator's own limit."""


async def build(visit: Visit) -> None:
    heading("Proxies and profiles")
    with Panel(classes="panel--bare") as top:
        tiles = Tiles()

    async def refresh() -> None:
        tiles.show(tiles_of(await visit.api.inventory.status()))

    visit.live.add(refresh, top)
    if visit.may("admin"):
        with ui.element("div").classes("halves"):
            _Uploading(
                visit, "Add proxies", "http://user:password@host:8080, https://… or socks5h://…, one on each line",
                lambda file: visit.api.proxies.upload(file.data, name=file.name),
            )  # fmt: skip
            _Uploading(
                visit, "Add profiles", "A JSON object or any text, one on each line",
                lambda file: visit.api.profiles.upload(file.data, name=file.name),
            )  # fmt: skip
    ProxiesTable(visit)
    ProfilesTable(visit)


class _Uploading:
    """A file of lines, and what became of each."""

    def __init__(self, visit: Visit, title: str, hint: str, send: Callable[[File], Awaitable[Uploaded]]) -> None:
        self._visit = visit
        self._send = send
        with Panel(title) as panel, ui.element("div").classes("stack"):
            Drop("Drop a file here, or choose one", self._came, hint=hint, most_bytes=FILE_BYTES)
            self._outcome = ui.element("div").classes("stack").props('role="status"')
        panel.recover()

    async def _came(self, file: File) -> None:
        self._outcome.clear()
        answer = await act(self._visit, self._send(file))
        if answer is not None:
            with self._outcome:
                text("p", f"{file.name}: {summary(answer)}").props('dir="auto"')
                if answer.rejected:
                    _bad_lines(answer)


def summary(answer: Uploaded) -> str:
    parts = [f"{answer.added:,} added"]
    if answer.duplicates:
        parts.append(f"{answer.duplicates:,} there already")
    parts.append(count(answer.rejected_total, "bad line") if answer.rejected_total else "no bad line")
    return ", ".join(parts)


def _bad_lines(answer: Uploaded) -> None:
    table = Table("Bad lines", [Column("line", "Line", "number", classes="narrow"), Column("why", "Why")], none="")
    rows = [{"id": str(bad.line), "line": bad.line, "why": bad.reason} for bad in answer.rejected]
    more = answer.rejected_total - len(rows)
    table.classes("boxed").show(rows, note=f"and {more:,} more" if more else "")


def tiles_of(status: InventoryStatus) -> list[Tile]:
    proxies, profiles, most = status.inventory.proxies, status.inventory.profiles, status.rules.max_sessions_per_proxy
    return [
        Tile(label="Proxies with room", value=proxies.available, of=proxies.total, note=f"{most} sessions on each"),
        Tile(label="Bad proxies", value=proxies.bad, note="given to nobody", tone="bad" if proxies.bad else ""),
        Tile(label="Free profiles", value=profiles.available, note="for the next sessions"),
        Tile(label="Profiles in use", value=profiles.used, note="held by a session"),
    ]


PAGE = Page("/inventory", "Proxies", build, icon="inventory", scope="read")
