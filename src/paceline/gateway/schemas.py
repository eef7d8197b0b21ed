"""What callers send and get, field by field. They document the API too: `/openapi.json` is made from them.

Unknown fields are refused: a misspelt `sendAt` must not become "now".
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.domain.jobs import MAX_CONTACTS, OnUnknown
from paceline.domain.text import TEXT_LIMIT

TEMPLATE_LIMIT = 16 * TEXT_LIMIT
"""Before variables; the limit that counts is that of the text that goes out."""
REJECTED_SHOWN = 1_000
SUPPRESSIONS_AT_ONCE = 10_000

_LIMIT = f"at most {TEXT_LIMIT:,} characters after variables"
Text = Annotated[str, Meta(min_length=1, max_length=TEMPLATE_LIMIT, description=_LIMIT)]
Short = Annotated[str, Meta(min_length=1, max_length=256)]
Number = Annotated[str, Meta(max_length=64, examples=["+972 54-123-4567"])]
Moment = Annotated[int | str, Meta(description="Unix milliseconds, or ISO 8601 with an offset")]
Priority = Annotated[int, Meta(ge=1, le=3, description="3 goes before 2 before 1")]
Validity = Annotated[int, Meta(ge=60, le=31_536_000, description="seconds from the scheduled time on; then it expires")]


class _In(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A body that comes in."""


class _Out(msgspec.Struct, frozen=True, rename="camel"):
    """An answer."""


# Untracked by the collector: a hundred thousand of them come in one body, and none can be part of a cycle.
class ContactIn(_In, frozen=True, kw_only=True, gc=False):
    to: str
    vars: Annotated[dict[str, Annotated[str, Meta(max_length=TEXT_LIMIT)]], Meta(max_length=64)] = {}
    client_ref: Short | None = None
    timezone: Short | None = None


class JobRequest(_In, frozen=True, kw_only=True):
    contacts: Annotated[list[str | ContactIn], Meta(min_length=1, max_length=MAX_CONTACTS)]
    text: Annotated[Text, Meta(examples=["Hello {{name}}"])]
    mode: Literal["message", "image", "document"] = "message"
    media_ref: str | None = None
    media_url: str | None = None
    session_id: Short | None = None
    phone: Number | None = None
    tags: Annotated[list[Short], Meta(max_length=32)] = []
    strategy: Literal["sticky"] = "sticky"
    priority: Priority = 1
    spread_minutes: Annotated[int, Meta(ge=0, le=43_200)] = 0
    send_at: Moment | None = None
    validity_seconds: Validity = 30 * 86_400
    on_unknown: OnUnknown = "resend"
    strict: bool = False
    metadata: dict[str, Any] = {}


class SendRequest(_In, frozen=True, kw_only=True):
    to: Number
    message: Text
    session_id: Short | None = None
    phone: Number | None = None
    priority: Priority = 1
    send_at: Moment | None = None


class Rejected(_Out, frozen=True, kw_only=True):
    index: int
    to: str
    code: str


class JobAccepted(_Out, frozen=True, kw_only=True):
    status: Literal["accepted"] = "accepted"
    job_id: str
    total: int
    """Contacts in the request: accepted + suppressed + duplicates + all rejected."""
    accepted: int
    suppressed: int
    duplicates: int
    rejected: list[Rejected]
    """The first 1,000."""
    will_expire: int
    """How many will probably not go out within their validity; 0 while there is no number to forecast with."""
    status_url: str
    estimated_completion: int | None


class SendAccepted(_Out, frozen=True, kw_only=True):
    queued: Literal[True] = True
    message_id: str
    position: int | None
    estimated_delivery: int | None


class Waiting(_Out, frozen=True, kw_only=True):
    reason: str
    until: int | None


class Fault(_Out, frozen=True, kw_only=True):
    code: str
    message: str


class JobStatus(_Out, frozen=True, kw_only=True):
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
    priority: int
    phone: str | None
    session_id: str | None
    send_at: int | None
    spread_minutes: int
    validity_seconds: int
    on_unknown: OnUnknown
    tags: list[str]
    metadata: dict[str, Any]


class JobCanceled(_Out, frozen=True, kw_only=True):
    job_id: str
    state: str
    canceled: int
    """How many this call stopped."""
    open: int
    """How many a worker already holds; those end as they end."""


class Times(_Out, frozen=True, kw_only=True):
    accepted_at: int | None = None
    handed_off_at: int | None = None
    claimed_at: int | None = None
    sent_at: int | None = None
    delivered_at: int | None = None
    read_at: int | None = None
    ended_at: int | None = None


class MessageStatus(_Out, frozen=True, kw_only=True):
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


class SuppressRequest(_In, frozen=True, kw_only=True):
    to: Number | Annotated[list[str], Meta(min_length=1, max_length=SUPPRESSIONS_AT_ONCE)]
    reason: Annotated[str, Meta(max_length=256)] = ""


class Suppressed(_Out, frozen=True, kw_only=True):
    added: int
    """How many were not on the list before."""


class SuppressionItem(_Out, frozen=True, kw_only=True):
    to: str
    at: int
    reason: str
    source: str


class SuppressionPage(_Out, frozen=True, kw_only=True):
    items: list[SuppressionItem]
    next_cursor: str | None


class Removed(_Out, frozen=True, kw_only=True):
    removed: Literal[True] = True
    to: str
