"""Answers about sending: jobs and messages. What a field means, docs/api.md says.

Fields that a newer gateway adds are ignored; one that is missing makes the answer a `BadAnswer`. States, codes and
reasons are plain texts, so that a new one does not break an old client.
"""

from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

ENDED_JOBS = frozenset({"DONE", "DONE_WITH_ERRORS", "CANCELED", "FAILED"})
ENDED_MESSAGES = frozenset({"sent", "delivered", "read", "failed", "expired", "canceled", "suppressed"})
"""`sent` is an end, though `delivered` and `read` may follow."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the gateway said."""


class Page(Answer, Generic[T], frozen=True, kw_only=True):
    items: list[T]
    next_cursor: str | None
    """Of the next page; a short or empty page may have one."""


class Contact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A recipient of a job; a plain number will do for one without variables."""

    to: str
    vars: dict[str, str] = {}
    client_ref: str | None = None
    timezone: str | None = None


class OwnText(msgspec.Struct, frozen=True):
    """One message of a batch."""

    to: str
    text: str


class Rejected(Answer, frozen=True, kw_only=True):
    index: int
    to: str
    code: str
    variable: str | None = None


class JobAccepted(Answer, frozen=True, kw_only=True):
    job_id: str
    total: int
    accepted: int
    suppressed: int
    duplicates: int
    rejected: list[Rejected]
    will_expire: int
    status_url: str
    estimated_completion: int | None


class SendAccepted(Answer, frozen=True, kw_only=True):
    message_id: str
    position: int | None
    estimated_delivery: int | None


class BatchAccepted(Answer, frozen=True, kw_only=True):
    queued: int
    job_id: str
    suppressed: int
    estimated_completion: int | None


class Waiting(Answer, frozen=True, kw_only=True):
    reason: str
    until: int | None
    text: str


class Fault(Answer, frozen=True, kw_only=True):
    code: str
    message: str


class Progress(Answer, frozen=True, kw_only=True):
    """`sent` counts all that went out; `delivered` and `read` are parts of it."""

    total: int
    queued: int
    scheduled: int
    parked: int
    handed_off: int
    unknown: int
    retrying: int
    sent: int
    delivered: int
    read: int
    failed: int
    expired: int
    canceled: int
    suppressed: int


class JobStatus(Answer, frozen=True, kw_only=True):
    job_id: str
    state: str
    progress: Progress
    accepted_at: int
    accepted_by: str
    closed_at: int | None
    last_error: str | None
    waiting: Waiting | None
    estimated_completion: int | None
    mode: str
    priority: int
    phone: str | None
    session_id: str | None
    send_at: int | None
    spread_minutes: int
    validity_seconds: int
    on_unknown: str
    strategy: str | None
    tags: list[str]
    metadata: dict[str, Any]
    confirmation: bool
    replay_of: str | None
    media_ref: str | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED_JOBS and self.closed_at is not None


class JobItem(Answer, frozen=True, kw_only=True):
    job_id: str
    state: str
    accepted_at: int
    accepted_by: str
    closed_at: int | None
    total: int
    progress: Progress
    mode: str
    priority: int
    single: bool
    tags: list[str]
    metadata: dict[str, Any]


class TimelinePoint(Answer, frozen=True, kw_only=True):
    at: int
    sent: int


class Backlog(Answer, frozen=True, kw_only=True):
    waiting: int
    sending: int
    scheduled_until: int | None
    estimated_completion: int | None


class JobTimeline(Answer, frozen=True, kw_only=True):
    job_id: str
    planned: list[TimelinePoint]
    """As forecast when it was accepted; empty if no end was in sight."""
    actual: list[TimelinePoint]


class JobCanceled(Answer, frozen=True, kw_only=True):
    job_id: str
    state: str
    canceled: int
    open: int


class JobPaused(Answer, frozen=True, kw_only=True):
    job_id: str
    state: str
    paused_at: int
    waiting: int
    claimed: int


class JobResumed(Answer, frozen=True, kw_only=True):
    job_id: str
    state: str
    released: int


class Times(Answer, frozen=True, kw_only=True):
    accepted_at: int | None = None
    handed_off_at: int | None = None
    claimed_at: int | None = None
    sent_at: int | None = None
    delivered_at: int | None = None
    read_at: int | None = None
    ended_at: int | None = None


class MessageItem(Answer, frozen=True, kw_only=True):
    """A message in a list."""

    message_id: str
    job_id: str
    index: int
    to: str
    state: str
    client_ref: str | None
    phone: str | None
    session_id: str | None
    whatsapp_id: str | None
    attempts: int
    times: Times
    last_error: Fault | None
    waiting: Waiting | None

    @property
    def ended(self) -> bool:
        return self.state in ENDED_MESSAGES


class MessageStatus(Answer, frozen=True, kw_only=True):
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

    @property
    def ended(self) -> bool:
        return self.state in ENDED_MESSAGES
