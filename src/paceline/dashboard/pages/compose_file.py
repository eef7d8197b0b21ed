"""The file of a new job, an image or a document: a place to drop it on, and what has become of it.

Neighbours: `attachment` decides which file counts, `compose_form` has this among its fields.
"""

import asyncio
import contextlib
from collections.abc import Callable

from nicegui import ui

from paceline.dashboard.attachment import Attachment
from paceline.dashboard.parts.acting import act
from paceline.dashboard.parts.drop import MEGABYTE, Drop, File, Follow
from paceline.dashboard.parts.page import Visit
from paceline.dashboard.parts.text import text

ACCEPTS = {"image": "image/jpeg,image/png,image/webp", "document": ""}
FILE_BYTES = 64 * MEGABYTE
"""The gateway has its own limit for each type; this bounds what the dashboard holds."""
UPLOAD_SECONDS = 600.0
"""How long a plan waits for a file: the largest one on a line of a megabit. After that there is none."""


class FileBox:
    """`on_change` gets what the gateway calls the file and the picture's address, either of them empty."""

    def __init__(self, visit: Visit, on_change: Callable[[str, str], None]) -> None:
        self._visit = visit
        self._on_change = on_change
        self._file = Attachment()
        self._storing = asyncio.Lock()
        self._arrived = asyncio.Event()
        self._arrived.set()
        self._box = ui.element("div")
        self._box.set_visibility(False)
        self._drop: Drop | None = None

    def ask_for(self, mode: str) -> None:
        """An image, a document, or none. What was there is of another kind and goes."""
        self._file.remove()
        self._box.clear()
        self._drop = None
        self._box.set_visibility(mode in ACCEPTS)
        if mode in ACCEPTS:
            with self._box:
                self._drop = Drop(
                    f"Drop the {mode} here, or choose one",
                    self._came,
                    accept=ACCEPTS[mode],
                    most_bytes=FILE_BYTES,
                    small=True,
                    follow=Follow(self._begun, self._shown, self._failed),
                )
                self._words = text("p", "", "hint").props('role="status" dir="auto"')
        self._tell()

    def set_fault(self, why: str) -> None:
        if self._drop is not None:
            self._drop.set_fault(why)

    async def settle(self) -> None:
        """Until the file that is under way is stored, or has failed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(UPLOAD_SECONDS):
                await self._arrived.wait()

    def _begun(self, turn: int, name: str) -> None:
        if self._file.begin(turn) and self._file.is_under_way:
            self._tell(f"{name} is under way…")

    async def _came(self, file: File) -> None:
        if not self._file.begin(file.turn):
            return
        self._tell(f"{file.name} is being stored…")
        async with self._storing:
            if not self._file.begin(file.turn):
                return
            stored = await act(
                self._visit, self._visit.api.media.upload(file.data, name=file.name, type=file.type or None)
            )
        if self._file.stored(file.turn, stored.media_ref if stored else ""):
            self._tell(f"{file.name}, {stored.size / 1024:,.0f} kB, {stored.type}" if stored else "")

    def _shown(self, turn: int, address: str) -> None:
        self._file.seen(turn, address)
        self._tell()

    def _failed(self, turn: int) -> None:
        if self._file.failed(turn):
            self._tell("")

    def _tell(self, words: str | None = None) -> None:
        if words is not None:
            self._words.text = words
        if self._file.is_under_way:
            self._arrived.clear()
        else:
            self._arrived.set()
        self._on_change(self._file.ref, self._file.picture)
