"""All commands in one place, in the order in which `paceline --help` shows them."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from paceline import __version__
from paceline.cli import starting
from paceline.cli.doctor import doctor
from paceline.cli.exits import EPILOG
from paceline.cli.fleet import fleet_app
from paceline.cli.jobs import jobs_app
from paceline.cli.keys import keys_app
from paceline.cli.letters import letters_app
from paceline.cli.messages import messages_app
from paceline.cli.people import people_app
from paceline.cli.pools import profiles_app, proxies_app
from paceline.cli.sending import plan, send
from paceline.cli.sessions import sessions_app
from paceline.cli.suppress import suppress_app
from paceline.cli.webhooks import webhooks_app


class InOrder(TyperGroup):
    """Nouns and verbs as they stand here; typer would show all verbs first."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = [_name(member) for members in _PANELS.values() for member in members]
        return sorted(super().list_commands(ctx), key=names.index)


def _name(member: "Callable[..., None] | typer.Typer") -> str:
    return str(member.info.name) if isinstance(member, typer.Typer) else member.__name__


app = typer.Typer(
    name="paceline",
    cls=InOrder,
    no_args_is_help=True,
    # The library's own would show local variables, and one of them may be a key.
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
    help=(
        "Sends WhatsApp messages through a fleet of your own numbers, each at a pace that number can sustain.\n\n"
        "New here? **paceline demo** starts everything on this machine with simulated numbers, "
        "sends 200 messages and shows you around. Nothing leaves your computer."
    ),
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


_PANELS: dict[str, tuple[Callable[..., None] | typer.Typer, ...]] = {
    "Start here": (starting.up, starting.demo, doctor),
    "Send and watch": (send, plan, jobs_app, messages_app, suppress_app, people_app, letters_app),
    "Run the fleet": (sessions_app, fleet_app, proxies_app, profiles_app, keys_app, webhooks_app),
    "One service at a time (settings come from the environment)": (
        starting.gateway,
        starting.dispatcher,
        starting.orchestrator,
        starting.worker,
        starting.dashboard,
    ),
}

for panel, members in _PANELS.items():
    for member in members:
        if isinstance(member, typer.Typer):
            app.add_typer(member, rich_help_panel=panel, epilog=EPILOG)
        else:
            epilog = starting.ENVIRONMENT if member in (starting.up, starting.demo) else None
            app.command(rich_help_panel=panel, epilog=epilog)(member)


def main() -> None:
    """The entry point of the `paceline` script."""
    app()
