"""What became of a task: a proof that it went out, a worker's word that it did not, or nobody knows.

A proof is a fact, whoever brings it and however late. Any other word counts only from the newest epoch and for the
claim it was given for.
"""

from typing import Any

import msgspec
import structlog

from paceline.domain.errors import BadRequest, Conflict, NotFound
from paceline.domain.failures import BEFORE_THE_WIRE, UNKNOWN_OUTCOME, FailureClass, failure_class
from paceline.domain.ids import parse_task_id, whatsapp_id
from paceline.domain.states import CLOSED_JOB_STATES, MESSAGE_STATE, TERMINAL, WAITING
from paceline.kits.brain import BrainPort, NoBrain
from paceline.kits.failpoint import failpoint
from paceline.orchestrator.days import StatsDays
from paceline.orchestrator.measures import Measures
from paceline.policy import restriction, retry
from paceline.store.client import RedisError
from paceline.store.outbox import MessageFacts, OverdueTask
from paceline.store.store import Store

log = structlog.stdlib.get_logger(__name__)

IN_HANDS = "cu"
"""Claimed, or unknown: the worker's word about it still counts."""
SWEEP_BATCH = 100
ASIDE_MS = 600_000
"""Until a message that cannot be read is looked at again: somebody has to mend it, and each look is an incident."""
ERROR_LIMIT = 300


class Word(msgspec.Struct, frozen=True):
    """Who says something about which claim."""

    session: str
    epoch: int
    task: str
    token: int


