"""What follows from one try to deliver an event: done, later, never, or nothing more to this webhook."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
RETRY_AFTER_MS = (
    5_000,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    2 * HOUR_MS,
    5 * HOUR_MS,
    10 * HOUR_MS,
    14 * HOUR_MS,
    20 * HOUR_MS,
    24 * HOUR_MS,
)
"""Ten tries over about three days: the first for a hiccup, the last for a weekend."""
JITTER = 0.2
"""Either way: those that failed together do not come back together."""
LONGEST_WAIT_MS = 24 * HOUR_MS
"""What a receiver's own Retry-After may ask for at most."""
DISABLE_AFTER_MS = 5 * 24 * HOUR_MS
"""Nobody is there any more, and nobody noticed."""
RECOVERED_AFTER_MS = MINUTE_MS
"""A webhook that failed for at least this long and takes an event again is back: all that waits goes at once."""

GONE = 410


@dataclass(frozen=True)
class Verdict:
    outcome: str
    """delivered, retry or failed."""
    next_at_ms: int | None = None
    disable: str | None = None
    """Why nothing more is posted to this webhook: GONE or FAILING."""


def after_try(
    *,
    tries: int,
    status: int | None,
    retry_after_s: int | None,
    failing_since_ms: int | None,
    now_ms: int,
    rng: "Random",
) -> Verdict:
    """`tries` were made, this one included; `status` is None if nobody answered. Only 2xx is success."""
    if status is not None and 200 <= status < 300:
        return Verdict("delivered")
    if status == GONE:
        return Verdict("failed", disable="GONE")
    disable = "FAILING" if failing_since_ms is not None and now_ms - failing_since_ms >= DISABLE_AFTER_MS else None
    if tries > len(RETRY_AFTER_MS):
        return Verdict("failed", disable=disable)
    wait_ms = round(RETRY_AFTER_MS[tries - 1] * rng.uniform(1 - JITTER, 1 + JITTER))
    asked_ms = min((retry_after_s or 0) * 1000, LONGEST_WAIT_MS)
    return Verdict("retry", next_at_ms=now_ms + max(wait_ms, asked_ms), disable=disable)
