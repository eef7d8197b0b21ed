"""The fleet at a glance and as a list, field by field. Neighbours: `schemas` has what is said of single numbers."""

from typing import Literal

import msgspec

from paceline.dispatcher.schemas import Waiting
from paceline.policy.restriction import Standing

Sort = Literal["session", "status", "trust", "rpm", "effectiveRpm", "queue", "budget", "nextSlot"]
Order = Literal["asc", "desc"]


class _Out(msgspec.Struct, frozen=True, rename="camel"):
    """An answer."""


class RosterRow(_Out, frozen=True, kw_only=True):
    session_id: str
    phone: str
    display_name: str | None
    driver: str
    status: str
    """One word for connection, authorisation, restriction, pause and removal together."""
    connection: str
    tags: list[str]
    proxy: str | None
    """Without its credentials."""
    direct: bool
    """It goes out without a proxy, as was asked for."""
    restriction: Standing
    trust_level: str
    rpm: int
    """The rate it is held to: an operator's, an override, or trust's."""
    rpm_default: int
    """By trust."""
    rpm_override: int | None
    rpm_source: str | None
    effective_rpm: float
    """What it comes to in the long run, rests after bursts included."""
    next_slot_at: int | None
    """null: as far as pace goes, the next may go now."""
    queue_len: int
    parked: int
    sent_today: int
    """Units of the day's budget, in the number's timezone; one is reserved for a message that is on its way."""
    daily_cap: int | None
    """null is no limit."""
    sent_last60s: int = msgspec.field(name="sentLast60s")
    failed_last60s: int = msgspec.field(name="failedLast60s")
    unsettled: str | None
    """The message it is busy with."""
    waiting: Waiting | None


class RosterPage(_Out, frozen=True, kw_only=True):
    items: list[RosterRow]
    next_cursor: str | None
    total: int
    """How many there are on all pages."""


class Totals(_Out, frozen=True, kw_only=True):
    sent: int
    delivered: int
    read: int
    failed: int
    """Given up; a retry that is still to come is not among them."""


class MinuteView(_Out, frozen=True, kw_only=True):
    at: int
    """When the minute began."""
    sent: int
    failed: int


class Overview(_Out, frozen=True, kw_only=True):
    sessions: int
    connected: int
    sending: int
    """Those that sent in the last minute or are busy with a message."""
    statuses: dict[str, int]
    """How many sessions there are of each status."""
    totals: Totals
    """Of all numbers, since `since`."""
    since: int
    minutes: list[MinuteView]
    """The last hour, the present minute last."""


class Stretch(_Out, frozen=True, kw_only=True):
    begin: int
    end: int


class PacingView(_Out, frozen=True, kw_only=True):
    session_id: str
    phone: str
    now: int
    sends: list[int]
    """Its last messages on the wire, at least those of the last minute, oldest first."""
    slots: list[int]
    """When the next of its queue should go if nothing else holds them up; the first is certain, the others expected."""
    next_slot_at: int | None
    """null: as far as pace goes, the next may go now."""
    busy: bool
    """A message is on its way."""
    burst_count: int
    burst_limit: int
    burst_cooldown_ms: int
    min_delay_ms: int
    max_delay_ms: int
    restriction: Standing
    open: list[Stretch] | None
    """When its hours let it send within the next day; null: always."""
