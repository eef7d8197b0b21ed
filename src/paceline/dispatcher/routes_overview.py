"""The fleet at a glance, all sessions as one list, one number's time line."""

from typing import Annotated, Any

from litestar import get
from litestar.params import FromPath, QueryParameter

from paceline.apidoc import KEY
from paceline.dispatcher.roster import Roster, Wanted, count_statuses
from paceline.dispatcher.schemas_overview import MinuteView, Order, Overview, PacingView, RosterPage, Sort, Totals
from paceline.dispatcher.timeline import Timeline
from paceline.edge import Keys
from paceline.kits.clock import Clock
from paceline.kits.web import Handler
from paceline.store.store import Store

MINUTES = 60
DAY_MS = 86_400_000
LONGEST_MS = 2 * DAY_MS
"""What is counted by the hour is kept a little longer."""

Search = Annotated[str, QueryParameter(max_length=100, description="words in the id, number, display name or a tag")]
Status = Annotated[str, QueryParameter(max_length=32, description="only sessions with this `status`")]
Trust = Annotated[str, QueryParameter(max_length=64, description="only numbers of this trust level")]
SortBy = Annotated[Sort, QueryParameter(description="`status` puts what needs a person first")]
Direction = Annotated[Order, QueryParameter(description="the other way round with `desc`")]
Offset = Annotated[int, QueryParameter(ge=0, le=1_000_000, description="nextCursor of the page before")]
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="sessions in a page")]
Since = Annotated[
    int, QueryParameter(ge=0, description="totals from then on, Unix ms, at most two days back; 0 is a day back")
]


def overview_routes(store: Store, roster: Roster, timeline: Timeline, keys: Keys, clock: Clock) -> list[Handler]:
    reading: dict[str, Any] = {"tags": ["Fleet"], "guards": [keys.requires("read")], "security": KEY}

    @get("/overview", summary="The fleet at a glance", **reading)
    async def overview(since: Since = 0) -> Overview:
        """How many numbers are there and sending, what they did, and the last hour minute by minute. The numbers are
        counted every few seconds, with thousands of them a little less often."""
        now_ms = clock.now_ms()
        since_ms = min(max(since or now_ms - DAY_MS, now_ms - LONGEST_MS), now_ms)
        entries = await roster.entries(now_ms=now_ms)
        totals = await store.tallies.since(since_ms, now_ms=now_ms)
        minutes = await store.tallies.minutes(MINUTES, now_ms=now_ms)
        return Overview(
            sessions=len(entries),
            connected=sum(entry.is_connected for entry in entries),
            sending=sum(entry.is_connected and entry.is_sending for entry in entries),
            statuses=count_statuses(entries),
            totals=Totals(sent=totals.sent, delivered=totals.delivered, read=totals.read, failed=totals.failed),
            since=since_ms,
            minutes=[MinuteView(at=minute.at, sent=minute.sent, failed=minute.failed) for minute in minutes],
        )

    @get("/sessions", summary="All sessions, sorted and searched", **reading)
    async def list_sessions(
        *,
        search: Search = "",
        status: Status = "",
        trust: Trust = "",
        sort: SortBy = "session",
        order: Direction = "asc",
        cursor: Offset = 0,
        limit: Limit = 50,
    ) -> RosterPage:
        """Which sessions stand on a page is decided every few seconds, what is said of them at every request."""
        wanted = Wanted(search, status, trust)
        return await roster.page(wanted, sort, order, cursor, limit, now_ms=clock.now_ms())

    @get("/sessions/{session_id:str}/pacing", summary="A number's pacing on a time line", **reading)
    async def pacing(session_id: FromPath[str]) -> PacingView:
        """When it sent, when it may send next and should send after that, its rests and its hours."""
        return await timeline.of(session_id, now_ms=clock.now_ms())

    return [overview, list_sessions, pacing]
