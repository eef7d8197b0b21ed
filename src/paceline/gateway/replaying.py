"""Dead letters sent again on purpose, as new jobs: what they say and whom they are for comes from their old job.

The script that accepts the new job marks its letters, so a letter is sent again once however many ask at the same time.
Neighbours: `dead_letters` finds and judges letters, `picture` knows the fleet, `once` keeps the answer under an
Idempotency-Key.
"""

from collections.abc import Sequence

import msgspec

from paceline.domain.errors import Conflict, NotFound, Unavailable, Unprocessable
from paceline.domain.ids import derived_job_id, task_id
from paceline.domain.jobs import Contact, Job
from paceline.domain.numbers import canonical
from paceline.gateway import receipts
from paceline.gateway.dead_letters import SEARCHED, DeadLetters, Verdict, Wanted, verdict
from paceline.gateway.letter_schemas import Replayed, ReplayedMany, ReplayJob, Skipped
from paceline.gateway.measures import Measures
from paceline.gateway.watcher import Watcher
from paceline.kits.failpoint import failpoint
from paceline.kits.logging import request_id
from paceline.policy.audience import zones_of_contacts
from paceline.store.jobs import Idem, Replay
from paceline.store.letters import PAGE, Letter
from paceline.store.store import Store

STAGINGS = 3
_encode = msgspec.json.Encoder().encode


class _Counts:
    def __init__(self) -> None:
        self.not_replayable = self.already_replayed = self.suppressed = 0

    def note(self, judged: Verdict) -> None:
        self.already_replayed += int(judged == "ALREADY_REPLAYED")
        self.not_replayable += int(judged == "NOT_REPLAYABLE")

    def shown(self) -> Skipped:
        return Skipped(**vars(self))


class Ask(msgspec.Struct, frozen=True):
    """Who asks, and under which id."""

    by: str
    job_id: str
    idem_key: str | None
    again: bool
    now_ms: int

    def group_id(self, old_id: str) -> str:
        """Follows from the request's id, so that one that was cut off and is repeated finds what it did."""
        return derived_job_id("replay", self.job_id, old_id)


