"""How accepted work is doing, as callers see it: jobs, messages, queues, a session's day."""

from typing import Any

from paceline.domain.jobs import OnUnknown, Strategy
from paceline.gateway.schemas import Out


class Waiting(Out, frozen=True, kw_only=True):
    reason: str
    until: int | None
    text: str
    """The same in one sentence."""


class Fault(Out, frozen=True, kw_only=True):
    code: str
    message: str


class JobStatus(Out, frozen=True, kw_only=True):
    job_id: str
    state: str
    progress: dict[str, int]
    """`sent` counts all that went out; `delivered` and `read` are parts of it."""
    accepted_at: int
    accepted_by: str
    closed_at: int | None
    last_error: str | None
    waiting: Waiting | None
    estimated_completion: int | None
    mode: str
    media_ref: str | None
    """The file of an image or a document."""
    priority: int
    phone: str | None
    session_id: str | None
    send_at: int | None
    spread_minutes: int
    validity_seconds: int
    on_unknown: OnUnknown
    strategy: Strategy | None
    tags: list[str]
    metadata: dict[str, Any]
    confirmation: bool
    """The answer to somebody's "stop"."""
    replay_of: str | None
    """The dead letter, or the job whose dead letters, it sends again."""


class TimelinePoint(Out, frozen=True, kw_only=True):
    at: int
    sent: int
    """How many had gone out by then, or should have."""


class Backlog(Out, frozen=True, kw_only=True):
    waiting: int
    """Accepted and not gone out: without a number yet, in a number's queue, parked, scheduled, to be retried."""
    sending: int
    """In a worker's hands."""
    scheduled_until: int | None
    """When the last of what is spread or scheduled is due, if that is still to come."""
    estimated_completion: int | None
    """When all of it should have gone out; null while nothing waits, or while no number could send it."""


class JobTimeline(Out, frozen=True, kw_only=True):
    job_id: str
    planned: list[TimelinePoint]
    """As forecast when it was accepted, with straight lines between; empty if no end was in sight."""
    actual: list[TimelinePoint]
    """At most 400 points. Of a job with more messages some tell of all; empty once its messages are not kept."""


class JobCanceled(Out, frozen=True, kw_only=True):
    job_id: str
    state: str
    canceled: int
    """How many this call stopped."""
    open: int
    """How many a worker already holds; those end as they end."""


class JobPaused(Out, frozen=True, kw_only=True):
    job_id: str
    state: str
    paused_at: int
    waiting: int
    """How many wait until the job is resumed."""
    claimed: int
    """How many a worker already holds; those end as they end."""


class JobResumed(Out, frozen=True, kw_only=True):
    job_id: str
    state: str
    released: int
    """How many had been put aside because of the pause and are back at once; of very many, the rest follows within
    minutes."""


class Times(Out, frozen=True, kw_only=True):
    accepted_at: int | None = None
    handed_off_at: int | None = None
    claimed_at: int | None = None
    sent_at: int | None = None
    delivered_at: int | None = None
    read_at: int | None = None
    ended_at: int | None = None


class MessageStatus(Out, frozen=True, kw_only=True):
    message_id: str
    job_id: str
    to: str
    state: str
    phone: str | None
    session_id: str | None
    times: Times
    attempts: int
    whatsapp_id: str | None
    last_error: Fault | None
    history: list[dict[str, Any]]
    waiting: Waiting | None
    client_ref: str | None
    metadata: dict[str, Any]


class QueuedMessage(Out, frozen=True, kw_only=True):
    message_id: str
    job_id: str
    to: str
    priority: int
    position: int | None
    """How many stand before it; none for a parked one, which does not stand in line."""
    state: str
    expires_at: int
    waiting: Waiting


class QueueView(Out, frozen=True, kw_only=True):
    session_id: str
    phone: str
    items: list[QueuedMessage]
    """In the order they will go: priority 3, 2, 1; then what is parked, by its time."""
    total: int
    """All that lies there, parked ones too. What was canceled with its job is counted until it comes to the head."""
    parked: int
    scheduled: int
    """Single messages for later, which are not in the queue yet."""
    next_cursor: str | None


class MessageCanceled(Out, frozen=True, kw_only=True):
    message_id: str
    state: str
    """`canceled`; or `failed`, with the error UNKNOWN_OUTCOME, if an earlier try may have gone out."""


class SessionStats(Out, frozen=True, kw_only=True):
    session_id: str
    date: str
    sent: int
    failed: int
    delivered: int
    read: int
    avg_delivery_time: int | None
    """Milliseconds from sent to delivered."""
    queue_size: int
    """What waits for the session's number now, whatever the date."""
