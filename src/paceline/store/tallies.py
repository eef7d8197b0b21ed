"""What the whole fleet did over time: counted minute by minute when a task is settled, read here.

Neighbours: `stats:session:*` counts one session's day in its own timezone; this is for totals over all of them, of any
stretch of the last two days.
"""

from collections.abc import Mapping

import msgspec

from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.jobs import _pairs

KINDS = ("sent", "delivered", "read", "failed")
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


class Tally(msgspec.Struct, frozen=True):
    sent: int = 0
    delivered: int = 0
    read: int = 0
    failed: int = 0


class Minute(msgspec.Struct, frozen=True):
    at: int
    """When it began."""
    sent: int
    failed: int


class Tallies:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def since(self, since_ms: int, *, now_ms: int) -> Tally:
        """All that happened from that minute on."""
        first, begins = since_ms // HOUR_MS, since_ms // MINUTE_MS % 60
        hours = range(first, now_ms // HOUR_MS + 1)
        sums = dict.fromkeys(KINDS, 0)
        for hour, known in (await self._read(hours)).items():
            for name, count in known.items():
                kind, _, minute = name.partition(":")
                if hour > first or int(minute) >= begins:
                    sums[kind] += int(count)
        return Tally(**sums)

    async def minutes(self, count: int, *, now_ms: int) -> list[Minute]:
        """The last so many minutes, the present one last."""
        now = now_ms // MINUTE_MS
        hours = range((now - count + 1) // 60, now // 60 + 1)
        known = await self._read(hours)
        return [
            Minute(
                minute * MINUTE_MS, _of(known[minute // 60], "sent", minute), _of(known[minute // 60], "failed", minute)
            )
            for minute in range(now - count + 1, now + 1)
        ]

    async def _read(self, hours: range) -> dict[int, dict[str, str]]:
        rows = await self._caller.read(*[("HGETALL", keys.fleet_hour(hour)) for hour in hours])
        return dict(zip(hours, map(_pairs, rows), strict=True))


def _of(hour: Mapping[str, str], kind: str, minute: int) -> int:
    return int(hour.get(f"{kind}:{minute % 60}", 0))
