"""Pacing: how long a number rests between two sends on the wire.

A gap is drawn once, when a message is handed over, for the rest that follows it; `next_slot` then adds what must hold
whatever was drawn: the rolling minute and the burst rule. Past sends are the only state, so a restart cannot shorten a
gap.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from paceline.policy.trust import Level, Policy

if TYPE_CHECKING:
    from random import Random

MINUTE_MS = 60_000
BURST_EXTRA_MS = (1_000, 3_000)
OVERRIDE_SPREAD = 0.2
SMARTGUARD = "smartguard"
"""The source of an automatic override. Any other source is an operator, whose word may also make a number faster."""
ALLOWED_RPM = (2, 3, 5, 10, 15, 20)
"""What an operator may set as an override."""


class PaceDefaults(msgspec.Struct, frozen=True):
    """From the settings, for what the policy file leaves open."""

    min_delay_ms: int = 2_000
    max_delay_ms: int = 5_000
    burst_limit: int = 5
    burst_cooldown_ms: int = 30_000


class PacerFields(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What an operator set for one number; it goes before everything else."""

    min_delay_ms: int | None = None
    max_delay_ms: int | None = None
    burst_limit: int | None = None
    burst_cooldown_ms: int | None = None
    rpm: int | None = None


_NO_FIELDS = PacerFields()


class Pace(msgspec.Struct, frozen=True, dict=True):
    """The rules for one number right now."""

    rpm: int
    min_ms: int
    max_ms: int
    jitter: float
    burst_limit: int
    burst_cooldown_ms: int

    @cached_property
    def key(self) -> str:
        """Names the rules a gap was drawn under; a gap drawn under others is drawn again. Short, since it is stored
        with every number and written with every message."""
        rules = (self.rpm, self.min_ms, self.max_ms, self.jitter, self.burst_limit, self.burst_cooldown_ms)
        return f"{crc32(repr(rules).encode()):08x}"

    @property
    def shortest_ms(self) -> int:
        """No two sends may be closer than this."""
        return int(self.min_ms * (1 - self.jitter))


class Gap(msgspec.Struct, frozen=True, gc=False):
    ms: int
    key: str


def pace_for(
    level: Level,
    policy: Policy,
    defaults: PaceDefaults,
    *,
    rpm_override: int | None = None,
    rpm_source: str = "",
    fields: PacerFields = _NO_FIELDS,
) -> Pace:
    """An operator's fields go before an override, and that before the number's trust."""
    bursts = (policy.burst_limit, policy.burst_cooldown_ms)
    return _pace(level, (policy.jitter, *bursts), defaults, (rpm_override, rpm_source), fields)


@lru_cache(maxsize=4096)
def _pace(
    level: Level,
    policys: tuple[float, int | None, int | None],
    defaults: PaceDefaults,
    override: tuple[int | None, str],
    fields: PacerFields,
) -> Pace:
    """Kept, since it is asked for with every look at a number, and a fleet has few of them."""
    jitter, burst_limit, burst_cooldown_ms = policys
    rpm, window = _base(level, defaults, *override, fields.rpm)
    min_ms = max(0, _first(fields.min_delay_ms, window[0]))
    return Pace(
        rpm=rpm,
        min_ms=min_ms,
        max_ms=max(min_ms, _first(fields.max_delay_ms, window[1])),
        jitter=jitter,
        burst_limit=_first(fields.burst_limit, burst_limit, defaults.burst_limit),
        burst_cooldown_ms=_first(fields.burst_cooldown_ms, burst_cooldown_ms, defaults.burst_cooldown_ms),
    )


def _base(
    level: Level, defaults: PaceDefaults, override: int | None, source: str, set_rpm: int | None
) -> tuple[int, tuple[int, int]]:
    """The rate and the window before single fields replace an end: RPM mode if anybody set a rate, else delay mode."""
    trusted = level.delay_ms or (defaults.min_delay_ms, defaults.max_delay_ms)
    if set_rpm is not None:
        return _rpm_mode(set_rpm)
    if override is None:
        return level.rpm, trusted
    rpm, window = _rpm_mode(override)
    if source != SMARTGUARD:
        return rpm, window
    # Automatic: only ever slower than trust, in the rate and at both ends of the window.
    return min(rpm, level.rpm), (max(window[0], trusted[0]), max(window[1], trusted[1]))


def _rpm_mode(rpm: int) -> tuple[int, tuple[int, int]]:
    # Other tools may write these keys too: a 0 there makes a number slow, it does not stop the loop.
    rpm = max(1, rpm)
    base = MINUTE_MS / rpm
    return rpm, (int(base * (1 - OVERRIDE_SPREAD)), int(base * (1 + OVERRIDE_SPREAD)))


def _first(*values: int | None) -> int:
    return next((value for value in values if value is not None), 0)


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
