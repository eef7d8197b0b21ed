"""Intake: what a caller asked for becomes a job, in one commit, or is refused with nothing stored.

Awaits only the store and `breathe`, so the World drives it by hand. Neighbours: `sifting` judges contacts, `picture`
knows the fleet, `idempotency` wraps a call that may be repeated.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from paceline.domain.errors import BadRequest, NotFound, TooMany, Unavailable, Unprocessable
from paceline.domain.ids import new_ulid, task_id
from paceline.domain.jobs import Contact, Job
from paceline.domain.numbers import canonical
from paceline.domain.text import TEXT_LIMIT, render, variables
from paceline.domain.times import moment_ms
from paceline.gateway.picture import Picture, Watcher
from paceline.gateway.schemas import JobAccepted, JobRequest, SendAccepted, SendRequest
from paceline.gateway.sifting import Sift
from paceline.kits.failpoint import failpoint
from paceline.kits.rng import Rng
from paceline.policy import hours
from paceline.policy.facts import Rules
from paceline.policy.routing import To
from paceline.store import keys
from paceline.store.jobs import Idem
from paceline.store.scripts import CHUNK
from paceline.store.store import Store

SINGLE_VALIDITY_S = 86_400
METADATA_LIMIT = 8_192
"""Bytes as JSON. It comes back in every event, so it must stay small."""
METADATA_DEPTH = 16
LATEST_SEND_MS = 366 * 86_400_000
"""A year ahead; what is further away is a mistake in the unit more often than a plan."""
QUEUE_FULL_RETRY_S = 60
STAGINGS = 2

_encode = msgspec.json.Encoder().encode


async def _go_on() -> None:
    """In the World there is nobody to let by."""


class Intake:
    def __init__(
        self, store: Store, rules: Rules, rng: Rng, *, breathe: Callable[[], Awaitable[None]] = _go_on
    ) -> None:
        self._store = store
        self._rng = rng
        self._breathe = breathe
        """Awaited between stretches of work, so that a large job does not keep other requests from being answered."""
        self.watcher = Watcher(store, rules)

    def new_job_id(self, now_ms: int) -> str:
        return new_ulid(now_ms, self._rng)

    async def job(self, request: JobRequest, *, by: str, job_id: str, idem_key: str | None, now_ms: int) -> JobAccepted:
        stored = await self._store.jobs.get(job_id)
        if stored is not None:
            return _answer_from(stored)
        _check_job(request)
        send_at = _send_at(request.send_at, now_ms)
        phone = await self._phone(request.session_id, request.phone)
        sift = await self._sift(request)
        _check_sift(sift, request)
        job = Job(
            job_id=job_id,
            total=len(sift.accepted),
            text=request.text,
            accepted_at=now_ms,
            accepted_by=by,
            priority=request.priority,
            phone=phone,
            session_id=request.session_id,
            send_at=send_at,
            spread_minutes=request.spread_minutes,
            validity_seconds=request.validity_seconds,
            on_unknown=request.on_unknown,
            tags=request.tags,
            metadata=request.metadata,
        )
        answer = _job_answer(job, sift, len(request.contacts), await self.watcher.look(now_ms))
        code = await self._commit(job, sift.accepted, _idem(by, idem_key, answer), now_ms)
        if code == "EXISTS":
            return _answer_from(await self._store.jobs.get(job_id) or job)
        return answer

    async def send(
        self, request: SendRequest, *, by: str, job_id: str, idem_key: str | None, now_ms: int
    ) -> SendAccepted:
        if await self._store.jobs.get(job_id) is not None:
            return _send_answer(job_id, 0, None)
        to = canonical(request.to)
        if to is None:
            raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="to")
        _check_text(request.message, "message")
        if variables(request.message):
            raise BadRequest(
                "MISSING_VARIABLE", "a single message has no variables to fill {{…}} from", field="message"
            )
        job = Job(
            job_id=job_id,
            total=1,
            text=request.message,
            accepted_at=now_ms,
            accepted_by=by,
            priority=request.priority,
            phone=await self._phone(request.session_id, request.phone),
            session_id=request.session_id,
            send_at=_send_at(request.send_at, now_ms),
            validity_seconds=SINGLE_VALIDITY_S,
            single=True,
        )
        if await self._store.guards.suppressed([to]):
            raise Unprocessable("SUPPRESSED", "this person must not be written to", field="to")
        return await self._accept_send(job, Contact(to), by, idem_key, now_ms)

    async def _accept_send(
        self, job: Job, contact: Contact, by: str, idem_key: str | None, now_ms: int
    ) -> SendAccepted:
        phone, picture = await self._choose(job, contact.to, now_ms)
        if phone is None:
            # Nobody can take it now: it waits like any job, and goes on by itself.
            estimate = picture.job(job.job_id, 1, phone=None, start_ms=job.scheduled_at(0), expires_ms=None)
            answer = _send_answer(job.job_id, 0, estimate.finish_ms)
            await self._commit(job, [contact], _idem(by, idem_key, answer), now_ms)
            return answer
        when = picture.single(phone, priority=job.priority, start_ms=job.scheduled_at(0))
        draft = _send_answer(job.job_id, None, when)
        accepted = await self._store.jobs.accept_send(
            job, contact, phone, now_ms=now_ms, idem=_idem(by, idem_key, draft)
        )
        if accepted.code == "QUEUE_FULL":
            message = "too many single messages wait for this number"
            raise TooMany("QUEUE_FULL", message, details={"phone": phone}, retry_after_seconds=QUEUE_FULL_RETRY_S)
        failpoint("accepted-not-answered")
        return _send_answer(job.job_id, accepted.position, when)

    async def _choose(self, job: Job, to: str, now_ms: int) -> tuple[str | None, Picture]:
        """The number a single send goes to, or None while there is none that could take it."""
        picture = await self.watcher.look(now_ms)
        if job.phone is not None:
            if job.phone not in picture.phones:
                picture = await self.watcher.look(now_ms, fresh=True)
            if job.send_at is None:
                _check_budget(picture, job.phone, now_ms)
            return job.phone, picture
        sticky = (await self._store.jobs.stickies([to]))[0]
        decision = picture.fleet(priority=job.priority, now_ms=now_ms).route(sticky, now_ms=now_ms)
        if not isinstance(decision, To):
            # A number may have come a moment ago.
            picture = await self.watcher.look(now_ms, fresh=True)
            decision = picture.fleet(priority=job.priority, now_ms=now_ms).route(sticky, now_ms=now_ms)
        if isinstance(decision, To) and decision.phone in picture.phones:
            return decision.phone, picture
        return None, picture

    async def _sift(self, request: JobRequest) -> Sift:
        sift = Sift(request.text)
        for start in range(0, len(request.contacts), CHUNK):
            good = sift.take(request.contacts[start : start + CHUNK])
            sift.accept(good, await self._store.guards.suppressed([contact.to for contact in good]) if good else set())
            await self._breathe()
        return sift

    async def _commit(self, job: Job, contacts: list[Contact], idem: Idem | None, now_ms: int) -> str:
        for _ in range(STAGINGS):
            chunks = await self._store.jobs.stage(job.job_id, contacts)
            code = await self._store.jobs.accept(job, chunks, now_ms=now_ms, idem=idem)
            if code != "INCOMPLETE":
                failpoint("accepted-not-answered")
                return code
        raise Unavailable("what was staged did not stay")

    async def _phone(self, session_id: str | None, phone: str | None) -> str | None:
        """The number a request names, directly or by a session."""
        digits = None
        if phone is not None:
            digits = canonical(phone)
            if digits is None:
                raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="phone")
        if session_id is not None:
            owner = await self._store.sessions.phone_of(session_id)
            if owner is None:
                raise NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")
            if digits is not None and digits != owner:
                raise BadRequest("PHONE_MISMATCH", "this session belongs to another number", field="phone")
            return owner
        if digits is not None and not await self._store.sessions.is_registered(digits):
            raise NotFound("UNKNOWN_PHONE", "there is no session of this number", field="phone")
        return digits


def _check_job(request: JobRequest) -> None:
    if request.mode != "message":
        message = f"mode {request.mode!r} comes with media support; only 'message' is available yet"
        raise BadRequest("MODE_NOT_AVAILABLE", message, field="mode")
    for field, value in (("mediaRef", request.media_ref), ("mediaUrl", request.media_url)):
        if value is not None:
            raise BadRequest("MEDIA_NOT_AVAILABLE", "a job of mode 'message' has no media", field=field)
    _check_text(request.text, "text")
    _check_metadata(request.metadata)


def _check_text(text: str, field: str) -> None:
    """What is certain for every recipient; the rest is judged contact by contact."""
    if not text.strip():
        raise BadRequest("EMPTY_TEXT", "the text is empty", field=field)
    shortest = len(render(text, dict.fromkeys(variables(text), "")))
    if shortest > TEXT_LIMIT:
        message = f"at most {TEXT_LIMIT:,} characters, this has {shortest:,}"
        raise BadRequest("TEXT_TOO_LONG", message, field=field, details={"limit": TEXT_LIMIT})


def _check_metadata(metadata: dict[str, Any]) -> None:
    try:
        size = len(_encode(metadata))
    except RecursionError as error:
        raise BadRequest("INVALID_METADATA", "this cannot be kept as JSON", field="metadata") from error
    if size > METADATA_LIMIT or _depth(metadata) > METADATA_DEPTH:
        message = f"at most {METADATA_LIMIT:,} bytes as JSON, nested {METADATA_DEPTH} deep"
        raise BadRequest("METADATA_TOO_LARGE", message, field="metadata", details={"limit": METADATA_LIMIT})


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _check_sift(sift: Sift, request: JobRequest) -> None:
    details = {"rejected": msgspec.to_builtins(sift.rejected), "rejectedCount": sift.rejected_count}
    if request.strict and sift.rejected_count:
        raise Unprocessable("CONTACTS_REJECTED", "strict: some contacts are bad", field="contacts", details=details)
    if not sift.accepted:
        counts = {**details, "suppressed": sift.suppressed, "duplicates": sift.duplicates}
        raise Unprocessable("NOTHING_ACCEPTED", "no contact could be accepted", field="contacts", details=counts)


def _send_at(value: int | str | None, now_ms: int) -> int | None:
    """The scheduled time; one that has passed is now."""
    if value is None:
        return None
    at = moment_ms(value)
    if at is None:
        message = "must be Unix milliseconds, or ISO 8601 with an offset such as 2026-01-31T09:00:00+02:00"
        raise BadRequest("INVALID_TIME", message, field="sendAt")
    if at > now_ms + LATEST_SEND_MS:
        raise BadRequest("INVALID_TIME", "at most a year ahead", field="sendAt")
    return at if at > now_ms else None


def _check_budget(picture: Picture, phone: str, now_ms: int) -> None:
    who = picture.sender(phone, now_ms=now_ms)
    if who.left_today != 0:
        return
    seconds = max(1, -(-(hours.day_ends_at(who.zone, now_ms) - now_ms) // 1000))
    raise TooMany(
        "DAILY_LIMIT_REACHED",
        "this number has sent all it may send today",
        details={"phone": phone, "limit": who.level.daily_cap},
        retry_after_seconds=seconds,
    )


def _idem(by: str, idem_key: str | None, answer: msgspec.Struct) -> Idem | None:
    if idem_key is None:
        return None
    return Idem(keys.idempotency(by, idem_key), _encode(answer).decode())


def _job_answer(job: Job, sift: Sift, total: int, picture: Picture) -> JobAccepted:
    estimate = picture.job(
        job.job_id, job.total, phone=job.phone, start_ms=job.scheduled_at(0), expires_ms=job.expires_at(job.total - 1)
    )
    finish = estimate.finish_ms
    return JobAccepted(
        job_id=job.job_id,
        total=total,
        accepted=job.total,
        suppressed=sift.suppressed,
        duplicates=sift.duplicates,
        rejected=sift.rejected,
        will_expire=estimate.will_expire,
        status_url=f"/v1/jobs/{job.job_id}",
        estimated_completion=None if finish is None else max(finish, job.scheduled_at(job.total - 1)),
    )


def _answer_from(job: Job) -> JobAccepted:
    """For a request that is repeated after a crash: the job it made is there, the details of its contacts are not."""
    return JobAccepted(
        job_id=job.job_id,
        total=job.total,
        accepted=job.total,
        suppressed=0,
        duplicates=0,
        rejected=[],
        will_expire=0,
        status_url=f"/v1/jobs/{job.job_id}",
        estimated_completion=None,
    )


def _send_answer(job_id: str, position: int | None, when: int | None) -> SendAccepted:
    return SendAccepted(message_id=task_id(job_id, 0), position=position, estimated_delivery=when)
