"""What a task says in the end: its job's media and text, filled in with the contact's variables at the last moment.

For whoever gives a task on: the dispatcher when it posts one, the orchestrator when a worker claims one.
"""

import msgspec

from paceline.domain.ids import parse_task_id
from paceline.domain.jobs import Job
from paceline.domain.media import Media, Mode
from paceline.domain.text import render, variables
from paceline.store.jobs import Jobs

JOBS_KEPT = 256
"""Jobs are immutable, so the few that are being sent are kept instead of read again for each message."""


class Content(msgspec.Struct, frozen=True):
    text: str
    mode: Mode = "message"
    media: Media | None = None
    request_id: str = ""
    due_at_ms: int = 0
    """When it could go at the earliest: its time, or when it was accepted."""


class Texts:
    def __init__(self, jobs: Jobs) -> None:
        self._store = jobs
        self._jobs: dict[str, Job] = {}

    async def final(self, task: str) -> str | None:
        """Its text alone."""
        content = await self.content(task)
        return None if content is None else content.text

    async def content(self, task: str) -> Content | None:
        """None if the job is gone or cannot be read."""
        parsed = parse_task_id(task)
        if parsed is None:
            return None
        job_id, index = parsed
        try:
            job = await self._job(job_id)
            if job is None:
                return None
            text = job.text
            if variables(text):
                (contact,) = await self._store.contacts(job_id, index, 1)
                text = render(text, contact.vars)
            return Content(text, job.mode, job.media, job.request_id, job.scheduled_at(index))
        except (msgspec.MsgspecError, LookupError, ValueError):
            return None

    async def _job(self, job_id: str) -> Job | None:
        if job_id not in self._jobs:
            job = await self._store.get(job_id)
            if job is None:
                return None
            if len(self._jobs) >= JOBS_KEPT:
                self._jobs.pop(next(iter(self._jobs)))
            self._jobs[job_id] = job
        return self._jobs[job_id]
