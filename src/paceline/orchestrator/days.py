"""Which calendar day something counts in: that of the number it went through."""

from paceline.policy import hours
from paceline.store.store import Store


async def stats_day(store: Store, phone: str | None, now_ms: int) -> str | None:
    if phone is None:
        return None
    return hours.local_day(hours.phone_zone(phone, await store.sessions.phone_timezone(phone)), now_ms)
