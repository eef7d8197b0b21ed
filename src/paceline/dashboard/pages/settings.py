"""What holds for the whole fleet: sending on or off, SmartGuard, alerts, the trust table, keys."""

from typing import Any

from nicegui import ui

from paceline.client.answers_fleet import FleetState, Policy, SmartGuard, TrustLevel
from paceline.dashboard.pages.api_keys import Keys
from paceline.dashboard.parts.acting import act, confirm
from paceline.dashboard.parts.facts import Fact, Facts
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.switch import Switch
from paceline.dashboard.parts.table import Column, Table
from paceline.dashboard.parts.text import text
from paceline.dashboard.parts.words import RESUMING

NOT_YOURS = "Your key has no “admin” scope."
_LEVELS = [
    Column("level", "Level"),
    Column("age", "Age of the number"),
    Column("rpm", "A minute, at most", "number"),
    Column("effective", "In the long run", "number"),
    Column("delay", "Rest between two"),
    Column("cap", "A day", "number"),
    Column("hours", "Hours"),
]


async def build(visit: Visit) -> None:
    heading("Alerts and settings")
    with ui.element("div").classes("halves"):
        _Sending(visit)
        _Guard(visit)
        _Alerts(visit)
    _trust(visit)
    if visit.may("admin"):
        Keys(visit)


class _Sending:
    """The breaker by hand, and the dispatchers."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        why_not = "" if visit.may("admin") else NOT_YOURS
        with Panel("Sending") as panel, ui.element("div").classes("stack"):
            self._sending = Switch("Sending", "Pause", "Resume", self._press, why_not=why_not)
            self._running = Switch("Dispatchers", "Stop", "Start", self._run, why_not=why_not)
        visit.live.add(self._refresh, panel)

    async def _refresh(self) -> None:
        state = await self._visit.api.fleet.state()
        self._sending.show(not state.paused, paused_words(state), since=state.paused_at if state.paused else None)
        self._running.show(
            state.running, "running" if state.running else "stopped: nothing is routed, paced or retried"
        )

    async def _press(self) -> None:
        if not self._sending.is_on:
            if await confirm("Resume sending?", RESUMING, "Resume sending"):
                await act(self._visit, self._visit.api.fleet.resume(), "Sending goes on.")
        elif await confirm("Pause all sending?", "Nothing is handed over or claimed any more.", "Pause", danger=True):
            await act(self._visit, self._visit.api.fleet.pause(), "All sending is paused.")

    async def _run(self) -> None:
        words = "Routing, pacing, retries and SmartGuard rest, also after a restart."
        if not self._running.is_on:
            await act(self._visit, self._visit.api.fleet.start(), "The dispatchers work.")
        elif await confirm("Stop the dispatchers?", words, "Stop", danger=True):
            await act(self._visit, self._visit.api.fleet.stop(), "The dispatchers are stopped.")


class _Guard:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        why_not = "" if visit.may("admin") else NOT_YOURS
        with Panel("SmartGuard") as panel, ui.element("div").classes("stack"):
            text("p", "Slows a number down when its messages fail, and back up when they no longer do.", "hint")
            self._switch = Switch("SmartGuard", "Switch off", "Switch on", self._press, why_not=why_not)
            self._facts = Facts()
        visit.live.add(self._refresh, panel)

    async def _refresh(self) -> None:
        self._show(await self._visit.api.smartguard.status())

    def _show(self, guard: SmartGuard) -> None:
        self._switch.show(guard.enabled, "watching" if guard.enabled else "off: no number is slowed down by itself")
        self._facts.show(
            [
                Fact("Looks every", f"{guard.tick_ms / 1000:g} s"),
                Fact("Last look", guard.last_tick, when="relative"),
                Fact("Last change", guard.last_action_at, when="relative"),
            ]
        )

    async def _press(self) -> None:
        turn_on = not self._switch.is_on
        words = "Overrides it has set stay until somebody removes them."
        if turn_on or await confirm("Switch SmartGuard off?", words, "Switch off", danger=True):
            done = "SmartGuard watches." if turn_on else "SmartGuard is off."
            await act(self._visit, self._visit.api.smartguard.enable(turn_on), done)


class _Alerts:
    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        with Panel("Alerts") as panel, ui.element("div").classes("stack"):
            self._where = text("p", "")
            with ui.element("div").classes("row"):
                button("Send a test alert", self._test, why_not="" if visit.may("admin") else NOT_YOURS)
            self._outcome = ui.element("ul").classes("outcomes").props('role="status"')
        visit.live.add(self._refresh, panel, every_seconds=15)

    async def _refresh(self) -> None:
        channels = (await self._visit.api.inventory.alert_channels()).channels
        none = "No channel is set up: nobody is alerted. docs/alerts.md has Telegram in five steps."
        self._where.text = f"They go to {', '.join(channels)}." if channels else none

    async def _test(self) -> None:
        self._outcome.clear()
        answer = await act(self._visit, self._visit.api.inventory.test_alerts())
        if answer is not None:
            with self._outcome:
                for one in answer.channels:
                    with ui.element("li"):
                        text("span", one.channel, f"chip chip--{'good' if one.ok else 'bad'}")
                        text("span", "took it" if one.ok else one.reason)


def _trust(visit: Visit) -> None:
    with Panel("Trust table", classes="panel--flush") as panel:
        table = Table("What a number may do at which age", _LEVELS, none="").classes("cards")
        with ui.element("div").classes("below"):
            facts = Facts("facts facts--flow")

    async def refresh() -> None:
        policy = await visit.api.fleet.policy()
        table.show(levels(policy), note=f"Policy “{policy.name}”. It is a file; see docs/settings.md.")
        facts.show(for_all(policy))

    visit.live.add(refresh, panel, every_seconds=60)


def paused_words(state: FleetState) -> str:
    if not state.paused:
        return "allowed"
    return (
        "paused by the breaker: WhatsApp restricted several numbers" if state.paused_reason == "BREAKER" else "paused"
    )


def levels(policy: Policy) -> list[dict[str, Any]]:
    since = 0.0
    rows = []
    for level in policy.levels:
        rows.append(_level(level, since))
        since = level.max_age_days or since
    return rows


def _level(level: TrustLevel, since: float) -> dict[str, Any]:
    return {
        "id": level.name,
        "level": level.name,
        "age": f"{since:g} to {level.max_age_days:g} days" if level.max_age_days else f"{since:g} days and more",
        "rpm": level.rpm,
        "effective": level.effective_rpm,
        "delay": f"{level.min_delay_ms / 1000:g}–{level.max_delay_ms / 1000:g} s",
        "cap": level.daily_cap if level.daily_cap is not None else None,
        "hours": clock_span(level.hours),
    }


def for_all(policy: Policy) -> list[Fact]:
    burst = f"{policy.burst_limit} messages, then {policy.burst_cooldown_ms / 1000:g} s rest"
    return [
        Fact("Recipients are written to", clock_span(policy.recipient_hours)),
        Fact("Jitter", f"±{policy.jitter:.0%}" if policy.jitter else "none"),
        Fact("Burst", burst if policy.burst_limit else "no rule"),
        Fact("Typing", f"{policy.typing_ms[0] / 1000:g}–{policy.typing_ms[1] / 1000:g} s"),
        Fact("Ceiling for all numbers", f"{policy.global_rpm:,} a minute" if policy.global_rpm else "none"),
    ]


def clock_span(hours: tuple[int, int] | None) -> str:
    return "round the clock" if hours is None else f"{hours[0]:02}:00–{hours[1]:02}:00"


PAGE = Page("/settings", "Settings", build, icon="settings", scope="read")
