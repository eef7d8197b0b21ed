"""`paceline suppress`: who must not be written to."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import GatewayApi, asking
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.inputs import read_file
from paceline.cli.paging import Paging
from paceline.cli.showing import say, table, when

if TYPE_CHECKING:
    from paceline.client.answers_lists import Suppressed, Suppression, SuppressionRemoved, SuppressionsImported

suppress_app = typer.Typer(name="suppress", no_args_is_help=True, help="Who must not be written to.")

SHOWN_ROWS = 20


@suppress_app.command()
@asking
def add(
    numbers: Annotated[list[str], typer.Argument(metavar="NUMBER…", help="Who gets nothing from now on.")],
    api: GatewayApi,
    reason: Annotated[str, typer.Option(metavar="WORDS", show_default=False, help="Why, for the list.")] = "",
) -> None:
    """Never write to these people again, also if a job with them is under way.

    Example: `paceline suppress add "+44 7700 900300" --reason "asked by mail"`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.suppress(numbers, reason), _added)


def _added(answer: "Suppressed") -> None:
    say(f"{answer.added} added")


@suppress_app.command("import")
@asking
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE.CSV", help="Rows `to[,reason]`; - reads stdin.")],
    api: GatewayApi,
) -> None:
    """Add everybody in a CSV file. Bad rows are named (exit code 1), the others are stored.

    Example: `paceline suppress import optouts.csv`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.import_suppressions(read_file(file)), _imported, is_bad=lambda answer: bool(answer.rejected))


def _imported(answer: "SuppressionsImported") -> None:
    say(f"{answer.added} added, {answer.duplicates} were there already, {len(answer.rejected)} refused")
    for row in answer.rejected[:SHOWN_ROWS]:
        say(f"line {row.line}: {row.to}: {row.code}")
    if len(answer.rejected) > SHOWN_ROWS:
        say(f"and {len(answer.rejected) - SHOWN_ROWS} more")


@suppress_app.command()
@asking
def export(api: GatewayApi) -> None:
    """The whole list as CSV, which can be imported again.

    Example: `paceline suppress export > suppressed.csv`
    """
    from paceline.client import requests_lists as lists

    if api.as_json:
        fail("an export is CSV; `paceline suppress list --all --json` is the same as JSON", Exit.USAGE)
    sys.stdout.write(api.ask(lists.export_suppressions()))


@suppress_app.command("list")
@asking
def list_(
    api: GatewayApi,
    page: Paging,
    to: Annotated[str | None, typer.Option(metavar="NUMBER", help="Only this person, if they are on it.")] = None,
) -> None:
    """Who is on the list, since when and why.

    Example: `paceline suppress list --to "+44 7700 900300"`
    """
    from paceline.client import requests_lists as lists

    page.show(api, lists.list_suppressions(to=to, cursor=page.cursor, limit=page.limit), _rows)


def _rows(found: "list[Suppression]") -> None:
    rows = ((one.to, when(one.at), one.source, one.reason) for one in found)
    table("NUMBER SINCE SOURCE WHY", rows, empty="Nobody is on the list.")


@suppress_app.command()
@asking
def remove(
    number: Annotated[str, typer.Argument(metavar="NUMBER", help="Who may be written to again.")], api: GatewayApi
) -> None:
    """Take a person off the list.

    Example: `paceline suppress remove "+44 7700 900300"`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.lift_suppression(number), _removed)


def _removed(answer: "SuppressionRemoved") -> None:
    say(f"{answer.to} may be written to again")
