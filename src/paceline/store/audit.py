"""The audit trail on its way: facts that wait in Redis until `orchestrator.audit` has copied them into SQLite.

Scripts write it (`audit` in lib/75_audit.lua), in the step that makes the fact one.
"""

from typing import Any

import msgspec

from paceline.domain.events import START, order
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs
from paceline.store.scripts import AUDIT_KEPT


class Fact(msgspec.Struct, frozen=True):
    """One fact and its place in the stream."""

    id: str
    kind: str
    at: int
    fields: dict[str, Any]


class Facts(msgspec.Struct, frozen=True):
    items: list[Fact]
    place: str
    """Where to go on."""
    unreadable: int = 0
    """Entries that are not ours."""
    full: bool = False
    """The stream is as long as it may be: the oldest make room, copied or not."""
    restarted: bool = False
    """The stream is another one than the place was from; it was read from its beginning."""


class AuditTrail:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def after(self, place: str, *, limit: int) -> Facts:
        stream = keys.audit()
        length, newest, raw = await self._caller.read(
            ("XLEN", stream),
            ("XREVRANGE", stream, "+", "-", "COUNT", 1),
            ("XRANGE", stream, f"({place}", "+", "COUNT", limit),
        )
        if newest and order(newest[0][0]) < order(place):
            # Another Redis than the one the place is from, or an older copy of it.
            return msgspec.structs.replace(await self.after(START, limit=limit), restarted=True)
        found = [fact for id_, fields in raw if (fact := _fact(id_, fields))]
        return Facts(found, raw[-1][0] if raw else place, len(raw) - len(found), length >= AUDIT_KEPT)

    async def trim(self, place: str) -> None:
        """Frees everything up to that place, with it."""
        left, _, right = place.partition("-")
        await self._caller.call("trim_audit", Answer, before=f"{left}-{int(right) + 1}")


def _fact(id_: str, fields: Any) -> Fact | None:
    pairs = _pairs(fields)
    try:
        return Fact(id_, pairs["k"], int(float(pairs["at"])), msgspec.json.decode(pairs["d"], type=dict[str, Any]))
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None
