"""What the orchestrator counts and logs of messages: how long each stage took, what became of every attempt.

A message's whole life is known here, so all stages are measured here, the dispatcher's too; each message counts once,
whatever is repeated. `Measures` keeps it to itself: virtual time has nobody to tell. The process has
`OrchestratorMeasures`.
"""

import structlog

from paceline.domain import failures
from paceline.domain.failures import FailureClass, failure_class
from paceline.domain.reasons import Reason
from paceline.domain.states import MESSAGE_STATE, WENT_OUT
from paceline.kits.metrics import Metrics
from paceline.policy.gate import Refuse
from paceline.store.outbox import MessageFacts, Times
from paceline.store.proofs import Settled
from paceline.store.requests import RequestIds
from paceline.store.store import Store
from paceline.store.texts import Content
from paceline.telemetry import catalogue as names

log = structlog.stdlib.get_logger(__name__)

OUTCOMES = ("sent", "delivered", "read", "retry", "failed", "returned")
SWEPT = ("not_claimed", "lease_ended", "validity_ended", "cleared")
KNOWN_CODES = frozenset(value for value in vars(failures).values() if isinstance(value, str) and value.isupper())


class Measures:
    def claimed(self, session: str, task: str, content: Content, times: Times, *, attempt: int, now_ms: int) -> None:
        """A worker was given the task."""

    async def refused(self, session: str, task: str, verdict: Refuse) -> None:
        """The last gate did not give it."""

    async def proven(self, session: str, task: str, facts: MessageFacts, settled: Settled, *, now_ms: int) -> None:
        """It went out, or a receipt came; `facts` are those before."""

    async def settled(self, session: str, task: str, outcome: str, code: str) -> None:
        """A worker's word on an attempt that did not succeed; `code` says why, if it failed."""

    async def swept(self, session: str, task: str, what: str) -> None:
        """Its deadline passed without a word."""


class OrchestratorMeasures(Measures):
    def __init__(self, metrics: Metrics, store: Store, *, log_messages: bool) -> None:
        self._log_messages = log_messages
        self._requests = RequestIds(store.jobs)
        stages = metrics.histogram(names.STAGE_SECONDS)
        self._stages = {
            stage: stages.labels(stage) for stage in ("routed", "handed_off", "claimed", "sent", "delivered", "read")
        }
        self._slots = metrics.histogram(names.SLOT_LATENESS)
        self._settled = metrics.counter(names.SETTLED)
        self._failures = metrics.counter(names.FAILURES)
        self._refused = metrics.counter(names.GATE_REFUSED)
        self._swept = metrics.counter(names.LEASES_ENDED)
        self._begin_at_zero()

    def claimed(self, session: str, task: str, content: Content, times: Times, *, attempt: int, now_ms: int) -> None:
        self._took("claimed", times.handed_off_at, now_ms)
        if attempt == 1:
            self._took("routed", content.due_at_ms, times.routed_at)
            self._took("handed_off", times.routed_at, times.handed_off_at)
        if self._log_messages:
            fields = {"task_id": task, "session_id": session, "attempt": attempt}
            log.info("claimed", request_id=content.request_id, **fields)

    async def refused(self, session: str, task: str, verdict: Refuse) -> None:
        self._refused.labels(verdict.reason).inc()
        await self._tell("refused at the gate", task, session_id=session, reason=verdict.reason)

    async def proven(self, session: str, task: str, facts: MessageFacts, settled: Settled, *, now_ms: int) -> None:
        if settled.code != "OK":
            return
        # A receipt may be the first word of a message: then it proves the stages before it too.
        began = {"sent": facts.claimed_at, "delivered": facts.sent_at, "read": facts.delivered_at}
        for byte in WENT_OUT[WENT_OUT.find(settled.was) + 1 : WENT_OUT.find(settled.state) + 1]:
            stage = MESSAGE_STATE[byte]
            self._settled.labels(stage).inc()
            self._took(stage, began[stage] or now_ms, now_ms)
            if stage == "sent" and facts.send_after:
                self._slots.observe(max(0, now_ms - facts.send_after) / 1000)
            await self._tell(stage, task, session_id=session)

    async def settled(self, session: str, task: str, outcome: str, code: str) -> None:
        self._settled.labels(outcome).inc()
        if code:
            known = code if code in KNOWN_CODES else names.OTHER
            self._failures.labels(failure_class(code), known).inc()
        await self._tell(outcome, task, session_id=session, **({"code": code} if code else {}))

    async def swept(self, session: str, task: str, what: str) -> None:
        self._swept.labels(what).inc()
        await self._tell("its time was up", task, session_id=session, what=what)

    def _begin_at_zero(self) -> None:
        """A series that begins at 1 has never risen: Prometheus would miss the first of each."""
        for outcome in OUTCOMES:
            self._settled.labels(outcome)
        for what in SWEPT:
            self._swept.labels(what)
        for reason in Reason:
            self._refused.labels(reason)
        for code in KNOWN_CODES:
            self._failures.labels(failure_class(code), code)
        for kind in FailureClass:
            self._failures.labels(kind, names.OTHER)

    def _took(self, stage: str, from_ms: int, to_ms: int) -> None:
        """Times that nobody wrote down (a message of an older version) are not made up."""
        if from_ms and to_ms:
            self._stages[stage].observe(max(0, to_ms - from_ms) / 1000)

    async def _tell(self, event: str, task: str, **fields: str | int) -> None:
        if self._log_messages:
            (request,) = await self._requests.of([task])
            log.info(event, request_id=request, task_id=task, **fields)
