"""`paceline keys`: make, list and revoke API keys, over the gateway's HTTP interface.

Only options and output live here; `launcher.remote` does the asking. A new key is the only thing `create` writes to
stdout, so that it can be piped into a secret store; everything said to people goes to stderr. Neighbour: `cli`, which
adds these commands to its own.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no gateway to ask.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from paceline.launcher.remote import Gateway

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
_SHOWN = ("keyId", "name", "scopes", "state", "createdAt", "expiresAt", "ratePerMinute", "revokedAt")
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
    body = {
        "name": name,
        "scopes": [str(one) for one in scope],
        "expiresInDays": expires_days,
        "ratePerMinute": rate,
    }
    made = _ask(url, key, lambda gateway: gateway.ask("POST", "/v1/keys", having=("key", *_SHOWN), json=body))
    typer.echo(made["key"])
    until = f"until {_day(made['expiresAt'])}" if made.get("expiresAt") else "until it is revoked"
    typer.echo(
        f"key {made['keyId']} ({made['name']}): {', '.join(made['scopes'])}, good {until}. It is not shown again.",
        err=True,
    )


@keys_app.command("list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON array.")] = False,
    url: Url = _URL,
    key: Key = None,
) -> None:
    """All keys, also those that have ended; never the key itself, which nobody has."""
    items = _ask(url, key, lambda gateway: gateway.all_pages("/v1/keys", having=_SHOWN))
    if as_json:
        typer.echo(json.dumps(items, indent=2, ensure_ascii=False))
        return
    _table(items)


@keys_app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="keyId, as `list` shows it.")],
    url: Url = _URL,
    key: Key = None,
) -> None:
    """Refuse a key from now on, everywhere within a second. Its record stays."""
    from urllib.parse import quote

    path = f"/v1/keys/{quote(key_id, safe='')}"
    ended = _ask(url, key, lambda gateway: gateway.ask("DELETE", path, having=_SHOWN))
    typer.echo(f"key {ended['keyId']} ({ended['name']}) is revoked since {_day(ended['revokedAt'])}", err=True)


def _ask(url: str, key: str | None, work: "Callable[[Gateway], T]") -> T:
    from paceline.launcher.errors import LauncherError
    from paceline.launcher.remote import Gateway, find_key

    try:
        with Gateway(url, find_key(key)) as gateway:
            return work(gateway)
    except LauncherError as error:
        typer.echo(f"paceline: {error}", err=True)
        raise typer.Exit(error.exit_code) from error


def _table(items: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("ID", "NAME", "SCOPES", "STATE", "CREATED", "EXPIRES", "PER MINUTE"):
        table.add_column(column, no_wrap=column == "ID", overflow="fold")
    for item in items:
        rate = item["ratePerMinute"]
        cells = (
            item["keyId"],
            item["name"],
            ",".join(item["scopes"]),
            item["state"],
            _day(item["createdAt"])[:10],
            _day(item["expiresAt"])[:10],
            {None: "default", 0: "no limit"}.get(rate, str(rate)),
        )
        # As plain text: a name in brackets is no colour.
        table.add_row(*(Text(str(cell)) for cell in cells))
    console = Console()
    # What is piped has no width to keep to.
    console.print(table, width=None if console.is_terminal else _PIPED_WIDTH)


def _day(at_ms: int | None) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%MZ") if at_ms else "—"
