"""What an operator may do with a number: pause, resume, restart, stop, start, log out, remove."""

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from paceline.client.answers_fleet_sessions import Session
from paceline.dashboard.parts.acting import act, confirm
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Visit

Ask = Callable[[str], Awaitable[Any]]


class Acts:
    def __init__(self, visit: Visit, session_id: str, tools: ui.element) -> None:
        self._visit = visit
        self._session_id = session_id
        self._buttons: dict[str, ui.element] = {}
        if not visit.may("admin"):
            return
        api = visit.api.sessions
        with tools:
            self._add("Pause", api.pause, "Paused: it stays connected and gets no task.")
            self._add("Resume", api.resume, "It gets tasks again.", kind="main")
            self._add("Start", api.start, "A worker is being started.", kind="main")
            self._add("Restart", api.restart, "Another worker takes over.", _RESTART)
            self._add("Stop", api.stop, "Its worker finishes what it holds and ends.", _STOP)
            self._add("Log out", api.logout, "Its worker ends the link to the phone.", _LOGOUT, kind="danger")
            self._buttons["Remove"] = button("Remove", self._remove, kind="danger")
        self.hide()

    def show(self, session: Session) -> None:
        runs = session.desired == "running" and not session.removing
        # Also of a quarantined number, whose status does not tell it.
        is_over = session.connection in ("FAILED", "STOPPED") or session.authorisation == "LOGGED_OUT"
        shown = {
            "Pause": runs and not session.paused,
            "Resume": runs and session.paused,
            "Start": not session.removing and (not runs or is_over),
            "Restart": runs and not is_over,
            "Stop": runs,
            "Log out": runs and session.authorisation == "LINKED",
            "Remove": not session.removing,
        }
        for name, made in self._buttons.items():
            made.set_visibility(shown[name])

    def hide(self) -> None:
        for made in self._buttons.values():
            made.set_visibility(False)

    def _add(self, name: str, ask: Ask, done: str, asked: str = "", *, kind: str = "") -> None:
        async def do() -> None:
            if not asked or await confirm(f"{name} {self._session_id}?", asked, name, danger=kind == "danger"):
                await act(self._visit, ask(self._session_id), done)

        self._buttons[name] = button(name, do, kind=kind)

    async def _remove(self) -> None:
        if not await confirm(f"Remove {self._session_id}?", _REMOVE, "Remove", danger=True):
            return
        if await act(
            self._visit, self._visit.api.sessions.remove(self._session_id), "Its worker ends, then it is gone."
        ):
            ui.navigate.to("/")


_RESTART = "The present worker ends and another one takes over. What it holds is settled first, or asked about."
_STOP = "Its worker finishes the message it holds and ends. The link to the phone and what waits for it stay."
_LOGOUT = "The link to the phone ends, and it has to be scanned again before it sends. What waits for it stays."
_REMOVE = "Its worker ends and the session is gone. This is refused while messages wait for it."
