"""What a journal says, apart from where it is kept: its records and the state they add up to.

`journal.py` stores the records as JSON lines; `Book` is the sum of them and decides nothing. One entry per task,
because a task has one message id for ever, whatever the number of attempts.
"""

from enum import StrEnum
from typing import Literal

import msgspec

# A job's messages are kept 30 days, so no task older than that can be offered again.
KEEP_MS = 30 * 24 * 3600 * 1000
# Some 6 MB in memory; twenty days of the busiest phone (500 a day).
KEEP_ENTRIES = 10_000

ReceiptKind = Literal["delivered", "read"]


class Outcome(StrEnum):
    """What came of an attempt. Nothing recorded means that the attempt was cut off: its outcome is open."""

    SENT = "sent"
    NOT_SENT = "not_sent"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class SendError(msgspec.Struct, frozen=True, rename="camel"):
    """Why a send failed; the codes are those of `domain.failures`."""

    code: str
    message: str


class _Record(msgspec.Struct, frozen=True, rename="camel", tag_field="kind", omit_defaults=True):
    pass


class Greeted(_Record, frozen=True, tag="greeted"):
    """From here on this journal knows every task that its session claims (see `recovery`)."""

    at: int


class Intent(_Record, frozen=True, tag="intent"):
    """Written before the socket write: from here on the message may be out."""

    task_id: str
    whatsapp_id: str
    to: str
    attempt: int
    at: int
    in_doubt: bool = False
    """Carried over by compaction: an earlier attempt of this task ended without an answer."""
    request_id: str = ""
    """For the lines about its receipts, which may come to the next life of the worker."""


class Result(_Record, frozen=True, tag="result"):
    """What came of the last intent of that task."""

    task_id: str
    outcome: Outcome
    at: int
    error: SendError | None = None


class Reported(_Record, frozen=True, tag="reported"):
    """The orchestrator answered to the report of that result."""

    task_id: str


class Receipt(_Record, frozen=True, tag="receipt"):
    """The orchestrator answered to the report of that receipt, so it need not be told again."""

    whatsapp_id: str
    receipt: ReceiptKind


Record = Greeted | Intent | Result | Reported | Receipt


class Entry(msgspec.Struct):
    """All the journal knows of one task."""

    task_id: str
    whatsapp_id: str
    to: str
    attempt: int
    at: int
    request_id: str = ""
    in_doubt: bool = False
    """An earlier attempt ended without an answer; only a proof of sending clears this."""
    outcome: Outcome | None = None
    error: SendError | None = None
    result_at: int = 0
    reported: bool = False
    receipts: set[ReceiptKind] = msgspec.field(default_factory=set)

    @property
    def sent(self) -> bool:
        return self.outcome is Outcome.SENT

    @property
    def maybe_sent(self) -> bool:
        """Whether any attempt may have reached WhatsApp without our knowing."""
        return not self.sent and (self.in_doubt or self.outcome in (None, Outcome.UNKNOWN))

    @property
    def unreported(self) -> bool:
        return self.outcome is not None and not self.reported

    @property
    def unsettled(self) -> bool:
        """Still to be answered for, however old it seems: a host without a clock may have dated it years back, and
        a forgotten intent is answered as not sent."""
        return self.outcome is None or not self.reported


class Book:
    """The sum of a journal's records. Applying a record twice changes nothing."""

    def __init__(self) -> None:
        self.greeted_at: int | None = None
        self._by_task: dict[str, Entry] = {}
        self._by_whatsapp_id: dict[str, Entry] = {}

    def entry(self, task_id: str) -> Entry | None:
        return self._by_task.get(task_id)

    def find(self, whatsapp_id: str) -> Entry | None:
        return self._by_whatsapp_id.get(whatsapp_id)

    def entries(self) -> list[Entry]:
        """All entries, in the order in which their tasks were last attempted."""
        return list(self._by_task.values())

    def apply(self, record: Record) -> None:
        match record:
            case Greeted(at=at):
                self.greeted_at = at if self.greeted_at is None else self.greeted_at
            case Intent():
                self._intend(record)
            case Result():
                self._conclude(record)
            case Reported(task_id=task_id):
                if entry := self._by_task.get(task_id):
                    entry.reported = True
            case Receipt(whatsapp_id=whatsapp_id, receipt=receipt):
                if entry := self._by_whatsapp_id.get(whatsapp_id):
                    entry.receipts.add(receipt)

    def records(self, now_ms: int) -> list[Record]:
        """The shortest list of records that says what is still needed."""
        entries = [entry for entry in self._by_task.values() if entry.unsettled or entry.at > now_ms - KEEP_MS]
        surplus = len(entries) - KEEP_ENTRIES
        kept = [entry for age, entry in enumerate(entries) if age >= surplus or entry.unsettled or entry.maybe_sent]
        greeted: list[Record] = [] if self.greeted_at is None else [Greeted(at=self.greeted_at)]
        return greeted + [record for entry in kept for record in _records_of(entry)]

    def _intend(self, intent: Intent) -> None:
        before = self._by_task.pop(intent.task_id, None)
        if before is not None and before.sent:
            # A sent message stays sent: re-inserted only to keep the order of attempts.
            self._by_task[intent.task_id] = before
            return
        doubt = intent.in_doubt or (before is not None and before.maybe_sent)
        about = (intent.task_id, intent.whatsapp_id, intent.to, intent.attempt, intent.at, intent.request_id)
        entry = Entry(*about, in_doubt=doubt)
        self._by_task[intent.task_id] = self._by_whatsapp_id[intent.whatsapp_id] = entry

    def _conclude(self, result: Result) -> None:
        entry = self._by_task.get(result.task_id)
        if entry is None or entry.sent:
            return
        entry.outcome, entry.error, entry.result_at = result.outcome, result.error, result.at
        entry.reported = False


def _records_of(entry: Entry) -> list[Record]:
    records: list[Record] = [
        Intent(
            task_id=entry.task_id,
            whatsapp_id=entry.whatsapp_id,
            to=entry.to,
            attempt=entry.attempt,
            at=entry.at,
            in_doubt=entry.in_doubt,
            request_id=entry.request_id,
        )
    ]
    if entry.outcome is not None:
        records.append(Result(entry.task_id, entry.outcome, entry.result_at, entry.error))
    if entry.reported:
        records.append(Reported(entry.task_id))
    return records + [Receipt(entry.whatsapp_id, kind) for kind in sorted(entry.receipts)]
