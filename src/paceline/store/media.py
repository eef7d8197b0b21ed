"""Stored files in the store: what each is, which open jobs need it, and which nobody needs any more.

The bytes are on the disk (`kits.media_store`); they are there before a file is recorded here, and are removed after it
is forgotten here.
"""

from collections.abc import Sequence

from paceline.domain.ids import parse_task_id
from paceline.domain.jobs import decode_job
from paceline.domain.media import Media, is_ref
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.rows import task_of

TASKS_LOOKED_AT = 256
"""Of what a session holds. It holds one task, and those whose end is unknown."""


class Saved(Answer, frozen=True):
    created_at: int = 0


class Dropped(Answer, frozen=True):
    refs: list[str] = []
    more: bool = False


class MediaBook:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def save(self, media: Media, *, now_ms: int) -> Saved:
        return await self._caller.call(
            "save_media", Saved, ref=media.ref, type=media.type, size=media.size, name=media.name, now=now_ms
        )

    async def get(self, ref: str) -> Media | None:
        if not is_ref(ref):
            return None
        type_, size, name = await self._caller.read_one("HMGET", keys.media(ref), "type", "size", "name")
        return Media(ref, type_, int(size), name) if type_ else None

    async def known(self, refs: Sequence[str]) -> set[str]:
        """Those of these that are recorded."""
        found = await self._caller.read(*[("EXISTS", keys.media(ref)) for ref in refs]) if refs else []
        return {ref for ref, is_there in zip(refs, found, strict=True) if is_there}

    async def drop(self, *, before_ms: int, now_ms: int, limit: int) -> Dropped:
        """Forgets what no open job needs and was last used before that time."""
        return await self._caller.call("drop_media", Dropped, before=before_ms, now=now_ms, limit=limit)

    async def held(self, session: str, ref: str) -> Media | None:
        """The file, if a task that lies in this session's outbox or in its worker's hands needs it."""
        holds, waiting = await self._caller.read(
            ("LRANGE", keys.processing(session), 0, TASKS_LOOKED_AT - 1),
            ("LRANGE", keys.outbox(session), 0, TASKS_LOOKED_AT - 1),
        )
        named = [parse_task_id(task) for task in (*holds, *map(task_of, waiting))]
        job_ids = list(dict.fromkeys(task[0] for task in named if task))
        jobs = await self._caller.read(*[("GET", keys.job(job_id)) for job_id in job_ids]) if job_ids else []
        for raw in jobs:
            media = decode_job(raw).media if raw else None
            if media is not None and media.ref == ref:
                return media
        return None
