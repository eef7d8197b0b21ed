"""How much of the disk the stored files may take, all together.

Measured on the disk itself, so what a crash left behind counts too, and several gateways agree. Between two looks this
process adds what it stored; others may go over the limit by what they take in one minute. Neighbour: `media` asks
before a file gets its name.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from paceline.domain.errors import TooMany
from paceline.kits.media_store import MediaFiles

LOOK_EVERY_MS = 60_000
"""A look at ten thousand files takes some hundredths of a second, in a thread."""
RETRY_AFTER_SECONDS = 600
"""Housekeeping comes round this often."""


class MediaRoom:
    def __init__(self, files: MediaFiles, max_bytes: int, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self._in_thread = in_thread
        self._used = 0
        self._coming = 0
        """Of files that were let in and are not on the disk yet."""
        self._stored = 0
        """All that this process ever stored: what a look under way may have missed."""
        self._looked_at_ms = -LOOK_EVERY_MS

    @asynccontextmanager
    async def for_file(self, size: int, *, field: str, now_ms: int) -> AsyncIterator[None]:
        """Room for one file more, which is stored in the block; or a refusal."""
        if now_ms - self._looked_at_ms >= LOOK_EVERY_MS:
            await self._look(now_ms)
        if self._used + self._coming + size > self._max_bytes:
            raise TooMany(
                "MEDIA_FULL",
                "there is no room for more files; those that nobody uses are removed in time",
                field=field,
                details={"limit": self._max_bytes},
                retry_after_seconds=RETRY_AFTER_SECONDS,
            )
        self._coming += size
        try:
            yield
            self._used += size
            self._stored += size
        finally:
            self._coming -= size

    def look_again(self) -> None:
        """After something was removed."""
        self._looked_at_ms = -LOOK_EVERY_MS

    async def _look(self, now_ms: int) -> None:
        stored_before = self._stored
        found = await self._in_thread(self._files.used_bytes)
        self._used = found + self._stored - stored_before
        self._looked_at_ms = now_ms
