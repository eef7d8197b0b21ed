"""Lists in the store: jobs newest first, the messages of a job, the messages of a person.

Every call is one short script or one small read, and every method has a bound on how many it makes: a list may be long
or match nothing, and Redis serves the senders meanwhile. Neighbours: `jobs` has one job and one message.
"""

from collections.abc import Iterable, Sequence

import msgspec

from paceline.domain import states
from paceline.domain.ids import parse_task_id, task_id
from paceline.domain.jobs import Contact, Job, decode_contact, decode_job
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import MessageView, phones_about

LOOKED_AT_ONCE = 100
"""Ids in one script: at most some milliseconds, even if each job has a long text to read."""
TAKEN_AT_ONCE = 20
COUNTED_AT_ONCE = 1_000_000
"""State bytes in one read. A read of 100,000 costs Redis 3 µs; counting them there would cost it 10 ms."""
ROWS_AT_ONCE = 100
UNROUTED_JOBS = 200
"""The newest jobs that are searched for a person."""
SEARCHED_AT_ONCE = 1_000
"""Contacts in one script."""

_RUN = ("state", "waitReason", "waitUntil")


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job's place in a list, by when it was accepted; with an index, that of one of its messages."""

    at: int
    id: str
    index: int | None = None

    @property
    def task(self) -> str:
        return task_id(self.id, self.index or 0)

    def is_after(self, other: "Place") -> bool:
        """Newer jobs first; within a job in the order of its contacts."""
        if (self.at, self.id) != (other.at, other.id):
            return (self.at, self.id) < (other.at, other.id)
        return (self.index or 0) > (other.index or 0)


class JobFilter(msgspec.Struct, frozen=True):
    states: list[str] | None = None
    tag: str | None = None
    by: str | None = None
    single: bool | None = None
    """True: only single sends. False: only lists of contacts."""
    from_ms: int | None = None
    until_ms: int | None = None


class ListedJob(msgspec.Struct, frozen=True):
    job: Job
    state: str
    closed_at: int | None
    progress: dict[str, int]


class JobsPage(msgspec.Struct, frozen=True):
    jobs: list[ListedJob]
    next: Place | None


class MessagesPage(msgspec.Struct, frozen=True):
    views: list[MessageView]
    next: int | None


class Search(msgspec.Struct, frozen=True):
    """Where a person was found; `next` is where to go on, None if all was searched."""

    found: list[Place]
    next: Place | None


class _Job(msgspec.Struct, frozen=True, rename="camel"):
    json: str
    state: str
    closed_at: int | None = None


class _Row(msgspec.Struct, frozen=True):
    task: str
    byte: str
    contact: str
    known: dict[str, str]
    phone: str | None = None


class _Jobs(Answer, frozen=True):
    looked: int = 0
    jobs: list[_Job] = []
    next: Place | None = None


class _Rows(Answer, frozen=True):
    rows: list[_Row] = []
    next: int | None = None


class _Found(Answer, frozen=True):
    found: list[Place] = []
    next: Place | None = None


