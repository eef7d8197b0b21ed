"""People: who said stop, and how everything that is known of one is forgotten. The suppression list itself is in
`guards`, since every gate asks it.

Neighbours: `orchestrator.inbound` hears stop words; `gateway.erasing` walks over all places a person may be known in.
Every call here is one short script.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from paceline.domain.jobs import Contact, Job, encode_contact, encode_job
from paceline.store import keys
from paceline.store.caller import Answer, Caller, scored
from paceline.store.guards import Suppression, suppression_row

STOPS_KEPT_MS = 90 * 86_400_000
"""How long a stop message is remembered by its id. A webhook that is repeated later than that is not a repeat."""
ERASED = "erased"
"""What stands in the place of a number that was erased; `lib/37_people.lua` writes it."""
CONTACTS_AT_ONCE = 5_000
"""Contacts one script looks at: a few milliseconds."""
JOBS_AT_ONCE = 500
PHONES_AT_ONCE = 500
SESSIONS_AT_ONCE = 20
"""With 200 events each."""
LINES_AT_ONCE = 500


class Stopped(Answer, frozen=True):
    confirmed: bool = False


class ErasedTask(Answer, frozen=True):
    canceled: bool = False
    phone: str | None = None


class _Place(msgspec.Struct, frozen=True):
    job: int
    chunk: int


class _Found(Answer, frozen=True):
    found: list[str] = []
    next: _Place | None = None


class _Count(Answer, frozen=True):
    count: int = 0
    next: int | None = None
    after: str | None = None
    cursor: str = "0"


class People:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def stop(self, session: str, stop_id: str, person: Suppression, *, job: Job | None, now_ms: int) -> Stopped:
        """Somebody wrote a stop word; `job` is the confirmation, and `person.confirmation` its task."""
        row = suppression_row(person)
        confirm = None if job is None else _single(job, Contact(person.to))
        return await self._caller.call(
            "stop_received", Stopped, session=session, stop=stop_id, **{"from": row["to"]}, also=row["also"],
            info=row["info"], keep=STOPS_KEPT_MS, now=now_ms, confirm=confirm,
        )  # fmt: skip

    async def stop_unresolved(
        self, session: str, stop_id: str, *, sender: str, whatsapp_id: str, at_ms: int, now_ms: int
    ) -> Answer:
        """A stop word of a person whose number nobody knows; `sender` is shown, so it says no more than is needed."""
        return await self._caller.call(
            "stop_unresolved", Answer, session=session, stop=stop_id, **{"from": sender}, id=whatsapp_id, at=at_ms,
            keep=STOPS_KEPT_MS, now=now_ms,
        )  # fmt: skip

    async def jobs(self) -> AsyncIterator[list[str]]:
        """The ids of all jobs, oldest first, some at a time. By their times, not by their places: ids of jobs that are
        gone are dropped meanwhile, and each would move the next job into what was read already."""
        key, after = keys.jobs_index(), "-inf"
        page = ("WITHSCORES", "LIMIT", 0, JOBS_AT_ONCE)
        while found := scored(await self._caller.read_one("ZRANGEBYSCORE", key, after, "+inf", *page)):
            last = found[-1][1]
            at_last: list[str] = await self._caller.read_one("ZRANGEBYSCORE", key, last, last)
            yield [job for job, at in found if at < last] + at_last
            after = f"({last}"

    async def messages_to(self, numbers: Sequence[str], jobs: Sequence[str]) -> list[str]:
        """The tasks of these jobs that are for a person, in bounded steps."""
        tasks: list[str] = []
        at: _Place | None = None
        while jobs:
            found = await self._caller.call(
                "find_contacts", _Found, jobs=jobs, at=at, numbers=numbers, contacts=CONTACTS_AT_ONCE
            )
            tasks += found.found
            at = found.next
            if at is None:
                break
        return tasks

    async def erase_task(
        self, task: str, numbers: Sequence[str], *, old: Job | None, new: Job | None, now_ms: int
    ) -> ErasedTask:
        """`old` and `new` are the job as it is and as it shall be, if it was for this person alone."""
        job = {"seen": encode_job(old), "json": encode_job(new)} if old and new else None
        return await self._caller.call("erase_task", ErasedTask, task=task, numbers=numbers, job=job, now=now_ms)

    async def erase_traces(self, numbers: Sequence[str]) -> int:
        phones = await self._caller.read_one("ZRANGE", keys.phones(), 0, -1)
        sessions = sorted(await self._caller.read_one("SMEMBERS", keys.sessions()))
        count = (await self._caller.call("erase_traces", _Count, numbers=numbers)).count
        for batch in _batches(phones, PHONES_AT_ONCE):
            count += (await self._caller.call("erase_traces", _Count, numbers=numbers, phones=batch)).count
        for batch in _batches(sessions, SESSIONS_AT_ONCE):
            count += (await self._caller.call("erase_traces", _Count, numbers=numbers, sessions=batch)).count
        return count

    async def erase_letters(self, numbers: Sequence[str]) -> int:
        count, start = 0, None
        while True:
            page = await self._caller.call(
                "erase_letters", _Count, numbers=numbers, limit=LINES_AT_ONCE, **{"from": start}
            )
            count, start = count + page.count, page.next
            if start is None:
                return count

    async def erase_events(self, numbers: Sequence[str]) -> int:
        count, after = 0, "-"
        while True:
            page = await self._caller.call("erase_events", _Count, numbers=numbers, limit=LINES_AT_ONCE, after=after)
            count += page.count
            if page.after is None:
                break
            after = f"({page.after}"
        for webhook in await self._caller.read_one("HKEYS", keys.webhooks()):
            count += await self._erase_deliveries(numbers, webhook)
        return count

    async def note_erased(self, canceled: int, erased: int, still_open: int, *, by: str, now_ms: int) -> None:
        """For the audit trail: who asked, not whom it was about."""
        await self._caller.call(
            "note_erased", Answer, canceled=canceled, erased=erased, open=still_open, by=by, now=now_ms
        )

    async def _erase_deliveries(self, numbers: Sequence[str], webhook: str) -> int:
        count, cursor = 0, "0"
        while True:
            page = await self._caller.call(
                "erase_events", _Count, numbers=numbers, limit=LINES_AT_ONCE, webhook=webhook, cursor=cursor
            )
            count, cursor = count + page.count, page.cursor
            if cursor == "0":
                return count


def _batches(items: list[str], size: int) -> list[list[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _single(job: Job, contact: Contact) -> dict[str, Any]:
    return {
        "job": job.job_id,
        "json": encode_job(job),
        "task": job.task_id(0),
        "contact": encode_contact(contact),
        "to": contact.to,
        "expiresAt": job.expires_at(0),
        "priority": job.priority,
    }
