"""Answers about everything beside sending: queues, media, people, dead letters, keys, webhooks."""

from typing import Any

import msgspec

from paceline.client.answers_jobs import Answer, Page, Waiting


class Health(Answer, frozen=True, kw_only=True):
    status: str


class QueuedMessage(Answer, frozen=True, kw_only=True):
    message_id: str
    job_id: str
    to: str
    priority: int
    position: int | None
    state: str
    expires_at: int
    waiting: Waiting


class Queue(Page[QueuedMessage], frozen=True, kw_only=True):
    session_id: str
    phone: str
    total: int
    parked: int
    scheduled: int


class MessageCanceled(Answer, frozen=True, kw_only=True):
    message_id: str
    state: str


class SessionStats(Answer, frozen=True, kw_only=True):
    session_id: str
    date: str
    sent: int
    failed: int
    delivered: int
    read: int
    avg_delivery_time: int | None
    queue_size: int


class MediaStored(Answer, frozen=True, kw_only=True):
    media_ref: str
    type: str
    size: int
    sha256: str
    expires_at: int


class Suppressed(Answer, frozen=True, kw_only=True):
    added: int


class RejectedRow(Answer, frozen=True, kw_only=True):
    line: int
    to: str
    code: str


class SuppressionsImported(Answer, frozen=True, kw_only=True):
    added: int
    duplicates: int
    rejected: list[RejectedRow]


class Suppression(Answer, frozen=True, kw_only=True):
    to: str
    at: int
    reason: str
    source: str
    confirmation: str | None = None


class SuppressionRemoved(Answer, frozen=True, kw_only=True):
    to: str


class ErasedPerson(Answer, frozen=True, kw_only=True):
    to: str
    canceled: int
    erased: int
    open: int
    """Not zero: a worker holds some; ask again once they have ended."""
    suppressed: bool


class DeadLetter(Answer, frozen=True, kw_only=True):
    id: str
    task_id: str
    job_id: str
    at: int
    code: str
    class_: str = msgspec.field(name="class")
    message: str
    to: str | None
    phone: str | None
    session_id: str | None
    attempts: int
    history: list[dict[str, Any]]
    state: str | None
    replayable: bool
    replayed_as: str | None


class Replayed(Answer, frozen=True, kw_only=True):
    job_id: str
    message_id: str
    replay_of: str
    status_url: str


class ReplayJob(Answer, frozen=True, kw_only=True):
    job_id: str
    replay_of: str
    accepted: int


class ReplaySkipped(Answer, frozen=True, kw_only=True):
    not_replayable: int
    already_replayed: int
    suppressed: int


class ReplayedMany(Answer, frozen=True, kw_only=True):
    replayed: int
    jobs: list[ReplayJob]
    skipped: ReplaySkipped
    more: bool


class ApiKey(Answer, frozen=True, kw_only=True):
    key_id: str
    name: str
    scopes: list[str]
    state: str
    created_at: int
    created_by: str
    expires_at: int | None
    rate_per_minute: int | None
    revoked_at: int | None
    revoked_by: str | None


class NewApiKey(ApiKey, frozen=True, kw_only=True):
    key: str
    """Shown this once."""

    def __rich_repr__(self) -> Any:
        yield self.key_id

    def __repr__(self) -> str:
        # A key that is printed with everything else ends up in a log.
        return f"NewApiKey(key_id={self.key_id!r}, name={self.name!r}, scopes={self.scopes!r}, key=…)"


class Webhook(Answer, frozen=True, kw_only=True):
    webhook_id: str
    url: str
    events: list[str]
    description: str
    state: str
    created_at: int
    created_by: str
    pending: int
    failing_since: int | None
    disabled_at: int | None
    disabled_reason: str | None


class NewWebhook(Webhook, frozen=True, kw_only=True):
    secret: str
    """Shown this once."""

    def __rich_repr__(self) -> Any:
        yield self.webhook_id

    def __repr__(self) -> str:
        return f"NewWebhook(webhook_id={self.webhook_id!r}, url={self.url!r}, events={self.events!r}, secret=…)"


class WebhookRemoved(Answer, frozen=True, kw_only=True):
    webhook_id: str


class Delivery(Answer, frozen=True, kw_only=True):
    delivery_id: str
    type: str
    at: int
    state: str
    tries: int
    created_at: int
    last_try_at: int | None
    next_try_at: int | None
    ended_at: int | None
    status: int | None
    error: str | None


class Redriven(Answer, frozen=True, kw_only=True):
    redriven: int
    pulled: int
