"""Pacing: how long a number rests between two sends on the wire.

A gap is drawn once, when a message is handed over, for the rest that follows it; `next_slot` then adds what must hold
whatever was drawn: the rolling minute and the burst rule. Past sends are the only state, so a restart cannot shorten a
gap.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from paceline.policy.trust import Level, Policy

if TYPE_CHECKING:
    from random import Random

MINUTE_MS = 60_000
BURST_EXTRA_MS = (1_000, 3_000)
OVERRIDE_SPREAD = 0.2
ALLOWED_RPM = (2, 3, 5, 10, 15, 20)
"""What an operator may set as an override."""


class PaceDefaults(msgspec.Struct, frozen=True):
    """From the settings, for what the policy file leaves open."""

    min_delay_ms: int = 2_000
    max_delay_ms: int = 5_000
    burst_limit: int = 5
    burst_cooldown_ms: int = 30_000


class Pace(msgspec.Struct, frozen=True):
    """The rules for one number right now."""

    rpm: int
    min_ms: int
    max_ms: int
    jitter: float
    burst_limit: int
    burst_cooldown_ms: int

    @property
    def key(self) -> str:
        """Names the rules a gap was drawn under; a gap drawn under others is drawn again."""
        return f"{self.rpm}/{self.min_ms}-{self.max_ms}~{self.jitter:g}/{self.burst_limit}x{self.burst_cooldown_ms}"

    @property
    def shortest_ms(self) -> int:
        """No two sends may be closer than this."""
        return int(self.min_ms * (1 - self.jitter))


class Gap(msgspec.Struct, frozen=True):
    ms: int
    key: str


def pace_for(level: Level, policy: Policy, defaults: PaceDefaults, *, rpm_override: int | None = None) -> Pace:
    """Delay mode from the level's window, or RPM mode when an override is set."""
    if rpm_override is not None:
        base = MINUTE_MS / rpm_override
        rpm, window = rpm_override, (int(base * (1 - OVERRIDE_SPREAD)), int(base * (1 + OVERRIDE_SPREAD)))
    else:
        rpm, window = level.rpm, level.delay_ms or (defaults.min_delay_ms, defaults.max_delay_ms)
    return Pace(
        rpm=rpm,
        min_ms=window[0],
        max_ms=window[1],
        jitter=policy.jitter,
        burst_limit=defaults.burst_limit if policy.burst_limit is None else policy.burst_limit,
        burst_cooldown_ms=defaults.burst_cooldown_ms if policy.burst_cooldown_ms is None else policy.burst_cooldown_ms,
    )


def draw_gap(pace: Pace, sends: Sequence[int], starts: Sequence[int] | None = None, *, rng: "Random") -> Gap:
    """The rest after the last of `sends` (the one being handed over counted in)."""
    ms = rng.uniform(pace.min_ms, pace.max_ms) * rng.uniform(1 - pace.jitter, 1 + pace.jitter)
    if _burst_is_full(pace, sends, starts):
        ms = max(ms, pace.burst_cooldown_ms + rng.uniform(*BURST_EXTRA_MS))
    return Gap(round(ms), pace.key)


def next_slot(pace: Pace, sends: Sequence[int], gap_ms: int, starts: Sequence[int] | None = None) -> int:
    """The earliest time of the next send on the wire; 0 for a number that has never sent.

    `sends` are the latest moments the past messages can have been on the wire (when we heard of them), `starts` the
    earliest.
    """
    if not sends:
        return 0
    slot = sends[-1] + gap_ms
    if len(sends) >= pace.rpm:
        # The window is closed at both ends, hence the extra millisecond.
        slot = max(slot, sends[-pace.rpm] + MINUTE_MS + 1)
    if _burst_is_full(pace, sends, starts):
        slot = max(slot, sends[-1] + pace.burst_cooldown_ms + BURST_EXTRA_MS[0])
    return slot


def burst_count(pace: Pace, sends: Sequence[int], starts: Sequence[int] | None = None) -> int:
    """How many messages went out with no rest of at least the cooldown between them.

    Only a certain rest counts: from when we heard of one message to the earliest moment of the next. A message whose
    confirmation came late was no rest.
    """
    starts = sends if starts is None else starts
    count = min(1, len(sends))
    for index in range(len(sends) - 1, 0, -1):
        if starts[index] - sends[index - 1] >= pace.burst_cooldown_ms:
            break
        count += 1
    return count


def effective_rpm(pace: Pace) -> float:
    """What the number does in the long run, burst rule included."""
    mean = (pace.min_ms + pace.max_ms) / 2
    if _has_bursts(pace):
        rest = max(mean, pace.burst_cooldown_ms + sum(BURST_EXTRA_MS) / 2)
        mean = ((pace.burst_limit - 1) * mean + rest) / pace.burst_limit
    return min(float(pace.rpm), MINUTE_MS / max(mean, 1.0))


def _has_bursts(pace: Pace) -> bool:
    """A limit or a cooldown of 0 switches the rule off."""
    return pace.burst_limit > 0 and pace.burst_cooldown_ms > 0


def _burst_is_full(pace: Pace, sends: Sequence[int], starts: Sequence[int] | None) -> bool:
    return _has_bursts(pace) and burst_count(pace, sends, starts) >= pace.burst_limit
