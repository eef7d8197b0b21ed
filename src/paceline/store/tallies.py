"""What the whole fleet did over time: counted by `settle_task` in hours and their minutes, read here.

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
        first, last = since_ms // HOUR_MS, now_ms // HOUR_MS
        # Only the first hour is cut; of the others the hour's own count will do.
        begins = since_ms // MINUTE_MS % 60
        cut = [f"{kind}:{minute}" for kind in KINDS for minute in range(begins, 60)]
        rows = await self._caller.read(
            ("HMGET", keys.fleet_hour(first), *cut),
            *[("HMGET", keys.fleet_hour(hour), *KINDS) for hour in range(first + 1, last + 1)],
        )
        of_first = _sums(rows[0], 60 - begins)
        return Tally(*(of_first[index] + sum(int(row[index] or 0) for row in rows[1:]) for index in range(len(KINDS))))

    async def minutes(self, count: int, *, now_ms: int) -> list[Minute]:
        """The last so many minutes, the present one last."""
        now = now_ms // MINUTE_MS
        hours = range((now - count + 1) // 60, now // 60 + 1)
        rows = await self._caller.read(*[("HGETALL", keys.fleet_hour(hour)) for hour in hours])
        known = dict(zip(hours, map(_pairs, rows), strict=True))
        return [
            Minute(
                minute * MINUTE_MS, _of(known[minute // 60], "sent", minute), _of(known[minute // 60], "failed", minute)
            )
            for minute in range(now - count + 1, now + 1)
        ]


def _sums(values: list[str | None], each: int) -> list[int]:
    """Of rows of so many, one after the other."""
    return [sum(int(value or 0) for value in values[start : start + each]) for start in range(0, len(values), each)]


def _of(hour: Mapping[str, str], kind: str, minute: int) -> int:
    return int(hour.get(f"{kind}:{minute % 60}", 0))
