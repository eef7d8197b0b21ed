"""Brings back what waited for its time, scheduled single sends and retries, and forgets messages whose time is over."""

from paceline.store.store import Store

BATCH = 200
FORGET_BATCH = 20
"""Settlings whose messages are forgotten in one call: a few hundred messages, a millisecond of Redis."""
FORGET_MS = 60_000
"""What is kept for weeks may stay a minute longer."""


class Scheduler:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._forget_at_ms = 0
        self.released = 0

    async def step(self, now_ms: int) -> int | None:
        forget = FORGET_BATCH if now_ms >= self._forget_at_ms else 0
        answer = await self._store.pacers.release_due(now_ms=now_ms, limit=BATCH, forget=forget)
        if forget and not answer.forgets:
            self._forget_at_ms = now_ms + FORGET_MS
        self.released += answer.released
        return now_ms if answer.released or answer.forgets else answer.next_at
