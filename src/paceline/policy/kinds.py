"""Kinds: numbers with the same figures are one kind, so ten thousand of them cost no more than their few kinds.

A `Maker` works for one moment and keeps what many numbers have in common: the zone's day, the pace, the levels to come.
Neighbours: `workday` says what a kind is, `crew` counts a whole fleet, `forecast` asks each kind what it can do.
"""

from collections.abc import Iterable

import msgspec

from paceline.policy import budget, hours, pacing
from paceline.policy.facts import PhoneFacts, Rules
from paceline.policy.trust import DAY_MS
from paceline.policy.turns import is_expected
from paceline.policy.workday import Kind, Shift, Windows

HORIZON_DAYS = 400
"""Past a year a forecast helps nobody: the answer is "not in sight"."""
KEPT_APART = 64
"""With more kinds of numbers than this, those that differ only in what they sent today, in the minute of their next
slot or in hours of their age are taken together: an answer in milliseconds is worth more than the minute it may be
off."""
USUAL_HEARD_MS = 400
"""From the wire to our hearing of it, for a number that has not sent yet."""
HEARD_LIMIT_MS = 5_000
_ROUND_MS = DAY_MS // 4
_GROWN = -1
"""Stands for the birth of every number that has reached the last level."""

Group = tuple[Kind, int]
"""A kind, and how many numbers are of it."""


class _Common(msgspec.Struct, frozen=True, gc=False):
    """What numbers of the same zone, age and settings share at one moment."""

    zone: str
    day: str
    pace: pacing.Pace
    pace_key: str
    shifts: tuple[Shift, ...]


