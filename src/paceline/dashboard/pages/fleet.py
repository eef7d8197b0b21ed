"""The fleet at a glance: figures, messages a minute, what happened, and every number in one table."""

from nicegui import ui

from paceline.client.answers_fleet import FleetState
from paceline.dashboard.pages.fleet_figures import Chart, Glance, keep_fresh
from paceline.dashboard.pages.fleet_new import new_number
from paceline.dashboard.pages.fleet_table import numbers_table
from paceline.dashboard.parts.acting import act, confirm
from paceline.dashboard.parts.feed import Feed
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.incidents import incident
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.live import Silent
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.words import RESUMING

INCIDENTS = 50


async def build(visit: Visit) -> None:
    with heading("Fleet"):
        _pause_button(visit)
        if visit.may("admin"):
            button("Add a number", lambda: new_number(visit), kind="main")
    _banner(visit)
    glance = Glance()
    with ui.element("div").classes("columns"):
        with ui.element("div").classes("stack"):
            chart = Chart()
            numbers_table(visit)
        _incidents(visit)
    keep_fresh(visit, glance, chart)


def _banner(visit: Visit) -> None:
    """Why nothing goes out, when that is somebody's decision."""
    banner = ui.element("div").classes("banner").props('role="status"')
    banner.set_visibility(False)
    with banner:
        words = text("span", "")
        if visit.may("admin"):
            button("Resume sending", lambda: _resume(visit), kind="small")

    async def refresh() -> None:
        state = await visit.api.fleet.state()
        words.text = held_words(state)
        banner.set_visibility(bool(words.text))

    # The figures say it when the dispatcher is away.
    visit.live.add(refresh, Silent())


def held_words(state: FleetState) -> str:
    """Every reason: whoever resumes lifts them all."""
    parts = [] if state.running else ["The dispatchers are stopped: nothing is routed or sent."]
    if state.paused and state.paused_reason == "BREAKER":
        parts.append("The breaker paused all sending: several numbers were restricted within an hour.")
    elif state.paused:
        parts.append("All sending is paused by an operator.")
    return " ".join(parts)


def _pause_button(visit: Visit) -> None:
    if visit.may("admin"):
        button("Pause all sending", lambda: _pause(visit))


async def _pause(visit: Visit) -> None:
    words = "Nothing is handed over or claimed any more until somebody resumes. What a worker holds still goes out."
    if await confirm("Pause all sending?", words, "Pause"):
        await act(visit, visit.api.fleet.pause(), "All sending is paused.")


async def _resume(visit: Visit) -> None:
    if await confirm("Resume sending?", RESUMING, "Resume sending"):
        await act(visit, _start_and_resume(visit), "Sending goes on.")


async def _start_and_resume(visit: Visit) -> None:
    await visit.api.fleet.start()
    await visit.api.fleet.resume()


def _incidents(visit: Visit) -> None:
    with Panel("Incidents", classes="panel--flush") as panel:
        feed = Feed("Incidents", short=True)

    async def refresh() -> None:
        page = await visit.api.fleet.incidents(limit=INCIDENTS)
        panel.empty("" if page.items else "Nothing has happened that you should know.")
        feed.show([incident(fields) for fields in page.items])

    visit.live.add(refresh, panel)


PAGE = Page("/", "Fleet", build, icon="fleet", scope="read")
