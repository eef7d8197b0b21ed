"""The forecast: when a backlog will be done, in closed form per kind of number and local day, not by simulation.

Numbers with the same figures are one kind, so ten thousand phones cost no more than their few kinds. A job has two
parts: until it is given out, every number is busy with all it may do (`walk.given` says how many each has had by any
moment); then each empties what it holds, and the slowest says when the job is done. Neighbours: `tempo` knows the pace
after a rest, `workday` the hours, `plan` makes it readable.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from paceline.policy import hours, pacing
from paceline.policy.facts import PhoneFacts, Rules, Sender, sender
from paceline.policy.trust import DAY_MS
from paceline.policy.walk import Walk
from paceline.policy.workday import NEVER, Groups, Kind, Shift

ROUTE_AHEAD = 200
HORIZON_DAYS = 400
"""Past a year a forecast helps nobody: the answer is "not in sight"."""
KINDS_KEPT_APART = 64
"""With more kinds of numbers than this, those that differ only in what they sent today, in the minute of their next
slot or in hours of their age are taken together: an answer in milliseconds is worth more than the minute it may be
off."""
USUAL_HEARD_MS = 400
"""From the wire to our hearing of it, for a number that has not sent yet."""
HEARD_LIMIT_MS = 5_000


class Share(msgspec.Struct, frozen=True):
    """What one kind of number does of a backlog."""

    kind: Kind
    phones: int
    messages: float
    """Each of them."""
    start_ms: int
    finish_ms: int
    days: dict[int, float]
    met: frozenset[str]


class Outlook(msgspec.Struct, frozen=True):
    finish_ms: int
    shares: tuple[Share, ...]
    is_ceiling: bool = False
    """It is the ceiling for the whole fleet that says when it ends."""


class Backlog(msgspec.Struct, frozen=True):
    size: int
    """Messages that no number holds yet, all that go before the last one counted in."""
    groups: Groups = ((),)
    shares: tuple[float, ...] = (1.0,)
    """Of how many recipients each group's hours are."""


def kind_of(
    facts: PhoneFacts, rules: Rules, *, now_ms: int, load: int = 0, parked: int = 0, is_known: bool = False
) -> Kind | None:
    """None for a number that sends nothing until somebody acts. `is_known`: it may write to these people even while the
    platform keeps it from new chats."""
    if facts.quarantined or facts.fleet_paused or facts.fleet_stopped or not facts.sessions:
        return None
    who = sender(facts, rules, now_ms=now_ms)
    locked_until = 0 if is_known else facts.restricted_until if facts.restriction else 0
    slot, burst = _next_slot(who, rules, now_ms)
    return Kind(
        zone=who.zone,
        shifts=_shifts(facts, rules, now_ms),
        used_today=who.used_today,
        sends_from_ms=max(slot, facts.cooldown_until),
        takes_from_ms=max(facts.cooldown_until, locked_until)
        if max(facts.cooldown_until, locked_until) > now_ms
        else 0,
        burst=burst,
        heard_ms=_heard_ms(facts),
        load=load,
        parked=parked,
    )


def _shifts(facts: PhoneFacts, rules: Rules, now_ms: int) -> tuple[Shift, ...]:
    """Its level now, and those it will grow into."""
    zone = hours.phone_zone(facts.phone, facts.timezone)
    born = facts.created_at
    starts = [now_ms - now_ms % DAY_MS]
    if born is not None:
        ages = (level.max_age_days for level in rules.policy.levels)
        later = (born + round(age * DAY_MS) for age in ages if age is not None)
        starts += [at for at in later if now_ms < at <= now_ms + HORIZON_DAYS * DAY_MS]
    shifts = []
    for at in starts:
        level = rules.policy.level(born, now_ms=max(at, now_ms))
        pace = pacing.pace_for(
            level,
            rules.policy,
            rules.pace_defaults,
            rpm_override=facts.rpm_override,
            rpm_source=facts.rpm_source,
            fields=facts.pacer,
        )
        shifts.append(Shift(at if at > now_ms else 0, pace, level.daily_cap, hours.phone_windows(level, zone)))
    return tuple(shifts)


