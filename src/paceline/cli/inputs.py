"""What a person gives a command: files and `-`, moments, a yes."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import completing
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.showing import say

STDIN = "-"

SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        autocompletion=completing.sessions,
        help="sessionId, as `paceline sessions list` shows it.",
    ),
]
JobId = Annotated[
    str,
    typer.Argument(metavar="JOB", autocompletion=completing.jobs, help="jobId, as `paceline jobs list` shows it."),
]
MessageId = Annotated[str, typer.Argument(metavar="MESSAGE", help="messageId, such as 01KKBK4FE0S7MP2BKPJTKCXK0V:0.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Timeout = Annotated[int, typer.Option(min=1, metavar="SECONDS", help="Give up waiting after so long.")]


def read_file(name: str) -> bytes:
    """A file, or stdin for `-`."""
    if name == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(name).expanduser().read_bytes()
    except OSError as error:
        fail(f"cannot read {name}: {error.strerror}", Exit.USAGE)


def read_text(words: str) -> str:
    """The words themselves, or stdin for `-`, without its last line's end."""
    if words != STDIN:
        return words
    try:
        return read_file(STDIN).decode().removesuffix("\n")
    except UnicodeDecodeError:
        fail("what comes from stdin is no UTF-8 text", Exit.USAGE)


def moment(words: str | None) -> int | None:
    """`2026-12-24 09:00` is taken in the timezone of this terminal; an offset or Unix milliseconds are as they are."""
    if words is None:
        return None
    if words.isascii() and words.isdigit():
        return int(words)
    try:
        return round(datetime.fromisoformat(words).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError):
        fail(f"{words!r} is no time: 2026-12-24T09:00+02:00, or 2026-12-24 09:00 for this timezone", Exit.USAGE)


def confirm(question: str, yes: bool) -> None:
    """For what cannot be undone. Where nobody can answer, --yes has to be said."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question} Say --yes.", Exit.USAGE)
    if not typer.confirm(question, err=True):
        say("Nothing was done.")
        raise typer.Exit(Exit.FAILED)
