"""What a dispatcher counts and logs of its own work: turns, hand-overs, how late it was.

Most is counted anyway, by the loops themselves, and only read here. `Measures` keeps the rest to itself: virtual time
has nobody to tell. The process has `DispatcherMeasures`.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import structlog

from paceline.domain.jobs import Job
from paceline.kits.metrics import Metrics, Reading
from paceline.store.requests import RequestIds
from paceline.store.store import Store
from paceline.telemetry import catalogue as names

if TYPE_CHECKING:
    from paceline.dispatcher.loops import Engine

log = structlog.stdlib.get_logger(__name__)


class Measures:
    def routed(self, job: Job, first: int, past: int) -> None:
        """The messages from `first` to before `past` got their numbers, or an end."""

    async def handed_off(self, given: Sequence[tuple[str, str, int]]) -> None:
        """Of each its task, its session, and by how many ms its number's turn was late."""


class DispatcherMeasures(Measures):
    def __init__(self, metrics: Metrics, store: Store, *, log_messages: bool) -> None:
        self._log_messages = log_messages
        self._requests = RequestIds(store.jobs)
        self._lateness = metrics.histogram(names.DISPATCH_LATENESS)

    def routed(self, job: Job, first: int, past: int) -> None:
        if self._log_messages and past > first:
            log.info("routed", request_id=job.request_id, job_id=job.job_id, first=first, messages=past - first)

    async def handed_off(self, given: Sequence[tuple[str, str, int]]) -> None:
        lateness = self._lateness.labels()
        for _, _, late_ms in given:
            lateness.observe(late_ms / 1000)
        if not self._log_messages or not given:
            return
        requests = await self._requests.of([task for task, _, _ in given])
        for (task, session, late_ms), request in zip(given, requests, strict=True):
            log.info("handed off", request_id=request, task_id=task, session_id=session, late_ms=late_ms)


def tell_engine(engine: "Engine", metrics: Metrics) -> None:
    """What the loops of one dispatcher count, read when somebody asks."""

    async def read_engine() -> Iterable[Reading]:
        routers, pacer, handing = engine.routers, engine.pacer, engine.handing
        posts = [] if handing is None else [("taken", handing.posted), ("failed", handing.failed)]
        return [
            Reading(names.TURNS, sum(router.turns for router in routers)),
            Reading(names.ROUTED, sum(router.routed for router in routers)),
            Reading(names.ROUTING_FAILED, sum(router.failed for router in routers)),
            Reading(names.HANDED_OFF, pacer.handed_off),
            Reading(names.HAND_OFF_REFUSED, pacer.refused),
            Reading(names.GUARD_CHANGES, engine.guard.changes),
            *(Reading(names.POSTED, count, (outcome,)) for outcome, count in posts),
        ]

    metrics.read(read_engine)
