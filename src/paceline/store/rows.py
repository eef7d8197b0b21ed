"""Facts from rows: what `phone_row` and `head_row` in the scripts read, as it is stored, made into what policies read.

What seldom changes of a phone comes as JSON with names, its pacing as lists of texts. Neighbours: in `lua/lib`
`25_pace`, `30_phone` and `60_heads` say what stands where; `pacers`, `operators` and `outbox` bring the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, overload

import msgspec

from paceline.policy.facts import Head, PhoneFacts, SessionFacts
from paceline.policy.pacing import PacerFields

Row = list[Any]
_NO_FIELDS = PacerFields()
REMEMBERED = 65_536
"""Phones whose facts are read once as long as nothing changes them; some kilobyte each."""
_HANDED = ("phone", "sessionId", "sendAfter", "handedOffAt", "day", "unitDay")
SEND, DIGITS = 27, 13
"""Characters of one past send: two times of so many digits, and whether it is proven."""


class Entry(msgspec.Struct, array_like=True, gc=False):
    """A task as it lies in a queue (`entry_of` in the scripts)."""

    task: str
    to: str
    expires_at: int
    priority: int
    seq: int
    at: int
    tz: str = ""
    single: bool = False

    @staticmethod
    def of(text: str) -> "Entry":
        return _decode_entry(text)


_decode_entry = msgspec.json.Decoder(Entry).decode


class Pace(msgspec.Struct, array_like=True, gc=False):
    """A phone's pace, field by field as the scripts have it (lib/25_pace.lua)."""

    version: str = "0"
    last_now: str = ""
    unsettled: str = ""
    holder: str = ""
    slot: str = ""
    wait_reason: str = ""
    wait_until: str = ""
    last_sent: str = ""
    sent_by: str = ""
    more: str = ""
    gap_ms: str = ""
    gap_key: str = ""
    cap_day: str = ""
    cap_used: str = ""

    @staticmethod
    def of(line: str) -> "Pace":
        return _decode_pace(line)

    @property
    def line(self) -> str:
        return _encode(self).decode()


class Marks(msgspec.Struct, array_like=True, gc=False):
    """What is marked of a phone's queues, likewise."""

    seq: str = ""
    urgent: str = ""
    min_expiry: str = ""
    parked_at: str = ""
    failures: str = ""

    @staticmethod
    def of(text: str) -> "Marks":
        return _decode_marks(text)

    @property
    def text(self) -> str:
        return _encode(self).decode()


_decode_pace = msgspec.json.Decoder(Pace).decode
_decode_marks = msgspec.json.Decoder(Marks).decode
_encode = msgspec.json.Encoder().encode


def sends_text(sends: Sequence[tuple[int, int]]) -> str:
    """The same for its past sends: from when to when each was on the wire."""
    return "".join(f"{start:013d}{end:013d}s" for start, end in sends)


class Moments(Sequence[int]):
    """When its past sends were on the wire, at the earliest or at the latest. A time is read when somebody asks for it:
    a decision asks for one or two of dozens."""

    __slots__ = ("_at", "_wire")

    def __init__(self, wire: str, at: int) -> None:
        if len(wire) % SEND:
            raise ValueError("these are no sends")
        self._wire = wire
        self._at = at

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...

    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        if isinstance(place, slice):
            return tuple([self[one] for one in range(*place.indices(len(self)))])
        at = (place if place >= 0 else place + len(self)) * SEND + self._at
        if not 0 <= at < len(self._wire):
            raise IndexError(place)
        return int(self._wire[at : at + DIGITS])

    def __iter__(self) -> Iterator[int]:
        wire = self._wire
        return iter([int(wire[at : at + DIGITS]) for at in range(self._at, len(wire), SEND)])

    def __len__(self) -> int:
        return len(self._wire) // SEND