class Replaying:
    def __init__(self, store: Store, letters: DeadLetters, watcher: Watcher, measures: Measures) -> None:
        self._store = store
        self._letters = letters
        self._watcher = watcher
        self._measures = measures

    async def one(self, letter_id: str, ask: Ask) -> Replayed:
        answer = _receipt(ask.job_id, letter_id)
        if await self._store.jobs.get(ask.job_id) is not None:
            return answer
        letter = await self._letters.get(letter_id)
        (state,) = await self._store.letters.states([letter])
        found, old = verdict(letter, state, again=ask.again), await self._job(letter.job_id)
        if found == "ALREADY_REPLAYED":
            raise _already(state.replayed_as)
        (contact,) = await self._store.letters.contacts([letter.task_id])
        if found != "OK" or old is None or contact is None or not _is_good(contact):
            raise _not_replayable()
        if await self._store.guards.suppressed([contact.to]):
            raise Unprocessable("SUPPRESSED", "this person must not be written to", field="id")
        job = await self._planned(_new_job(old, ask.job_id, letter_id, [contact], ask))
        replay = Replay(letter.job_id, [letter.index], ask.again)
        code = await self._commit(job, [contact], replay, receipts.idem(ask.by, ask.idem_key, answer))
        if code == "NO_MEDIA":
            raise NotFound("UNKNOWN_MEDIA", "the file of the old job is not kept any more", field="id")
        if code == "REPLAYED":
            (state,) = await self._store.letters.states([letter])
            raise _already(state.replayed_as) if state.byte == "F" else _not_replayable()
        return answer

    async def many(self, wanted: Wanted, limit: int, ask: Ask) -> ReplayedMany:
        """All that match, newest first, up to `limit`."""
        counts = _Counts()
        groups, more = await self._gather(wanted, limit, ask, counts)
        made = [await self._group(old_id, letters, ask, counts) for old_id, letters in groups.items()]
        jobs = [job for job in made if job is not None]
        replayed = sum(job.accepted for job in jobs)
        answer = ReplayedMany(replayed=replayed, jobs=jobs, skipped=counts.shown(), more=more)
        if ask.idem_key is not None:
            await self._store.guards.end(ask.by, ask.idem_key, ask.job_id, answer=_encode(answer).decode())
        return answer

    async def _gather(
        self, wanted: Wanted, limit: int, ask: Ask, counts: _Counts
    ) -> tuple[dict[str, list[Letter]], bool]:
        """The letters to send again, by the job they come from; and whether there may be more."""
        groups: dict[str, list[Letter]] = {}
        taken, cursor = 0, ""
        for _ in range(SEARCHED // PAGE):
            found, after = await self._letters.search(wanted, cursor, min(PAGE, limit - taken))
            states = await self._store.letters.states(found)
            for letter, state in zip(found, states, strict=True):
                is_mine = state.replayed_as == ask.group_id(letter.job_id)
                judged = verdict(letter, state, again=ask.again or is_mine)
                counts.note(judged)
                if judged == "OK":
                    groups.setdefault(letter.job_id, []).append(letter)
                    taken += 1
            if after is None:
                return groups, False
            if taken == limit:
                break
            cursor = after
        return groups, True

    async def _group(self, old_id: str, letters: list[Letter], ask: Ask, counts: _Counts) -> ReplayJob | None:
        new_id = ask.group_id(old_id)
        stored, old = await self._store.jobs.get(new_id), await self._job(old_id)
        if stored is not None:
            return ReplayJob(job_id=new_id, replay_of=old_id, accepted=stored.total)
        if old is None:
            counts.not_replayable += len(letters)
            return None
        for _ in range(STAGINGS):
            chosen, contacts = await self._choose(letters, counts)
            if not chosen:
                return None
            job = await self._planned(_new_job(old, new_id, old_id, contacts, ask))
            replay = Replay(old_id, [letter.index for letter in chosen], ask.again)
            code = await self._commit(job, contacts, replay, None)
            if code == "NO_MEDIA":
                # Skipped, not refused: other groups may have been sent already.
                counts.not_replayable += len(chosen)
                return None
            if code != "REPLAYED":
                return ReplayJob(job_id=new_id, replay_of=old_id, accepted=job.total)
            # Somebody else was quicker with one of them; the rest is ours.
            letters = await self._still_open(chosen, ask.again, counts)
        raise Unavailable("others are sending the same letters again")

    async def _choose(self, letters: list[Letter], counts: _Counts) -> tuple[list[Letter], list[Contact]]:
        """Those that may be written to, in the order of their job."""
        letters = sorted(letters, key=lambda letter: letter.index)
        contacts = await self._store.letters.contacts([letter.task_id for letter in letters])
        good = [(letter, found) for letter, found in zip(letters, contacts, strict=True) if found and _is_good(found)]
        counts.not_replayable += len(letters) - len(good)
        suppressed = await self._store.guards.suppressed([contact.to for _, contact in good]) if good else set()
        kept = [(letter, contact) for letter, contact in good if contact.to not in suppressed]
        counts.suppressed += len(good) - len(kept)
        return [letter for letter, _ in kept], [contact for _, contact in kept]

    async def _still_open(self, letters: list[Letter], again: bool, counts: _Counts) -> list[Letter]:
        states = await self._store.letters.states(letters)
        judged = [verdict(letter, state, again=again) for letter, state in zip(letters, states, strict=True)]
        for found in judged:
            counts.note(found)
        return [letter for letter, found in zip(letters, judged, strict=True) if found == "OK"]

    async def _job(self, job_id: str) -> Job | None:
        """The old job, if it could be accepted today: its number may be gone."""
        job = await self._store.jobs.get(job_id)
        if job is None or (job.phone is not None and not await self._store.sessions.is_registered(job.phone)):
            return None
        return job

    async def _planned(self, job: Job) -> Job:
        expected = (await self._watcher.look(job.accepted_at)).new_job(job)
        return msgspec.structs.replace(job, planned=expected.course)

    async def _commit(self, job: Job, contacts: Sequence[Contact], replay: Replay, idem: Idem | None) -> str:
        for _ in range(STAGINGS):
            chunks = await self._store.jobs.stage(job.job_id, contacts)
            code = await self._store.jobs.accept(job, chunks, now_ms=job.accepted_at, idem=idem, replay=replay)
            if code != "INCOMPLETE":
                self._measures.accepted(job, code)
                failpoint("accepted-not-answered")
                return code
        raise Unavailable("what was staged did not stay")


def _is_good(contact: Contact) -> bool:
    """One that was erased is none."""
    return canonical(contact.to) == contact.to


def _new_job(old: Job, job_id: str, replay_of: str, contacts: Sequence[Contact], ask: Ask) -> Job:
    """As the old one was asked for, but now, by whoever asks now, and for these people."""
    return msgspec.structs.replace(
        old,
        job_id=job_id,
        total=len(contacts),
        accepted_at=ask.now_ms,
        accepted_by=ask.by,
        send_at=None,
        spread_minutes=0,
        single=False,
        confirmation=False,
        replay_of=replay_of,
        zones=zones_of_contacts(contacts),
        metadata={**old.metadata, "replayOf": replay_of},
        request_id=request_id(),
    )


def _receipt(job_id: str, letter_id: str) -> Replayed:
    return Replayed(job_id=job_id, message_id=task_id(job_id, 0), replay_of=letter_id, status_url=f"/v1/jobs/{job_id}")


def _already(job_id: str | None) -> Conflict:
    message = "it was sent again before; say `again` if it shall be once more"
    return Conflict("ALREADY_REPLAYED", message, field="again", details={"jobId": job_id})


def _not_replayable() -> Conflict:
    message = "the platform refused it, it was proven sent, or what it was is not known any more"
    return Conflict("NOT_REPLAYABLE", message, field="id")
