"""Facts from rows: what `phone_row` and `head_row` in the scripts read, as it is stored, made into what policies read.

A value that is absent comes as None in a plain reply and as False inside JSON. Neighbours: `lua/lib/30_phone.lua` and
`lua/lib/60_heads.lua` say what stands at which place; `pacers`, `operators` and `outbox` bring the rows.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from paceline.policy.facts import Head, PhoneFacts, SessionFacts
from paceline.policy.pacing import PacerFields

Row = list[Any]
_NO_FIELDS = PacerFields()
_COMMAS = str.maketrans("-", ",")


class _Entry(msgspec.Struct):
    """A task as it lies in a queue."""

    task: str
    to: str
    expires_at: int = msgspec.field(name="expiresAt")
    priority: int
    tz: str | None = None
    single: bool = False


_decode_entry = msgspec.json.Decoder(_Entry).decode


def facts_of(
    row: Row,
    heads: Sequence[Row] = (),
    *,
    more: bool = False,
    global_free_at: int = 0,
    due_at: int = 0,
    leased_until: int = 0,
) -> PhoneFacts:
    phone, about, pace, sessions, fleet = row
    created_at, timezone, rpm_changed_at, restriction, restricted_until, cooldown_until, quarantined, *fields, _ = about
    version, wire, failures, last_sent, unsettled, gap_ms, gap_key, cap_day, cap_used, *_ = pace
    starts, sends = _moments(wire) if wire else ((), ())
    rpm, source = _override(sessions) if sessions else (None, "")
    return PhoneFacts(
        phone=phone,
        version=int(version or 0),
        due_at=due_at,
        leased_until=leased_until,
        created_at=int(created_at) if created_at else None,
        timezone=timezone or None,
        rpm_override=rpm,
        rpm_source=source,
        rpm_changed_at=int(rpm_changed_at or 0),
        pacer=_fields(fields) if any(fields) else _NO_FIELDS,
        restriction=restriction or "",
        restricted_until=int(restricted_until or 0),
        failures=tuple(map(int, failures.split(","))) if failures else (),
        last_sent_at=int(last_sent or 0),
        global_free_at=int(global_free_at),
        fleet_stopped=fleet[1] == "1",
        cooldown_until=int(cooldown_until or 0),
        quarantined=quarantined == "1",
        fleet_paused=fleet[0] == "1",
        unsettled=unsettled or None,
        starts=starts,
        sends=sends,
        gap_ms=int(gap_ms or 0),
        gap_key=gap_key or "",
        cap_day=cap_day or "",
        cap_used=int(cap_used or 0),
        sessions=tuple(map(_session, sessions)) if sessions else (),
        heads=tuple(map(_head, heads)),
        more=more,
    )


def _moments(wire: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`from-at,from-at …`: when each of the last messages was on the wire, at the earliest and at the latest."""
    both = tuple(map(int, wire.translate(_COMMAS).split(",")))
    return both[::2], both[1::2]


def _override(sessions: Sequence[Row]) -> tuple[int | None, str]:
    """The slowest of its sessions'."""
    rpm, source = None, ""
    for *_, known, by in sessions:
        if known and (rpm is None or int(known) <= rpm):
            rpm, source = int(known), by or ""
    return rpm, source


def _fields(row: Row) -> PacerFields:
    return PacerFields(*[int(value) if value else None for value in row])


def _session(row: Row) -> SessionFacts:
    id_, connection, last_seen, paused, _, _ = row
    return SessionFacts(id_, connection or "STOPPED", int(last_seen or 0), paused == "1")


def _head(row: Row) -> Head:
    entry, state, pinned, maybe_sent, suppressed, is_known, job_paused, free_at = row
    item = _decode_entry(entry)
    return Head(
        entry, item.task, item.to, state, item.expires_at, item.tz, suppressed == "1", pinned or None,
        maybe_sent == "1", is_known == "1", job_paused == "1", int(free_at), item.priority, item.single,
    )  # fmt: skip
