"""Which request a message came with, for the lines that are logged about it."""

from collections.abc import Sequence
from contextlib import suppress

from paceline.domain.errors import Unavailable
from paceline.domain.ids import parse_task_id
from paceline.store.jobs import Jobs

JOBS_KEPT = 4_096
"""A job never changes, so what was read once is good: about half a megabyte, and minutes of single sends."""


class RequestIds:
    def __init__(self, jobs: Jobs) -> None:
        self._store = jobs
        self._known: dict[str, str] = {}

    async def of(self, tasks: Sequence[str]) -> list[str]:
        """In the order of the tasks; empty where nobody knows. One round trip at most."""
        jobs = [parsed[0] if (parsed := parse_task_id(task)) else "" for task in tasks]
        if unknown := {job for job in jobs if job} - self._known.keys():
            await self._learn(list(unknown))
        return [self._known.get(job, "") for job in jobs]

    async def _learn(self, unknown: list[str]) -> None:
        # A line without its id is better than a step that fails for the sake of its line.
        with suppress(Unavailable):
            self._known.update(zip(unknown, await self._store.request_ids(unknown), strict=True))
        while len(self._known) > JOBS_KEPT:
            self._known.pop(next(iter(self._known)))
