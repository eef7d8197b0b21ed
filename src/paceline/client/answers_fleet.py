"""Answers of the dispatcher about the fleet and lists of its numbers. What a field means, its `/docs` say. Neighbour:
`answers_fleet_numbers` for one number alone."""

from typing import Any

import msgspec

from paceline.client.answers_jobs import Answer, Page, Waiting


class DispatcherHealth(Answer, frozen=True, kw_only=True):
    status: str
    running: bool
    processed: int
    routed: int
    failed: int
    active_pacers: int


class QueueLengths(Answer, frozen=True, kw_only=True):
    gateway: int
    priority: int
    retry: int
    session_retry: int
    scheduled: int
    dead_letter: int
    parked: int
    total: int


class FleetState(Answer, frozen=True, kw_only=True):
    running: bool
    paused: bool
    paused_reason: str | None
    """OPERATOR or BREAKER."""
    paused_at: int | None


class Running(Answer, frozen=True, kw_only=True):
    running: bool


class FleetPaused(Answer, frozen=True, kw_only=True):
    paused: bool
    reason: str | None
    since: int | None


class TrustLevel(Answer, frozen=True, kw_only=True):
    name: str
    max_age_days: float | None
    rpm: int
    min_delay_ms: int
    max_delay_ms: int
    effective_rpm: float
    daily_cap: int | None
    hours: tuple[int, int] | None


class Policy(Answer, frozen=True, kw_only=True):
    name: str
    levels: list[TrustLevel]
    recipient_hours: tuple[int, int] | None
    jitter: float
    typing_ms: tuple[int, int]
    burst_limit: int
    burst_cooldown_ms: int
    global_rpm: int | None


class SmartGuard(Answer, frozen=True, kw_only=True):
    enabled: bool
    tick_ms: int
    last_tick: int | None
    last_action_at: int | None


Line = dict[str, Any]
"""An incident (`at`, `kind`) or what happened to a job (`at`, `event`, `jobId`); the rest depends on its kind."""


class PacerConfig(Answer, frozen=True, kw_only=True):
    """What an operator set; None is not set."""

    min_delay_ms: int | None = None
    max_delay_ms: int | None = None
    burst_limit: int | None = None
    burst_cooldown_ms: int | None = None
    rpm: int | None = None


class Pacer(Answer, frozen=True, kw_only=True):
    phone: str
    session_ids: list[str]
    avg_delay_ms: int
    min_delay_ms: int
    max_delay_ms: int
    burst_count: int
    burst_limit: int
    burst_cooldown_ms: int
    rpm: int
    effective_rpm: float
    next_slot_at: int | None
    queue_len: int
    parked: int
    unsettled: str | None
    waiting: Waiting | None
    config: PacerConfig


class Standing(Answer, frozen=True, kw_only=True):
    kind: str
    """NONE, COOLDOWN, TIME_LOCKED, CAPPED or QUARANTINED."""
    until: int | None


class SessionMetrics(Answer, frozen=True, kw_only=True):
    session_id: str
    phone: str
    queue_len: int
    sent_last60s: int = msgspec.field(name="sentLast60s")
    routed_last60s: int = msgspec.field(name="routedLast60s")
    failed_last60s: int = msgspec.field(name="failedLast60s")
    trust_level: str
    rpm_default: int
    rpm_override: int | None
    rpm_source: str | None
    effective_rpm: float
    budget_left: int | None
    """None is no limit."""
    restriction: Standing
    next_slot_at: int | None
    waiting: Waiting | None


class RosterRow(Answer, frozen=True, kw_only=True):
    """A session as a list of all of them shows it."""

    session_id: str
    phone: str
    display_name: str | None
    driver: str
    status: str
    connection: str
    tags: list[str]
    proxy: str | None
    direct: bool
    restriction: Standing
    trust_level: str
    rpm: int
    rpm_default: int
    rpm_override: int | None
    rpm_source: str | None
    effective_rpm: float
    next_slot_at: int | None
    queue_len: int
    parked: int
    sent_today: int
    daily_cap: int | None
    sent_last60s: int = msgspec.field(name="sentLast60s")
    failed_last60s: int = msgspec.field(name="failedLast60s")
    unsettled: str | None
    waiting: Waiting | None


class RosterPage(Page[RosterRow], frozen=True, kw_only=True):
    total: int
    """How many there are on all pages."""


class Totals(Answer, frozen=True, kw_only=True):
    sent: int
    delivered: int
    read: int
    failed: int


class Minute(Answer, frozen=True, kw_only=True):
    at: int
    sent: int
    failed: int


class Overview(Answer, frozen=True, kw_only=True):
    """The fleet at a glance."""

    sessions: int
    connected: int
    sending: int
    statuses: dict[str, int]
    totals: Totals
    since: int
    minutes: list[Minute]
