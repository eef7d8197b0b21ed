"""`paceline doctor`: is this machine fit to run it, and if not, what to do."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.exits import Exit
from paceline.cli.showing import console, counted, say

if TYPE_CHECKING:
    from paceline.cli.findings import Finding

_MARKS = {"ok": ("ok", "green"), "note": ("note", "cyan"), "warning": ("warn", "yellow"), "fault": ("FAULT", "red")}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON array of findings.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", envvar="API_KEY", metavar="KEY", help="As for other commands.")
    ] = None,
) -> None:
    """Check this machine and say how to mend what is wrong.

    Settings, data directory, keys, Redis and whether it keeps what it is told, clock, Docker, ports, and the platform
    if it runs. Changes nothing. Exit code 1 if there is a fault.

    Example: `paceline doctor`
    """
    from paceline.cli.examining import examine

    found = []
    for one in examine(key):
        found.append(one)
        if not as_json:
            _show(one)
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
    faults, warnings = (sum(one.state == state for one in found) for state in ("fault", "warning"))
    say(f"{len(found)} checks: {counted(faults, 'fault')}, {counted(warnings, 'warning')}")
    if faults:
        raise typer.Exit(Exit.FAILED)


def _show(finding: "Finding") -> None:
    from rich.table import Table
    from rich.text import Text

    mark, style = _MARKS[finding.state]
    words = Text.assemble((finding.about, "bold"), f": {finding.found}")
    if finding.mend:
        words.append(f"\n→ {finding.mend}", style="dim")
    row = Table.grid(padding=(0, 1))
    row.add_column(width=5, style=style)
    row.add_column(overflow="fold")
    row.add_row(mark, words)
    console().print(row)
