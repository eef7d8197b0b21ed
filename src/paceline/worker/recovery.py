"""Answering for the past: what an earlier life of this worker claimed and never settled.

Runs after every `hello`, before anything new is claimed.
"""

from paceline.domain.ids import whatsapp_id
from paceline.kits.clock import Clock
from paceline.worker.book import Intent, Result
from paceline.worker.decisions import LookFirst, Sent, answer_for_pending, outcome_of, unproven
from paceline.worker.drivers.base import Driver
from paceline.worker.lookout import look_for_receipts
from paceline.worker.protocol import ByToken, PendingTask
from paceline.worker.reporter import Reporter, Subject
from paceline.worker.shift import Shift


class Recovery:
    """Gives every pending task its answer, the certain ones at once, the open ones after looking for receipts."""

    def __init__(self, shift: Shift, *, driver: Driver, reporter: Reporter, clock: Clock) -> None:
        self._shift = shift
        self._journal = shift.journal
        self._driver = driver
        self._reporter = reporter
        self._clock = clock

    async def answer(self, pending: list[PendingTask]) -> None:
        await self._own_up(pending)
        open_tasks = [task for task in pending if not await self._answer_if_certain(task)]
        if open_tasks:
            await self._answer_open(open_tasks)
        for entry in self._journal.unreported():
            await self._reporter.report_leftover(entry)

    async def _own_up(self, pending: list[PendingTask]) -> None:
        """A journal that is new while tasks are pending was lost with its volume: that it holds no intent proves
        nothing. Those tasks are entered as begun, durably, before the journal counts as one that knows."""
        if self._journal.greeted:
            return
        for task in pending:
            await self._journal.intend(
                Intent(
                    task_id=task.task_id,
                    whatsapp_id=whatsapp_id(task.task_id),
                    to=task.to,
                    attempt=0,
                    at=self._clock.now_ms(),
                )
            )
        await self._journal.greet(self._clock.now_ms())

    async def _answer_if_certain(self, task: PendingTask) -> bool:
        verdict = answer_for_pending(self._journal.entry(task.task_id))
        if isinstance(verdict, LookFirst):
            return False
        await self._reporter.report(self._subject(task), _handle(task), verdict)
        return True

    async def _answer_open(self, tasks: list[PendingTask]) -> None:
        await look_for_receipts(
            {whatsapp_id(task.task_id) for task in tasks},
            shift=self._shift,
            driver=self._driver,
            clock=self._clock,
            keep_lease=_nothing_to_keep,
        )
        for task in tasks:
            proven = self._shift.proven(whatsapp_id(task.task_id))
            verdict = Sent() if proven else unproven(self._journal.entry(task.task_id))
            outcome, error = outcome_of(verdict)
            await self._journal.conclude(Result(task.task_id, outcome, self._clock.now_ms(), error))
            await self._reporter.report(self._subject(task), _handle(task), verdict)

    def _subject(self, task: PendingTask) -> Subject:
        entry = self._journal.entry(task.task_id)
        return Subject(task.task_id, whatsapp_id(task.task_id), task.to, entry.request_id if entry else "")


def _handle(task: PendingTask) -> ByToken:
    return ByToken(task_id=task.task_id, token=task.token)


async def _nothing_to_keep() -> None:
    """Only the claim's own epoch could extend its lease."""
