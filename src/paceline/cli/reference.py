"""The commands as docs/cli.md shows them, read from typer itself, so that the page cannot fall behind."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from typer.main import get_command

from paceline.cli.asking import FleetApi
from paceline.cli.exits import MEANINGS
from paceline.cli.paging import Paging
from paceline.cli.root import app

_SHARED = {field.name for kind in (FleetApi, Paging) for field in fields(kind)}
_AUTOMATIC = {"help", "install_completion", "show_completion"}


def commands() -> str:
    return "\n".join(_group("paceline", get_command(app), 3)).strip()


def exit_codes() -> list[tuple[str, str]]:
    return [(str(int(code)), f"{meaning[0].upper()}{meaning[1:]}.") for code, meaning in MEANINGS.items()]


def leaves(name: str = "paceline", command: Any = None) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with what has to be typed for it."""
    command = command or get_command(app)
    for verb, one in getattr(command, "commands", {}).items():
        if hasattr(one, "commands"):
            yield from leaves(f"{name} {verb}", one)
        else:
            yield f"{name} {verb}", one


def _group(name: str, group: Any, level: int) -> Iterator[str]:
    for verb in group.list_commands(None):
        command, whole = group.commands[verb], f"{name} {verb}"
        yield from (f"{'#' * level} {whole}", "", command.help.strip(), "")
        if hasattr(command, "commands"):
            yield from _group(whole, command, level + 1)
        else:
            yield from _parameters(command)


def _parameters(command: Any) -> Iterator[str]:
    own = [one for one in command.params if one.name not in _SHARED | _AUTOMATIC]
    if not own:
        return
    yield from ("| option | meaning |", "| --- | --- |")
    for one in own:
        help_ = " ".join(str(one.help).split())
        default = f" Default: `{one.default}`." if _has_default(one) else ""
        cells = (_spelled(one), f"{help_}{default}")
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _spelled(one: Any) -> str:
    metavar = one.metavar or ""
    if one.param_type_name == "argument":
        return f"`{metavar or one.name.upper()}`"
    spelled = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    return f"{spelled} `{metavar}`" if metavar and not one.is_flag else spelled


def _has_default(one: Any) -> bool:
    return isinstance(one.default, int | str) and not isinstance(one.default, bool) and one.default != ""
