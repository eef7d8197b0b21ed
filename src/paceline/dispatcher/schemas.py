"""What operators send and get, field by field. `/openapi.json` is made from these.

Unknown fields are refused: a misspelt `burstLimit` must not look as if it had been set.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from paceline.policy.explain import ExplainedFacts, HeadExplained
from paceline.policy.pacing import PacerFields
from paceline.policy.restriction import Standing
from paceline.policy.trust import BURST_MAX

LONGEST_MS = 3_600_000
"""An hour between two messages: whoever wants more wants to pause the number."""

Delay = Annotated[int, Meta(ge=0, le=LONGEST_MS)]
Rpm = Literal[2, 3, 5, 10, 15, 20]
"""`policy.pacing.ALLOWED_RPM`, as a type; a test holds them together."""


class _In(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A body that comes in."""


class _Out(msgspec.Struct, frozen=True, rename="camel"):
    """An answer."""


class PacerRequest(_In, frozen=True, kw_only=True):
    """What is absent stays as it is; null forgets what was set."""

    min_delay_ms: Delay | UnsetType | None = UNSET
    max_delay_ms: Delay | UnsetType | None = UNSET
    burst_limit: Annotated[int, Meta(ge=0, le=BURST_MAX)] | UnsetType | None = UNSET
    burst_cooldown_ms: Delay | UnsetType | None = UNSET
    rpm: Rpm | UnsetType | None = UNSET


class RpmRequest(_In, frozen=True, kw_only=True):
    rpm: Rpm | None
    """null removes the override, SmartGuard's too."""


class ToggleRequest(_In, frozen=True, kw_only=True):
    enabled: bool


class Health(_Out, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"
    running: bool
    """False while an operator has stopped the dispatchers."""
    processed: int
    """Turns that this dispatcher's routers took."""
    routed: int
    failed: int
    active_pacers: int
    """Numbers that wait for their next look."""


class Running(_Out, frozen=True, kw_only=True):
    running: bool


class Paused(_Out, frozen=True, kw_only=True):
    paused: bool
    reason: str | None
    """OPERATOR or BREAKER."""
    since: int | None


class FleetAnswer(_Out, frozen=True, kw_only=True):
    running: bool
    paused: bool
    paused_reason: str | None
    paused_at: int | None


class Waiting(_Out, frozen=True, kw_only=True):
    reason: str
    until: int | None
    """When it goes on, if that is known."""
    text: str


class PacerView(_Out, frozen=True, kw_only=True):
    phone: str
    session_ids: list[str]
    avg_delay_ms: int
    """The middle of the window that a gap is drawn from."""
    min_delay_ms: int
    max_delay_ms: int
    burst_count: int
    """Messages since the last rest of at least the cooldown."""
    burst_limit: int
    burst_cooldown_ms: int
    rpm: int
    effective_rpm: float
    """What it comes to in the long run, rests after bursts included."""
    next_slot_at: int | None
    """null: as far as pace goes, the next may go now."""
    queue_len: int
    parked: int
    unsettled: str | None
    """The message it is busy with."""
    waiting: Waiting | None
    config: PacerFields
    """What an operator set; it goes before override and trust."""


class PacerPage(_Out, frozen=True, kw_only=True):
    items: list[PacerView]
    next_cursor: str | None


class SessionMetrics(_Out, frozen=True, kw_only=True):
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
    """null is no limit."""
    restriction: Standing
    next_slot_at: int | None
    waiting: Waiting | None


class MetricsPage(_Out, frozen=True, kw_only=True):
    items: list[SessionMetrics]
    """Those of this page that are connected."""
    next_cursor: str | None


class RpmAnswer(_Out, frozen=True, kw_only=True):
    session_id: str
    phone: str
    rpm: int | None
    source: str | None
    effective_rpm: float


class CooldownCleared(_Out, frozen=True, kw_only=True):
    cleared: bool
    """False if there was none."""


class Requeued(_Out, frozen=True, kw_only=True):
    requeued: int
    """How many wait for this number."""
    quarantined: Literal[False] = False


class QueueCanceled(_Out, frozen=True, kw_only=True):
    canceled: int
    failed: int
    """May have gone out, so they ended failed/UNKNOWN_OUTCOME."""
    open: int
    """In a worker's hands; those end as they end."""


class ExplainAnswer(_Out, frozen=True, kw_only=True):
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


class TrustLevel(_Out, frozen=True, kw_only=True):
    name: str
    max_age_days: float | None
    """Of numbers younger than that; null for the last level."""
    rpm: int
    min_delay_ms: int
    max_delay_ms: int
    effective_rpm: float
    """What it comes to in the long run, rests after bursts included."""
    daily_cap: int | None
    """null is no limit."""
    hours: tuple[int, int] | None
    """From and until, in the number's timezone; null is round the clock."""


class PolicyAnswer(_Out, frozen=True, kw_only=True):
    name: str
    levels: list[TrustLevel]
    recipient_hours: tuple[int, int] | None
    jitter: float
    typing_ms: tuple[int, int]
    burst_limit: int
    burst_cooldown_ms: int
    global_rpm: int | None
    """A ceiling for the whole fleet; null is none."""


class GuardAnswer(_Out, frozen=True, kw_only=True):
    enabled: bool
    tick_ms: int
    last_tick: int | None
    last_action_at: int | None


class EventPage(_Out, frozen=True, kw_only=True):
    items: list[dict[str, Any]]
    """The newest first."""
    next_cursor: str | None
