"""`paceline sessions`: the registry and the life cycle. Its neighbours add to the same noun: `linking` (qr, pair),
`numbers` (pace, queue, why it waits), `past` (logs, events, history)."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import FleetApi, asking
from paceline.cli.inputs import SessionId, Yes, confirm, moment
from paceline.cli.linking import logout, pair, qr, scan
from paceline.cli.numbers import cancel_queue, change, clear_cooldown, explain, queue, requeue, rpm
from paceline.cli.paging import Paging
from paceline.cli.past import events, history, logs
from paceline.cli.showing import ago, facts, say, table, when, when_and_ago

if TYPE_CHECKING:
    from paceline.client.answers_fleet_sessions import Session, SessionActed, SessionRemoving

sessions_app = typer.Typer(
    name="sessions",
    no_args_is_help=True,
    help="Sessions of your numbers: create, link by QR code, pause, restart, explain.",
)


@asking
def list_(
    *,
    api: FleetApi,
    page: Paging,
    status: Annotated[
        str, typer.Option(metavar="STATUS", show_default=False, help="Only these: WORKING, SCAN_QR, FAILED …")
    ] = "",
    restriction: Annotated[
        str, typer.Option(metavar="KIND", show_default=False, help="Only these: COOLDOWN, TIME_LOCKED, CAPPED …")
    ] = "",
    tag: Annotated[str, typer.Option(metavar="TAG", show_default=False, help="Only with this tag.")] = "",
    phone: Annotated[str, typer.Option(metavar="NUMBER", show_default=False, help="Only of this number.")] = "",
) -> None:
    """All sessions, in the order of their ids.

    Example: `paceline sessions list --status SCAN_QR`
    """
    from paceline.client import requests_fleet_sessions as sessions

    call = sessions.list_sessions(
        status=status.upper(),
        restriction=restriction.upper(),
        tag=tag,
        phone=phone,
        cursor=page.cursor,
        limit=page.limit,
    )
    page.show(api, call, _rows)


def _rows(found: "list[Session]") -> None:
    rows = (
        (one.session_id, one.phone, one.status, one.driver, ago(one.last_seen), one.proxy or _without(one))
        for one in found
    )
    empty = "No sessions. `paceline sessions create NUMBER` makes one."
    table("ID NUMBER STATUS DRIVER SEEN PROXY", rows, empty=empty)


def _without(session: "Session") -> str | None:
    return "direct" if session.direct else session.wait_reason


@asking
def show(session: SessionId, api: FleetApi) -> None:
    """What is wished for it, what its worker said last, and what it holds.

    Example: `paceline sessions show sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.get_session(session), draw)


def draw(session: "Session") -> None:
    facts(
        [
            ("session", session.session_id),
            ("number", session.phone),
            ("status", session.status),
            ("connection", session.connection),
            ("authorisation", session.authorisation),
            ("restriction", None if session.restriction == "NONE" else session.restriction),
            ("until", when_and_ago(session.restricted_until)),
            ("why it failed", session.failed_reason),
            ("why it waits", session.wait_reason),
            ("last exit", session.last_exit),
            ("driver", session.driver),
            ("display name", session.display_name),
            ("proxy", session.proxy or ("direct" if session.direct else None)),
            ("profile", session.profile),
            ("timezone", session.timezone),
            ("tags", session.tags),
            ("number began", when(session.created_at)),
            ("last seen", when_and_ago(session.last_seen or None)),
            ("memory", session.memory_bytes and f"{session.memory_bytes / 2**20:.0f} MiB"),
        ]
    )


@asking
def create(
    phone: Annotated[str, typer.Argument(metavar="NUMBER", help="+44 7700 900001.")],
    *,
    api: FleetApi,
    session_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Left out: one is made.")] = None,
    driver: Annotated[str | None, typer.Option(metavar="NAME", help="simulated (default) or baileys.")] = None,
    proxy: Annotated[
        str | None, typer.Option(metavar="ID|URL|direct", help="One of the pool, or direct for none. Left out: any.")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="ID", help="A profile of the pool.")] = None,
    created_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="When the number began, if it is older than its session here.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="Such as Asia/Jerusalem.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Repeat it for several.")] = None,
) -> None:
    """Register a session of a number, and print its id. `paceline sessions qr ID` links it.

    Example: `paceline sessions create "+44 7700 900001" --id shop-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    call = sessions.create_session(
        phone,
        session_id=session_id,
        driver=driver,
        proxy=proxy,
        profile=profile,
        created_at=moment(created_at),
        timezone=timezone,
        tags=tag or None,
    )
    api.show(call, _created)


def _created(session: "Session") -> None:
    typer.echo(session.session_id)
    say(f"{session.status}; `paceline sessions qr {session.session_id}` shows its code, if it has to be linked")


@asking
def start(session: SessionId, api: FleetApi) -> None:
    """A worker is wanted. Of one that failed or was logged out it is a new beginning.

    Example: `paceline sessions start sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.start_session(session), _acted)


@asking
def stop(session: SessionId, api: FleetApi) -> None:
    """Its worker finishes the message it holds and ends. The link and what waits stay.

    Example: `paceline sessions stop sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.stop_session(session), _acted)


@asking
def restart(session: SessionId, api: FleetApi) -> None:
    """Another worker instead of the present one.

    Example: `paceline sessions restart sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.restart_session(session), _acted)


@asking
def pause(session: SessionId, api: FleetApi) -> None:
    """It stays connected and gets no task.

    Example: `paceline sessions pause sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.pause_session(session), _acted)


@asking
def resume(session: SessionId, api: FleetApi) -> None:
    """It gets tasks again.

    Example: `paceline sessions resume sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.resume_session(session), _acted)


def _acted(answer: "SessionActed") -> None:
    was = "" if answer.changed else " (it was so already)"
    say(f"{answer.session.session_id}: {answer.session.status}, wanted {answer.session.desired}{was}")


@asking
def remove(
    session: SessionId,
    api: FleetApi,
    force: Annotated[bool, typer.Option("--force", help="Also while messages wait for its number.")] = False,
    yes: Yes = False,
) -> None:
    """Its worker ends, then it is gone.

    Example: `paceline sessions remove sim-1 --yes`
    """
    from paceline.client import requests_fleet_sessions as sessions

    confirm(f"Remove session {session}?", yes)
    api.show(sessions.remove_session(session, force=force), _removing)


def _removing(_answer: "SessionRemoving") -> None:
    say("its worker is ended; then it is gone")


for command in (
    *(list_, show, create, qr, pair, scan, explain, queue, rpm, pause, resume, start, stop, restart, logs, events),
    *(history, change, logout, remove, clear_cooldown, requeue, cancel_queue),
):
    sessions_app.command(command.__name__.rstrip("_").replace("_", "-"))(command)
