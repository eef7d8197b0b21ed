"""`paceline keys`: make, list and revoke API keys. A new key is the only thing `create` writes to stdout, so that it
can be piped into a secret store."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import completing
from paceline.cli.asking import GatewayApi, asking
from paceline.cli.inputs import Yes, confirm
from paceline.cli.paging import Paging
from paceline.cli.showing import facts, say, table, when

if TYPE_CHECKING:
    from paceline.client.answers_lists import ApiKey, NewApiKey

keys_app = typer.Typer(name="keys", no_args_is_help=True, help="API keys: make, list, revoke.")


class Scope(StrEnum):
    send = "send"
    read = "read"
    admin = "admin"


@keys_app.command()
@asking
def create(
    name: Annotated[str, typer.Option(metavar="NAME", help="Who or what will use it.")],
    scope: Annotated[
        list[Scope],
        typer.Option(
            metavar="SCOPE", help="What it may do: send, read or admin, which includes both; repeat it for several."
        ),
    ],
    api: GatewayApi,
    expires_days: Annotated[
        int | None, typer.Option(min=1, max=3_650, metavar="N", help="Refused after N days. Left out: never.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(min=0, max=1_000_000, metavar="N", help="N requests a minute; 0 is no limit of its own."),
    ] = None,
) -> None:
    """Make a key and print it, this once.

    Example: `paceline keys create --name CRM --scope send | store-secret`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.create_key(name, list(map(str, scope)), expires_in_days=expires_days, rate_per_minute=rate), _made)


def _made(key: "NewApiKey") -> None:
    typer.echo(key.key)
    until = f"until {when(key.expires_at)}" if key.expires_at else "until it is revoked"
    say(f"key {key.key_id} ({key.name}): {', '.join(key.scopes)}, good {until}. It is not shown again.")


@keys_app.command("list")
@asking
def list_(api: GatewayApi, page: Paging) -> None:
    """All keys, also those that have ended; never the key itself, which nobody has.

    Example: `paceline keys list`
    """
    from paceline.client import requests_lists as lists

    page.show(api, lists.list_keys(cursor=page.cursor, limit=page.limit), _rows)


def _rows(found: "list[ApiKey]") -> None:
    rows = (
        (one.key_id, one.name, one.scopes, one.state, _day(one.expires_at) or "never", _rate(one.rate_per_minute))
        for one in found
    )
    table("ID NAME SCOPES STATE EXPIRES >PER-MINUTE", rows, empty="No keys but the bootstrap key.")


@keys_app.command("self")
@asking
def self_(api: GatewayApi) -> None:
    """What the key that is used here may do.

    Example: `paceline keys self`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.own_key(), _self)


def _self(key: "ApiKey") -> None:
    until = when(key.expires_at) or "never"
    facts([("key", key.key_id), ("name", key.name), ("scopes", key.scopes), ("expires", until)])


@keys_app.command()
@asking
def revoke(
    key_id: Annotated[
        str, typer.Argument(metavar="ID", autocompletion=completing.keys, help="keyId, as `list` shows it.")
    ],
    api: GatewayApi,
    yes: Yes = False,
) -> None:
    """Refuse a key from now on, everywhere within a second. It cannot be taken back; its record stays.

    Example: `paceline keys revoke 01KKBK4FE0S7MP2BKPJTKCXK0V --yes`
    """
    from paceline.client import requests_lists as lists

    confirm(f"Revoke key {key_id}?", yes)
    api.show(lists.revoke_key(key_id), _revoked)


def _revoked(key: "ApiKey") -> None:
    say(f"key {key.key_id} ({key.name}) is revoked since {when(key.revoked_at)}")


def _day(at_ms: int | None) -> str | None:
    found = when(at_ms)
    return found[:10] if found else None


def _rate(rate: int | None) -> str:
    return {None: "default", 0: "no limit"}.get(rate, str(rate))
