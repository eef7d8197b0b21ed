"""Intake: what a caller asked for becomes a job, in one commit, or is refused with nothing stored.

Awaits only the store and `breathe`, so the World drives it by hand. Neighbours: `stretches` takes the contacts,
`choosing` finds the number, `picture` knows the fleet, `idempotency` wraps a call that may be repeated.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from paceline.domain.errors import BadRequest, NotFound, TooMany, Unavailable, Unprocessable
from paceline.domain.ids import new_ulid
from paceline.domain.jobs import Contact, Job, Strategy
from paceline.domain.media import Media, Mode
from paceline.domain.text import variables
from paceline.gateway import checks, receipts, stretches
from paceline.gateway.choosing import Choosing
from paceline.gateway.measures import Measures
from paceline.gateway.picture import Breathe, go_on
from paceline.gateway.pressure import Pressure
from paceline.gateway.schemas import (
    BatchAccepted,
    BatchRequest,
    JobAccepted,
    JobRequest,
    SendAccepted,
    SendRequest,
)
from paceline.gateway.watcher import Watcher
from paceline.kits.failpoint import failpoint
from paceline.kits.logging import request_id
from paceline.kits.rng import Rng
from paceline.policy.audience import zones_of_contacts
from paceline.policy.facts import Rules
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.policy.routing import Sticky
from paceline.store.jobs import QUEUE_FULL_RETRY_S, Accepted, Idem
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
        breathe: Breathe = go_on,
        measures: Measures | None = None,
    ) -> None:
        self._store = store
        self._rng = rng
        self._media = media
        self._breathe = breathe
        """Awaited between stretches of work, so that a large job does not keep other requests from being answered."""
        self.watcher = Watcher(store, rules, strategy, route_ahead, breathe)
        self.pressure = Pressure(store)
        self.numbers = Choosing(store)
        self.measures = measures or Measures()

    async def owner_of(self, session_id: str) -> str:
        """The number of a session."""
        return await self.numbers.owner_of(session_id)

    async def phone_of(self, session_id: str | None, phone: str | None) -> str | None:
        """The number a request names, directly or by a session."""
        return await self.numbers.named(session_id, phone)

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
        phone = await self.numbers.named(request.session_id, request.phone)
        sift = await stretches.sifted(request, self._store.guards, self._breathe)
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
            request_id=request_id(),
        )
        expected = (await self.watcher.look(now_ms)).new_job(job)
        job = msgspec.structs.replace(job, planned=expected.course)
        answer = receipts.job_receipt(job, sift, len(request.contacts), expected)
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
        # Without a key the id is new: nobody can have sent under it.
        if idem_key is not None and await self._store.jobs.get(job_id) is not None:
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
            phone=await self.numbers.named(request.session_id, request.phone),
            session_id=request.session_id,
            send_at=checks.send_at(request.send_at, now_ms),
            validity_seconds=SINGLE_VALIDITY_S,
            single=True,
            request_id=request_id(),
        )
        is_suppressed, sticky = await self._store.jobs.person(to)
        if is_suppressed:
            raise suppressed()
        return await self.accept_send(job, Contact(to), sticky, idem_key, now_ms)

    async def batch(
        self, request: BatchRequest, *, by: str, job_id: str, idem_key: str | None, now_ms: int
    ) -> BatchAccepted:
        """Unlike a job's contacts, these are all good or all refused, and two to the same person are both sent."""
        stored = await self._store.jobs.get(job_id)
        if stored is not None:
            return receipts.repeated_batch(stored)
        contacts = await stretches.batch(request, self._breathe)
        phone = await self.numbers.named(request.session_id, request.phone)
        kept = await stretches.not_suppressed(contacts, self._store.guards, self._breathe)
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
            request_id=request_id(),
        )
        expected = (await self.watcher.look(now_ms)).new_job(job)
        job = msgspec.structs.replace(job, planned=expected.course)
        answer = receipts.batch_receipt(job, suppressed, expected)
        code = await self._commit(job, kept, receipts.idem(by, idem_key, answer), now_ms)
        return receipts.repeated_batch(job) if code == "EXISTS" else answer

    async def accept_send(
        self, job: Job, contact: Contact, sticky: Sticky | None, idem_key: str | None, now_ms: int
    ) -> SendAccepted:
        """The rest of `send`, once it is known who they are."""
        phone, picture = await self.numbers.single(job, contact.to, sticky, self.watcher, now_ms=now_ms)
        if phone is None:
            # Nobody can take it now: it waits like any job, and goes on by itself.
            estimate = picture.job(job, 1, now_ms=now_ms)
            answer = receipts.send_receipt(job.job_id, 0, estimate.finish_ms)
            await self._commit(job, [contact], receipts.idem(job.accepted_by, idem_key, answer), now_ms)
            return answer
        is_known = await self.numbers.knows(phone, contact.to, picture, now_ms=now_ms)
        when = picture.single(
            phone, priority=job.priority, now_ms=now_ms, start_ms=job.scheduled_at(0), is_known=is_known
        )
        idem = None
        if idem_key is not None:
            idem = receipts.idem(job.accepted_by, idem_key, receipts.send_receipt(job.job_id, None, when))
        accepted = await self._store.jobs.accept_send(
            job, contact, phone, now_ms=now_ms, is_bound=sticky is not None, idem=idem
        )
        return self.receipt(job, phone, when, accepted)

    def receipt(self, job: Job, phone: str, when: int | None, accepted: Accepted) -> SendAccepted:
        """What the store said to a single send, for its caller."""
        if accepted.code == "QUEUE_FULL":
            message = "too many single messages wait for this number"
            raise TooMany("QUEUE_FULL", message, details={"phone": phone}, retry_after_seconds=QUEUE_FULL_RETRY_S)
        self.measures.accepted(job, accepted.code)
        failpoint("accepted-not-answered")
        return receipts.send_receipt(job.job_id, accepted.position, when)

    async def _commit(self, job: Job, contacts: list[Contact], idem: Idem | None, now_ms: int) -> str:
        for _ in range(STAGINGS):
            chunks = await self._store.jobs.stage(job.job_id, contacts)
            failpoint("staged-not-accepted")
            code = await self._store.jobs.accept(job, chunks, now_ms=now_ms, idem=idem)
            if code == "NO_MEDIA":
                raise NotFound("UNKNOWN_MEDIA", "the file was removed meanwhile; upload it again", field="mediaRef")
            if code != "INCOMPLETE":
                self.measures.accepted(job, code)
                failpoint("accepted-not-answered")
                return code
        raise Unavailable("what was staged did not stay")

    async def check_file(self, request: JobRequest) -> None:
        """For a plan: a stored file that is named must be there. What an address holds is not looked at."""
        if request.media_ref is not None:
            await self._file_of(request, 0)

    async def _file_of(self, request: JobRequest, now_ms: int) -> Media | None:
        if request.mode == "message":
            return None
        if self._media is None:
            raise Unavailable("no media can be taken here")
        if request.media_url is not None:
            return await self._media.from_url(request.media_url, request.mode, now_ms=now_ms)
        return await self._media.by_ref(request.media_ref or "", request.mode)


def suppressed() -> Unprocessable:
    return Unprocessable("SUPPRESSED", "this person must not be written to", field="to")
