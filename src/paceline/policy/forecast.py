"""The forecast: when a backlog will be done, in closed form per kind of number and local day, not by simulation.

A job has two parts: until it is given out, every number is busy with all it may do (`walk.given` says how many each has
had by any moment); then each empties what it holds, and the slowest of those that got something of the job says when it
is done, a little later if attempts fail. Neighbours: `kinds` counts the numbers, `walk` takes each through its days,
`trouble` knows of failures, `turns` what goes before, `prospect` asks.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence

import msgspec

from paceline.policy import pacing, trouble
from paceline.policy.facts import Rules
from paceline.policy.kinds import HORIZON_DAYS, Group, together
from paceline.policy.trust import DAY_MS
from paceline.policy.walk import Walk
from paceline.policy.work import ALMOST
from paceline.policy.workday import NEVER, Groups, Kind

ROUTE_AHEAD = 200


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
    fresh: float = 0.0
    """Of each one's messages those it did not hold before."""
    is_part: bool = True
    """It has something of what is asked about, not only what waited for it anyway."""


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


def finish_ms(
    backlog: Backlog, kinds: Iterable[Kind], *, rules: Rules, ahead: int = ROUTE_AHEAD, now_ms: int
) -> int | None:
    """When the backlog will have gone out over these numbers; None if that is not in sight."""
    groups, _ = together(Counter(kinds).items())
    found = Forecast(backlog, groups, rules=rules, ahead=ahead, now_ms=now_ms).outlook()
    return None if found is None else found.finish_ms


class Forecast:
    """One backlog over one fleet."""

    def __init__(
        self,
        backlog: Backlog,
        groups: Iterable[Group],
        *,
        rules: Rules,
        ahead: int = ROUTE_AHEAD,
        fails: float = 0.0,
        now_ms: int,
    ) -> None:
        """`fails` is the share of attempts that have to be repeated."""
        self._rules = rules
        self._fails = fails
        self._now_ms = now_ms
        self._walks = [
            (Walk(kind, backlog.groups, backlog.shares, ahead=ahead, rules=rules, now_ms=now_ms), count)
            for kind, count in groups
        ]
        held = sum(count * (walk.kind.load + walk.kind.parked) for walk, count in self._walks)
        self.wanted = backlog.size + held
        """What waits for the numbers now goes out as well."""
        self._given_at = _given_out(self._walks, self.wanted, now_ms) if self._walks else None
        self._queues = [] if self._given_at is None else _queues(self._walks, self.wanted, self._given_at)

    def outlook(self, holding: Container[int] = ()) -> Outlook | None:
        """None if the end is not in sight. `holding` are the groups that have something of the job already; the others
        count if they get something new. If nobody does, it is about what the numbers hold, of all of them."""
        if self.wanted <= 0:
            return Outlook(self._now_ms, ())
        if self._given_at is None:
            return None
        shares = [
            self._share(walk, count, queue) for (walk, count), queue in zip(self._walks, self._queues, strict=True)
        ]
        parts = [index in holding or share.fresh > ALMOST for index, share in enumerate(shares)]
        if any(parts):
            shares = [msgspec.structs.replace(share, is_part=part) for share, part in zip(shares, parts, strict=True)]
        finish = max((share.finish_ms for share in shares if share.messages and share.is_part), default=self._now_ms)
        if finish < NEVER:
            finish += self._later_ms(shares)
        ceiling = _under_ceiling(self._walks, self.wanted, self._rules, self._now_ms)
        return None if max(finish, ceiling) >= NEVER else Outlook(max(finish, ceiling), tuple(shares), ceiling > finish)

    def _later_ms(self, shares: Sequence[Share]) -> int:
        """What failures add to the last stretch, in which each number empties its queue."""
        parts = [
            trouble.Part(count, min(share.messages, queue), walk.each_ms, share.finish_ms)
            for (walk, count), queue, share in zip(self._walks, self._queues, shares, strict=True)
            if share.messages and share.is_part
        ]
        return trouble.later_ms(parts, self._fails, retry_ms=self._rules.retry_delay_ms)

    def sent_by(self, deadline_ms: int) -> float:
        """How many of all that waits will have gone out by then."""
        if deadline_ms <= self._now_ms:
            return 0.0
        at = self._given_at
        if at is None or at >= deadline_ms:
            return min(self.wanted, sum(count * walk.sent_by(deadline_ms) for walk, count in self._walks))
        emptied = sum(
            count * sum(walk.emptied(at, queue, deadline_ms).days.values())
            for (walk, count), queue in zip(self._walks, self._queues, strict=True)
        )
        # A share of less than one message is rounded up by each number that holds it.
        return min(self.wanted, emptied)

    def fresh_by(self, at_ms: int) -> float:
        """How many of those that no number held before; each number sends what it held first."""
        at, found = self._given_at, 0.0
        for index, (walk, count) in enumerate(self._walks):
            if at is None or at >= at_ms:
                sent = walk.sent_by(at_ms)
            else:
                sent = sum(walk.emptied(at, self._queues[index], at_ms).days.values())
            found += count * max(0.0, sent - walk.kind.load - walk.kind.parked)
        return found

    def late(self, outlook: Outlook | None, deadline_ms: int) -> float:
        """How many of what waits for those that take part will not have gone out by then."""
        at = self._given_at
        if outlook is None or at is None or at >= deadline_ms:
            return self.wanted - self.sent_by(deadline_ms)
        late = 0.0
        for (walk, count), queue, share in zip(self._walks, self._queues, outlook.shares, strict=True):
            if share.is_part:
                late += count * (share.messages - sum(walk.emptied(at, queue, deadline_ms).days.values()))
        return late

    def _share(self, walk: Walk, count: int, queue: float) -> Share:
        end = walk.emptied(self._given_at or self._now_ms, queue)
        messages, kind = sum(end.days.values()), walk.kind
        fresh = max(0.0, messages - kind.load - kind.parked)
        return Share(kind, count, messages, walk.starts_ms, end.finish_ms, end.days, end.met, fresh)


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
