"""Intake: what a caller asked for becomes a job, in one commit, or is refused with nothing stored.

Awaits only the store and `breathe`, so the World drives it by hand. Neighbours: `sifting` judges contacts, `picture`
knows the fleet, `idempotency` wraps a call that may be repeated.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from paceline.domain.errors import BadRequest, NotFound, TooMany, Unavailable, Unprocessable
from paceline.domain.ids import new_ulid
from paceline.domain.jobs import Contact, Job, Strategy
from paceline.domain.media import Media, Mode
from paceline.domain.text import variables
from paceline.gateway import checks, receipts
from paceline.gateway.picture import Picture, Watcher
from paceline.gateway.schemas import (
    BatchAccepted,
    BatchRequest,
    JobAccepted,
    JobRequest,
    SendAccepted,
    SendRequest,
)
from paceline.gateway.sifting import Sift
from paceline.kits.failpoint import failpoint
from paceline.kits.rng import Rng
from paceline.policy.audience import zones_of_contacts
from paceline.policy.facts import Rules
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.policy.routing import RESTRICTED_ASKED, NotNow, Sticky, To
from paceline.store.jobs import QUEUE_FULL_RETRY_S, Idem
from paceline.store.scripts import CHUNK
from paceline.store.store import Store

SINGLE_VALIDITY_S = 86_400
JOB_VALIDITY_S = 30 * 86_400
BATCH_TEXT = "{{text}}"
"""A batch is a job whose text is each contact's own. Values are not scanned again, so every text goes out unchanged."""
STAGINGS = 2


class MediaPort(Protocol):
    """Where a job's file comes from; `media` in production, nothing in the World."""

    async def by_ref(self, ref: str, mode: Mode) -> Media: ...

    async def from_url(self, url: str, mode: Mode, *, now_ms: int) -> Media: ...


async def _go_on() -> None:
    """In the World there is nobody to let by."""


