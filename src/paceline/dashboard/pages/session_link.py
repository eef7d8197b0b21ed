"""Linking a number: its QR code, new every twenty seconds or so, or a code to type; until it is linked."""

import segno
from nicegui import ui

from paceline.client import Conflict, NotFound
from paceline.client.answers_fleet_sessions import Session
from paceline.dashboard.parts.acting import act
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.when import When

STEPS = (
    "Open WhatsApp on the phone of this number.",
    "Settings, then Linked devices, then Link a device.",
    "Hold the camera on this code. It changes by itself until it is linked.",
)
EVERY_SECONDS = 2.0
GETTING = "The worker is getting a code…"
WAITS = {
    "NO_PROXY": "No worker yet: no proxy of the pool is free. Upload some, or add the number again without a proxy.",
    "PHONE_FULL": "No worker yet: this number has as many as it may. Stop another of its sessions.",
}
"""Why there is no worker that could get a code."""


class Link:
    def __init__(self, visit: Visit, session_id: str) -> None:
        self._visit = visit
        self._session_id = session_id
        self._is_wanted = False
        with Panel("Link this number") as self.panel:
            self._body()
        self._show_code(None)
        self.panel.section.set_visibility(False)
        if visit.may("admin"):
            visit.live.add(self._refresh, self.panel, every_seconds=EVERY_SECONDS)

    def _body(self) -> None:
        with ui.element("div").classes("link"):
            with ui.element("div").classes("link-code"):
                self._qr = ui.element("img").props('alt="QR code to link this number" width="232" height="232"')
                self._wait = text("p", GETTING, "link-wait")
            with ui.element("div").classes("stack"):
                with ui.element("ol").classes("steps"):
                    for step in STEPS:
                        text("li", step)
                with ui.element("p").classes("quiet") as self._until:
                    text("span", "This code ends ")
                    self._ends = When()
                with ui.element("div").classes("row"):
                    button("Use a pairing code instead", self._pair)
                    self._scan = button("Scan it for me (simulated)", self._scan_it)
                self._code = text("p", "", "pairing-code").props('aria-live="polite"')

    def show(self, session: Session) -> None:
        """Only while there is something to link, and only for those who may."""
        # Not by its status: a quarantined number's stays so until its queue is requeued, which comes after linking.
        is_up = session.connection in ("SCAN_QR", "STARTING") and not session.removing
        self._is_wanted = is_up and session.authorisation != "LINKED"
        self.panel.section.set_visibility(self._is_wanted and self._visit.may("admin"))
        self._wait.text = WAITS.get(session.wait_reason or "", GETTING)
        self._scan.set_visibility(session.driver == "simulated")
        if not self._is_wanted:
            self._qr.props["src"] = ""
            self._code.text = ""

    async def _refresh(self) -> None:
        if not self._is_wanted:
            return
        try:
            shown = await self._visit.api.sessions.qr(self._session_id)
        except (NotFound, Conflict):
            self._show_code(None)
            return
        self._show_code(shown.qr)
        self._ends.set(shown.expires_at)

    def _show_code(self, code: str | None) -> None:
        self._qr.set_visibility(code is not None)
        self._wait.set_visibility(code is None)
        self._until.set_visibility(code is not None)
        if code is not None:
            # Black on white with its margin, also on a dark page: phones want it so.
            self._qr.props["src"] = segno.make(code, micro=False).svg_data_uri(scale=4, border=4, light="#fff")
            self._qr.update()

    async def _pair(self) -> None:
        found = await act(self._visit, self._visit.api.sessions.pairing_code(self._session_id))
        if found is not None:
            self._code.text = found.code

    async def _scan_it(self) -> None:
        asked = self._visit.api.sessions.scan_simulated(self._session_id)
        await act(self._visit, asked, "The simulated phone scans it.")
