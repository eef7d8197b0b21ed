"""Trouble: how much later a job ends because some attempts fail, as a median and in closed form.

How many fail is what the numbers show of their last hour; a fleet nobody has seen yet is taken to be an ordinary one.
Two things cost time at the end of a job: of many numbers one has had more failures than the others, and the last
message that fails comes back when all others have gone out. Neighbours: `forecast` adds it to its answer, `prospect`
looks at the fleet.
"""

from collections.abc import Sequence
from math import exp, log

import msgspec

from paceline.policy.facts import PhoneFacts

LOOKED_BACK_MS = 3_600_000
"""So far back failures are kept (`note_failure` in the scripts)."""
NUMBERS_ASKED = 200
"""Of a large fleet so many tell enough, and an answer in milliseconds is worth more than the last digit."""
USUAL = 0.01
"""The share of attempts that fail where nobody has seen any yet. A guess; what is seen replaces it soon."""
USUAL_WEIGHS = 100
"""After so many attempts what was seen counts as much as the guess."""
_MOST = 20
"""Failures of one number while it empties its queue; more are a fault, not trouble."""


class Part(msgspec.Struct, frozen=True):
    """Numbers that are alike, while they empty what they hold."""

    phones: int
    messages: float
    each_ms: float
    finish_ms: int


def share_of_failures(fleet: Sequence[PhoneFacts], *, now_ms: int) -> float:
    """Of all attempts of the last hour."""
    sent = failed = 0
    for facts in fleet[:: max(1, len(fleet) // NUMBERS_ASKED)]:
        if facts.failures or facts.sends:
            # Only the last sends are kept; failures before the first of them have nothing to be compared with.
            since = max(now_ms - LOOKED_BACK_MS, facts.starts[0] if facts.starts else 0)
            sent += sum(at >= since for at in facts.sends)
            failed += sum(at >= since for at in facts.failures)
    return (failed + USUAL * USUAL_WEIGHS) / (sent + failed + USUAL_WEIGHS)


def later_ms(parts: Sequence[Part], share: float, *, retry_ms: int) -> int:
    """How much later than with nothing going wrong."""
    if not parts or share <= 0:
        return 0
    ends = max(part.finish_ms for part in parts)
    slowest = max(part.finish_ms + _most_failures(part, share) * part.each_ms for part in parts)
    return round(slowest - ends + _comes_back_ms(parts, share, ends, retry_ms))


def _most_failures(part: Part, share: float) -> int:
    """How many the one has that has most of them; each takes the place of a message. (A Poisson distribution.)"""
    mean = part.messages * share
    chance = sum_ = exp(-mean)
    for count in range(_MOST):
        if sum_**part.phones >= 0.5:
            return count
        chance *= mean / (count + 1)
        sum_ += chance
    return _MOST


def _comes_back_ms(parts: Sequence[Part], share: float, ends: int, retry_ms: int) -> float:
    """What waits for its retry after the end: as likely as not, one in the last `log(2) / share` messages failed."""
    last = sum(
        part.phones * min(part.messages, max(0, part.finish_ms - (ends - retry_ms)) / part.each_ms) for part in parts
    )
    since_last = log(2) / share
    return retry_ms * (1 - since_last / last) if last > since_last else 0.0
