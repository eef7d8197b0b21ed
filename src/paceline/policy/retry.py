"""What happens after a send that failed, and after one nobody knows the end of."""

from typing import Literal

import msgspec

from paceline.domain.failures import POISON, RATE_LIMIT, UNKNOWN_OUTCOME, FailureClass, failure_class
from paceline.domain.jobs import OnUnknown

DELAY_FLOOR_MS = 1_000
DELAY_CEILING_MS = 600_000
COOLDOWN_MS = 1_800_000
"""A number the platform told to slow down rests half an hour."""
POISON_CRASHES = 3
"""A task that took its worker down this often is put aside."""


class RetrySettings(msgspec.Struct, frozen=True):
    max_retries: int = 3
    retry_delay_ms: int = 60_000


class Retry(msgspec.Struct, frozen=True, tag=True):
    at_ms: int
    pinned: bool
    """It may have gone out: only the session that had it may touch it again."""


class GiveUp(msgspec.Struct, frozen=True, tag=True):
    code: str
    reason: Literal["permanent", "retries", "hold", "journal_lost", "poison", "closed"]


RetryDecision = Retry | GiveUp


def is_refusal(code: str) -> bool:
    """Whether the code itself says that the server did not take the message."""
    return code == RATE_LIMIT or failure_class(code) is not FailureClass.TRANSIENT


def delay_ms(failures: int, settings: RetrySettings) -> int:
    """The wait before the next try after the n-th failure."""
    raw = settings.retry_delay_ms << max(0, min(failures - 1, 30))
    return min(max(raw, DELAY_FLOOR_MS), DELAY_CEILING_MS)


def after_failure(code: str, *, failures: int, settings: RetrySettings, now_ms: int) -> RetryDecision:
    """A worker's word that nothing was sent, for the n-th time."""
    if failure_class(code) is not FailureClass.TRANSIENT:
        return GiveUp(code, "permanent")
    if failures > settings.max_retries:
        return GiveUp(code, "retries")
    return Retry(now_ms + delay_ms(failures, settings), pinned=False)


def after_unknown(
    *,
    on_unknown: OnUnknown,
    journal_lost: bool,
    crashes: int,
    failures: int,
    closed: bool,
    settings: RetrySettings,
    now_ms: int,
) -> RetryDecision:
    """The outcome is unknown and no receipt was found: the same id again, or an honest end."""
    if journal_lost:
        return GiveUp(UNKNOWN_OUTCOME, "journal_lost")
    if on_unknown == "hold":
        return GiveUp(UNKNOWN_OUTCOME, "hold")
    if closed:
        return GiveUp(UNKNOWN_OUTCOME, "closed")
    if crashes >= POISON_CRASHES:
        return GiveUp(POISON, "poison")
    if failures > settings.max_retries:
        return GiveUp(UNKNOWN_OUTCOME, "retries")
    return Retry(now_ms + delay_ms(failures, settings), pinned=True)


def after_return(*, crashes: int) -> GiveUp | None:
    """A worker gave a task back untouched; one that keeps taking its worker down is not tried for ever."""
    return GiveUp(POISON, "poison") if crashes >= POISON_CRASHES else None


def cooldown_until(code: str, *, now_ms: int) -> int | None:
    return now_ms + COOLDOWN_MS if code == RATE_LIMIT else None
