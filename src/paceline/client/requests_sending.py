"""Calls that send, and calls about what was sent: jobs, single messages, batches, files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict, TypeVar, Unpack

import msgspec

from paceline.client.answers_jobs import (
    Backlog,
    BatchAccepted,
    Contact,
    JobAccepted,
    JobCanceled,
    JobItem,
    JobPaused,
    JobResumed,
    JobStatus,
    JobTimeline,
    MessageItem,
    MessageStatus,
    OwnText,
    Page,
    SendAccepted,
)
from paceline.client.answers_lists import MediaStored, MessageCanceled
from paceline.client.answers_plan import JobPlan
from paceline.client.calls import CSV, Call, Csv, Moment, Repeat, body, encoded_csv, form, moment, path, query
from paceline.client.errors import Misused

T = TypeVar("T")
Contacts = Sequence[str | Contact | Mapping[str, Any]]


class JobOptions(TypedDict, total=False):
    """Every field of a job but its contacts; docs/api.md explains each."""

    text: str
    mode: Literal["message", "image", "document"]
    media_ref: str
    media_url: str
    session_id: str
    phone: str
    tags: Sequence[str]
    strategy: str
    priority: int
    spread_minutes: int
    send_at: Moment
    validity_seconds: int
    on_unknown: Literal["resend", "hold"]
    strict: bool
    metadata: Mapping[str, Any]


def create_job(
    contacts: Contacts | None = None,
    *,
    csv: Csv | None = None,
    idempotency_key: str | None = None,
    **options: Unpack[JobOptions],
) -> Call[JobAccepted]:
    """One text to many: `contacts`, or a `csv` with a column `to` and one for each variable. Bad contacts are in
    `rejected` of the answer, unless `strict`. Repeated safely: under your `idempotency_key`, or one made for the
    call."""
    asked = Call("POST", "/v1/jobs", JobAccepted, repeat=Repeat.KEYED, idempotency_key=idempotency_key)
    return _filled(asked, contacts, csv, options)


def plan_job(
    contacts: Contacts | None = None, *, csv: Csv | None = None, **options: Unpack[JobOptions]
) -> Call[JobPlan]:
    """When would this job be done? Nothing is stored or sent."""
    return _filled(Call("POST", "/v1/jobs/plan", JobPlan), contacts, csv, options)


def _filled(asked: Call[T], contacts: Contacts | None, csv: Csv | None, options: JobOptions) -> Call[T]:
    if (contacts is None) == (csv is None):
        raise Misused("give either contacts or csv")
    if isinstance(contacts, str | bytes):
        raise Misused("contacts is a list; one person is a list of one")
    unknown = options.keys() - JobOptions.__annotations__.keys()
    if unknown:
        raise Misused(f"a job has no field {min(unknown)!r}")
    fields: dict[str, Any] = {**options}
    if "send_at" in fields:
        fields["send_at"] = moment(fields["send_at"])
    if csv is None:
        return replace(asked, content=body(contacts=contacts, **fields))
    return replace(asked, content=encoded_csv(csv), content_type=CSV, query=_in_query(fields))


def _in_query(fields: dict[str, Any]) -> dict[str, str]:
    """A job's fields beside a CSV."""
    if "tags" in fields:
        if any("," in tag for tag in fields["tags"]):
            raise Misused("beside a CSV a tag can have no comma")
        fields["tags"] = ",".join(fields["tags"])
    if "metadata" in fields:
        fields["metadata"] = msgspec.json.encode(fields["metadata"]).decode()
    if "strict" in fields:
        fields["strict"] = str(bool(fields["strict"])).lower()
    return query(**fields)


def get_job(job_id: str) -> Call[JobStatus]:
    """State, progress, forecast, and why it waits."""
    return Call("GET", path("/v1/jobs/{}", job_id), JobStatus)


def backlog() -> Call[Backlog]:
    """All that waits, of every job, and when it should have gone out."""
    return Call("GET", "/v1/backlog", Backlog)


def job_timeline(job_id: str) -> Call[JobTimeline]:
    """How many should have gone out by when, and how many had."""
    return Call("GET", path("/v1/jobs/{}/timeline", job_id), JobTimeline)


