"""One number: linking it, how it stands, its pace, its queue, its past."""

from nicegui import ui

from paceline.client import NotFound
from paceline.client.answers_fleet_sessions import Session
from paceline.dashboard.pages.session_acts import Acts
from paceline.dashboard.pages.session_link import Link
from paceline.dashboard.pages.session_pace import About, pace
from paceline.dashboard.pages.session_past import past
from paceline.dashboard.pages.session_queue import queue
from paceline.dashboard.parts import words
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.text import text


async def build(visit: Visit) -> None:
    session_id = visit.params["session_id"]
    tools = heading(session_id)
    standing = Standing(tools)
    acts = Acts(visit, session_id, tools)
    link = Link(visit, session_id)
    with ui.element("div").classes("columns"):
        with ui.element("div").classes("stack"):
            pace(visit, session_id)
            queue(visit, session_id)
        with ui.element("div").classes("stack"):
            facts = About()
            past(visit, session_id)

    async def refresh() -> None:
        try:
            session = await visit.api.sessions.get(session_id)
        except NotFound:
            standing.gone()
            acts.hide()
            raise
        tools.title.text = words.phone(session.phone)
        tools.lead.text = " · ".join(part for part in (session.session_id, session.display_name) if part)
        standing.show(session)
        acts.show(session)
        link.show(session)
        facts.show(session)

    visit.live.add(refresh, facts.panel, every_seconds=2)


class Standing:
    """The chip beside the heading."""

    def __init__(self, tools: ui.element) -> None:
        with tools:
            self._chip = text("span", "…", "chip chip--plain").props('role="status"')

    def show(self, session: Session) -> None:
        self._set(words.status(session.status))

    def gone(self) -> None:
        self._set(words.Word("Not there", "plain", "There is no such session; it may have been removed"))

    def _set(self, word: words.Word) -> None:
        self._chip.text = word.text
        self._chip.props["title"] = word.title
        self._chip.classes(replace=f"chip chip--{word.tone}")


PAGE = Page("/sessions/{session_id}", "Number", build, scope="read", under="/")
