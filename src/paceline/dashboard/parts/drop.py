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


class Drop(Upload, component="drop.js"):
    """`on_file` gets what was dropped; `on_shown` its name and size, and an address at which this browser has
    the picture, or nothing."""

    def __init__(
        self,
        label: str,
        on_file: Callable[[File], Awaitable[None]],
        *,
        hint: str = "",
        accept: str = "",
        most_bytes: int = 32 * MEGABYTE,
        small: bool = False,
        on_shown: Callable[[str, int, str], Any] | None = None,
    ) -> None:
        super().__init__(label=label)
        self._on_file = on_file
        self._most_bytes = most_bytes
        self.props.update(hint=hint, accept=accept, most=most_bytes, small=small, why="")
        self.on_upload(self._came)
        if on_shown is not None:
            self.on("shown", lambda event: on_shown(*(event.args[part] for part in ("name", "size", "address"))))

    def set_fault(self, why: str) -> None:
        self.props["why"] = why
        self.update()

    async def _came(self, event: UploadEventArguments) -> None:
        # The browser was asked not to send more; whoever is not a browser is asked here.
        if event.file.size() > self._most_bytes:
            self.set_fault(f"{event.file.name} is too large.")
            return
        self.set_fault("")
        await self._on_file(File(event.file.name, event.file.content_type, await event.file.read()))
