"""Brings back what waited for its time: scheduled single sends and retries."""

from paceline.store.store import Store

BATCH = 200


class Scheduler:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.released = 0

    async def step(self, now_ms: int) -> int | None:
        answer = await self._store.pacers.release_due(now_ms=now_ms, limit=BATCH)
        self.released += answer.released
        return now_ms if answer.released else answer.next_at
