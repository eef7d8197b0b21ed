"""The fleet's figures and its messages a minute."""

from collections.abc import Sequence

from paceline.client import PacelineError
from paceline.client.answers_fleet import Minute, Overview
from paceline.client.answers_jobs import Backlog
from paceline.dashboard.parts import words
from paceline.dashboard.parts.minutes import Minutes
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.tiles import Tile, Tiles


def figures(visit: Visit) -> None:
    with Panel(classes="panel--bare") as panel:
        tiles = Tiles()
    with Panel("Messages a minute") as chart:
        assert chart.head is not None
        with chart.head:
            pace = text("span", "", "quiet")
        minutes = Minutes()
    backlog = Waiting()

    async def look() -> None:
        overview = await visit.api.fleet.overview(since=visit.live.midnight_ms)
        tiles.show(tiles_of(overview, backlog.known))
        minutes.show(overview.minutes)
        pace.text = said_pace(overview.minutes)
        chart.recover()

    async def count() -> None:
        backlog.known = await visit.api.jobs.backlog()

    visit.live.add(count, backlog)
    visit.live.add(look, panel)


class Waiting:
    """What the gateway says of all that waits; nothing while it is away, which its own figures show."""

    known: Backlog | None = None

    def fail(self, error: PacelineError) -> None:
        self.known = None

    def recover(self) -> None:
        pass


def tiles_of(overview: Overview, backlog: Backlog | None) -> list[Tile]:
    totals = overview.totals
    return [
        _connected(overview),
        Tile(label="Sending now", value=overview.sending, note="in the last minute"),
        Tile(label="Sent today", value=totals.sent),
        Tile(label="Delivered", value=totals.delivered, note=words.share(totals.delivered, totals.sent)),
        Tile(label="Read", value=totals.read, note=words.share(totals.read, totals.sent)),
        _failed(totals.failed),
        *_waiting(backlog),
    ]


def said_pace(minutes: Sequence[Minute]) -> str:
    """The last minute that is over: the present one has only begun."""
    return f"{minutes[-2].sent} in the last full minute" if len(minutes) > 1 else ""


def _connected(overview: Overview) -> Tile:
    need = words.needs(overview.statuses)
    tile = Tile(label="Connected", value=overview.connected, of=overview.sessions, note=need)
    if need:
        first = next(word for word in words.NEED_A_PERSON if overview.statuses.get(word))
        tile |= {"tone": "warn", "href": f"/?status={first}"}
    return tile


def _failed(failed: int) -> Tile:
    if not failed:
        return Tile(label="Failed", value=0, note="today")
    return Tile(label="Failed", value=failed, note="dead letters", href="/dead-letters", tone="bad")


def _waiting(backlog: Backlog | None) -> list[Tile]:
    if backlog is None:
        unknown = "the gateway does not answer"
        return [Tile(label="Waiting", value="–", note=unknown), Tile(label="All sent by", value="–", note=unknown)]
    on_the_way = f"{backlog.sending:,} on the way" if backlog.sending else ""
    return [Tile(label="Waiting", value=backlog.waiting, note=on_the_way), _done(backlog)]


def _done(backlog: Backlog) -> Tile:
    if backlog.estimated_completion is not None:
        return Tile(label="All sent by", at=backlog.estimated_completion)
    if backlog.waiting:
        return Tile(label="All sent by", value="–", note="no number can send now", tone="warn")
    return Tile(label="All sent by", value="–", note="nothing waits")
