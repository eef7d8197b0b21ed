"""`paceline sessions logs`, `events`, `history`: what a session printed, said and did."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import FleetApi, asking
from paceline.cli.inputs import SessionId
from paceline.cli.paging import Paging
from paceline.cli.showing import clean, say, table, when

if TYPE_CHECKING:
    from paceline.client.answers_fleet_sessions import AuditRow, SessionEvent, SessionLogs


@asking
def logs(
    session: SessionId,
    api: FleetApi,
    lines: Annotated[int, typer.Option(min=1, max=1_000, metavar="N", help="How many of the last lines.")] = 50,
) -> None:
    """The end of what its worker printed.

    Example: `paceline sessions logs sim-1 --lines 200`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.session_logs(session, lines=lines), _logs)


def _logs(found: "SessionLogs") -> None:
    if not found.lines:
        say("Nothing: it has not run here yet, or its worker is somebody else's.")
    for line in found.lines:
        typer.echo(clean(line))


@asking
def events(session: SessionId, api: FleetApi, page: Paging) -> None:
    """What its worker said, newest first: connected, disconnected, restricted …

    Example: `paceline sessions events sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    page.show(api, sessions.session_events(session, cursor=page.cursor, limit=page.limit), _events)


def _events(found: "list[SessionEvent]") -> None:
    rows = ((when(one.at), one.event, _words(one.data)) for one in found)
    table("AT EVENT MORE", rows, empty="It has said nothing yet.")


@asking
def history(session: SessionId, api: FleetApi, page: Paging) -> None:
    """What was decided about it and what it sent, newest first; also of one that was removed.

    Example: `paceline sessions history sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    page.show(api, sessions.session_history(session, cursor=page.cursor, limit=page.limit), _history)


def _history(found: "list[AuditRow]") -> None:
    rows = ((when(one.at), one.kind, one.action or one.message_id, one.by, one.reason or one.proxy_ip) for one in found)
    table("AT KIND WHAT BY WHY", rows, empty="Nothing is known of it yet.")


def _words(data: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in data.items())
