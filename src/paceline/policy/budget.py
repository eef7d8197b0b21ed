"""The daily cap: one unit is reserved when a message is handed over, and given back only if it certainly did not go
out.

The store keeps the newest day and what is reserved in it. A unit belongs to the day it was reserved in, and the message
must be sent before that day ends, so parallel hand-overs around midnight cannot overshoot either day.
"""

from paceline.policy.trust import Level


def used_on(day: str, *, counted_day: str, counted: int) -> int:
    """A newer day starts at nothing. An older one (the zone was changed) is treated as the one that was counted."""
    return counted if counted_day >= day else 0


def left(level: Level, used: int) -> int | None:
    """What may still go out today; None is no limit."""
    return None if level.daily_cap is None else max(0, level.daily_cap - used)
