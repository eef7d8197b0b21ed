"""The course of a job: how many of its messages should have gone out by when, in a few points.

The gateway keeps it with an accepted job, so that what was planned can be held against what happened. Neighbour:
`prospect` knows the end; this is the way there.
"""

from collections.abc import Sequence

from paceline.policy.prospect import Ask, Prospect

STEPS = 48
"""Looks on the way. Each costs some ten microseconds for each kind of number, and a night is seen in a job of weeks."""

Point = tuple[int, int]
"""A time, and how many have gone out by then."""


def course(ask: Ask, found: Prospect) -> list[Point]:
    """From the beginning to the end; empty if no end is in sight. Points on a straight line are left out."""
    if found.finish_ms is None or found.finish_ms <= ask.start_ms or not ask.size:
        return []
    length_ms = found.finish_ms - ask.start_ms
    steps = min(STEPS, ask.size)
    times = [ask.start_ms + length_ms * step // steps for step in range(1, steps)]
    inner = [(at, round(min(_own(ask, found, at), _schedule(ask, found, at)))) for at in times]
    return _bends([(ask.start_ms, 0), *inner, (found.finish_ms, ask.size)])


def _own(ask: Ask, found: Prospect, at: int) -> float:
    """What lies in a number's queue goes first; then jobs take turns."""
    forecast, crew = found.forecast, found.crew
    if forecast is None or crew is None:
        return float(ask.size)
    waiting = forecast.wanted - crew.held
    return forecast.fresh_by(at) * ask.size / max(1.0, waiting)


def _schedule(ask: Ask, found: Prospect, at: int) -> float:
    """What a spread, or a ceiling for the whole fleet, lets through by then."""
    is_ceiling = found.outlook is not None and found.outlook.is_ceiling
    end = found.finish_ms if is_ceiling else ask.last_ms
    if not end or end <= ask.start_ms:
        return float(ask.size)
    return min(1.0, (at - ask.start_ms) / (end - ask.start_ms)) * ask.size


def _bends(points: Sequence[Point]) -> list[Point]:
    """Without those that a line between their neighbours passes within one message."""
    kept = [0]
    for index in range(1, len(points) - 1):
        if not _is_straight(points[kept[-1] : index + 2]):
            kept.append(index)
    return [*(points[index] for index in kept), points[-1]]


def _is_straight(points: Sequence[Point]) -> bool:
    (first_at, first), (last_at, last) = points[0], points[-1]
    slope = (last - first) / (last_at - first_at)
    return all(abs(first + slope * (at - first_at) - sent) <= 1 for at, sent in points)
