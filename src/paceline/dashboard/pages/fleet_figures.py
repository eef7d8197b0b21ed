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


class Glance:
    """The figures on top."""

    def __init__(self) -> None:
        with Panel(classes="panel--bare") as self.panel:
            self._tiles = Tiles()
        self._overview: Overview | None = None
        self._backlog: Backlog | None = None
        self._is_counted = False

    def show(self, overview: Overview) -> None:
        self._overview = overview
        self._draw()

    def count(self, backlog: Backlog | None) -> None:
        """None: the gateway, which knows of all that waits, is away."""
        self._backlog, self._is_counted = backlog, True
        self._draw()

    # It is the gateway's turn to fail here; the rest of the figures goes on.

    def fail(self, error: PacelineError) -> None:
        self.count(None)

    def recover(self) -> None:
        pass

    def _draw(self) -> None:
        if self._overview is not None:
            note = "the gateway does not answer" if self._is_counted else ""
            self._tiles.show(tiles_of(self._overview, self._backlog, unknown=note))


class Chart:
    """Messages a minute."""

    def __init__(self) -> None:
        with Panel("Messages a minute") as self.panel:
            self._minutes = Minutes()
        assert self.panel.head is not None
        with self.panel.head:
            self._pace = text("span", "", "quiet")

    def show(self, overview: Overview) -> None:
        self._minutes.show(overview.minutes)
        self._pace.text = said_pace(overview.minutes)
        self.panel.recover()


def keep_fresh(visit: Visit, glance: Glance, chart: Chart) -> None:
    async def look() -> None:
        overview = await visit.api.fleet.overview(since=visit.live.midnight_ms)
        glance.show(overview)
        chart.show(overview)

    async def count() -> None:
        glance.count(await visit.api.jobs.backlog())

    visit.live.add(look, glance.panel)
    visit.live.add(count, glance)


def tiles_of(overview: Overview, backlog: Backlog | None, *, unknown: str) -> list[Tile]:
    totals = overview.totals
    return [
        _connected(overview),
        Tile(label="Sending now", value=overview.sending, note="in the last minute"),
        Tile(label="Sent today", value=totals.sent),
        Tile(label="Delivered", value=totals.delivered, note=words.share(totals.delivered, totals.sent)),
        Tile(label="Read", value=totals.read, note=words.share(totals.read, totals.sent)),
        _failed(totals.failed),
        *_waiting(backlog, unknown),
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
    return Tile(label="Failed", value=failed, note="dead letters", href="/queues", tone="bad")


def _waiting(backlog: Backlog | None, unknown: str) -> list[Tile]:
    if backlog is None:
        return [Tile(label="Waiting", value="–", note=unknown), Tile(label="All sent by", value="–", note=unknown)]
    on_the_way = f"{backlog.sending:,} on the way" if backlog.sending else ""
    return [Tile(label="Waiting", value=backlog.waiting, note=on_the_way), _done(backlog)]


def _done(backlog: Backlog) -> Tile:
    if backlog.estimated_completion is not None:
        return Tile(label="All sent by", at=backlog.estimated_completion)
    if backlog.waiting:
        return Tile(label="All sent by", value="–", note="no number can send now", tone="warn")
    return Tile(label="All sent by", value="–", note="nothing waits")