class _Session(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What seldom changes about a session, as it is stored."""

    id: str
    connection: str = "STOPPED"
    paused: str = ""
    rpm: str = ""
    rpm_source: str = ""


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    """What seldom changes about a phone, as it is stored (`facts_of` in the scripts)."""

    created_at: str = ""
    timezone: str = ""
    rpm_changed_at: str = "0"
    restriction: str = ""
    restricted_until: str = "0"
    cooldown_until: str = "0"
    quarantined: str = ""
    min_delay_ms: str = ""
    max_delay_ms: str = ""
    burst_limit: str = ""
    burst_cooldown_ms: str = ""
    rpm: str = ""
    sessions: tuple[_Session, ...] = ()


class Known(msgspec.Struct, frozen=True, gc=False):
    """The same as policies have it."""

    created_at: int | None
    timezone: str | None
    rpm_override: int | None
    rpm_source: str
    rpm_changed_at: int
    pacer: PacerFields
    restriction: str
    restricted_until: int
    cooldown_until: int
    quarantined: bool
    sessions: tuple[_Session, ...]


_decode_stored = msgspec.json.Decoder(_Stored).decode


@lru_cache(maxsize=REMEMBERED)
def known_of(text: str) -> Known:
    """Of JSON, or of a text of a look, in which that is the second of three lines."""
    stored = _decode_stored(text if text.startswith("{") else text.split("\n")[1])
    fields = (stored.min_delay_ms, stored.max_delay_ms, stored.burst_limit, stored.burst_cooldown_ms, stored.rpm)
    rpm, source = _override(stored.sessions)
    return Known(
        created_at=int(stored.created_at) if stored.created_at else None,
        timezone=stored.timezone or None,
        rpm_override=rpm,
        rpm_source=source,
        rpm_changed_at=int(stored.rpm_changed_at),
        pacer=PacerFields(*[int(value) if value else None for value in fields]) if any(fields) else _NO_FIELDS,
        restriction=stored.restriction,
        restricted_until=int(stored.restricted_until),
        cooldown_until=int(stored.cooldown_until),
        quarantined=stored.quarantined == "1",
        sessions=stored.sessions,
    )


def facts_of(
    row: Row,
    heads: Sequence[Row] = (),
    *,
    more: bool = False,
    global_free_at: int = 0,
    due_at: int = 0,
    leased_until: int = 0,
) -> PhoneFacts:
    phone, facts, line, wire, marks, seen, flags = row
    known = known_of(facts)
    return phone_facts(
        phone, known=known, line=line, pace=Pace.of(line), starts=tuple(Moments(wire, 0)),
        sends=tuple(Moments(wire, DIGITS)), failures=Marks.of(marks).failures,
        sessions=sessions_of(known, seen if isinstance(seen, list) else (seen,)), flags=flags,
        heads=tuple(map(_head, heads)), more=more,
        global_free_at=global_free_at, due_at=due_at, leased_until=leased_until,
    )  # fmt: skip


def phone_facts(
    phone: str,
    *,
    known: Known,
    line: str,
    pace: Pace,
    starts: Sequence[int],
    sends: Sequence[int],
    failures: str,
    sessions: tuple[SessionFacts, ...],
    flags: Sequence[str | None],
    heads: tuple[Head, ...],
    more: bool,
    global_free_at: int = 0,
    due_at: int,
    leased_until: int,
) -> PhoneFacts:
    """The same of what was read already. `line` is its pace as it stands there, `flags` whether the fleet is paused
    and stopped."""
    paused, stopped = flags
    return PhoneFacts(
        phone=phone,
        version=int(pace.version),
        pace_line=line,
        due_at=due_at,
        leased_until=leased_until,
        created_at=known.created_at,
        timezone=known.timezone,
        rpm_override=known.rpm_override,
        rpm_source=known.rpm_source,
        rpm_changed_at=known.rpm_changed_at,
        pacer=known.pacer,
        restriction=known.restriction,
        restricted_until=known.restricted_until,
        failures=tuple(map(int, failures.split(","))) if failures else (),
        last_sent_at=int(pace.last_sent or 0),
        last_now=int(pace.last_now or 0),
        global_free_at=global_free_at,
        fleet_stopped=stopped == "1",
        cooldown_until=known.cooldown_until,
        quarantined=known.quarantined,
        fleet_paused=paused == "1",
        unsettled=pace.unsettled or None,
        starts=starts,
        sends=sends,
        gap_ms=int(pace.gap_ms or 0),
        gap_key=pace.gap_key,
        cap_day=pace.cap_day,
        cap_used=int(pace.cap_used or 0),
        sessions=sessions,
        heads=heads,
        more=more,
    )


def sessions_of(known: Known, seen: Sequence[str | None]) -> tuple[SessionFacts, ...]:
    """`seen`: when each was heard of."""
    if len(known.sessions) == len(seen) == 1:
        (session,), (at,) = known.sessions, seen
        return (SessionFacts(session.id, session.connection, int(at or 0), session.paused == "1"),)
    return tuple(
        [
            SessionFacts(session.id, session.connection, int(at or 0), session.paused == "1")
            for session, at in zip(known.sessions, seen, strict=False)
        ]
    )


def _override(sessions: Sequence[_Session]) -> tuple[int | None, str]:
    """The slowest of its sessions'."""
    rpm, source = None, ""
    for session in sessions:
        if session.rpm and (rpm is None or int(session.rpm) <= rpm):
            rpm, source = int(session.rpm), session.rpm_source
    return rpm, source


def _head(row: Row) -> Head:
    entry, state, pinned, maybe_sent, suppressed, is_known, job_paused, free_at = row
    item = Entry.of(entry)
    return Head(
        entry, item.task, item.to, state, item.expires_at, item.tz or None, suppressed == "1", pinned or None,
        maybe_sent == "1", is_known == "1", job_paused == "1", int(free_at), item.priority, item.single,
    )  # fmt: skip


def message_of(fields: Mapping[str, str]) -> dict[str, str]:
    """A message's fields, with what the two texts of a hand-over say (lib/15_message.lua)."""
    handed, entry = fields.get("handed"), fields.get("entry")
    found: dict[str, str] = {}
    if handed is not None:
        found = dict(zip(_HANDED, handed.split(" "), strict=False))
        found.setdefault("unitDay", found.get("day", ""))
    if entry is not None:
        with suppress(msgspec.MsgspecError):
            found["to"] = Entry.of(entry).to
    return {**fields, **found}


def task_of(entry: str) -> str:
    """The task of an entry of a queue or an outbox."""
    return Entry.of(entry).task
