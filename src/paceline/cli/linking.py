"""`paceline sessions qr`, `pair`, `scan`, `logout`: a number is linked to its session, or taken off it."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import FleetApi, asking
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.inputs import SessionId, Timeout, Yes, confirm
from paceline.cli.showing import console, is_terminal, say, span, when

if TYPE_CHECKING:
    from rich.text import Text

    from paceline.client import Operator
    from paceline.client.answers_fleet_sessions import CommandGiven, PairingCode, QrCode

LOOK_SECONDS = 1.0
LINKED = "LINKED"
QUIET_ZONE = 2
"""Light modules around a code; scanners want some, and a terminal has little room."""
_HALVES = {(False, False): "█", (False, True): "▀", (True, False): "▄", (True, True): " "}
"""A character is two modules high; light ones are drawn, because the paper is what a terminal lacks."""


@asking
def qr(
    session: SessionId,
    api: FleetApi,
    timeout: Timeout = 300,
    once: Annotated[bool, typer.Option("--once", help="Show the present code and do not wait.")] = False,
) -> None:
    """Show the QR code to scan, renewed until the number is linked.

    On the phone: WhatsApp, Linked devices, Link a device. In a pipe, with --once or --json the present code is printed
    once.

    Example: `paceline sessions qr shop-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    if api.as_json or once or not is_terminal():
        api.show(sessions.qr(session), lambda code: console().print(drawing(code.qr)))
    else:
        _until_linked(api.patient, session, timeout)


@asking
def pair(session: SessionId, api: FleetApi) -> None:
    """Print a code to type into the phone instead of scanning.

    On the phone: WhatsApp, Linked devices, Link a device, Link with phone number instead. Waits up to half a minute for
    the worker.

    Example: `paceline sessions pair shop-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.pairing_code(session), _code)


@asking
def scan(session: SessionId, api: FleetApi) -> None:
    """Scan the code of a simulated session, as a person with the phone would.

    Example: `paceline sessions scan sim-1`
    """
    from paceline.client import requests_fleet_sessions as sessions

    api.show(sessions.scan_simulated(session), _told)


@asking
def logout(session: SessionId, api: FleetApi, yes: Yes = False) -> None:
    """Its worker ends the link to the number and stops. A start links anew.

    Example: `paceline sessions logout shop-1 --yes`
    """
    from paceline.client import requests_fleet_sessions as sessions

    confirm(f"Log session {session} out? It has to be linked again to send.", yes)
    api.show(sessions.logout(session), _told)


def drawing(words: str) -> "Text":
    """The code in half blocks, black on white whatever the terminal's colours."""
    import segno
    from rich.text import Text

    rows = [list(map(bool, row)) for row in segno.make(words, micro=False).matrix_iter(border=QUIET_ZONE)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    lines = ("".join(map(_half, upper, lower)) for upper, lower in zip(rows[::2], rows[1::2], strict=True))
    return Text("\n".join(lines), style="bright_white on black", no_wrap=True)


def _half(upper: bool, lower: bool) -> str:
    return _HALVES[upper, lower]


def _until_linked(operator: "Operator", session: str, timeout_seconds: float) -> None:
    from rich.live import Live

    until = time.monotonic() + timeout_seconds
    shown = None
    # Drawn when it changes only: a code that is higher than the window would run through it every second.
    with Live(console=console(), auto_refresh=False, transient=True, vertical_overflow="visible") as live:
        while (known := operator.sessions.get(session)).authorisation != LINKED:
            if time.monotonic() > until:
                fail(f"{session} was not linked within {span(timeout_seconds)}", Exit.TIMED_OUT)
            picture = _picture(_present(operator, session), known.status)
            if picture != shown:
                shown = picture
                live.update(picture, refresh=True)
            time.sleep(LOOK_SECONDS)
    say(f"{session} is linked to {known.phone}")


def _present(operator: "Operator", session: str) -> "QrCode | None":
    from paceline.client import Conflict, NotFound

    try:
        return operator.sessions.qr(session)
    except NotFound as error:
        if error.code != "NO_QR":
            raise
    except Conflict as error:
        # Linked a moment ago: the next look shows it.
        if error.code != "ALREADY_LINKED":
            raise
    return None


def _picture(code: "QrCode | None", status: str) -> "Text":
    from rich.text import Text

    if code is None:
        return Text(f"{status}: no code yet, its worker is asked again every second")
    note = f"\n\nWhatsApp > Linked devices > Link a device. Good until {when(code.expires_at)}, then renewed."
    return Text.assemble(drawing(code.qr), note)


def _code(code: "PairingCode") -> None:
    typer.echo(code.code)
    say(f"WhatsApp > Linked devices > Link with phone number. Good for {span(code.expires_at / 1000 - time.time())}.")


def _told(command: "CommandGiven") -> None:
    say(f"its worker is told to {command.kind}; `paceline sessions show` tells how that ended")
