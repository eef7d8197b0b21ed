"""Telling the orchestrator what came of a task, again and again until it answers.

The verdict is in the journal before it is told here, so a crash at any point only means that it is told twice.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from paceline.kits.clock import Clock
from paceline.kits.failpoint import failpoint
from paceline.kits.rng import Rng
from paceline.worker.book import Entry, SendError
from paceline.worker.decisions import NotSent, Sent, Unknown, Verdict, backoff_ms
from paceline.worker.protocol import (
    BLOCKED_TRIES,
    Blocked,
    Handle,
    ProtocolUnavailable,
    RequestRefused,
    WorkerEvent,
    WorkerProtocol,
)
from paceline.worker.shift import Shift

log = structlog.stdlib.get_logger(__name__)

_Call = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Subject:
    """The task that is spoken of."""

    task_id: str
    whatsapp_id: str
    to: str
    request_id: str = ""

    @classmethod
    def of(cls, entry: Entry) -> "Subject":
        return cls(entry.task_id, entry.whatsapp_id, entry.to, entry.request_id)

    @property
    def named(self) -> dict[str, str]:
        """As lines of the log name it."""
        return {"task_id": self.task_id, "request_id": self.request_id}


def message_event(shift: Shift, name: str, subject: Subject, now_ms: int) -> WorkerEvent:
    """A webhook about one message; its id follows from what it says, so a repetition is recognised."""
    return WorkerEvent(
        session_id=shift.session_id,
        event=name,
        data={"messageId": subject.task_id, "to": subject.to, "whatsappId": subject.whatsapp_id},
        timestamp=now_ms,
        event_id=f"{name}:{subject.whatsapp_id}",
    )


class Reporter:
    """Verdicts to the orchestrator. Raises StaleEpoch if another instance took over, RequestRefused if our secret is
    not taken: then nothing was told, and the next life answers from the journal."""

    def __init__(self, shift: Shift, *, protocol: WorkerProtocol, clock: Clock, rng: Rng) -> None:
        self._shift = shift
        self._protocol = protocol
        self._clock = clock
        self._rng = rng

    async def report(self, subject: Subject, handle: Handle, verdict: Verdict) -> None:
        """Tell the verdict on a task that we hold, and note in the journal that it was told."""
        await self._tell(subject, handle, verdict)
        if verdict != Sent() and self._shift.proven(subject.whatsapp_id):
            # A receipt came while we were trying to tell otherwise.
            await self._tell(subject, handle, Sent())
        await self._note_reported(subject.task_id)

    async def report_leftover(self, entry: Entry) -> None:
        """Tell an old result of a task that we no longer hold. That it was sent is a fact at any time; anything
        else the orchestrator has meanwhile decided for itself."""
        if entry.sent:
            await self._tell_sent(Subject.of(entry))
        await self._note_reported(entry.task_id)

    async def _tell(self, subject: Subject, handle: Handle, verdict: Verdict) -> None:
        match verdict:
            case Sent():
                await self._tell_sent(subject)
                failpoint("reported-not-acked")
                await self._until_answered(
                    subject,
                    lambda: self._protocol.ack(handle, epoch=self._shift.agreed.epoch, whatsapp_id=subject.whatsapp_id),
                )
            case NotSent(error=error):
                await self._tell_not_sent(subject, handle, error, is_certain=True)
            case Unknown(error=error):
                await self._tell_not_sent(subject, handle, error, is_certain=False)

    async def _tell_not_sent(
        self, subject: Subject, handle: Handle, error: SendError | None, *, is_certain: bool
    ) -> None:
        def nack(said: SendError | None) -> Awaitable[None]:
            return self._protocol.nack(handle, epoch=self._shift.agreed.epoch, not_sent=is_certain, error=said)

        # The code says what has to be done; the words may be what is not let through.
        shorter = error and SendError(error.code, "")
        await self._until_answered(subject, lambda: nack(error), lambda: nack(shorter))

    async def _tell_sent(self, subject: Subject) -> None:
        event = message_event(self._shift, "MESSAGE_SENT", subject, self._clock.now_ms())
        await self._until_answered(subject, lambda: self._protocol.webhook(event))

    async def _note_reported(self, task_id: str) -> None:
        entry = self._shift.journal.entry(task_id)
        if entry is not None and entry.unreported:
            await self._shift.journal.mark_reported(task_id)

    async def _until_answered(self, subject: Subject, call: _Call, shorter: _Call | None = None) -> None:
        """`shorter`: what is said instead if something in between does not let it through."""
        failures = blocked = 0
        while True:
            try:
                return await call()
            except ProtocolUnavailable as error:
                about = {"reason": str(error), "failures": failures, **subject.named}
                log.warning("report not answered; telling it again", **about)
                blocked += isinstance(error, Blocked)
                if shorter is not None and blocked >= BLOCKED_TRIES:
                    call = shorter
            except RequestRefused as error:
                if error.is_about_us:
                    raise
                log.error("report refused; it is not repeated", reason=str(error), **subject.named)
                return None
            await self._clock.sleep_ms(backoff_ms(failures, self._rng))
            failures += 1
