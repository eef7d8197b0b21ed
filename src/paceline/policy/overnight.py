"""Overnight: how many messages of a spread job end before anybody may send them, and what kept them waiting.

Each is due at its own time and valid from then on, so those that are due while the numbers are closed, or the people
asleep, may end before morning however quick the numbers are. The job flows in as it is spread, and out as the numbers'
cells allow, oldest first, from one change to the next. Neighbours: `prospect` asks, `workday` knows when things change.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from paceline.policy.facts import Rules
from paceline.policy.kinds import Group, together
from paceline.policy.pacing import MINUTE_MS
from paceline.policy.trust import DAY_MS
from paceline.policy.work import ALMOST
from paceline.policy.workday import Cell, Groups, Kind, cells, pace_of

STEPS = 96
"""A day of quarters of an hour: so fine what flows in is looked at, beside every change of hours."""
LONGEST_DAYS = 60
"""A job that is spread over more has had its share of nights by then; the rest fares like it."""


class Spread(msgspec.Struct, frozen=True):
    """A job that is given out little by little."""

    size: int
    start_ms: int
    last_ms: int
    validity_ms: int
    people: Groups = ((),)
    shares: tuple[float, ...] = (1.0,)
    """Of how many recipients each group's hours are."""
    before: int = 0
    """Tasks of others that take their turns with it."""

    @property
    def end_ms(self) -> int:
        return min(self.last_ms + self.validity_ms, self.start_ms + LONGEST_DAYS * DAY_MS)


class _Hands:
    """Numbers of one kind on their way through the cells."""

    def __init__(self, kind: Kind, count: int, job: Spread, before: float) -> None:
        self.kind = kind
        self.count = count
        self.held = count * (kind.load + kind.parked + before)
        days = range(job.start_ms // DAY_MS, job.end_ms // DAY_MS + 1)
        self.cells = [cell for day in days for cell in cells(kind.zone, kind.shifts, job.people, day)]
        self._place = 0
        self._date, self._used = -1, float(count * kind.used_today)

    def enter(self, at_ms: int) -> Cell:
        while self.cells[self._place].end <= at_ms:
            self._place += 1
        cell = self.cells[self._place]
        if cell.date != self._date:
            self._used = self._used if self._date == -1 else 0.0
            self._date = cell.date
        return cell

    def able(self, cell: Cell, start: int, end: int, rules: Rules) -> float:
        start = max(start, self.kind.sends_from_ms)
        if not cell.is_open or start >= end:
            return 0.0
        able = self.count * (end - start) / pace_of(self.kind, cell.shift, rules).each_ms
        cap = cell.shift.cap
        return able if cap is None else min(able, max(0.0, self.count * cap - self._used))

    def send(self, able: float, waiting: float) -> float:
        """How many of those that wait go, after what it held before."""
        first = min(able, self.held)
        sent = min(able - first, waiting)
        self.held -= first
        self._used += first + sent
        return sent


def expired(job: Spread, groups: Iterable[Group], rules: Rules) -> tuple[int, str | None]:
    """How many, and what most of them waited for: HOURS, RECIPIENT_HOURS, or PACE."""
    merged, _ = together(groups, apart=0)
    before = job.before / max(1, sum(count for _, count in merged))
    hands = [_Hands(kind, count, job, before) for kind, count in merged]
    never = _never(hands, len(job.shares))
    whole = sum(share for index, share in enumerate(job.shares) if index not in never)
    flow = [0.0 if index in never else share / whole for index, share in enumerate(job.shares)]
    queues: list[deque[list[float]]] = [deque() for _ in flow]
    """Of each group of people [when they end, how many], the oldest first."""
    lost: Counter[str] = Counter()
    for start, end in _stretches(job, hands):
        now = [(hand, hand.enter(start)) for hand in hands]
        _flow_in(job, queues, flow, start, end)
        _flow_out(queues, now, start, end, rules)
        for index, queue in enumerate(queues):
            while queue and queue[0][0] <= end:
                lost[_why(index, now)] += queue.popleft()[1]  # type: ignore[assignment]
    total = round(sum(lost.values()))
    return (min(job.size, total), lost.most_common(1)[0][0]) if total else (0, None)


def _never(hands: Sequence[_Hands], people: int) -> set[int]:
    """Those whom no number can ever write to are refused; they do not expire."""
    first = [hand.cells[0].never for hand in hands]
    found = {index for index in range(people) if all(index in never for never in first)}
    return found if len(found) < people else set()


def _stretches(job: Spread, hands: Sequence[_Hands]) -> Iterator[tuple[int, int]]:
    """In which nothing changes, and none of those that are due ends while others of the same stretch do not."""
    edges = {edge for hand in hands for cell in hand.cells for edge in (cell.start, cell.end)}
    cuts = edges | {edge - job.validity_ms for edge in edges}
    cuts |= {job.start_ms + (job.last_ms - job.start_ms) * step // STEPS for step in range(STEPS + 1)}
    within = sorted({job.start_ms, job.end_ms, *(cut for cut in cuts if job.start_ms < cut < job.end_ms)})
    return pairwise(within)


def _flow_in(job: Spread, queues: Sequence[deque[list[float]]], flow: Sequence[float], start: int, end: int) -> None:
    came = job.size * max(0, min(end, job.last_ms) - start) / (job.last_ms - job.start_ms)
    for queue, share in zip(queues, flow, strict=True):
        if came * share > ALMOST:
            queue.append([(start + end) / 2 + job.validity_ms, came * share])


def _flow_out(
    queues: Sequence[deque[list[float]]], now: Sequence[tuple[_Hands, Cell]], start: int, end: int, rules: Rules
) -> None:
    ceiling = rules.global_rpm * (end - start) / MINUTE_MS if rules.global_rpm else float("inf")
    for hand, cell in now:
        able = min(ceiling, hand.able(cell, start, end, rules))
        awake = sorted((queues[index] for index in cell.awake if queues[index]), key=lambda queue: queue[0][0])
        sent = hand.send(able, sum(count for queue in awake for _, count in queue))
        ceiling -= sent
        for queue in awake:
            while queue and sent > ALMOST:
                part = min(sent, queue[0][1])
                queue[0][1] -= part
                sent -= part
                if queue[0][1] <= ALMOST:
                    queue.popleft()


def _why(index: int, now: Sequence[tuple[_Hands, Cell]]) -> str:
    """What it waited for when it ended."""
    open_ = [cell for _, cell in now if cell.is_open]
    if not open_:
        return "HOURS"
    return "PACE" if any(index in cell.awake for cell in open_) else "RECIPIENT_HOURS"
