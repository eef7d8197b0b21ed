"""Moments as callers write them: Unix milliseconds, or ISO 8601 with an offset. We keep milliseconds."""

from datetime import datetime

_EARLIEST_MS = 100_000_000_000
"""Spring 1973. What is smaller was meant in seconds, and would be read as long past."""
_LATEST_MS = 32_503_680_000_000
"""The year 3000."""


def moment_ms(value: int | str) -> int | None:
    """The instant, or None for what is none: seconds, a date without an offset, a word."""
    if isinstance(value, int):
        return value if _EARLIEST_MS <= value <= _LATEST_MS else None
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            return None
        return moment_ms(round(at.timestamp() * 1000))
    except (ValueError, OverflowError):
        return None
