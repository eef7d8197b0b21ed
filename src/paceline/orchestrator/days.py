"""Which calendar day something counts in: that of the number it went through."""

from paceline.policy import hours
from paceline.store.store import Store

ZONE_AGE_MS = 60_000
"""So long a number's timezone is remembered. It hardly ever changes, and four proofs of each message ask for it."""


async def stats_day(store: Store, phone: str | None, now_ms: int) -> str | None:
    return await StatsDays(store).of(phone, now_ms)


class StatsDays:
    def __init__(self, store: Store, *, age_ms: int = 0) -> None:
        """`age_ms`: so old a timezone may be; 0 asks every time."""
        self._store = store
        self._age_ms = age_ms
        self._zones: dict[str, tuple[str | None, int]] = {}
        """By number: its timezone, and when that was read."""

    async def of(self, phone: str | None, now_ms: int) -> str | None:
        if phone is None:
            return None
        known = self._zones.get(phone)
        if known is None or not 0 <= now_ms - known[1] < self._age_ms:
            known = self._zones[phone] = (await self._store.sessions.phone_timezone(phone), now_ms)
        return hours.local_day(hours.phone_zone(phone, known[0]), now_ms)
