"""`paceline proxies` and `paceline profiles`: the two pools that sessions take from."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import completing
from paceline.cli.asking import FleetApi, asking
from paceline.cli.inputs import read_file
from paceline.cli.paging import Paging
from paceline.cli.showing import ago, counted, say, table

if TYPE_CHECKING:
    from paceline.client.answers_fleet_sessions import Profile, Proxy, ProxyMarked, Uploaded

proxies_app = typer.Typer(name="proxies", no_args_is_help=True, help="Proxies: upload, list, mark, remove.")
profiles_app = typer.Typer(name="profiles", no_args_is_help=True, help="Profiles: upload, list, remove.")

SHOWN_LINES = 20

File = Annotated[str, typer.Argument(metavar="FILE", help="One per line; - reads stdin.")]
ProxyId = Annotated[
    str,
    typer.Argument(
        metavar="ID", autocompletion=completing.proxies, help="proxyId, as `paceline proxies list` shows it."
    ),
]
ProfileId = Annotated[str, typer.Argument(metavar="ID", help="profileId, as `paceline profiles list` shows it.")]
Why = Annotated[str | None, typer.Option(metavar="WORDS", help="For the audit trail and the alert.")]


@proxies_app.command("list")
@asking
def list_proxies(api: FleetApi, page: Paging) -> None:
    """Proxies with load and health; credentials are masked.

    Example: `paceline proxies list`
    """
    from paceline.client import requests_fleet_inventory as inventory

    page.show(api, inventory.list_proxies(cursor=page.cursor, limit=page.limit), _proxies)


def _proxies(found: "list[Proxy]") -> None:
    rows = (
        (
            one.proxy_id,
            one.proxy,
            one.state,
            f"{one.load}/{one.limit}",
            None if one.latency_ms is None else f"{one.latency_ms} ms",
            ago(one.checked_at),
            one.reason,
        )
        for one in found
    )
    empty = "No proxies. `paceline proxies upload FILE` adds some."
    table("ID PROXY STATE >LOAD >LATENCY CHECKED WHY", rows, empty=empty)


@proxies_app.command("upload")
@asking
def upload_proxies(file: File, api: FleetApi) -> None:
    """Add proxies: `http://user:password@host:port`, `https://…` or `socks5h://…`, one per line.

    Bad lines are named with their number (exit code 1), the others are stored.

    Example: `paceline proxies upload proxies.txt`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.upload_proxies(read_file(file)), _uploaded, is_bad=_was_refused)


@proxies_app.command()
@asking
def bad(proxy: ProxyId, api: FleetApi, reason: Why = None) -> None:
    """Nobody gets it any more, and sessions that hold it are restarted with another.

    Example: `paceline proxies bad p3 --reason "it is slow"`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.mark_bad(proxy, reason=reason), _marked)


@proxies_app.command()
@asking
def ok(proxy: ProxyId, api: FleetApi, reason: Why = None) -> None:
    """It is given out again.

    Example: `paceline proxies ok p3`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.mark_ok(proxy, reason=reason), _marked)


def _marked(answer: "ProxyMarked") -> None:
    was = "" if answer.changed else " (it was so already)"
    moved = counted(len(answer.moved), "session")
    say(f"{answer.proxy.proxy_id} is {answer.proxy.state}{was}; moved to another: {moved}")


@proxies_app.command("remove")
@asking
def remove_proxy(proxy: ProxyId, api: FleetApi) -> None:
    """Take it out of the pool. Refused while sessions hold it.

    Example: `paceline proxies remove p3`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.drop_proxy(proxy), lambda _: say(f"proxy {proxy} is gone"))


@profiles_app.command("list")
@asking
def list_profiles(api: FleetApi, page: Paging) -> None:
    """Profiles and who has them; the lines themselves are not shown.

    Example: `paceline profiles list`
    """
    from paceline.client import requests_fleet_inventory as inventory

    page.show(api, inventory.list_profiles(cursor=page.cursor, limit=page.limit), _profiles)


def _profiles(found: "list[Profile]") -> None:
    rows = (
        (one.profile_id, one.kind, one.display_name, one.timezone, one.tags, one.session_id or "free") for one in found
    )
    table("ID KIND NAME TIMEZONE TAGS SESSION", rows, empty="No profiles. `paceline profiles upload FILE` adds some.")


@profiles_app.command("upload")
@asking
def upload_profiles(file: File, api: FleetApi) -> None:
    """Add profiles, one per line; a JSON object's settings become those of the session that gets it.

    Bad lines are named with their number (exit code 1), the others are stored.

    Example: `paceline profiles upload profiles.txt`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.upload_profiles(read_file(file)), _uploaded, is_bad=_was_refused)


@profiles_app.command("remove")
@asking
def remove_profile(profile: ProfileId, api: FleetApi) -> None:
    """Take it out of the pool. Refused while a session has it.

    Example: `paceline profiles remove f3c0a7d51e9b2846f`
    """
    from paceline.client import requests_fleet_inventory as inventory

    api.show(inventory.drop_profile(profile), lambda _: say(f"profile {profile} is gone"))


def _uploaded(answer: "Uploaded") -> None:
    say(f"{answer.added} added, {answer.duplicates} were there already, {answer.rejected_total} refused")
    for one in answer.rejected[:SHOWN_LINES]:
        say(f"line {one.line}: {one.reason}")
    if answer.rejected_total > SHOWN_LINES:
        say(f"and {answer.rejected_total - SHOWN_LINES} more")


def _was_refused(answer: "Uploaded") -> bool:
    return answer.rejected_total > 0
