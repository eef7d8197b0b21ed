"""Overnight: how many messages of a spread job end before anybody may send them, and what kept them waiting.

Each is due at its own time and valid from then on, so those that are due while the numbers are closed, or the people
asleep, may end before morning however quick the numbers are. The job flows in as it is spread, and out as the numbers'
hours allow, oldest first, from one change to the next. Neighbours: `prospect` asks, `hands` are the numbers.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from paceline.policy import hours
from paceline.policy.facts import Rules
from paceline.policy.hands import Calendar, Hands, taken_together
from paceline.policy.kinds import Group
from paceline.policy.pacing import MINUTE_MS
from paceline.policy.trust import DAY_MS
from paceline.policy.work import ALMOST
from paceline.policy.workday import Groups, Windows, meet

STEPS = 96
"""A day of quarters of an hour: so fine what flows in is looked at, beside every change of hours."""
LONGEST_DAYS = 60
"""A job that is spread over more has had its share of nights by then; the rest fares like it."""
STRETCHES = 800
"""So many are walked, whatever the fleet: a job is accepted between two requests, in some milliseconds."""


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


class _Queue:
    """Of one kind of people those that wait, [when they end, how many], the oldest first."""

    def __init__(self) -> None:
        self.parts: deque[list[float]] = deque()
        self.total = 0.0

    def put(self, ends_ms: float, count: float) -> None:
        self.parts.append([ends_ms, count])
        self.total += count

    def take(self, count: float) -> float:
        """Up to so many; how many it had."""
        left = count
        while self.parts and left > ALMOST:
            part = min(left, self.parts[0][1])
            self.parts[0][1] -= part
            left -= part
            if self.parts[0][1] <= ALMOST:
                self.parts.popleft()
        taken = count - left
        self.total = self.total - taken if self.parts else 0.0
        return taken

    def end(self, at_ms: int) -> float:
        """Those that end by then."""
        ended = 0.0
        while self.parts and self.parts[0][0] <= at_ms:
            ended += self.parts.popleft()[1]
        self.total = self.total - ended if self.parts else 0.0
        return ended


def expired(job: Spread, groups: Iterable[Group], rules: Rules) -> tuple[int, str | None]:
    """How many, and what most of them waited for: HOURS, RECIPIENT_HOURS, or PACE."""
    hands = taken_together(list(groups), rules, before=job.before, now_ms=job.start_ms)
    never = _never(job, hands)
    whole = sum(share for index, share in enumerate(job.shares) if index not in never)
    flow = [0.0 if index in never else share / whole for index, share in enumerate(job.shares)]
    calendars = {windows: Calendar(windows, job.start_ms, job.end_ms) for windows in _windows(job, hands)}
    for hand in hands:
        hand.calendars = [calendars[level.windows] for level in hand.levels]
    people = [calendars[windows] for windows in job.people]
    queues = [_Queue() for _ in flow]
    lost: Counter[str] = Counter()
    for start, end in _stretches(job, hands, calendars.values()):
        if start >= job.last_ms and not any(queue.parts for queue in queues):
            break
        middle = (start + end) / 2
        for calendar in calendars.values():
            calendar.enter(middle)
        able = [hand for hand in hands if hand.enter(middle)]
        awake = [calendar.is_open for calendar in people]
        _flow_in(job, queues, flow, start, end)
        _flow_out([queue for queue, up in zip(queues, awake, strict=True) if up], able, start, end, rules)
        for queue, up in zip(queues, awake, strict=True):
            if ended := queue.end(end):
                lost[_why(is_open=bool(able), is_awake=up)] += ended  # type: ignore[assignment]
    total = round(sum(lost.values()))
    return (min(job.size, total), lost.most_common(1)[0][0]) if total else (0, None)


def _never(job: Spread, hands: Sequence[Hands]) -> set[int]:
    """Those whom no number can ever write to are refused; they do not expire."""
    day = job.start_ms // DAY_MS
    found = {
        index
        for index, windows in enumerate(job.people)
        if not any(meet(windows + hand.level.windows, day) for hand in hands)
    }
    return found if len(found) < len(job.people) else set()


def _windows(job: Spread, hands: Sequence[Hands]) -> set[Windows]:
    return {*job.people, *(level.windows for hand in hands for level in hand.levels)}


def _stretches(job: Spread, hands: Sequence[Hands], calendars: Iterable[Calendar]) -> Iterator[tuple[int, int]]:
    """In which nothing changes, and none of those that are due ends while others of the same stretch do not. Of too
    many, those that lie close together are one."""
    changes = {edge for calendar in calendars for edge in calendar.edges}
    changes |= {level.from_ms for hand in hands for level in hand.levels}
    for zone in {hand.zone for hand in hands}:
        changes.update(_midnights(zone, job))
    cuts = changes | {change - job.validity_ms for change in changes}
    cuts |= {job.start_ms + (job.last_ms - job.start_ms) * step // STEPS for step in range(STEPS + 1)}
    within = {cut for cut in cuts if job.start_ms < cut < job.end_ms}
    apart_ms = 15 * MINUTE_MS
    while len(within) > STRETCHES:
        # Most hours begin with an hour everywhere.
        within = {(cut + apart_ms // 2) // apart_ms * apart_ms for cut in within}
        apart_ms *= 2
    ends = {job.start_ms, job.end_ms}
    return pairwise(sorted(ends | {cut for cut in within if job.start_ms < cut < job.end_ms}))


def _midnights(zone: str, job: Spread) -> Iterator[int]:
    at = hours.day_ends_at(zone, job.start_ms)
    while at < job.end_ms:
        yield at
        at = hours.day_ends_at(zone, at + 1)


def _flow_in(job: Spread, queues: Sequence[_Queue], flow: Sequence[float], start: int, end: int) -> None:
    came = job.size * max(0, min(end, job.last_ms) - start) / (job.last_ms - job.start_ms)
    for queue, share in zip(queues, flow, strict=True):
        if came * share > ALMOST:
            queue.put((start + end) / 2 + job.validity_ms, came * share)


def _flow_out(awake: Sequence[_Queue], hands: Sequence[Hands], start: int, end: int, rules: Rules) -> None:
    ceiling = rules.global_rpm * (end - start) / MINUTE_MS if rules.global_rpm else float("inf")
    oldest_first = sorted((queue for queue in awake if queue.parts), key=lambda queue: queue.parts[0][0])
    waiting = sum(queue.total for queue in oldest_first)
    for hand in hands:
        if waiting <= ALMOST and hand.held <= ALMOST:
            continue
        first, sent = hand.send(min(ceiling, hand.able(start, end)), waiting)
        ceiling -= first + sent
        waiting -= sent
        for queue in oldest_first:
            if sent <= ALMOST:
                break
            sent -= queue.take(sent)


def _why(*, is_open: bool, is_awake: bool) -> str:
    """What it waited for when it ended."""
    if not is_open:
        return "HOURS"
    return "PACE" if is_awake else "RECIPIENT_HOURS"
