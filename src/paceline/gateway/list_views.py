"""What lists of jobs and messages answer with. One job and one message have more: `views`."""

from typing import Any

from paceline.gateway.schemas import Out
from paceline.gateway.views import Fault, Times, Waiting


class JobItem(Out, frozen=True, kw_only=True):
    job_id: str
    state: str
    accepted_at: int
    accepted_by: str
    closed_at: int | None
    total: int
    """Accepted contacts."""
    progress: dict[str, int]
    """As in the job's own answer, counted at this moment."""
    mode: str
    priority: int
    single: bool
    """It came as one message, not as a list of contacts."""
    tags: list[str]
    metadata: dict[str, Any]


class JobPage(Out, frozen=True, kw_only=True):
    items: list[JobItem]
    next_cursor: str | None
    """There is more to look at; with a filter a page may be short, or empty, and have it."""


class MessageItem(Out, frozen=True, kw_only=True):
    message_id: str
    job_id: str
    index: int
    """Its contact's place among those that were accepted."""
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


class MessagePage(Out, frozen=True, kw_only=True):
    items: list[MessageItem]
    next_cursor: str | None
    """There is more to look at; a page may be short, or empty, and have it."""