class Intake:
    def __init__(
        self,
        store: Store,
        rules: Rules,
        rng: Rng,
        *,
        strategy: Strategy = "sticky",
        route_ahead: int = ROUTE_AHEAD,
        media: MediaPort | None = None,
        breathe: Callable[[], Awaitable[None]] = _go_on,
    ) -> None:
        self._store = store
        self._rng = rng
        self._media = media
        self._breathe = breathe
        """Awaited between stretches of work, so that a large job does not keep other requests from being answered."""
        self._chosen = 0
        """Single sends that a number was chosen for; round_robin goes on from here."""
        self.watcher = Watcher(store, rules, strategy, route_ahead)

    async def breathe(self) -> None:
        """For whoever prepares a large request before it comes here."""
        await self._breathe()

    def new_job_id(self, now_ms: int) -> str:
        return new_ulid(now_ms, self._rng)

    async def job(
        self,
        request: JobRequest,
        *,
        by: str,
        job_id: str,
        idem_key: str | None,
        now_ms: int,
        file: Callable[[int], Awaitable[Media]] | None = None,
    ) -> JobAccepted:
        """`file` stores the job's file if that came with the request itself."""
        stored = await self._store.jobs.get(job_id)
        if stored is not None:
            return receipts.repeated_job(stored)
        checks.job(request)
        send_at = checks.send_at(request.send_at, now_ms)
        phone = await self._phone(request.session_id, request.phone)
        sift = await self._sift(request)
        sift.refuse(strict=request.strict)
        # Last, since it may take a while: a file is not fetched for a job that is refused.
        media = await (file(now_ms) if file else self._file_of(request, now_ms))
        job = Job(
            job_id=job_id,
            total=len(sift.accepted),
            text=request.text,
            mode=request.mode,
            media=media,
            accepted_at=now_ms,
            accepted_by=by,
            priority=request.priority,
            phone=phone,
            session_id=request.session_id,
            send_at=send_at,
            spread_minutes=request.spread_minutes,
            validity_seconds=request.validity_seconds,
            on_unknown=request.on_unknown,
            strategy=request.strategy,
            zones=zones_of_contacts(sift.accepted),
            tags=request.tags,
            metadata=request.metadata,
        )
        answer = receipts.job_receipt(job, sift, len(request.contacts), await self.watcher.look(now_ms))
        code = await self._commit(job, sift.accepted, receipts.idem(by, idem_key, answer), now_ms)
        if code == "EXISTS":
            return receipts.repeated_job(await self._store.jobs.get(job_id) or job)
        return answer

    async def send(
        self,
        request: SendRequest,
        *,
        by: str,
        job_id: str,
        idem_key: str | None,
        now_ms: int,
        text_field: str = "message",
    ) -> SendAccepted:
        """`text_field` is what the caller called the text."""
        if await self._store.jobs.get(job_id) is not None:
            return receipts.send_receipt(job_id, 0, None)
        to = checks.number(request.to, "to")
        checks.template(request.message, text_field)
        if variables(request.message):
            raise BadRequest(
                "MISSING_VARIABLE",
                "a single message has no variables to fill {{…}} from",
                field=text_field,
                details={"variable": min(variables(request.message))},
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
            send_at=checks.send_at(request.send_at, now_ms),
            validity_seconds=SINGLE_VALIDITY_S,
            single=True,
        )
        if await self._store.guards.suppressed([to]):
            raise Unprocessable("SUPPRESSED", "this person must not be written to", field="to")
        return await self._accept_send(job, Contact(to), by, idem_key, now_ms)

    async def batch(
        self, request: BatchRequest, *, by: str, job_id: str, idem_key: str | None, now_ms: int
    ) -> BatchAccepted:
        """Unlike a job's contacts, these are all good or all refused, and two to the same person are both sent."""
        stored = await self._store.jobs.get(job_id)
        if stored is not None:
            return receipts.repeated_batch(stored)
        contacts = await self._batch_contacts(request)
        phone = await self._phone(request.session_id, request.phone)
        kept = await self._not_suppressed(contacts)
        suppressed = len(contacts) - len(kept)
        if not kept:
            message = "none of these people may be written to"
            raise Unprocessable("NOTHING_ACCEPTED", message, field="messages", details={"suppressed": suppressed})
        job = Job(
            job_id=job_id,
            total=len(kept),
            text=BATCH_TEXT,
            accepted_at=now_ms,
            accepted_by=by,
            priority=request.priority,
            phone=phone,
            session_id=request.session_id,
            spread_minutes=request.spread_minutes,
            validity_seconds=JOB_VALIDITY_S,
        )
        answer = receipts.batch_receipt(job, suppressed, await self.watcher.look(now_ms))
        code = await self._commit(job, kept, receipts.idem(by, idem_key, answer), now_ms)
        return receipts.repeated_batch(job) if code == "EXISTS" else answer

    async def _batch_contacts(self, request: BatchRequest) -> list[Contact]:
        contacts = []
        for index, message in enumerate(request.messages):
            to = checks.number(message.to, f"messages[{index}].to")
            checks.plain_text(message.text, f"messages[{index}].text")
            contacts.append(Contact(to, {"text": message.text}))
            if index % CHUNK == CHUNK - 1:
                await self._breathe()
        return contacts

    async def _not_suppressed(self, contacts: list[Contact]) -> list[Contact]:
        kept: list[Contact] = []
        for start in range(0, len(contacts), CHUNK):
            batch = contacts[start : start + CHUNK]
            suppressed = await self._store.guards.suppressed([contact.to for contact in batch])
            kept += [contact for contact in batch if contact.to not in suppressed]
            await self._breathe()
        return kept

    async def _accept_send(
        self, job: Job, contact: Contact, by: str, idem_key: str | None, now_ms: int
    ) -> SendAccepted:
        phone, picture = await self._choose(job, contact.to, now_ms)
        if phone is None:
            # Nobody can take it now: it waits like any job, and goes on by itself.
            estimate = picture.job(job, 1, now_ms=now_ms, expires_ms=None)
            answer = receipts.send_receipt(job.job_id, 0, estimate.finish_ms)
            await self._commit(job, [contact], receipts.idem(by, idem_key, answer), now_ms)
            return answer
        when = picture.single(phone, priority=job.priority, start_ms=job.scheduled_at(0))
        draft = receipts.send_receipt(job.job_id, None, when)
        accepted = await self._store.jobs.accept_send(
            job, contact, phone, now_ms=now_ms, idem=receipts.idem(by, idem_key, draft)
        )
        if accepted.code == "QUEUE_FULL":
            message = "too many single messages wait for this number"
            raise TooMany("QUEUE_FULL", message, details={"phone": phone}, retry_after_seconds=QUEUE_FULL_RETRY_S)
        failpoint("accepted-not-answered")
        return receipts.send_receipt(job.job_id, accepted.position, when)

    async def _choose(self, job: Job, to: str, now_ms: int) -> tuple[str | None, Picture]:
        """The number a single send goes to, or None while there is none that could take it."""
        picture = await self.watcher.look(now_ms)
        if job.phone is not None:
            if job.phone not in picture.phones:
                picture = await self.watcher.look(now_ms, fresh=True)
            if job.send_at is None:
                checks.budget(picture.sender(job.phone, now_ms=now_ms), now_ms)
            return job.phone, picture
        sticky = (await self._store.jobs.stickies([to]))[0]
        self._chosen += 1
        decision = await self._route(picture, job, to, sticky, now_ms)
        if not isinstance(decision, To):
            # A number may have come a moment ago.
            picture = await self.watcher.look(now_ms, fresh=True)
            decision = await self._route(picture, job, to, sticky, now_ms)
        if isinstance(decision, To) and decision.phone in picture.phones:
            return decision.phone, picture
        return None, picture

    async def _route(self, picture: Picture, job: Job, to: str, sticky: Sticky | None, now_ms: int) -> To | NotNow:
        fleet = picture.fleet(priority=job.priority, turn=self._chosen, now_ms=now_ms)
        (known,) = await self._store.jobs.known_by(fleet.restricted[:RESTRICTED_ASKED], [to])
        return fleet.route(sticky, known=known, now_ms=now_ms)

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
            if code == "NO_MEDIA":
                raise NotFound("UNKNOWN_MEDIA", "the file was removed meanwhile; upload it again", field="mediaRef")
            if code != "INCOMPLETE":
                failpoint("accepted-not-answered")
                return code
        raise Unavailable("what was staged did not stay")

    async def _file_of(self, request: JobRequest, now_ms: int) -> Media | None:
        if request.mode == "message":
            return None
        if self._media is None:
            raise Unavailable("no media can be taken here")
        if request.media_url is not None:
            return await self._media.from_url(request.media_url, request.mode, now_ms=now_ms)
        return await self._media.by_ref(request.media_ref or "", request.mode)

    async def owner_of(self, session_id: str) -> str:
        """The number of a session."""
        owner = await self._store.sessions.phone_of(session_id) if checks.is_session_id(session_id) else None
        if owner is None:
            raise NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")
        return owner

    async def phone_of(self, session_id: str | None, phone: str | None) -> str | None:
        return await self._phone(session_id, phone)

    async def _phone(self, session_id: str | None, phone: str | None) -> str | None:
        """The number a request names, directly or by a session."""
        digits = None if phone is None else checks.number(phone, "phone")
        if session_id is not None:
            owner = await self.owner_of(session_id)
            if digits is not None and digits != owner:
                raise BadRequest("PHONE_MISMATCH", "this session belongs to another number", field="phone")
            return owner
        if digits is not None and not await self._store.sessions.is_registered(digits):
            raise NotFound("UNKNOWN_PHONE", "there is no session of this number", field="phone")
        return digits
