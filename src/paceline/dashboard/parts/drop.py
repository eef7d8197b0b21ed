"""A place to drop a file on, or to choose one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nicegui.elements.upload import Upload
from nicegui.events import UploadEventArguments

MEGABYTE = 1_048_576


@dataclass(frozen=True)
class File:
    name: str
    type: str
    data: bytes
    turn: int = 0
    """The browser counts what it uploads; 0 if it was none that did."""


@dataclass(frozen=True)
class Follow:
    """What the browser tells of its uploads, each by its turn, for a place where a newer file replaces the one that is
    under way."""

    begun: Callable[[int, str], Any]
    """Before the first byte: the name."""
    shown: Callable[[int, str], Any]
    """The dashboard has it: an address at which this browser has the picture, or nothing."""
    failed: Callable[[int], Any]


class Drop(Upload, component="drop.js"):
    """`on_file` gets what was dropped."""

    def __init__(
        self,
        label: str,
        on_file: Callable[[File], Awaitable[None]],
        *,
        hint: str = "",
        accept: str = "",
        most_bytes: int = 32 * MEGABYTE,
        small: bool = False,
        follow: Follow | None = None,
    ) -> None:
        super().__init__(label=label)
        self._on_file = on_file
        self._most_bytes = most_bytes
        self.props.update(hint=hint, accept=accept, most=most_bytes, small=small, replaces=follow is not None, why="")
        self.on_upload(self._came)
        if follow is not None:
            self.on("begun", lambda event: follow.begun(event.args["turn"], event.args["name"]))
            self.on("shown", lambda event: follow.shown(event.args["turn"], event.args["address"]))
            self.on("failed", lambda event: follow.failed(event.args["turn"]))

    def set_fault(self, why: str) -> None:
        self.props["why"] = why
        self.update()

    async def _came(self, event: UploadEventArguments) -> None:
        turn, name = _turn_and_name(event.file.name)
        # The browser was asked not to send more; whoever is not a browser is asked here.
        if event.file.size() > self._most_bytes:
            self.set_fault(f"{name} is too large.")
            return
        self.set_fault("")
        await self._on_file(File(name, event.file.content_type, await event.file.read(), turn))


def _turn_and_name(given: str) -> tuple[int, str]:
    """`2:dog.png`: NiceGUI hands nothing on of a form but files."""
    turn, colon, name = given.partition(":")
    return (int(turn), name) if colon and turn.isdecimal() else (0, given)
