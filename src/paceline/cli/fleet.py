"""`paceline fleet`: the whole of it at a glance, the breaker, SmartGuard, and what an operator should know."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from paceline.cli.asking import FleetApi, asking
from paceline.cli.inputs import Yes, confirm
from paceline.cli.paging import Paging
from paceline.cli.showing import facts, say, table, when, when_and_ago

if TYPE_CHECKING:
    from paceline.client.answers_fleet import FleetPaused, FleetState, Running, SmartGuard
    from paceline.client.answers_fleet_sessions import AlertsTested

fleet_app = typer.Typer(name="fleet", no_args_is_help=True, help="The whole fleet: pause, resume, incidents.")


@fleet_app.command()
@asking
def show(api: FleetApi) -> None:
    """Is it sending, how many sessions are there, and what waits?

    With --json only whether it is sending.

    Example: `paceline fleet show`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.fleet(), lambda state: _fleet(api, state))


def _fleet(api: FleetApi, state: "FleetState") -> None:
    queues, known = api.operator.fleet.queues(), api.operator.inventory.status()
    paused = f"paused by {state.paused_reason}, {when_and_ago(state.paused_at)}" if state.paused else None
    pools = known.inventory
    facts(
        [
            ("fleet", paused or ("sending" if state.running else "stopped")),
            ("sessions", [f"{count} {status}" for status, count in sorted(known.sessions.items())] or "none"),
            ("jobs to route", str(queues.gateway + queues.priority + queues.retry)),
            ("scheduled", queues.scheduled or None),
            ("parked", queues.parked or None),
            ("to be retried", queues.session_retry or None),
            ("dead letters", queues.dead_letter or None),
            ("proxies", f"{pools.proxies.available} free of {pools.proxies.total}, {pools.proxies.bad} bad"),
            ("profiles", f"{pools.profiles.available} free, {pools.profiles.used} used"),
        ]
    )


@fleet_app.command()
@asking
def pause(api: FleetApi) -> None:
    """All sending pauses: nothing is handed over or claimed any more.

    Example: `paceline fleet pause`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.pause(), _paused)


@fleet_app.command()
@asking
def resume(api: FleetApi) -> None:
    """Sending goes on, also after the breaker tripped.

    Example: `paceline fleet resume`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.resume(), _paused)


def _paused(answer: "FleetPaused") -> None:
    say(f"paused since {when(answer.since)} ({answer.reason})" if answer.paused else "sending")


@fleet_app.command()
@asking
def start(api: FleetApi) -> None:
    """All dispatchers work again.

    Example: `paceline fleet start`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.start(), _running)


@fleet_app.command()
@asking
def stop(api: FleetApi, yes: Yes = False) -> None:
    """All dispatchers rest, also after a restart, until `paceline fleet start`.

    Example: `paceline fleet stop --yes`
    """
    from paceline.client import requests_fleet as fleet

    confirm("Stop routing and pacing for the whole fleet?", yes)
    api.show(fleet.stop(), _running)


def _running(answer: "Running") -> None:
    say("the dispatchers work" if answer.running else "the dispatchers rest")


@fleet_app.command()
@asking
def smartguard(
    api: FleetApi,
    switch: Annotated[
        Literal["on", "off"] | None, typer.Argument(metavar="on|off", help="Left out: how it stands.")
    ] = None,
) -> None:
    """Does SmartGuard slow numbers down by itself? Switch it on or off.

    Example: `paceline fleet smartguard off`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.smartguard() if switch is None else fleet.set_smartguard(switch == "on"), _guard)


def _guard(guard: "SmartGuard") -> None:
    facts(
        [
            ("SmartGuard", "on" if guard.enabled else "off"),
            ("looks every", f"{guard.tick_ms / 1000:g} s"),
            ("last look", when_and_ago(guard.last_tick)),
            ("last change", when_and_ago(guard.last_action_at)),
        ]
    )


@fleet_app.command()
@asking
def test_alert(api: FleetApi) -> None:
    """Send a test alert to every channel, to see that alerts arrive before one matters. Exit code 1 if one did not.

    Example: `paceline fleet test-alert`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.test_alerts(), _alerts, is_bad=lambda answer: not answer.ok)


def _alerts(answer: "AlertsTested") -> None:
    rows = ((one.channel, "ok" if one.ok else "failed", one.reason) for one in answer.channels)
    table("CHANNEL OUTCOME WHY", rows, empty="No channel.")


@fleet_app.command()
@asking
def incidents(
    api: FleetApi,
    page: Paging,
    kind: Annotated[str, typer.Option(metavar="KIND", show_default=False, help="Only these: SEND_FAILED …")] = "",
) -> None:
    """What an operator should know, newest first; the last 200 are kept.

    Example: `paceline fleet incidents --kind SEND_FAILED`
    """
    from paceline.client import requests_fleet as fleet

    page.show(api, fleet.incidents(kind=kind, cursor=page.cursor, limit=page.limit), _incidents)


def _incidents(lines: list[dict[str, Any]]) -> None:
    rows = ((when(line.get("at")), line.get("kind"), line.get("phone"), _rest(line)) for line in lines)
    table("AT KIND NUMBER MORE", rows, empty="No incidents.")


def _rest(line: dict[str, Any]) -> str:
    told = {name: value for name, value in line.items() if name not in ("at", "kind", "phone")}
    return ", ".join(f"{name} {value}" for name, value in told.items() if value not in (None, ""))
