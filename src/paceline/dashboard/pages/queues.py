"""Where work lies: the platform's queues, the numbers with the longest ones, and what was given up."""

from typing import Any

from paceline.client.answers_fleet import QueueLengths, RosterRow
from paceline.dashboard.pages.dead_letters import DeadLetters
from paceline.dashboard.parts import work
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.inputs import Field
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.tiles import Tile, Tiles

ROWS = 10
_COLUMNS = [
    Column("session", "Session"),
    Column("queue", "Queued", "number"),
    Column("parked", "Parked", "number"),
    Column("why", "Why it waits", classes="words"),
    Column("slot", "Next slot", "next"),
]


async def build(visit: Visit) -> None:
    heading("Queues")
    with Panel(classes="panel--bare") as top:
        tiles = Tiles()

    async def refresh() -> None:
        tiles.show(tiles_of(await visit.api.fleet.queues()))

    visit.live.add(refresh, top)
    _numbers(visit)
    DeadLetters(visit)


def _numbers(visit: Visit) -> None:
    async def searched(_: str) -> None:
        table.rewind()
        await visit.live.now()

    with Panel("Longest queues", classes="panel--flush") as panel:
        table = Table("Numbers by their queue", _COLUMNS, none="No number matches.", on_change=visit.live.now).classes(
            "cards"
        )
    assert panel.head is not None
    with panel.head:
        search = Field("Search", kind="search", placeholder="Number or session", on_change=searched).hidden_label()

    async def refresh() -> None:
        page = await visit.api.fleet.roster(
            search=search.value.strip(), sort="queue", order="desc", cursor=table.cursor, limit=ROWS
        )
        panel.empty("No numbers yet." if not page.items and not search.value and not table.cursor else "")
        table.show([row(one) for one in page.items], next_cursor=page.next_cursor, note=f"{page.total:,} sessions")

    visit.live.add(refresh, panel)


def row(number: RosterRow) -> dict[str, Any]:
    return {
        "id": number.session_id,
        "session": {
            "text": number.session_id,
            "href": f"/sessions/{number.session_id}",
            "note": work.number(number.phone),
        },
        "queue": number.queue_len,
        "parked": number.parked,
        "why": number.waiting.text if number.waiting else "",
        "slot": number.next_slot_at,
    }


def tiles_of(lengths: QueueLengths) -> list[Tile]:
    return [
        Tile(label="New jobs", value=lengths.gateway + lengths.priority, note="not looked at yet"),
        Tile(label="Waiting jobs", value=lengths.retry, note="paused, or no number is free"),
        Tile(label="Scheduled", value=lengths.scheduled, note="messages for later"),
        Tile(label="Parked", value=lengths.parked, note="until they may go"),
        Tile(label="Trying again", value=lengths.session_retry, note="after a failure that may pass"),
        Tile(label="Dead letters", value=lengths.dead_letter, note="given up"),
    ]


PAGE = Page("/queues", "Queues", build, icon="queues", scope="read")
