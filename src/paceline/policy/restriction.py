"""What the platform lays on a number: when a refusal means that it may start no new chats, and when all sending stops.

The platform's own word (a time lock, a used-up quota, each with its end) comes first; a 463 without one is taken as a
lock for a day. A number that is restricted goes on with people it already talks to. Nothing it was refused is ever
repeated or moved to another number.
"""

from typing import Literal

import msgspec

from paceline.domain.failures import FailureClass, failure_class

GUESSED_LOCK_MS = 86_400_000
"""How long a number starts no new chats after a 463, until the platform states a time of its own."""
BREAKER_PHONES = 3
BREAKER_WINDOW_MS = 3_600_000
"""So many numbers restricted within this time pause the fleet until an operator resumes it."""
CHATS_KEPT = 20_000
"""People a number is known to have talked with: forty days of the highest daily cap."""


class Standing(msgspec.Struct, frozen=True):
    """What keeps a number from sending freely, and until when if anybody knows."""

    kind: Literal["NONE", "COOLDOWN", "TIME_LOCKED", "CAPPED", "QUARANTINED"] = "NONE"
    until: int | None = None


def standing(
    *, quarantined: bool, cooldown_until: int, restriction: str, restricted_until: int, now_ms: int
) -> Standing:
    """Of several the one that stops most."""
    if quarantined:
        return Standing("QUARANTINED")
    if cooldown_until > now_ms:
        return Standing("COOLDOWN", cooldown_until)
    if restriction and restricted_until > now_ms:
        return Standing("CAPPED" if restriction == "CAPPED" else "TIME_LOCKED", restricted_until)
    return Standing()


def locked_until(code: str, *, now_ms: int) -> int | None:
    """Until when a refusal with this code keeps the number from new chats; None if it does not."""
    return now_ms + GUESSED_LOCK_MS if failure_class(code) is FailureClass.PLATFORM else None
