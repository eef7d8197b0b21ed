"""The round of jobs: what of each no number has yet, and who holds the rest; for estimates, which change nothing.

Neighbours: `jobs` takes their turns, `policy.turns` says what one means for another, the gateway's picture reads it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from paceline.domain import states
from paceline.domain.jobs import decode_job, spread_ms
from paceline.policy.turns import Other
from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.client import Command

log = structlog.stdlib.get_logger(__name__)

ROUTES_READ = 5_000
"""Tasks of a job whose numbers are read for an estimate: about a millisecond of Redis."""


class _Course(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The fields of a job that say when its tasks take their turns, and where."""

    total: int
    accepted_at: int
    priority: int = 1
    phone: str | None = None
    send_at: int | None = None
    spread_minutes: int = 0


_course = msgspec.json.Decoder(_Course)

Held = Mapping[str, tuple[int, int, int]]
"""How many tasks of each priority lie with a number."""


class Rounds:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._courses: dict[str, _Course] = {}
        """Of the jobs that the last look found: a job never changes, and its text may be long."""

    async def unrouted(self, *, limit: int = 500) -> dict[str, Other]:
        """The jobs that are being routed or wait for it, and what of each still lies at its cursor."""
        lists = await self._caller.read(
            ("ZRANGE", keys.jobs_active(), 0, limit - 1),
            ("ZRANGE", keys.jobs_retry(), 0, limit - 1),
            ("LRANGE", keys.priority_jobs(), 0, limit - 1),
            ("LRANGE", keys.gateway_jobs(), 0, limit - 1),
        )
        ids = list(dict.fromkeys(job_id for group in lists for job_id in group))[:limit]
        new = [id_ for id_ in ids if id_ not in self._courses]
        commands: list[Command] = [("HMGET", keys.job_run(id_), "cursor", "state") for id_ in ids]
        rows = await self._caller.read(*commands, *[("GET", keys.job(id_)) for id_ in new]) if ids else []
        runs = dict(zip(ids, rows, strict=False))
        read = {id_: _read(id_, raw) for id_, raw in zip(new, rows[len(ids) :], strict=True) if raw is not None}
        known = self._courses | {id_: course for id_, course in read.items() if course is not None}
        self._courses = {id_: known[id_] for id_ in ids if id_ in known}
        return {id_: _other(job, runs[id_]) for id_, job in self._courses.items()}

    async def held_by(self, job_id: str) -> frozenset[str] | None:
        """The numbers in whose queues something of the job lies; None if that is too much to look at."""
        if await self._caller.read_one("HLEN", keys.job_routes(job_id)) > ROUTES_READ:
            return None
        return frozenset(await self._caller.read_one("HVALS", keys.job_routes(job_id)))

    async def resting(self, jobs: Mapping[str, Other]) -> Held:
        """What the paused ones of these jobs have in the queues of each number, as far as that can be looked at."""
        paused = [id_ for id_, job in jobs.items() if job.is_paused]
        sizes = await self._caller.read(*[("HLEN", keys.job_routes(id_)) for id_ in paused]) if paused else []
        read, left = [], ROUTES_READ
        for id_, size in zip(paused, sizes, strict=True):
            if 0 < size <= left:
                read.append(id_)
                left -= size
        rows = await self._caller.read(*[("HVALS", keys.job_routes(id_)) for id_ in read]) if read else []
        counts = [Counter[str](), Counter[str](), Counter[str]()]
        for id_, phones in zip(read, rows, strict=True):
            counts[jobs[id_].priority - 1].update(phones)
        low, mid, high = counts
        return {phone: (low[phone], mid[phone], high[phone]) for phone in low | mid | high}

    async def due_until(self, ids: Sequence[str]) -> int | None:
        """When the last message of these jobs is due, the spread and the scheduled ones among them."""
        found = await self._caller.read(*[("GET", keys.job(id_)) for id_ in ids]) if ids else []
        jobs = [decode_job(raw) for raw in found if raw is not None]
        return max((job.scheduled_at(job.total - 1) for job in jobs), default=None)


def _read(id_: str, raw: str) -> _Course | None:
    """One job that cannot be read must not stand for all."""
    try:
        return _course.decode(raw)
    except msgspec.MsgspecError:
        log.warning("what is stored of a job cannot be read", job_id=id_)
        return None


def _other(job: _Course, run: list[str | None]) -> Other:
    cursor = int(run[0] or 0)
    return Other(
        job.total - cursor,
        job.priority,
        job.phone,
        run[1] == states.JobState.PAUSED,
        (job.send_at or job.accepted_at) + spread_ms(cursor, job.spread_minutes, job.total),
        job.spread_minutes * 60_000 / job.total,
    )
