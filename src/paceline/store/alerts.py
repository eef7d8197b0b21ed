"""Incidents for those who follow them, and what the alerts keep between two steps: how far they read, what they
remember, whose turn it is.

Scripts write incidents (`incident` in lib/10_base.lua) where they happen; `note` is for what a service sees outside
Redis. Neighbours: `paceline.alerts` follows, `store.operators` shows the last 200.
"""

from typing import Any

import msgspec

from paceline.domain.events import START, order
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs
from paceline.store.scripts import INCIDENTS_KEPT

LEASE = "alerts"


class Incident(msgspec.Struct, frozen=True):
    """One incident and its place in the stream."""

    id: str
    kind: str
    at: int
    fields: dict[str, Any]


class Incidents(msgspec.Struct, frozen=True):
    """A stretch of the stream."""

    items: list[Incident]
    place: str
    """Where to go on."""
    behind: bool = False
    """Some after the asked place are gone: newer ones have taken their room."""


class Kept(msgspec.Struct, frozen=True):
    cursor: str
    memory: bytes | None


class AlertBook:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def note(self, kind: str, fields: dict[str, Any], *, now_ms: int) -> None:
        await self._caller.call("note_incident", Answer, kind=kind, fields=fields, now=now_ms)

    async def hold(self, holder: str, *, now_ms: int, ttl_ms: int) -> bool:
        """Whether this one alerts; of several orchestrators one does."""
        lease = {"name": LEASE, "holder": holder, "ttl": ttl_ms}
        return (await self._caller.call("hold_lease", Answer, now=now_ms, **lease)).code == "OK"

    async def kept(self) -> Kept:
        cursor, memory = await self._caller.read_one("HMGET", keys.alerts(), "cursor", "memory")
        return Kept(cursor or START, memory.encode() if memory else None)

    async def save(self, holder: str, cursor: str, memory: bytes, *, now_ms: int, ttl_ms: int) -> bool:
        """False if another one holds the lease now; then nothing is kept."""
        kept = {"holder": holder, "cursor": cursor, "memory": memory.decode(), "ttl": ttl_ms}
        return (await self._caller.call("save_alerts", Answer, now=now_ms, **kept)).code == "OK"

    async def after(self, place: str, *, limit: int) -> Incidents:
        stream = keys.incident_stream()
        length, ends, newest, raw = await self._caller.read(
            ("XLEN", stream),
            ("XRANGE", stream, "-", "+", "COUNT", 1),
            ("XREVRANGE", stream, "+", "-", "COUNT", 1),
            ("XRANGE", stream, f"({place}", "+", "COUNT", limit),
        )
        if newest and order(newest[0][0]) < order(place):
            # Another Redis than the one the place is from, or an older copy of it: all of it is new.
            return await self.after(START, limit=limit)
        # Only a full stream has dropped anything.
        behind = bool(place != START and length >= INCIDENTS_KEPT and ends and order(ends[0][0]) > order(place))
        found = [incident for id_, fields in raw if (incident := _incident(id_, fields))]
        return Incidents(found, raw[-1][0] if raw else place, behind)


def _incident(id_: str, fields: Any) -> Incident | None:
    pairs = _pairs(fields)
    try:
        known = msgspec.json.decode(pairs.get("d", ""))
        return Incident(id_, str(known["kind"]), int(known["at"]), known)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        # Somebody else's entry: it must not stop ours.
        return None
