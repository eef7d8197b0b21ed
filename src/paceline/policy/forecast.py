"""The forecast: when a backlog will be done, in closed form per phone and local day, not by simulation.

Each number gives `min(budget, open minutes x effective rpm)` a day. Numbers with the same figures are counted
together, so ten thousand phones cost no more than their few kinds.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from paceline.policy import hours, pacing
from paceline.policy.facts import PhoneFacts, Rules, Sender, sender

HORIZON_DAYS = 400
"""Past a year a forecast helps nobody: the answer is "not in sight"."""
MINUTE_MS = 60_000
KINDS_KEPT_APART = 64
"""With more kinds of numbers than this, those that differ only in what they sent today or in the minute of their next
slot are averaged: an answer in milliseconds is worth more than the minute it may be off."""
_DAY_MS = 86_400_000


class Capacity(msgspec.Struct, frozen=True):
    """What one kind of number can do."""

    zone: str
    opens: int
    closes: int
    cap: int | None
    used_today: int
    rpm: float
    from_ms: int
    """A cool-down or a slot in the future: nothing before this."""

    def between(self, start_ms: int, end_ms: int, used: int) -> float:
        """Messages within one local day."""
        windows = (hours.Window(self.zone, self.opens, self.closes),)
        opening = hours.next_open(windows, max(start_ms, self.from_ms))
        if opening is None or opening >= end_ms:
            return 0.0
        minutes = (min(end_ms, hours.closes_at(windows, opening) or end_ms) - opening) / MINUTE_MS
        sent = 1 + minutes * self.rpm
        return sent if self.cap is None else min(sent, max(0, self.cap - used))


def capacity(facts: PhoneFacts, rules: Rules, *, now_ms: int) -> Capacity | None:
    """None for a number that sends nothing until somebody acts."""
    if facts.quarantined or facts.fleet_paused or facts.fleet_stopped or not facts.sessions:
        return None
    who = sender(facts, rules, now_ms=now_ms)
    opens, closes = who.level.hours or (0, 24)
    return Capacity(
        zone=who.zone,
        opens=opens,
        closes=closes,
        cap=who.level.daily_cap,
        used_today=who.used_today,
        rpm=pacing.effective_rpm(who.pace),
        # A number that may start no new chats does little of a campaign before that ends.
        from_ms=max(facts.cooldown_until, facts.restricted_until, _next_slot(who, now_ms)),
    )


def limited(capacities: list[Capacity], global_rpm: int) -> list[Capacity]:
    """The same numbers under a ceiling for all of them together: each gives up its share."""
    together = sum(kind.rpm for kind in capacities)
    if not global_rpm or together <= global_rpm:
        return capacities
    return [msgspec.structs.replace(kind, rpm=kind.rpm * global_rpm / together) for kind in capacities]


def _next_slot(who: Sender, now_ms: int) -> int:
    """When the number will be through with its present rest, and with the message it is busy with; 0 if it is free."""
    facts, pace = who.facts, who.pace
    usual_ms = (pace.min_ms + pace.max_ms) // 2
    slot = pacing.next_slot(pace, facts.sends, facts.gap_ms if facts.gap_key == pace.key else usual_ms, who.starts)
    slot = max(slot, now_ms + usual_ms) if facts.unsettled else slot
    return 0 if slot <= now_ms else -(-slot // 1_000) * 1_000


def ahead_of(size: int, *, queued: int, others: Iterable[int]) -> int:
    """How many messages have gone out when a job with `size` tasks to route is through: what lies in the queues, of
    every other job at most as many (jobs take turns), and its own."""
    return queued + sum(min(rest, size) for rest in others) + size


def done_by(deadline_ms: int, capacities: Iterable[Capacity], *, now_ms: int) -> int:
    """How many messages these numbers can send until then."""
    end = min(deadline_ms, now_ms + HORIZON_DAYS * _DAY_MS)
    return int(_total(_kinds(capacities), now_ms, end, now_ms)) if end > now_ms else 0


def finish_ms(waiting: int, capacities: Iterable[Capacity], *, now_ms: int) -> int | None:
    """When `waiting` messages will have gone out over these numbers; None if that is not in sight."""
    if waiting <= 0:
        return now_ms
    kinds = _kinds(capacities)
    if not kinds:
        return None
    left, start = float(waiting), now_ms
    for _ in range(HORIZON_DAYS):
        end = start + _DAY_MS
        done = _total(kinds, start, end, now_ms)
        if done >= left:
            return _within(kinds, left, start, end, now_ms)
        left, start = left - done, end
    return None


def _kinds(capacities: Iterable[Capacity]) -> Counter[Capacity]:
    kinds = Counter(capacities)
    if len(kinds) <= KINDS_KEPT_APART:
        return kinds
    used: Counter[Capacity] = Counter()
    count: Counter[Capacity] = Counter()
    for kind, number in kinds.items():
        alike = msgspec.structs.replace(kind, used_today=0, from_ms=-(-kind.from_ms // MINUTE_MS) * MINUTE_MS)
        used[alike] += kind.used_today * number
        count[alike] += number
    return Counter(
        {
            msgspec.structs.replace(alike, used_today=round(used[alike] / number)): number
            for alike, number in count.items()
        }
    )


def _within(kinds: Counter[Capacity], left: float, start: int, end: int, now_ms: int) -> int:
    low, high = start, end
    while high - low > 1_000:
        middle = (low + high) // 2
        low, high = (low, middle) if _total(kinds, start, middle, now_ms) >= left else (middle, high)
    return high


def _total(kinds: Counter[Capacity], start: int, end: int, now_ms: int) -> float:
    return sum(count * _one(kind, start, end, now_ms) for kind, count in kinds.items())


def _one(kind: Capacity, start: int, end: int, now_ms: int) -> float:
    """A stretch touches two local days. What an earlier stretch had of the first day's budget is not there again."""
    sent, at = 0.0, start
    while at < end:
        midnight = hours.day_ends_at(kind.zone, at)
        since = max(now_ms, hours.day_starts_at(kind.zone, at))
        used = kind.used_today if since == now_ms else 0
        sent += kind.between(since, min(midnight, end), used) - kind.between(since, at, used)
        at = midnight
    return sent
