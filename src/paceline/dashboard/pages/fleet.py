"""The fleet at a glance."""

from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table


async def build(visit: Visit) -> None:
    heading("Fleet")
    with Panel("Numbers") as panel:
        table = Table(
            "Numbers",
            [Column("session", "Session"), Column("status", "Status", "state"), Column("queue", "Queue", "number")],
            none="No numbers yet.",
            on_change=visit.live.now,
        )

    async def refresh() -> None:
        page = await visit.api.sessions.list(cursor=table.cursor, limit=50)
        rows = [
            {"id": one.session_id, "session": one.session_id, "status": {"text": one.status, "tone": "plain"}}
            for one in page.items
        ]
        table.show(rows, next_cursor=page.next_cursor)

    visit.live.add(refresh, panel)


PAGE = Page("/", "Fleet", build, icon="fleet")