def list_jobs(
    *,
    state: str | Sequence[str] = "",
    tag: str = "",
    single: bool | None = None,
    accepted_by: str = "",
    from_: Moment | None = None,
    until: Moment | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Call[Page[JobItem]]:
    """A page of jobs, newest first."""
    given = query(
        state=_joined(state),
        tag=tag,
        single=None if single is None else str(single).lower(),
        accepted_by=accepted_by,
        from_=moment(from_),
        until=moment(until),
        cursor=cursor,
        limit=limit,
    )
    return Call("GET", "/v1/jobs", Page[JobItem], query=given)


def job_messages(
    job_id: str, *, state: str | Sequence[str] = "", cursor: str = "", limit: int = 100
) -> Call[Page[MessageItem]]:
    """A page of a job's messages, in the order of its contacts."""
    given = query(state=_joined(state), cursor=cursor, limit=limit)
    return Call("GET", path("/v1/jobs/{}/messages", job_id), Page[MessageItem], query=given)


def cancel_job(job_id: str) -> Call[JobCanceled]:
    """Stops what no worker has claimed."""
    return Call("POST", path("/v1/jobs/{}/cancel", job_id), JobCanceled)


def pause_job(job_id: str) -> Call[JobPaused]:
    """What no worker has claimed waits until it is resumed."""
    return Call("POST", path("/v1/jobs/{}/pause", job_id), JobPaused)


def resume_job(job_id: str) -> Call[JobResumed]:
    """It goes on where it was."""
    return Call("POST", path("/v1/jobs/{}/resume", job_id), JobResumed)


def send(
    to: str,
    message: str,
    *,
    session_id: str | None = None,
    phone: str | None = None,
    priority: int | None = None,
    send_at: Moment | None = None,
    idempotency_key: str | None = None,
) -> Call[SendAccepted]:
    """One message. Repeated safely: under your `idempotency_key`, or one made for the call."""
    content = body(
        to=to, message=message, session_id=session_id, phone=phone, priority=priority, send_at=moment(send_at)
    )
    return Call(
        "POST",
        "/api/v1/send",
        SendAccepted,
        content=content,
        repeat=Repeat.KEYED,
        idempotency_key=idempotency_key,
    )


def send_batch(
    messages: Sequence[OwnText | Mapping[str, str] | tuple[str, str]],
    *,
    session_id: str | None = None,
    phone: str | None = None,
    priority: int | None = None,
    spread_minutes: int | None = None,
    idempotency_key: str | None = None,
) -> Call[BatchAccepted]:
    """Up to 10,000 messages, each with a text of its own: `(to, text)`. One bad message refuses all of them."""
    texts = [OwnText(*message) if isinstance(message, tuple) else message for message in messages]
    content = body(messages=texts, session_id=session_id, phone=phone, priority=priority, spread_minutes=spread_minutes)
    return Call(
        "POST",
        "/api/v1/send/batch",
        BatchAccepted,
        content=content,
        repeat=Repeat.KEYED,
        idempotency_key=idempotency_key,
    )


def get_message(message_id: str) -> Call[MessageStatus]:
    """State, times, attempts, history, and why it waits."""
    return Call("GET", path("/api/v1/messages/{}/status", message_id), MessageStatus)


def cancel_message(message_id: str) -> Call[MessageCanceled]:
    """One that no worker has claimed, wherever it waits."""
    return Call("DELETE", path("/v1/messages/{}", message_id), MessageCanceled)


def find_messages(to: str, *, cursor: str = "", limit: int = 100) -> Call[Page[MessageItem]]:
    """A page of a person's messages, newest first; at most 200 on one."""
    return Call("GET", "/v1/messages", Page[MessageItem], query=query(to=to, cursor=cursor, limit=limit))


def upload(file: bytes, *, name: str | None = None, type: str | None = None) -> Call[MediaStored]:
    """Stores a file, whose `media_ref` jobs may then name. Without a `type` the ending of its `name` tells; the name
    is what the recipient of a document sees."""
    if not isinstance(file, bytes):
        raise Misused("give the bytes of the file: Path(…).read_bytes()")
    if name is None:
        return Call("POST", "/v1/media", MediaStored, content=file, content_type=type or "application/octet-stream")
    return Call("POST", "/v1/media", MediaStored, **form(file, name=name, type=type))


def _joined(state: str | Sequence[str]) -> str:
    return state if isinstance(state, str) else ",".join(state)
