"""A number's pace: the time line, what it would do now and why, the rate, and what is known of it."""

from nicegui import ui

from paceline.client.answers_fleet_numbers import Explained
from paceline.client.answers_fleet_sessions import Session
from paceline.dashboard.parts import words
from paceline.dashboard.parts.acting import act, confirm
from paceline.dashboard.parts.facts import Fact, Facts
from paceline.dashboard.parts.inputs import Field, button
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.timeline import Timeline

RATES = (2, 3, 5, 10, 15, 20)
"""What the dispatcher takes as an override."""


def pace(visit: Visit, session_id: str) -> None:
    with Panel("Pacing") as panel:
        why = text("p", "", "why-line").props('role="status"')
        timeline = Timeline()
        with ui.element("div").classes("pace-row"):
            facts = Facts("facts facts--flow")
            rate = Rate(visit, session_id)
    limits = Limits(visit, session_id, panel)

    async def refresh() -> None:
        explained = await visit.api.sessions.explain(session_id)
        why.text = explained.text
        facts.show(facts_of(explained))
        rate.show(explained)
        limits.show(explained)
        timeline.show(await visit.api.sessions.pacing(session_id))

    visit.live.add(refresh, panel, every_seconds=2)


def facts_of(explained: Explained) -> list[Fact]:
    known = explained.facts
    low, high = known.window
    hours = "always" if known.hours is None else f"{known.hours[0]:02}:00 to {known.hours[1]:02}:00"
    return [
        Fact("Trust", known.trust_level.capitalize(), note=f"{known.rpm_default} a minute"),
        Fact("Comes to", f"{words.rate(known.effective_rpm)} a minute", note="rests included"),
        Fact("Gap", f"{words.span(low)} to {words.span(high)}"),
        _today(known.sent_today, known.daily_cap),
        Fact("Hours", hours, note=f"there it is {known.local_time[11:16]}"),
    ]


def _today(sent: int, cap: int | None) -> Fact:
    if cap is None:
        return Fact("Sent today", f"{sent:,}", note="no daily cap")
    return Fact("Sent today", f"{sent:,} of {cap:,}", share=sent / cap if cap else 1.0)


class Rate:
    """The rate a number is held to, and changing it."""

    def __init__(self, visit: Visit, session_id: str) -> None:
        self._visit = visit
        self._session_id = session_id
        options = {"": "By trust", **{str(rpm): f"{rpm} a minute" for rpm in RATES}}
        self._field = Field("Rate", kind="select", options=options, on_change=self._changed)
        if not visit.may("admin"):
            self._field.forbid("Only a key with the “admin” scope may change it.")
        self._trusted = 0
        self._present = ""

    def show(self, explained: Explained) -> None:
        known = explained.facts
        self._trusted = known.rpm_default
        self._present = "" if known.rpm_override is None else str(known.rpm_override)
        self._field.set_value(self._present)
        self._field.set_hint("" if known.rpm_override is None else f"Set by {_source(known.rpm_source)}.")

    async def _changed(self, value: str) -> None:
        rpm = int(value) if value else None
        if rpm is not None and rpm > self._trusted:
            words_ = (
                f"By its trust this number may send {self._trusted} a minute. No rate is safe; a higher one less so."
            )
            if not await confirm(f"{rpm} a minute, beyond its trust?", words_, "Set it", danger=True):
                self._field.undo(self._present)
                return
        done = "Back to what its trust allows." if rpm is None else f"Set to {rpm} a minute."
        if await act(self._visit, self._visit.api.sessions.set_rpm(self._session_id, rpm), done) is None:
            self._field.undo(self._present)


def _source(source: str | None) -> str:
    return "SmartGuard" if source == "smartguard" else "an operator"


class Limits:
    """Decisions on a number that rests or is quarantined."""

    def __init__(self, visit: Visit, session_id: str, panel: Panel) -> None:
        self._visit = visit
        self._session_id = session_id
        assert panel.head is not None
        with panel.head, ui.element("div").classes("row"):
            self._clear = button("End the cool-down", self._end_cooldown, kind="small")
            self._requeue = button("Send its queue again", self._send_again, kind="small")

    def show(self, explained: Explained) -> None:
        may = self._visit.may("admin")
        self._clear.set_visibility(may and explained.facts.cooldown_until is not None)
        self._requeue.set_visibility(may and explained.facts.quarantined)

    async def _end_cooldown(self) -> None:
        words_ = "WhatsApp told this number that it sends too fast. Going on early may get it restricted."
        if await confirm("End the cool-down?", words_, "End it", danger=True):
            await act(self._visit, self._visit.api.sessions.clear_cooldown(self._session_id), "It may send again.")

    async def _send_again(self) -> None:
        words_ = "Only a number that is linked and connected again can go on with its queue."
        if await confirm("Send its queue again?", words_, "Send"):
            await act(self._visit, self._visit.api.sessions.requeue(self._session_id), "Its queue goes on.")


class About:
    """What is known of the session and its worker."""

    def __init__(self) -> None:
        with Panel("About") as self.panel:
            self._facts = Facts()

    def show(self, session: Session) -> None:
        self._facts.show(about_of(session))


def about_of(session: Session) -> list[Fact]:
    memory = f"{session.memory_bytes / 1_048_576:.0f} MB" if session.memory_bytes else None
    return [
        Fact("Number", words.phone(session.phone)),
        Fact("Name", session.display_name),
        Fact(
            "Connection",
            words.CONNECTIONS.get(session.connection) or words.spelled(session.connection),
            note=_why(session),
        ),
        Fact("Link", words.spelled(session.authorisation)),
        *_limit(session),
        Fact("Sends by", session.driver),
        Fact("Proxy", session.proxy or ("none, as was asked for" if session.direct else None)),
        Fact("Timezone", session.timezone or "by its number"),
        Fact("Tags", ", ".join(session.tags)),
        Fact("Registered", session.created_at, when="relative"),
        Fact("Worker seen", session.last_seen, when="relative"),
        Fact("Memory", memory),
    ]


def _why(session: Session) -> str:
    reason = session.failed_reason or session.wait_reason or session.restart_reason
    return reason if reason and session.connection != "CONNECTED" else ""


def _limit(session: Session) -> list[Fact]:
    if session.restriction == "NONE":
        return []
    word = words.RESTRICTIONS.get(session.restriction) or words.Word(words.spelled(session.restriction), "warn")
    until = [Fact("Until", session.restricted_until, when="clock")] if session.restricted_until else []
    return [Fact("Limit", word.text, note=word.title), *until]
