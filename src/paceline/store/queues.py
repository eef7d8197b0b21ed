"""Holding and looking: pausing a job, a phone's queue in its order, canceling one message of it, a session's day."""

import msgspec

from paceline.domain.jobs import decode_job
from paceline.store import keys
from paceline.store.caller import Answer, Caller

RESUME_TASKS = 5_000
"""Parked tasks that one resume brings back itself; the dispatcher looks at the rest every few minutes."""
RESUME_ENTRIES = 20_000
"""Parked entries it reads for that: some tens of milliseconds of Redis."""
DAY_COUNTERS = ("sent", "failed", "delivered", "read", "deliveryMs")


class Paused(Answer, frozen=True):
    state: str = ""
    paused_at: int = 0
    waiting: int = 0
    claimed: int = 0


class Resumed(Answer, frozen=True):
    state: str = ""
    released: int = 0


class TaskCanceled(Answer, frozen=True):
    state: str = ""


class QueueMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a page ended: a number in the queue of that priority, or (0) so many of those parked until that time."""

    priority: int
    seq: int
    at: int | None = None


class QueueItem(msgspec.Struct, frozen=True, rename="camel"):
    task: str
    to: str
    priority: int
    expires_at: int
    state: str
    known: dict[str, str]
    """waitReason and waitUntil, if it waits for something of its own."""
    job_paused: bool
    position: int | None = None


class QueuePage(Answer, frozen=True):
    total: int
    parked: int
    scheduled: int
    phone: dict[str, str]
    fleet: dict[str, str]
    items: list[QueueItem] = []
    next: QueueMark | None = None


class DayStats(msgspec.Struct, frozen=True):
    counts: dict[str, int | None]
    waiting: int


class Queues:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def last_scheduled(self) -> int | None:
        """When the last of the single sends for later is due."""
        last = await self._caller.read_one("ZRANGE", keys.scheduled(), -1, -1)
        score = await self._caller.read_one("ZSCORE", keys.scheduled(), last[0]) if last else None
        return None if score is None else int(float(score))

    async def pause_job(self, job_id: str, *, now_ms: int) -> Paused:
        raw, cursor = await self._caller.read(("GET", keys.job(job_id)), ("HGET", keys.job_run(job_id), "cursor"))
        expires_at = None
        if raw is not None and int(cursor or 0) < (job := decode_job(raw)).total:
            expires_at = job.expires_at(int(cursor or 0))
        return await self._caller.call("pause_job", Paused, job=job_id, now=now_ms, expiresAt=expires_at)

    async def resume_job(self, job_id: str, *, now_ms: int) -> Resumed:
        return await self._caller.call(
            "resume_job", Resumed, job=job_id, now=now_ms, tasks=RESUME_TASKS, entries=RESUME_ENTRIES
        )

    async def cancel_task(self, task_id: str, phone: str | None, *, now_ms: int) -> TaskCanceled:
        """`phone` is whose queue is meant; None for a task that has none yet."""
        return await self._caller.call("cancel_task", TaskCanceled, task=task_id, phone=phone, now=now_ms)

    async def page(self, phone: str, after: QueueMark | None, limit: int) -> QueuePage:
        return await self._caller.call("queue_page", QueuePage, phone=phone, after=after, limit=limit)

    async def day(self, session: str, phone: str, date: str) -> DayStats:
        """What was counted for a session on a day, and what waits for its phone now."""
        found = await self._caller.read(
            *[("GET", keys.session_stats(session, date, name)) for name in DAY_COUNTERS],
            *[("LLEN", key(phone)) for key in (keys.queue, keys.queue_p2, keys.queue_p3)],
            ("ZCARD", keys.parked(phone)),
        )
        size = len(DAY_COUNTERS)
        counts = {
            name: None if value is None else int(value) for name, value in zip(DAY_COUNTERS, found[:size], strict=True)
        }
        return DayStats(counts, sum(found[size:]))

    async def fleet(self) -> dict[str, str]:
        """What holds for the whole fleet: `paused` and `stopped`, each "1" or absent."""
        paused, stopped = await self._caller.read_one("HMGET", keys.fleet(), "paused", "stopped")
        return {name: value for name, value in (("paused", paused), ("stopped", stopped)) if value is not None}
