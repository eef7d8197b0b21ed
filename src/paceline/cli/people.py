"""`paceline people`: what is kept about a person. Neighbour: `suppress` has those who must not be written to."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import GatewayApi, asking
from paceline.cli.inputs import Yes, confirm
from paceline.cli.showing import counted, say

if TYPE_CHECKING:
    from paceline.client.answers_lists import ErasedPerson

people_app = typer.Typer(name="people", no_args_is_help=True, help="What is kept about a person.")


@people_app.command()
@asking
def erase(
    number: Annotated[str, typer.Argument(metavar="NUMBER", help="Of whom nothing is to be kept.")],
    api: GatewayApi,
    yes: Yes = False,
) -> None:
    """Cancel what waits for a person, and remove them from everything that is kept. It cannot be taken back.

    If they are on the suppression list they stay there, so that nobody writes to them again. Exit code 1 if a worker
    holds messages to them: then ask again once these have ended.

    Example: `paceline people erase "+44 7700 900300" --yes`
    """
    from paceline.client import requests_lists as lists

    confirm(f"Erase all that is kept about {number}?", yes)
    api.show(lists.erase(number), _erased, is_bad=lambda answer: answer.open > 0)


def _erased(answer: "ErasedPerson") -> None:
    say(f"{answer.to}: {counted(answer.canceled, 'message')} canceled, {counted(answer.erased, 'record')} erased")
    if answer.suppressed:
        say("still on the suppression list, so that nobody writes to them")
    if answer.open:
        say(f"{counted(answer.open, 'message')} in a worker's hands: ask again once they have ended")
