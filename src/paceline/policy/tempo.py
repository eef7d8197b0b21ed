"""Tempo: when the first, the fifth, the five-hundredth message after a rest goes out, on average.

The same rules as `pacing.next_slot`, walked once with mean gaps: the first messages exactly, for a burst is quick and
the rest after it long, and from then on the long-run rate. Neighbours: `workday` asks for it, `forecast` adds up.
"""

from bisect import bisect_right
from functools import lru_cache

import msgspec

from paceline.policy.pacing import BURST_EXTRA_MS, MINUTE_MS, Pace

SENDS_WALKED = 20
"""At least so many messages make a period, so that a burst and a rolling minute both show in the long-run rate."""


_POINTS = 6


class Tempo(msgspec.Struct, frozen=True):
    offsets: tuple[int, ...]
    """When each of the first messages goes, counted from the first."""
    each_ms: float
    """What each further one takes."""
    heard_ms: int
    """From the wire to the word that it went out; the next gap counts from there."""

    def time_for(self, count: float) -> float:
        """When the n-th message goes; the first goes at once."""
        last = len(self.offsets) - 1
        place = max(0.0, count - 1)
        if place > last:
            return self.offsets[last] + (place - last) * self.each_ms
        return self.offsets[int(-(-place // 1))]

    def sent_in(self, ms: float) -> float:
        """How many go within that time."""
        if ms <= 0:
            return 0.0
        last = self.offsets[-1]
        if ms > last:
            return len(self.offsets) + float((ms - last) // self.each_ms)
        return float(bisect_right(self.offsets, ms))


@lru_cache(maxsize=8_192)
def tempo(pace: Pace, typing_ms: tuple[int, int], heard_ms: int, burst: int = 0) -> Tempo:
    """For a number that may send now; `burst` messages of the present burst have gone out already."""
    gap = _mean_gap(pace, typing_ms)
    bursts = pace.burst_limit if pace.burst_cooldown_ms > 0 else 0
    rest = pace.burst_cooldown_ms + sum(BURST_EXTRA_MS) / 2
    period = -(-max(pace.rpm, SENDS_WALKED) // max(1, bursts)) * max(1, bursts)
    at, heard = [0.0], [float(heard_ms)]
    count = burst + 1
    for index in range(1, 2 * period + 1):
        slot = heard[-1] + gap
        if bursts and count >= bursts:
            slot = max(slot, heard[-1] + rest)
        if index >= pace.rpm:
            slot = max(slot, heard[index - pace.rpm] + MINUTE_MS)
        count = 1 if slot - heard[-1] >= pace.burst_cooldown_ms else count + 1
        at.append(slot)
        heard.append(slot + heard_ms)
    each = max(1.0, (at[-1] - at[-1 - period]) / period)
    return Tempo(tuple(round(slot) for slot in at), each, heard_ms)


def _mean_gap(pace: Pace, typing_ms: tuple[int, int]) -> float:
    """A short gap is as long as the typing that has to fit in."""
    if pace.shortest_ms >= typing_ms[1]:
        return (pace.min_ms + pace.max_ms) / 2
    gaps = [
        window * jitter
        for window in _spread(pace.min_ms, pace.max_ms)
        for jitter in _spread(1 - pace.jitter, 1 + pace.jitter)
    ]
    typing = _spread(*typing_ms)
    return sum(max(gap, type_ms) for gap in gaps for type_ms in typing) / (len(gaps) * len(typing))


def _spread(low: float, high: float) -> list[float]:
    """Points that stand for a uniform draw."""
    return [low + (high - low) * (place + 0.5) / _POINTS for place in range(_POINTS)]