class Settling:
    def __init__(
        self,
        store: Store,
        retries: retry.RetrySettings,
        brain: BrainPort | None = None,
        measures: Measures | None = None,
        days: StatsDays | None = None,
    ) -> None:
        self._store = store
        self._retries = retries
        self._days = days or StatsDays(store)
        self._brain = brain or NoBrain()
        self._measures = measures or Measures()

    async def sent(self, session: str, task: str, wire_id: str, *, proof: str = "sent", now_ms: int) -> str:
        """The ack, a receipt (`delivered`, `read`), or an old worker's word: it went out."""
        if wire_id != whatsapp_id(task):
            raise BadRequest("WRONG_WHATSAPP_ID", "this is not the message id of that task", field="whatsappId")
        facts = await self._facts(session, task)
        day = await self._days.of(facts.phone, now_ms)
        settled = await self._store.outbox.prove(task, proof, now_ms=now_ms, stats_day=day, phone=facts.phone)
        failpoint("settled-not-answered")
        if settled.code == "UNKNOWN_TASK":
            raise NotFound("UNKNOWN_TASK", "there is no such task", field="taskId")
        await self._measures.proven(session, task, facts, settled, now_ms=now_ms)
        return MESSAGE_STATE[settled.state]

    async def returned(self, word: Word, *, now_ms: int) -> str:
        """Given back untouched: to the head, unless it takes its workers down again and again."""
        facts = await self._facts(word.session, word.task)
        poison = retry.after_return(crashes=_crashes(facts, word))
        if poison is None:
            return await self._say(word, "returned", facts, now_ms, unitBack=True, reason="GIVEN_BACK")
        return await self._give_up(
            word, facts, poison.code, "it took its worker down every time", now_ms, unitBack=True
        )

    async def failed(self, word: Word, code: str, message: str, *, not_sent: bool, now_ms: int) -> str:
        """A worker's word that a try failed. It is certain that nothing went out if the worker says so or if the code
        is the server's refusal: that is never repeated or moved, whatever else was said."""
        if not_sent or retry.is_refusal(code):
            return await self.refused(word, code, message, now_ms=now_ms)
        return await self.unknown(word, message, now_ms=now_ms)

    async def refused(self, word: Word, code: str, message: str, *, now_ms: int) -> str:
        """Nothing went out, for a reason: try again or give up. As a rule the attempt was on the wire all the same."""
        facts = await self._facts(word.session, word.task)
        decision = retry.after_failure(code, failures=facts.failures + 1, settings=self._retries, now_ms=now_ms)
        effects = {
            "unitBack": True,
            "onWire": code not in BEFORE_THE_WIRE,
            "cooldownUntil": retry.cooldown_until(code, now_ms=now_ms),
            "lockedUntil": restriction.locked_until(code, now_ms=now_ms),
            "recipientOnly": code in BEFORE_THE_WIRE or failure_class(code) is FailureClass.RECIPIENT,
        }
        if facts.maybe_sent and isinstance(decision, retry.GiveUp):
            # This try was refused, but an earlier one may have gone out: "refused" would not be the whole truth.
            return await self._give_up(word, facts, UNKNOWN_OUTCOME, f"a repeat was refused: {code}", now_ms, **effects)
        return await self._decided(word, facts, decision, now_ms, code=code, message=message, effects=effects)

    async def unknown(self, word: Word, message: str, *, now_ms: int) -> str:
        """It may have gone out and no receipt was found: the same id again, or an honest end."""
        facts = await self._facts(word.session, word.task)
        decision = await self._after_unknown(word, facts, now_ms)
        effects = {"onWire": True}
        return await self._decided(
            word, facts, decision, now_ms, code=UNKNOWN_OUTCOME, message=message, effects=effects
        )

    async def sweep(self, now_ms: int) -> int | None:
        """Hand-overs nobody claimed go back, leases that ended become unknown. Returns when the next one ends. One that
        cannot be read is put aside: the fleet does not wait for it."""
        overdue = await self._store.outbox.overdue(now_ms=now_ms, limit=SWEEP_BATCH)
        for broken in overdue.unreadable:
            await self._put_aside(broken.task, broken.error, now_ms)
        for task in overdue.tasks:
            try:
                await self._time_is_up(task, now_ms)
            except RedisError as error:
                await self._put_aside(task.task, str(error), now_ms)
            except (ValueError, LookupError, TypeError, ArithmeticError) as error:
                await self._put_aside(task.task, type(error).__name__, now_ms)
        return now_ms if overdue.tasks or overdue.unreadable else overdue.next_at

    async def _put_aside(self, task: str, error: str, now_ms: int) -> None:
        log.error("what is stored about a message cannot be read", task_id=task, reason=error[:ERROR_LIMIT])
        await self._store.outbox.put_aside(task, error[:ERROR_LIMIT], retry_ms=ASIDE_MS, now_ms=now_ms)

    async def _time_is_up(self, overdue: OverdueTask, now_ms: int) -> None:
        settle, task, state = self._store.outbox.settle, overdue.task, overdue.state
        if state == "h":
            reason = "NOT_CLAIMED"
            ended = await settle(task, "returned", now_ms=now_ms, from_="h", overdue=True, unitBack=True, reason=reason)
        elif state == "c":
            reason = "LEASE_ENDED"
            ended = await settle(task, "unknown", now_ms=now_ms, from_="c", overdue=True, reason=reason)
        elif state == "u":
            reason = "VALIDITY_ENDED"
            ended = await settle(
                task, "failed", now_ms=now_ms, from_="u", overdue=True, code=UNKNOWN_OUTCOME,
                message="no worker could tell before its validity ended",
                statsDay=await self._days.of(overdue.phone, now_ms),
            )  # fmt: skip
        elif state in TERMINAL + WAITING:
            reason = "CLEARED"
            ended = await settle(task, "cleared", now_ms=now_ms, from_=TERMINAL + WAITING, overdue=True)
        else:
            raise LookupError(state)
        if ended.code == "OK":
            await self._measures.swept(overdue.session or "", task, reason.lower())

    async def _after_unknown(self, word: Word, facts: MessageFacts, now_ms: int) -> retry.RetryDecision:
        parsed = parse_task_id(word.task)
        view = await self._store.jobs.view(parsed[0]) if parsed else None
        if view is None:
            raise NotFound("UNKNOWN_TASK", "the job of this task is gone", field="taskId")
        return retry.after_unknown(
            on_unknown=view.job.on_unknown,
            journal_lost=False,
            crashes=_crashes(facts, word),
            failures=facts.failures + 1,
            closed=view.run["state"] in CLOSED_JOB_STATES,
            settings=self._retries,
            now_ms=now_ms,
        )

    async def _decided(
        self,
        word: Word,
        facts: MessageFacts,
        decision: retry.RetryDecision,
        now_ms: int,
        *,
        code: str,
        message: str,
        effects: dict[str, Any],
    ) -> str:
        if isinstance(decision, retry.GiveUp):
            return await self._give_up(word, facts, decision.code, message, now_ms, **effects)
        return await self._say(
            word,
            "retry",
            facts,
            now_ms,
            at=decision.at_ms,
            pinned=decision.pinned,
            code=code,
            message=message,
            **effects,
        )

    async def _give_up(
        self, word: Word, facts: MessageFacts, code: str, message: str, now_ms: int, **effects: Any
    ) -> str:
        day = await self._days.of(facts.phone, now_ms)
        return await self._say(word, "failed", facts, now_ms, code=code, message=message, statsDay=day, **effects)

    async def _say(self, word: Word, outcome: str, facts: MessageFacts, now_ms: int, **effects: Any) -> str:
        settled = await self._store.outbox.settle(
            word.task, outcome, now_ms=now_ms, from_=IN_HANDS, token=word.token, epoch=word.epoch,
            crash=facts.epoch != word.epoch, **effects,
        )  # fmt: skip
        failpoint("settled-not-answered")
        if settled.code == "UNKNOWN_TASK":
            raise NotFound("UNKNOWN_TASK", "there is no such task", field="taskId")
        if settled.code == "STALE" and settled.state in IN_HANDS:
            raise Conflict("STALE_TOKEN", "a newer claim of this task exists", field="raw")
        code = effects.get("code", "") if outcome in ("retry", "failed") else ""
        if settled.code == "OK":
            await self._measures.settled(word.session, word.task, outcome, code)
        if settled.code == "OK" and code:
            about = {"sessionId": word.session, "taskId": word.task, "phone": facts.phone, "outcome": outcome}
            self._brain.tell("SEND_FAILED", {"at": now_ms, "code": code, **about})
        return MESSAGE_STATE[settled.state]

    async def _facts(self, session: str, task: str) -> MessageFacts:
        facts = await self._store.outbox.facts(task)
        if facts.session_id is not None and facts.session_id != session:
            raise NotFound("UNKNOWN_TASK", "this session has no such task", field="taskId")
        return facts


def _crashes(facts: MessageFacts, word: Word) -> int:
    """How often the task took a worker down, this time counted in once."""
    new = facts.epoch != word.epoch and facts.crash_token != facts.token
    return facts.crashes + (1 if new else 0)
