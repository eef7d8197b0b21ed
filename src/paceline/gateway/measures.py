"""What the gateway counts and logs of its own work: what it accepted, what it told customers' webhooks.

`Measures` keeps it to itself: virtual time has nobody to tell. The process has `GatewayMeasures`.
"""

import logging
from collections.abc import Iterable

import structlog

from paceline.domain.jobs import Job
from paceline.kits.clock import Clock
from paceline.kits.metrics import Metrics, Reading
from paceline.store.store import Store
from paceline.store.webhooks import WebhookState
from paceline.telemetry import catalogue as names
from paceline.telemetry.fleet import seconds_since

log = structlog.stdlib.get_logger(__name__)
_lines = logging.getLogger(__name__)


class Measures:
    def accepted(self, job: Job, code: str) -> None:
        """`code` is the store's: a job that was there already was counted then."""

    def posted(self, outcome: str, *, took_ms: int) -> None:
        """An event went to a webhook."""


class GatewayMeasures(Measures):
    def __init__(self, metrics: Metrics, store: Store, clock: Clock, *, log_messages: bool) -> None:
        self._store = store
        self._clock = clock
        self._log_messages = log_messages
        self._jobs = metrics.counter(names.JOBS_ACCEPTED)
        self._messages = metrics.counter(names.MESSAGES_ACCEPTED)
        self._posts = metrics.counter(names.WEBHOOK_POSTS)
        for outcome in ("delivered", "retry", "failed"):
            self._posts.labels(outcome)  # From 0 on: Prometheus would miss the first of each.
        self._post_seconds = metrics.histogram(names.WEBHOOK_SECONDS)
        metrics.read(self.webhooks)

    def accepted(self, job: Job, code: str) -> None:
        if code != "OK":
            return
        self._jobs.inc()
        self._messages.inc(job.total)
        # Asked before the line is made: making it takes a good part of a request.
        if self._log_messages and _lines.isEnabledFor(logging.INFO):
            log.info("accepted", request_id=job.request_id, job_id=job.job_id, messages=job.total, by=job.accepted_by)

    def posted(self, outcome: str, *, took_ms: int) -> None:
        self._posts.labels(outcome).inc()
        self._post_seconds.observe(took_ms / 1000)

    async def webhooks(self) -> Iterable[Reading]:
        states = await self._store.webhooks.all()
        due_at, now_ms = await self._store.measure.webhooks_due_at(), self._clock.now_ms()
        kinds = [_kind(state) for state in states]
        return [
            Reading(names.WEBHOOK_PENDING, sum(state.pending for state in states)),
            Reading(names.WEBHOOK_LATE, seconds_since(due_at, now_ms)),
            *(Reading(names.WEBHOOKS, kinds.count(kind), (kind,)) for kind in ("working", "failing", "disabled")),
        ]


def _kind(state: WebhookState) -> str:
    if state.disabled_at is not None:
        return "disabled"
    return "working" if state.failing_since is None else "failing"
