"""What can go wrong with a send, and what class each code has. `policy.retry` decides from the class alone."""

from enum import StrEnum


class FailureClass(StrEnum):
    TRANSIENT = "transient"
    """Another try may succeed."""
    RECIPIENT = "recipient"
    """It concerns this recipient and will not change."""
    PLATFORM = "platform"
    """The platform refused. Never repeated, never moved to another number."""


RATE_LIMIT = "RATE_LIMIT"
NOT_ON_WHATSAPP = "NOT_ON_WHATSAPP"
INVALID_RECIPIENT = "INVALID_RECIPIENT"
RESTRICTED_463 = "RESTRICTED_463"
NO_ACK = "NO_ACK"
CONNECTION_LOST = "CONNECTION_LOST"
SEND_FAILED = "SEND_FAILED"
POISON = "POISON"
UNKNOWN_OUTCOME = "UNKNOWN_OUTCOME"
NO_COMMON_HOURS = "NO_COMMON_HOURS"
MEDIA_UNAVAILABLE = "MEDIA_UNAVAILABLE"

BEFORE_THE_WIRE = frozenset({MEDIA_UNAVAILABLE})
"""What ends a try before anything reached WhatsApp: it says nothing about the number, and no gap counts from it."""

_CLASSES = {
    NOT_ON_WHATSAPP: FailureClass.RECIPIENT,
    INVALID_RECIPIENT: FailureClass.RECIPIENT,
    NO_COMMON_HOURS: FailureClass.RECIPIENT,
    RESTRICTED_463: FailureClass.PLATFORM,
    "463": FailureClass.PLATFORM,
}


def failure_class(code: str) -> FailureClass:
    """An unknown code is transient: retries are capped, and a wrong "permanent" would lose a message."""
    return _CLASSES.get(code, FailureClass.TRANSIENT)
