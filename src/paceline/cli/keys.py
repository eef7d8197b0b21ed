"""`paceline keys`: make, list and revoke API keys, over the gateway's HTTP interface.

Only options and output live here; `paceline.client` does the asking, once: a person can repeat a command. A new key is
the only thing `create` writes to stdout, so that it can be piped into a secret store; everything said to people goes to
stderr. Neighbour: `cli`, which adds these commands to its own.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no gateway to ask.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from paceline.client import Paceline
    from paceline.client.answers_lists import ApiKey

T = TypeVar("T")

keys_app = typer.Typer(
    name="keys",
    no_args_is_help=True,
    help="API keys: make, list, revoke.",
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no gateway to ask.",
)


class Scope(StrEnum):
    send = "send"
    read = "read"
    admin = "admin"


Url = Annotated[str, typer.Option("--url", envvar="PACELINE_URL", metavar="URL", help="The gateway.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="API_KEY",
        metavar="KEY",
        show_default=False,
        help="An admin key. Better in the environment: what is typed here, others on this machine can see. "
        "Left out: the one in $PACELINE_DATA/api-key.",
    ),
]
_PAGE_SIZE = 200
_PIPED_WIDTH = 240
_URL = "http://127.0.0.1:4000"


@keys_app.command()
def create(  # noqa: PLR0917 - each is an option of the command
    name: Annotated[str, typer.Option(metavar="NAME", help="Who or what will use it.")],
    scope: Annotated[
        list[Scope], typer.Option(help="What it may do; repeat it for several. admin includes the others.")
    ],
    expires_days: Annotated[
        int | None, typer.Option(min=1, max=3_650, metavar="N", help="Refused after N days. Left out: never.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(min=0, max=1_000_000, metavar="N", help="N requests a minute; 0 is no limit of its own."),
    ] = None,
    url: Url = _URL,
    key: Key = None,
) -> None:
    """Make a key and print it, this once.

    The key alone goes to stdout: paceline keys create --name CRM --scope send | store-secret
    """
    scopes = [str(one) for one in scope]
    made = _ask(url, key, lambda p: p.keys.create(name, scopes, expires_in_days=expires_days, rate_per_minute=rate))
    typer.echo(made.key)
    until = f"until {_day(made.expires_at)}" if made.expires_at else "until it is revoked"
    typer.echo(
        f"key {made.key_id} ({made.name}): {', '.join(made.scopes)}, good {until}. It is not shown again.",
        err=True,
    )


@keys_app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON array.")] = False,
    url: Url = _URL,
    key: Key = None,
) -> None:
    """All keys, also those that have ended; never the key itself, which nobody has."""
    items = _ask(url, key, lambda p: list(p.keys.each(limit=_PAGE_SIZE)))
    if as_json:
        from msgspec import to_builtins

        typer.echo(json.dumps(to_builtins(items), indent=2, ensure_ascii=False))
        return
    _table(items)


@keys_app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="keyId, as `list` shows it.")],
    url: Url = _URL,
    key: Key = None,
) -> None:
    """Refuse a key from now on, everywhere within a second. Its record stays."""
    ended = _ask(url, key, lambda p: p.keys.revoke(key_id))
    typer.echo(f"key {ended.key_id} ({ended.name}) is revoked since {_day(ended.revoked_at)}", err=True)


def _ask(url: str, key: str | None, work: "Callable[[Paceline], T]") -> T:
    from paceline.client import Misused, Paceline, PacelineError, Retries, Unreachable
    from paceline.launcher.data import find_key
    from paceline.launcher.errors import LauncherError

    try:
        with Paceline(url, find_key(key), retries=Retries(tries=1)) as gateway:
            return work(gateway)
    except LauncherError as error:
        _fail(error, error.exit_code)
    except Misused as error:
        _fail(error, 2)
    except Unreachable as error:
        _fail(error, 3)
    except PacelineError as error:
        _fail(error, 1)


def _fail(error: Exception, exit_code: int) -> NoReturn:
    typer.echo(f"paceline: {error}", err=True)
    raise typer.Exit(exit_code) from error


def _table(items: "list[ApiKey]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("ID", "NAME", "SCOPES", "STATE", "CREATED", "EXPIRES", "PER MINUTE"):
        table.add_column(column, no_wrap=column == "ID", overflow="fold")
    for item in items:
        rate = item.rate_per_minute
        cells = (
            item.key_id,
            item.name,
            ",".join(item.scopes),
            item.state,
            _day(item.created_at)[:10],
            _day(item.expires_at)[:10],
            {None: "default", 0: "no limit"}.get(rate, str(rate)),
        )
        # As plain text: a name in brackets is no colour.
        table.add_row(*(Text(str(cell)) for cell in cells))
    console = Console()
    # What is piped has no width to keep to.
    console.print(table, width=None if console.is_terminal else _PIPED_WIDTH)


def _day(at_ms: int | None) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%MZ") if at_ms else "—"
