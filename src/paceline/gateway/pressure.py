"""Whether the store has room: above 80 % of its memory nothing new is taken, so that what was can be settled."""

from paceline.domain.errors import Unavailable
from paceline.store.store import Store

SAMPLE_MS = 1_000


class NoRoom(Unavailable):
    """Memory is short; it frees up as messages are sent."""

    retry_after_seconds = 30


class Pressure:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._sampled_at_ms = -SAMPLE_MS
        self._short = False
        self._is_looking = False

    def has_room(self, now_ms: int) -> bool:
        """For certain, by what was seen within the last second."""
        return not self._short and now_ms - self._sampled_at_ms < SAMPLE_MS

    async def check(self, now_ms: int) -> None:
        is_old = now_ms - self._sampled_at_ms >= SAMPLE_MS
        # While one looks, the others go by what was seen last.
        if is_old and not (self._is_looking and self._sampled_at_ms >= 0):
            await self._look(now_ms)
        if self._short:
            raise NoRoom("the store's memory is short")

    async def _look(self, now_ms: int) -> None:
        self._is_looking = True
        try:
            self._short = await self._store.guards.memory_is_short()
            self._sampled_at_ms = now_ms
        finally:
            self._is_looking = False