class Maker:
    """Kinds as of one moment. Equal ones are the same object, so that counting them needs no comparison."""

    def __init__(self, rules: Rules, now_ms: int) -> None:
        self._rules = rules
        self._now_ms = now_ms
        ages = [level.max_age_days for level in rules.policy.levels if level.max_age_days is not None]
        self._levels_begin = [round(age * DAY_MS) for age in ages]
        self._grown_before = now_ms - max(self._levels_begin, default=0)
        self._typed_ms = now_ms + sum(rules.policy.typing_ms) // 2
        self._commons: dict[tuple[object, ...], _Common] = {}
        self._kinds: dict[tuple[object, ...], Kind] = {}

    def of(self, facts: PhoneFacts, *, load: int = 0, parked: int = 0, is_known: bool = False) -> Kind | None:
        """None for a number that sends nothing until somebody acts. `is_known`: it may write to these people even while
        the platform keeps it from new chats."""
        if not is_expected(facts):
            return None
        common = self._common(facts)
        used = budget.used_on(common.day, counted_day=facts.cap_day, counted=facts.cap_used)
        if facts.unsettled and load:
            # The unit of the message it is busy with is taken, and that message still counts in its load.
            used = max(0, used - 1)
        slot, burst = self._next_slot(facts, common)
        locked_until = facts.restricted_until if facts.restriction and not is_known else 0
        takes_from = max(facts.cooldown_until, locked_until)
        sends_from = max(slot, facts.cooldown_until)
        takes_from = takes_from if takes_from > self._now_ms else 0
        heard = _heard_ms(facts)
        key = (id(common), used, sends_from, takes_from, burst, heard, load, parked)
        kind = self._kinds.get(key)
        if kind is None:
            kind = Kind(common.zone, common.shifts, used, sends_from, takes_from, burst, heard, load, parked)
            self._kinds[key] = kind
        return kind

    def _common(self, facts: PhoneFacts) -> _Common:
        zone = hours.phone_zone(facts.phone, facts.timezone)
        born = facts.created_at
        age = _GROWN if born is not None and born <= self._grown_before else born
        key = (zone, age, facts.rpm_override, facts.rpm_source, facts.pacer)
        found = self._commons.get(key)
        if found is None:
            shifts = self._shifts(facts, zone)
            pace = shifts[0].pace
            found = _Common(zone, hours.local_day(zone, self._now_ms), pace, pace.key, shifts)
            self._commons[key] = found
        return found

    def _shifts(self, facts: PhoneFacts, zone: str) -> tuple[Shift, ...]:
        """Its level now, and those it will grow into."""
        now, policy = self._now_ms, self._rules.policy
        later = [] if facts.created_at is None else [facts.created_at + age for age in self._levels_begin]
        shifts = []
        for at in (0, *(at for at in later if now < at <= now + HORIZON_DAYS * DAY_MS)):
            level = policy.level(facts.created_at, now_ms=at or now)
            pace = pacing.pace_for(
                level,
                policy,
                self._rules.pace_defaults,
                rpm_override=facts.rpm_override,
                rpm_source=facts.rpm_source,
                fields=facts.pacer,
            )
            windows: Windows = hours.phone_windows(level, zone)
            shifts.append(Shift(at, pace, level.daily_cap, windows))
        return tuple(shifts)

    def _next_slot(self, facts: PhoneFacts, common: _Common) -> tuple[int, int]:
        """When the number will be through with its present rest and with the message it is busy with, and how many of
        its burst have gone out by then."""
        slot, burst, pace = 0, 0, common.pace
        usual_ms = (pace.min_ms + pace.max_ms) // 2
        if facts.sends:
            gap_ms = facts.gap_ms if facts.gap_key == common.pace_key else usual_ms
            starts = facts.starts or facts.sends
            slot = pacing.next_slot(pace, facts.sends, gap_ms, starts)
            burst = pacing.burst_count(pace, facts.sends, starts)
        if facts.unsettled:
            slot, burst = max(slot, self._now_ms + usual_ms), burst + 1
        slot = max(slot, self._typed_ms)
        if not facts.sends or slot - facts.sends[-1] >= pace.burst_cooldown_ms:
            burst = 0
        return -(-slot // 1_000) * 1_000, min(burst, max(0, pace.burst_limit - 1))


def kind_of(
    facts: PhoneFacts, rules: Rules, *, now_ms: int, load: int = 0, parked: int = 0, is_known: bool = False
) -> Kind | None:
    """Of a single number."""
    return Maker(rules, now_ms).of(facts, load=load, parked=parked, is_known=is_known)


def _heard_ms(facts: PhoneFacts) -> int:
    """What it usually takes until we hear of a send: the median of the last ones, in steps of 50 ms."""
    if not facts.starts:
        return USUAL_HEARD_MS
    took = sorted(end - start for start, end in zip(facts.starts, facts.sends, strict=False) if end > start)
    return min(HEARD_LIMIT_MS, took[len(took) // 2] // 50 * 50) if took else USUAL_HEARD_MS


def together(counted: Iterable[Group], *, apart: int = KEPT_APART) -> tuple[list[Group], list[int]]:
    """The groups a fleet is forecast in, and for each that was given the place of its group among them."""
    given = list(counted)
    if len(given) <= apart:
        return given, list(range(len(given)))
    sums: dict[Kind, list[int]] = {}
    first: list[Kind] = []
    for kind, number in given:
        first.append(alike(kind))
        total = sums.setdefault(first[-1], [0, 0, 0, 0])
        for index, value in enumerate((1, kind.used_today, kind.load, kind.parked)):
            total[index] += value * number
    place = {kind: index for index, kind in enumerate(sums)}
    merged = [
        (msgspec.structs.replace(kind, used_today=used // n, load=-(-load // n), parked=-(-parked // n)), n)
        for kind, (n, used, load, parked) in sums.items()
    ]
    return merged, [place[kind] for kind in first]


def alike(kind: Kind) -> Kind:
    """What a number has in common with those it is taken together with in a large fleet."""
    return msgspec.structs.replace(
        kind,
        used_today=0,
        load=0,
        parked=0,
        burst=0,
        heard_ms=kind.heard_ms // 500 * 500,
        sends_from_ms=_up(kind.sends_from_ms, pacing.MINUTE_MS),
        takes_from_ms=_up(kind.takes_from_ms, pacing.MINUTE_MS),
        shifts=tuple(
            msgspec.structs.replace(shift, from_ms=shift.from_ms // _ROUND_MS * _ROUND_MS) for shift in kind.shifts
        ),
    )


def _up(at: int, step: int) -> int:
    return -(-at // step) * step