class Lists:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def jobs(self, wanted: JobFilter, after: Place | None, *, limit: int, look: int) -> JobsPage:
        """Up to `limit` jobs among the next `look` ids. There may be fewer and still more to come."""
        found: list[_Job] = []
        while len(found) < limit and look > 0:
            stretch = await self._caller.call(
                "job_page", _Jobs, look=min(look, LOOKED_AT_ONCE), take=min(limit - len(found), TAKEN_AT_ONCE),
                after=after, states=wanted.states, tag=wanted.tag, by=wanted.by, single=wanted.single,
                **{"from": wanted.from_ms, "until": wanted.until_ms},
            )  # fmt: skip
            found += stretch.jobs
            look -= stretch.looked
            after = stretch.next
            if after is None:
                break
        return JobsPage(await self._counted(found), after)

    async def messages(self, job: Job, start: int, *, limit: int, bytes_: str | None) -> MessagesPage | None:
        """A page of a job's messages in the order of its contacts, or None if its states are gone."""
        rows: list[_Row] = []
        at: int | None = start
        while at is not None and len(rows) < limit:
            count = min(limit - len(rows), ROWS_AT_ONCE)
            stretch = await self._caller.call(
                "job_messages", _Rows, job=job.job_id, start=at, limit=count, bytes=bytes_
            )
            if stretch.code == "GONE":
                return None
            rows += stretch.rows
            at = stretch.next
        return MessagesPage(await self._views(rows, {job.job_id: job}), at)

    async def of_person(self, to: str) -> list[Place]:
        """Where the messages to this number that got one of ours are; as many as are remembered, in no order."""
        tasks = await self._caller.read_one("ZRANGE", keys.person(to), 0, -1)
        scores = await self._caller.read_one("ZMSCORE", keys.person(to), *tasks) if tasks else []
        parsed = [(parse_task_id(task), score) for task, score in zip(tasks, scores, strict=True)]
        return [Place(int(float(score)), *ids) for ids, score in parsed if ids is not None and score is not None]

    async def unrouted(self, to: Sequence[str], after: Place | None, *, limit: int, calls: int) -> Search:
        """Looks for a person, in all notations given, among contacts that have no number yet: up to `limit` finds or
        `calls` scripts."""
        found: list[Place] = []
        for _ in range(calls):
            stretch = await self._caller.call(
                "find_unrouted", _Found, to=to, jobs=UNROUTED_JOBS, contacts=SEARCHED_AT_ONCE, after=after
            )
            found += stretch.found
            after = stretch.next
            if after is None or len(found) >= limit:
                break
        return Search(found, after)

    async def views(self, tasks: Sequence[str]) -> list[MessageView]:
        """What is known about these messages, without their history; those that are gone are left out."""
        rows: list[_Row] = []
        for start in range(0, len(tasks), ROWS_AT_ONCE):
            batch = tasks[start : start + ROWS_AT_ONCE]
            rows += (await self._caller.call("message_rows", _Rows, tasks=batch)).rows
        ids = list(dict.fromkeys(row.task.partition(":")[0] for row in rows))
        raw = await self._caller.read(*[("GET", keys.job(job_id)) for job_id in ids]) if ids else []
        jobs = {job_id: decode_job(text) for job_id, text in zip(ids, raw, strict=True) if text is not None}
        return await self._views(rows, jobs)

    async def _counted(self, found: list[_Job]) -> list[ListedJob]:
        jobs = [decode_job(item.json) for item in found]
        counted: list[ListedJob] = []
        for batch in _batches(list(zip(found, jobs, strict=True))):
            raw = await self._caller.read(*[("GET", keys.job_states(job.job_id)) for _, job in batch])
            counted += [
                ListedJob(job, item.state, item.closed_at, states.progress(bytes_.encode()))
                for (item, job), bytes_ in zip(batch, raw, strict=True)
                if bytes_ is not None
            ]
        return counted

    async def _views(self, rows: list[_Row], jobs: dict[str, Job]) -> list[MessageView]:
        rows = [row for row in rows if row.task.partition(":")[0] in jobs]
        phones = {row.phone or row.known.get("phone") for row in rows} | {job.phone for job in jobs.values()}
        runs = await self._fields({job_id: keys.job_run(job_id) for job_id in jobs}, _RUN)
        about = await phones_about(self._caller, [phone for phone in phones if phone])
        views = []
        for row in rows:
            job_id = row.task.partition(":")[0]
            job, phone = jobs[job_id], row.phone or row.known.get("phone")
            contact = decode_contact(row.contact) if row.contact else Contact("")
            known_phone = about.get(phone or job.phone or "", {})
            views.append(MessageView(row.task, job, contact, row.byte, row.known, runs[job_id], phone, known_phone))
        return views

    async def _fields(self, of: dict[str, str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Some fields of several hashes; those that are absent are left out."""
        rows = await self._caller.read(*[("HMGET", key, *names) for key in of.values()]) if of else []
        return {
            name: {field: value for field, value in zip(names, row, strict=True) if value is not None}
            for name, row in zip(of, rows, strict=True)
        }


def _batches(jobs: list[tuple[_Job, Job]]) -> Iterable[list[tuple[_Job, Job]]]:
    """In stretches whose states together stay small: a page of large jobs would else be a hundred megabytes."""
    batch: list[tuple[_Job, Job]] = []
    size = 0
    for item in jobs:
        if batch and size + item[1].total > COUNTED_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item[1].total
    if batch:
        yield batch