def _next_slot(who: Sender, rules: Rules, now_ms: int) -> tuple[int, int]:
    """When the number will be through with its present rest and with the message it is busy with, and how many of its
    burst have gone out by then."""
    facts, pace = who.facts, who.pace
    typing_ms = sum(rules.policy.typing_ms) // 2
    usual_ms = (pace.min_ms + pace.max_ms) // 2
    gap_ms = facts.gap_ms if facts.gap_key == pace.key else usual_ms
    slot = pacing.next_slot(pace, facts.sends, gap_ms, who.starts)
    burst = pacing.burst_count(pace, facts.sends, who.starts)
    if facts.unsettled:
        slot, burst = max(slot, now_ms + usual_ms), burst + 1
    slot = max(slot, now_ms + typing_ms)
    if not facts.sends or slot - facts.sends[-1] >= pace.burst_cooldown_ms:
        burst = 0
    return -(-slot // 1_000) * 1_000, min(burst, max(0, pace.burst_limit - 1))


def _heard_ms(facts: PhoneFacts) -> int:
    """What it usually takes until we hear of a send: the median of the last ones, in steps of 50 ms."""
    took = sorted(end - start for start, end in zip(facts.starts, facts.sends, strict=False) if end > start)
    return min(HEARD_LIMIT_MS, took[len(took) // 2] // 50 * 50) if took else USUAL_HEARD_MS


def ahead_of(size: int, *, others: Iterable[int]) -> int:
    """How many messages are given out when a job with `size` tasks to route is through: of every other job at most as
    many (jobs take turns), and its own."""
    return sum(min(rest, size) for rest in others) + size


def finish_ms(
    backlog: Backlog, kinds: Iterable[Kind], *, rules: Rules, ahead: int = ROUTE_AHEAD, now_ms: int
) -> int | None:
    """When the backlog will have gone out over these numbers; None if that is not in sight."""
    found = Forecast(backlog, kinds, rules=rules, ahead=ahead, now_ms=now_ms).outlook()
    return None if found is None else found.finish_ms


class Forecast:
    """One backlog over one fleet."""

    def __init__(
        self, backlog: Backlog, kinds: Iterable[Kind], *, rules: Rules, ahead: int = ROUTE_AHEAD, now_ms: int
    ) -> None:
        self._rules = rules
        self._now_ms = now_ms
        self._walks = [
            (Walk(kind, backlog.groups, backlog.shares, ahead=ahead, rules=rules, now_ms=now_ms), count)
            for kind, count in together(kinds).items()
        ]
        held = sum(count * (walk.kind.load + walk.kind.parked) for walk, count in self._walks)
        self._wanted = backlog.size + held
        """What waits for the numbers now goes out as well."""
        self._given_at = _given_out(self._walks, self._wanted, now_ms) if self._walks else None
        self._queues = [] if self._given_at is None else _queues(self._walks, self._wanted, self._given_at)

    def outlook(self) -> Outlook | None:
        """None if the end is not in sight."""
        if self._wanted <= 0:
            return Outlook(self._now_ms, ())
        if self._given_at is None:
            return None
        shares = [
            self._share(walk, count, queue) for (walk, count), queue in zip(self._walks, self._queues, strict=True)
        ]
        finish = max((share.finish_ms for share in shares if share.messages), default=self._now_ms)
        ceiling = _under_ceiling(self._walks, self._wanted, self._rules, self._now_ms)
        return None if max(finish, ceiling) >= NEVER else Outlook(max(finish, ceiling), tuple(shares), ceiling > finish)

    def sent_by(self, deadline_ms: int) -> float:
        """How many of all that waits will have gone out by then."""
        if deadline_ms <= self._now_ms:
            return 0.0
        at = self._given_at
        if at is None or at >= deadline_ms:
            return min(self._wanted, sum(count * walk.sent_by(deadline_ms) for walk, count in self._walks))
        emptied = sum(
            count * sum(walk.emptied(at, queue, deadline_ms).days.values())
            for (walk, count), queue in zip(self._walks, self._queues, strict=True)
        )
        # A share of less than one message is rounded up by each number that holds it.
        return min(self._wanted, emptied)

    def _share(self, walk: Walk, count: int, queue: float) -> Share:
        end = walk.emptied(self._given_at or self._now_ms, queue)
        return Share(walk.kind, count, sum(end.days.values()), walk.starts_ms, end.finish_ms, end.days, end.met)


def _given_out(walks: Sequence[tuple[Walk, int]], wanted: float, now_ms: int) -> int | None:
    """The moment at which all has been given to some number."""
    if _given(walks, now_ms) >= wanted:
        return now_ms
    start = now_ms
    for _ in range(HORIZON_DAYS):
        day_end = (start // DAY_MS + 1) * DAY_MS
        if _given(walks, day_end) >= wanted:
            edges = sorted({edge for walk, _ in walks for edge in walk.edges if start < edge < day_end} | {day_end})
            for edge in edges:
                if _given(walks, edge) >= wanted:
                    return _between(walks, wanted, start, edge)
                start = edge
        start = day_end
    return None


def _between(walks: Sequence[tuple[Walk, int]], wanted: float, low: int, high: int) -> int:
    """Within a stretch; or its end, where a new day's budget lets the numbers take more."""
    if _given(walks, high - 1) < wanted:
        return high
    while high - low > 1_000:
        middle = (low + high) // 2
        low, high = (low, middle) if _given(walks, middle) >= wanted else (middle, high)
    return high


def _given(walks: Sequence[tuple[Walk, int]], at: int) -> float:
    return sum(count * walk.given(at) for walk, count in walks)


def _queues(walks: Sequence[tuple[Walk, int]], wanted: float, at: int) -> list[float]:
    """What each number holds in its queue when the last message has been given out. Where a new day (or the beginning)
    made room at once, the last ones went to those that held least."""
    most = [walk.queue(at) for walk, _ in walks]
    surplus = _given(walks, at) - wanted
    if surplus <= 0:
        return most
    least = [min(high, walk.queue(at - 1) if walk.edges[0] < at else float(walk.kind.load))
             for (walk, _), high in zip(walks, most, strict=True)]  # fmt: skip
    counts = [count for _, count in walks]
    need = sum(count * high for count, high in zip(counts, most, strict=True)) - surplus
    low, high = 0, int(max(most)) + 1
    while high - low > 1:
        level = (low + high) // 2
        held = sum(n * max(a, min(b, float(level))) for n, a, b in zip(counts, least, most, strict=True))
        low, high = (level, high) if held <= need else (low, level)
    queues = [max(a, min(b, float(low))) for a, b in zip(least, most, strict=True)]
    extra = need - sum(n * queue for n, queue in zip(counts, queues, strict=True))
    for index, (count, highest) in enumerate(zip(counts, most, strict=True)):
        if extra >= 0.5 and queues[index] <= low and queues[index] + 1 <= highest:
            queues[index] += 1
            extra -= count
    return queues


def together(kinds: Iterable[Kind]) -> Counter[Kind]:
    counted = Counter(kinds)
    if len(counted) <= KINDS_KEPT_APART:
        return counted
    sums: dict[Kind, list[int]] = {}
    for kind, number in counted.items():
        total = sums.setdefault(alike(kind), [0, 0, 0, 0])
        for index, value in enumerate((1, kind.used_today, kind.load, kind.parked)):
            total[index] += value * number
    return Counter(
        {
            msgspec.structs.replace(kind, used_today=used // n, load=-(-load // n), parked=-(-parked // n)): n
            for kind, (n, used, load, parked) in sums.items()
        }
    )


def alike(kind: Kind) -> Kind:
    """What a number has in common with those it is taken together with in a large fleet."""
    return msgspec.structs.replace(
        kind,
        used_today=0,
        load=0,
        parked=0,
        burst=0,
        heard_ms=kind.heard_ms // 500 * 500,
        sends_from_ms=-(-kind.sends_from_ms // pacing.MINUTE_MS) * pacing.MINUTE_MS,
        shifts=tuple(
            msgspec.structs.replace(shift, from_ms=shift.from_ms // _ROUND_MS * _ROUND_MS) for shift in kind.shifts
        ),
    )


_ROUND_MS = DAY_MS // 4


def _under_ceiling(walks: Sequence[tuple[Walk, int]], wanted: float, rules: Rules, now_ms: int) -> int:
    """When a ceiling for all numbers together lets so many through, if any of them is open; else now."""
    rpm = sum(count * pacing.MINUTE_MS / walk.each_ms for walk, count in walks)
    if not rules.global_rpm or rpm <= rules.global_rpm:
        return now_ms
    left_ms = wanted * pacing.MINUTE_MS / rules.global_rpm
    for day in range(now_ms // DAY_MS, now_ms // DAY_MS + HORIZON_DAYS):
        at = now_ms
        for start, end in sorted({span for walk, _ in walks for span in walk.open_spans(day)}):
            at = max(at, start)
            if end - at >= left_ms:
                return round(at + left_ms)
            left_ms -= max(0, end - at)
            at = max(at, end)
    return NEVER
