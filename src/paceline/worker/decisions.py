"""Everything the worker decides, as pure functions that return values. No port is touched here.

The verdicts at the top are what a worker may say of a task; `reporter` turns each into protocol messages.
"""

from dataclasses import dataclass

from paceline.domain.failures import UNKNOWN_OUTCOME
from paceline.domain.sessions import reconnects
from paceline.kits.rng import Rng
from paceline.worker.book import Entry, Outcome, SendError

# The claim's answer took some time to reach us and the write takes some to reach WhatsApp.
SEND_BEFORE_MARGIN_MS = 250

_FIRST_BACKOFF_MS = 250
_MAX_BACKOFF_MS = 10_000


@dataclass(frozen=True)
class Sent:
    """The server accepted it, or a receipt proves that it did."""


@dataclass(frozen=True)
class NotSent:
    """Certainly not out. Without an error the task is given back as if never taken; with one it was refused."""

    error: SendError | None = None


@dataclass(frozen=True)
class Unknown:
    """May be out or not, and the time to look for a proof is over."""

    error: SendError


Verdict = Sent | NotSent | Unknown


@dataclass(frozen=True)
class MaySend:
    pass


@dataclass(frozen=True)
class LookFirst:
    """It may already be out: wait for a receipt before saying anything, send nothing."""


def before_sending(entry: Entry | None, *, resend: bool) -> Sent | LookFirst | MaySend:
    """May this task be written to the socket? `resend` is the orchestrator's word that it recorded an unknown
    outcome and wants the same id once more; without it a message that may be out is never repeated."""
    if entry is None:
        return MaySend()
    if entry.sent:
        return Sent()
    return LookFirst() if entry.maybe_sent and not resend else MaySend()


def answer_for_pending(entry: Entry | None) -> Verdict | LookFirst:
    """What to say of a task that an earlier life of this session had claimed."""
    match entry:
        case None:
            return NotSent()
        case Entry(outcome=Outcome.SENT):
            return Sent()
        case Entry(outcome=Outcome.NOT_SENT):
            return NotSent()
        case Entry(outcome=Outcome.REFUSED):
            # A refusal that was already told belongs to the attempt before the one that was cut off.
            return NotSent(None if entry.reported else entry.error)
    return LookFirst()


def unproven(entry: Entry | None) -> Unknown:
    """The verdict when nothing was found after looking."""
    if entry is not None and entry.outcome is Outcome.UNKNOWN and entry.error is not None:
        return Unknown(entry.error)
    return Unknown(SendError(UNKNOWN_OUTCOME, "the attempt was cut off and no receipt came"))


def outcome_of(verdict: Verdict) -> tuple[Outcome, SendError | None]:
    """How a verdict stands in the journal."""
    match verdict:
        case Sent():
            return Outcome.SENT, None
        case NotSent(error=None):
            return Outcome.NOT_SENT, None
        case NotSent(error=error):
            return Outcome.REFUSED, error
        case Unknown(error=error):
            return Outcome.UNKNOWN, error


@dataclass(frozen=True)
class SendPlan:
    """When to start typing and when to write, in server time."""

    type_at_ms: int
    send_at_ms: int


def plan_sending(now_ms: int, *, send_after_ms: int, send_before_ms: int, typing_ms: int) -> SendPlan | None:
    """Typing fits into the time before `send_after_ms`; what is claimed late is typed for as long as the window
    allows. None if the window cannot be met any more."""
    last_ms = send_before_ms - SEND_BEFORE_MARGIN_MS - 1
    if max(now_ms, send_after_ms) > last_ms:
        return None
    type_at_ms = max(now_ms, send_after_ms - typing_ms)
    return SendPlan(type_at_ms, min(max(send_after_ms, type_at_ms + typing_ms), last_ms))


def window_open(*, earliest_ms: int, latest_ms: int, send_after_ms: int, send_before_ms: int) -> bool:
    """Whether now, which lies between the two bounds, is surely inside [send_after, send_before)."""
    return earliest_ms >= send_after_ms and latest_ms < send_before_ms - SEND_BEFORE_MARGIN_MS


def lease_needs_extension(*, latest_ms: int, lease_until_ms: int, lease_ms: int) -> bool:
    return lease_until_ms - latest_ms < lease_ms // 2


def reconnects_after(code: int, reason: str = "") -> bool:
    """Whether a connection that ended so may be opened again: the orchestrator and we read one table."""
    return reconnects(code, reason)


def backoff_ms(failures: int, rng: Rng) -> int:
    """Doubling and capped, between half and whole: many workers must not come back in step."""
    whole_ms = min(_FIRST_BACKOFF_MS << min(failures, 16), _MAX_BACKOFF_MS)
    return rng.randint(whole_ms // 2, whole_ms)
