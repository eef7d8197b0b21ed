"""What callers send, and what they get for it, field by field: `/openapi.json` is made from them. How accepted work is
doing is answered with `views`.

Unknown fields are refused: a misspelt `sendAt` must not become "now".
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from paceline.domain.jobs import MAX_CONTACTS, OnUnknown, Strategy
from paceline.domain.media import Mode
from paceline.domain.text import TEXT_LIMIT

TEMPLATE_LIMIT = 16 * TEXT_LIMIT
"""Before variables; the limit that counts is that of the text that goes out."""
REJECTED_SHOWN = 1_000
SUPPRESSIONS_AT_ONCE = 10_000
BATCH_LIMIT = 10_000
"""Messages in one batch; with texts of any length the body limit (1 MB) comes first."""

_LIMIT = f"at most {TEXT_LIMIT:,} characters after variables"
Text = Annotated[str, Meta(min_length=1, max_length=TEMPLATE_LIMIT, description=_LIMIT)]
Short = Annotated[str, Meta(min_length=1, max_length=256)]
Number = Annotated[str, Meta(max_length=64, examples=["+972 54-123-4567"])]
Moment = Annotated[int | str, Meta(description="Unix milliseconds, or ISO 8601 with an offset")]
Priority = Annotated[int, Meta(ge=1, le=3, description="3 goes before 2 before 1")]
Spread = Annotated[int, Meta(ge=0, le=43_200, description="minutes over which they are spread evenly")]
Validity = Annotated[int, Meta(ge=60, le=31_536_000, description="seconds from the scheduled time on; then it expires")]


class _In(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A body that comes in."""


class Out(msgspec.Struct, frozen=True, rename="camel"):
    """An answer."""


# Untracked by the collector: a hundred thousand of them come in one body, and none can be part of a cycle.
class ContactIn(_In, frozen=True, kw_only=True, gc=False):
    to: str
    """A phone number with its country code, in any usual notation."""
    vars: Annotated[dict[str, Annotated[str, Meta(max_length=TEXT_LIMIT)]], Meta(max_length=64)] = {}
    """What the {{variables}} of the text are for this person."""
    client_ref: Short | None = None
    """The caller's own name for this message; it comes back in answers and events."""
    timezone: Short | None = None
    """Of the IANA list; left out, it follows from the number."""


class BadRow(ContactIn, frozen=True, kw_only=True, gc=False):
    """A row of a CSV that cannot be a contact. It keeps its place, so that the others keep theirs."""

    code: str
    column: str | None = None


class JobRequest(_In, frozen=True, kw_only=True):
    contacts: Annotated[list[str | ContactIn], Meta(min_length=1, max_length=MAX_CONTACTS)]
    """Numbers, or objects with more about each."""
    text: Annotated[str, Meta(max_length=TEMPLATE_LIMIT, description=_LIMIT, examples=["Hello {{name}}"])] = ""
    """Of an image or a document the caption, which may be left out."""
    mode: Mode = "message"
    """A text, or a file with one."""
    media_ref: Annotated[str, Meta(max_length=128, description="of an upload to /v1/media")] | None = None
    media_url: Annotated[str, Meta(max_length=2_048, description="fetched once, now")] | None = None
    session_id: Short | None = None
    """All go from this session's number."""
    phone: Number | None = None
    """All go from this number of ours."""
    tags: Annotated[list[Short], Meta(max_length=32)] = []
    """For lists and filters."""
    strategy: Strategy | None = None
    """How each contact gets its number; left out, as the server is set."""
    priority: Priority = 1
    spread_minutes: Spread = 0
    send_at: Moment | None = None
    """Unix milliseconds, or ISO 8601 with an offset; left out, now."""
    validity_seconds: Validity = 30 * 86_400
    on_unknown: OnUnknown = "resend"
    """If nobody knows whether a message went out: the same one again, or hold it and fail in the end."""
    strict: bool = False
    """Refuse all if one contact is bad."""
    metadata: dict[str, Any] = {}
    """The caller's own; at most 8,192 bytes as JSON. It comes back in answers and events."""


class SendRequest(_In, frozen=True, kw_only=True):
    to: Number
    message: Text
    session_id: Short | None = None
    """It goes from this session's number."""
    phone: Number | None = None
    priority: Priority = 1
    send_at: Moment | None = None
    """Unix milliseconds, or ISO 8601 with an offset; left out, now."""


class OlderSendRequest(_In, frozen=True, kw_only=True):
    to: Number
    text: Text
    session_id: Short | None = None
    """It goes from this session's number."""
    phone: Number | None = None
    priority: Priority = 1
    send_at: Moment | None = None
    """Unix milliseconds, or ISO 8601 with an offset; left out, now."""


class BatchMessage(_In, frozen=True, kw_only=True, gc=False):
    to: str
    text: str


class BatchRequest(_In, frozen=True, kw_only=True):
    messages: Annotated[list[BatchMessage], Meta(min_length=1, max_length=BATCH_LIMIT)]
    session_id: Short | None = None
    phone: Number | None = None
    spread_minutes: Spread = 0
    priority: Priority = 1


class Rejected(Out, frozen=True, kw_only=True, omit_defaults=True):
    index: int
    to: str
    code: str
    variable: str | None = None
    """With MISSING_VARIABLE the first that has no value; with FIELD_TOO_LONG the column."""


class JobAccepted(Out, frozen=True, kw_only=True):
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


class SendAccepted(Out, frozen=True, kw_only=True):
    queued: Literal[True] = True
    message_id: str
    position: int | None
    estimated_delivery: int | None


class BatchAccepted(Out, frozen=True, kw_only=True):
    queued: int
    """How many will be sent: all but the suppressed."""
    job_id: str
    suppressed: int
    estimated_completion: int | None


class MediaStored(Out, frozen=True, kw_only=True):
    media_ref: str
    type: str
    size: int
    sha256: str
    expires_at: int
    """When it is removed if no job uses it until then."""


class SuppressRequest(_In, frozen=True, kw_only=True):
    to: Number | Annotated[list[str], Meta(min_length=1, max_length=SUPPRESSIONS_AT_ONCE)]
    reason: Annotated[str, Meta(max_length=256)] = ""


class Suppressed(Out, frozen=True, kw_only=True):
    added: int
    """How many were not on the list before."""


class RejectedRow(Out, frozen=True, kw_only=True):
    line: int
    """Of the file, from 1; of a row over several lines the first."""
    to: str
    code: str


class ImportedSuppressions(Out, frozen=True, kw_only=True):
    added: int
    duplicates: int
    """On the list before, or twice in the file."""
    rejected: list[RejectedRow]


class SuppressionItem(Out, frozen=True, kw_only=True, omit_defaults=True):
    to: str
    at: int
    reason: str
    source: str
    confirmation: str | None = None
    """The message that told them so, if they said stop themselves."""


class SuppressionPage(Out, frozen=True, kw_only=True):
    items: list[SuppressionItem]
    next_cursor: str | None


class ErasedPerson(Out, frozen=True, kw_only=True):
    to: str
    canceled: int
    """Messages that waited for them."""
    erased: int
    """Places from which they were removed: messages, conversations, dead letters, events."""
    open: int
    """Messages a worker holds, which cannot be erased yet: ask again once they have ended."""
    suppressed: bool
    """They are on the suppression list, and stay there: forgetting that would be writing to them again."""


class Removed(Out, frozen=True, kw_only=True):
    removed: Literal[True] = True
    to: str
