"""What people read: tables, facts, times. Plain text in a pipe: no colour, no cut-off columns, nothing that moves.

Whatever comes from outside is shown as text: a name in brackets is no markup, a control character no command to the
terminal.
"""

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_PIPED_WIDTH = 240
_NOTHING = "—"
_STYLES = {
    "green": "WORKING CONNECTED DONE sent delivered read live OK ok yes",
    "yellow": "SCAN_QR STARTING RECONNECTING PAUSED RESTRICTED ROUTING ROUTED QUEUED DONE_WITH_ERRORS unknown warning",
    "red": "FAILED QUARANTINED LOGGED_OUT LINK_BLOCKED BAD CANCELED failed expired revoked fault",
}
_STYLE_OF = {word: style for style, words in _STYLES.items() for word in words.split()}
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def say(message: str) -> None:
    """To the person in front of it; stdout is for what a script may want."""
    typer.echo(clean(message), err=True)


def console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, markup=False)
    if not made.is_terminal:
        made.width = _PIPED_WIDTH
    return made


def is_terminal() -> bool:
    return sys.stdout.isatty()


def table(columns: str, rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """Columns are named in one text; one that begins with `>` stands at the right. `empty` is for people, if there is
    nothing."""
    from rich.table import Table

    shown = [[text_of(cell) for cell in row] for row in rows]
    if not shown:
        say(empty)
        return
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns.split():
        head, is_right = name.removeprefix(">"), name.startswith(">")
        drawn.add_column(head, justify="right" if is_right else "left", overflow="fold", no_wrap=head == "ID")
    for row in shown:
        drawn.add_row(*row)
    _print(drawn)


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Name and value, one line each; what is None is left out."""
    from rich.table import Table

    drawn = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    drawn.add_column(no_wrap=True, style="dim")
    drawn.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, "", []):
            drawn.add_row(name, text_of(value))
    _print(drawn)


def _print(drawn: "Table") -> None:
    """In a pipe without the blanks that fill a column up."""
    here = console()
    if here.is_terminal:
        here.print(drawn)
        return
    with here.capture() as printed:
        here.print(drawn)
    typer.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def text_of(value: Any) -> "Text":
    from rich.text import Text

    if value in (None, "", []):
        return Text(_NOTHING, style="dim")
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    words = clean(str(value))
    return Text(words, style=_STYLE_OF.get(words, ""))


def clean(words: str) -> str:
    """Without what a terminal would obey."""
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in words)


def when(at_ms: int | None) -> str | None:
    """In the timezone of this terminal, with its offset."""
    if at_ms is None:
        return None
    local = datetime.fromtimestamp(at_ms / 1000).astimezone()
    offset = local.strftime("%z")
    zone = "Z" if offset == "+0000" else f" {offset[:3]}:{offset[3:]}"
    return f"{local:%Y-%m-%d %H:%M:%S}{zone}"


def ago(at_ms: int | None) -> str | None:
    """How long since, or until: `5 min ago`, `in 2 h`."""
    if not at_ms:
        return None
    seconds = round(time.time() - at_ms / 1000)
    if not seconds:
        return "now"
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def when_and_ago(at_ms: int | None) -> str | None:
    return f"{when(at_ms)} ({ago(at_ms)})" if at_ms else None


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def span(seconds: float) -> str:
    """The two largest units that tell something: `2 d 3 h`, `5 min`, `40 s`."""
    left, parts = round(seconds), []
    for size, unit in _SPANS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join(parts[:2]) or "0 s"
