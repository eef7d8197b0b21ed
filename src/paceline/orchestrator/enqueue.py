"""What is posted into a session's outbox: the dispatcher's hand-overs (SEND_MODE=api), and messages of others.

The dispatcher's are paced already: one script moves them, however often they are posted. Anything else is a single send
for that session's number and waits its turn like all of them; there is no way around the pacing.
Over the store alone with `now_ms` as an argument; the route is in `app`.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from paceline.domain.errors import BadRequest, Conflict, NotFound, TooMany, Unavailable, Unprocessable
from paceline.domain.ids import derived_job_id, parse_task_id, task_id
from paceline.domain.jobs import Contact, Job
from paceline.domain.media import Media, Mode, fits
from paceline.domain.numbers import canonical
from paceline.domain.text import TEXT_LIMIT, is_blank, variables
from paceline.kits.failpoint import failpoint
from paceline.kits.logging import request_id
from paceline.orchestrator.registry import SESSION_ID
from paceline.store.jobs import QUEUE_FULL_RETRY_S
from paceline.store.store import Store

VALIDITY_S = 86_400
"""A day, as for every single send (SPEC §5)."""

Id = Annotated[str, Meta(min_length=1, max_length=128, description="1 to 128 printable characters")]


class EnqueueBody(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    mode: Mode = "message"
    to: Annotated[str, Meta(max_length=64, examples=["+972 54-123-4567"])]
    job_id: Id
    task_id: Id
    text: Annotated[str, Meta(description=f"at most {TEXT_LIMIT:,} characters")] | None = None
    media_ref: Annotated[str, Meta(max_length=256)] | None = None
    media_path: Annotated[str, Meta(max_length=4_096, description="accepted and never read")] | None = None
    caption: Annotated[str, Meta(max_length=TEXT_LIMIT)] | None = None


class Enqueued(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    status: str = "ok"
    task_id: str
    message_id: str
    state: Literal["queued", "handed_off"]


class Enqueue:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def enqueue(self, session: str, body: EnqueueBody, *, by: str, now_ms: int) -> Enqueued:
        """The same taskId twice is one task, whoever says it: the caller may repeat what got no answer."""
        if parse_task_id(body.task_id) is not None:
            code = await self._store.handing.enqueue(session, body.task_id, now_ms=now_ms)
            failpoint("enqueued-not-answered")
            if code in ("OK", "REPEAT"):
                return Enqueued(task_id=body.task_id, message_id=body.task_id, state="handed_off")
            if code == "GONE":
                raise Conflict("TASK_GONE", "it was taken back, canceled or has ended meanwhile", field="taskId")
            if code == "WRONG_SESSION":
                raise NotFound("UNKNOWN_TASK", "this session has no such task", field="taskId")
        return await self._accept(session, body, by, now_ms)

    async def _accept(self, session: str, body: EnqueueBody, by: str, now_ms: int) -> Enqueued:
        phone = await self._store.sessions.phone_of(session) if SESSION_ID.fullmatch(session) else None
        if phone is None:
            raise NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")
        _check_ids(body)
        job_id = derived_job_id(session, body.task_id)
        answer = Enqueued(task_id=body.task_id, message_id=task_id(job_id, 0), state="queued")
        if await self._store.jobs.get(job_id) is not None:
            return answer  # What was right then is not judged again: the repeat gets the answer of the first.
        to, text = _number(body), _text(body)
        media = await self._media(body)
        if await self._store.guards.suppressed([to]):
            raise Unprocessable("SUPPRESSED", "this person must not be written to", field="to")
        if await self._store.guards.memory_is_short():
            raise Unavailable("the store's memory is short")
        job = Job(
            job_id=job_id,
            total=1,
            text=text,
            mode=body.mode,
            media=media,
            accepted_at=now_ms,
            accepted_by=by,
            phone=phone,
            session_id=session,
            validity_seconds=VALIDITY_S,
            single=True,
            metadata={"jobId": body.job_id},
            request_id=request_id(),
        )
        # The caller's own names come back in every event about the message.
        contact = Contact(to, client_ref=body.task_id)
        accepted = await self._store.jobs.accept_send(job, contact, phone, now_ms=now_ms)
        if accepted.code == "QUEUE_FULL":
            message = "too many single messages wait for this number"
            raise TooMany("QUEUE_FULL", message, details={"phone": phone}, retry_after_seconds=QUEUE_FULL_RETRY_S)
        if accepted.code == "NO_MEDIA":
            raise _no_media()
        failpoint("accepted-not-answered")
        return answer

    async def _media(self, body: EnqueueBody) -> Media | None:
        """What an image or a document needs; `mediaPath` is never looked at."""
        if body.mode == "message":
            return None
        if body.media_ref is None:
            raise BadRequest("MEDIA_MODE", f"mode {body.mode!r} needs a mediaRef", field="mediaRef")
        media = await self._store.media.get(body.media_ref)
        if media is None:
            raise _no_media()
        if not fits(media.type, body.mode):
            raise BadRequest("MEDIA_TYPE", f"{media.type} cannot be sent as an image", field="mediaRef")
        return media


def _no_media() -> NotFound:
    return NotFound("UNKNOWN_MEDIA", "there is no such file; upload it (again)", field="mediaRef")


def _check_ids(body: EnqueueBody) -> None:
    for field, value in (("taskId", body.task_id), ("jobId", body.job_id)):
        if not value.isprintable():
            raise BadRequest("INVALID_ID", "1 to 128 printable characters", field=field)


def _number(body: EnqueueBody) -> str:
    to = canonical(body.to)
    if to is None:
        raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="to")
    return to


def _text(body: EnqueueBody) -> str:
    """What a message needs, or the caption of an image; what we would drop in silence is refused."""
    if body.mode == "message":
        for field, value in (("mediaRef", body.media_ref), ("caption", body.caption)):
            if value is not None:
                raise BadRequest("MEDIA_MODE", "a message of mode 'message' has no media", field=field)
        return _checked(body.text or "", "text")
    if body.text is not None and body.caption is not None:
        raise BadRequest("MEDIA_MODE", "an image has one text, its caption", field="text")
    field, text = ("caption", body.caption) if body.caption is not None else ("text", body.text)
    return _checked(text, field) if text else ""


def _checked(text: str, field: str) -> str:
    if is_blank(text):
        raise BadRequest("EMPTY_TEXT", "there is nothing to see in the text", field=field)
    if len(text) > TEXT_LIMIT:
        message = f"at most {TEXT_LIMIT:,} characters, this has {len(text):,}"
        raise BadRequest("TEXT_TOO_LONG", message, field=field, details={"limit": TEXT_LIMIT})
    if variables(text):
        raise BadRequest("MISSING_VARIABLE", "a single message has no variables to fill {{…}} from", field=field)
    return text
