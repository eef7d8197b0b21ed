"""How a command asks the running platform: at which address and with which key. Neighbours: `paging` for lists,
`ending` for what an error means to a shell.

Asked once, unless a command waits for something: a person repeats a command sooner than a program that is patient.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Unpack

import typer

from paceline.cli.ending import translated
from paceline.cli.exits import Exit
from paceline.cli.groups import grouped

if TYPE_CHECKING:
    from paceline.client import Operator, Urls
    from paceline.client.blocking import Options
    from paceline.client.calls import Call

T = TypeVar("T")

_PANEL = "Where to ask"


@dataclass(frozen=True)
class GatewayApi:
    """For a command that asks the gateway."""

    as_json: Annotated[bool, typer.Option("--json", help="Print what the API said, as it said it.")] = False
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar=["GATEWAY_URL", "PACELINE_URL"],
            metavar="URL",
            rich_help_panel=_PANEL,
            help="The gateway. Left out: GATEWAY_PORT (4000) of this machine.",
        ),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            envvar="API_KEY",
            metavar="KEY",
            rich_help_panel=_PANEL,
            help="An API key. Better in the environment: others on this machine see what is typed here. "
            "Left out: the one in $PACELINE_DATA/api-key, for services of this machine only.",
        ),
    ] = None

    @cached_property
    def operator(self) -> "Operator":
        from paceline.client import Retries

        return self.opened(retries=Retries(tries=1))

    @cached_property
    def patient(self) -> "Operator":
        """For those who wait: it asks again while a service is being restarted."""
        from paceline.client import Retries

        return self.opened(retries=Retries())

    def ask(self, call: "Call[T]") -> T:
        return self.operator.ask(call)

    def show(
        self, call: "Call[T]", draw: "Callable[[T], None]", *, is_bad: "Callable[[T], bool] | None" = None
    ) -> None:
        """The answer, drawn for people; with --json the bytes of it. One that is bad ends with exit code 1 either
        way."""
        if self.as_json:
            self.show_json(call, is_bad=is_bad)
            return
        answer = self.ask(call)
        draw(answer)
        if is_bad and is_bad(answer):
            raise typer.Exit(Exit.FAILED)

    def show_json(self, call: "Call[Any]", *, is_bad: "Callable[[Any], bool] | None" = None) -> None:
        import msgspec

        if call.answer is NoneType:
            self.ask(call)
            return
        said = self.ask(replace(call, answer=msgspec.Raw))
        sys.stdout.write(f"{bytes(said).decode()}\n")
        if is_bad and is_bad(msgspec.json.decode(said, type=call.answer)):
            raise typer.Exit(Exit.FAILED)

    def close(self) -> None:
        for name in ("operator", "patient"):
            if name in self.__dict__:
                self.__dict__[name].close()

    def opened(self, **options: Unpack["Options"]) -> "Operator":
        from paceline.client import Operator
        from paceline.launcher.data import find_key

        urls = self._urls()
        key = find_key(self.key, *self._asked(urls))
        self._check(urls)
        return Operator(urls, key, **options)

    def _urls(self) -> "Urls":
        return replace(urls_here(), **({"gateway": self.url} if self.url else {}))

    def _asked(self, urls: "Urls") -> tuple[str, ...]:
        """The addresses that may be given the key."""
        return (urls.gateway,)

    def _check(self, urls: "Urls") -> None:
        """That they are those of one platform."""


@dataclass(frozen=True)
class FleetApi(GatewayApi):
    """For a command that asks the other services too."""

    dispatcher_url: Annotated[
        str | None,
        typer.Option(
            envvar="DISPATCHER_URL",
            metavar="URL",
            rich_help_panel=_PANEL,
            help="The dispatcher. Left out: DISPATCHER_PORT (4001) of this machine.",
        ),
    ] = None
    orchestrator_url: Annotated[
        str | None,
        typer.Option(
            envvar="ORCHESTRATOR_URL",
            metavar="URL",
            rich_help_panel=_PANEL,
            help="The orchestrator. Left out: ORCHESTRATOR_PORT (3000) of this machine.",
        ),
    ] = None

    def _urls(self) -> "Urls":
        given = {"dispatcher": self.dispatcher_url, "orchestrator": self.orchestrator_url}
        return replace(super()._urls(), **{name: url for name, url in given.items() if url})

    def _asked(self, urls: "Urls") -> tuple[str, ...]:
        return (urls.gateway, urls.dispatcher, urls.orchestrator)

    def _check(self, urls: "Urls") -> None:
        from paceline.launcher.data import host_of, is_here
        from paceline.launcher.errors import UsageError

        given = {"DISPATCHER_URL": self.dispatcher_url, "ORCHESTRATOR_URL": self.orchestrator_url}
        left_out = [name for name, url in given.items() if not (url or os.environ.get(name))]
        if left_out and not is_here(urls.gateway):
            raise UsageError(
                f"the gateway is that of {host_of(urls.gateway)}, and without {' and '.join(left_out)} this machine's "
                "own fleet would be asked, with the other's key"
            )


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """A command that asks: shared options are taken apart for typer, errors become an exit code."""

    @wraps(command)
    def run(**values: Any) -> None:
        apis = [value for value in values.values() if isinstance(value, GatewayApi)]
        with translated(key_is_given=any(api.key for api in apis)):
            try:
                command(**values)
            finally:
                for api in apis:
                    api.close()

    return grouped(run)


def urls_here() -> "Urls":
    """Where the environment says, else on this machine."""
    from paceline.client import Urls

    def one(name: str, port: int) -> str:
        return os.environ.get(f"{name}_URL") or f"http://127.0.0.1:{os.environ.get(f'{name}_PORT') or port}"

    gateway = os.environ.get("GATEWAY_URL") or os.environ.get("PACELINE_URL") or one("GATEWAY", 4000)
    return Urls(gateway, one("DISPATCHER", 4001), one("ORCHESTRATOR", 3000))
