"""Answers of the dispatcher about one number: its pacing, why it waits, what became of a decision about it."""

from paceline.client.answers_fleet import Standing
from paceline.client.answers_jobs import Answer


class Stretch(Answer, frozen=True, kw_only=True):
    begin: int
    end: int


class Pacing(Answer, frozen=True, kw_only=True):
    """A number's pacing on a time line."""

    session_id: str
    phone: str
    now: int
    sends: list[int]
    slots: list[int]
    next_slot_at: int | None
    busy: bool
    burst_count: int
    burst_limit: int
    burst_cooldown_ms: int
    min_delay_ms: int
    max_delay_ms: int
    restriction: Standing
    open: list[Stretch] | None


class RpmSet(Answer, frozen=True, kw_only=True):
    session_id: str
    phone: str
    rpm: int | None
    source: str | None
    effective_rpm: float


class CooldownCleared(Answer, frozen=True, kw_only=True):
    cleared: bool


class Requeued(Answer, frozen=True, kw_only=True):
    requeued: int
    quarantined: bool


class QueueCanceled(Answer, frozen=True, kw_only=True):
    canceled: int
    failed: int
    open: int


class ExplainedFacts(Answer, frozen=True, kw_only=True):
    trust_level: str
    rpm_default: int
    rpm_override: int | None
    rpm_source: str | None
    effective_rpm: float
    window: tuple[int, int]
    burst_count: int
    burst_limit: int
    sent_today: int
    daily_cap: int | None
    budget_left: int | None
    local_time: str
    hours: tuple[int, int] | None
    next_slot_at: int
    cooldown_until: int | None
    restriction: str | None
    restricted_until: int | None
    quarantined: bool
    fleet_paused: bool
    fleet_stopped: bool
    connected_sessions: int
    unsettled: str | None


class HeadExplained(Answer, frozen=True, kw_only=True):
    task: str
    action: str
    rule: str
    until: int | None
    text: str


class Explained(Answer, frozen=True, kw_only=True):
    """What the number would do at this moment, and why."""

    session_id: str
    phone: str
    queue_len: int
    parked: int
    decision: str
    rule: str
    until: int | None
    text: str
    facts: ExplainedFacts
    heads: list[HeadExplained]
