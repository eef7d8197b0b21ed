"""Lists: a page, or all of them, for people or as the API said them."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from paceline.cli.asking import GatewayApi
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.showing import say

if TYPE_CHECKING:
    from paceline.client.answers_jobs import Page
    from paceline.client.calls import Call

T = TypeVar("T")

MAX_PAGES = 10_000
"""A list that never ends is a fault of the other side."""
_ENDLESS = "this list has no end"


@dataclass(frozen=True)
class Paging:
    """For a command that shows a list."""

    limit: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="How many.")] = 50
    cursor: Annotated[
        str, typer.Option(metavar="CURSOR", show_default=False, help="Where to go on, as the page before said.")
    ] = ""
    all_: Annotated[bool, typer.Option("--all", help="Every page. With --json a line for each.")] = False

    def show(self, api: GatewayApi, call: "Call[Page[T]]", draw: "Callable[[list[T]], None]") -> None:
        """One page, or all of them. `call` has the page's limit and cursor already."""
        if api.as_json:
            self._show_json(api, call)
        elif self.all_:
            draw([item for page in pages(api, call) for item in page.items])
        else:
            page = api.ask(call)
            draw(page.items)
            if page.next_cursor:
                say(f"There is more: --cursor {page.next_cursor}, or --all.")

    def _show_json(self, api: GatewayApi, call: "Call[Any]") -> None:
        import msgspec

        raw: Call[msgspec.Raw] = replace(call, answer=msgspec.Raw)
        for _ in range(MAX_PAGES):
            said = api.ask(raw)
            sys.stdout.write(f"{bytes(said).decode()}\n")
            following = msgspec.json.decode(said, type=dict[str, Any]).get("nextCursor")
            if not following or not self.all_:
                return
            raw = raw.at(following)
        fail(_ENDLESS, Exit.FAILED)


def pages(api: GatewayApi, call: "Call[Page[T]]") -> "Iterator[Page[T]]":
    """A whole list, page by page."""
    for _ in range(MAX_PAGES):
        page = api.ask(call)
        yield page
        if not page.next_cursor:
            return
        call = call.at(page.next_cursor)
    fail(_ENDLESS, Exit.FAILED)
