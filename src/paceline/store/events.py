"""The stream of events as readers see it: what comes after a place, and what is known about the messages it names.

Scripts write it (`tell` in lib/10_base.lua). Neighbours: `store/webhooks` keeps a cursor into it for every webhook,
`gateway/routes_events` serves it live.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from paceline.domain.events import START, Entry, Event, order, split_place
from paceline.domain.ids import parse_task_id
from paceline.domain.jobs import Contact, decode_contact
from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.jobs import _pairs
from paceline.store.rows import message_of
from paceline.store.scripts import CHUNK

BATCH = 200
"""Entries read at once; a few tens of kilobytes."""

MESSAGE_FIELDS = ("handed", "phone", "errorCode", "errorMessage")


class Slice(msgspec.Struct, frozen=True):
    """A stretch of the stream."""

    events: list[Event]
    place: str
    """Where to go on."""
    more: bool
    """Whether something lies behind it already."""
    behind: bool = False
    """Events after the asked place are gone: newer ones have taken their room."""


class Named(msgspec.Struct, frozen=True):
    """What is known of the message an event names; all of it may be gone."""

    contact: Contact | None = None
    known: dict[str, str] = {}


class Events:
    def __init__(self, caller: Caller, kept: int) -> None:
        self._caller = caller
        self._kept = kept

    async def after(self, place: str, *, limit: int, wants: Callable[[str], bool]) -> Slice:
        """The next events of the wanted types, at most `limit`. `place` moves past those that were not wanted too."""
        entry_id, index = split_place(place)
        start = f"({entry_id}" if index is None else entry_id
        length, oldest, raw = await self._caller.read(
            ("XLEN", keys.events()),
            ("XRANGE", keys.events(), "-", "+", "COUNT", 1),
            ("XRANGE", keys.events(), start, "+", "COUNT", BATCH),
        )
        entries = _entries(raw)
        # Only a full stream has dropped anything.
        behind = bool(length >= self._kept and oldest and order(_entries(oldest)[0].id) > order(place))
        found: list[Event] = []
        for entry in entries:
            told = index if index is not None and entry.id == entry_id else -1
            for event in entry.events(told) if wants(entry.type) else ():
                if len(found) == limit:
                    return Slice(found, place, True, behind)
                found.append(event)
                place = event.id
            place = entry.id
        return Slice(found, place, len(entries) == BATCH, behind)

    async def newest(self) -> str:
        """The place behind everything."""
        found = _entries(await self._caller.read_one("XREVRANGE", keys.events(), "+", "-", "COUNT", 1))
        return found[0].id if found else START

    async def wait(self, place: str, ms: int) -> None:
        """Until something comes after that place, or the time is over. Well below the link's own timeout."""
        await self._caller.read(("XREAD", "COUNT", 1, "BLOCK", ms, "STREAMS", keys.events(), split_place(place)[0]))

    async def named(self, tasks: Sequence[str]) -> list[Named]:
        """What is known of these messages, in their order."""
        commands: list[tuple[str | int, ...]] = []
        for task in tasks:
            job, index = parse_task_id(task) or ("", 0)
            chunk, offset = divmod(index, CHUNK)
            commands += [
                ("LINDEX", keys.job_contacts(job, chunk), offset),
                ("HMGET", keys.message(task), *MESSAGE_FIELDS),
            ]
        rows = await self._caller.read(*commands) if commands else []
        return [
            Named(decode_contact(contact) if contact else None, message_of(_there(values)))
            for contact, values in zip(rows[::2], rows[1::2], strict=True)
        ]


def _there(values: Sequence[str | None]) -> dict[str, str]:
    return {name: value for name, value in zip(MESSAGE_FIELDS, values, strict=True) if value is not None}


def _entries(raw: Any) -> list[Entry]:
    return [Entry(id_, _pairs(fields)) for id_, fields in raw or ()]
