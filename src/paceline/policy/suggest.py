"""What would end a job earlier: each change is made to the facts, and the changed fleet forecast like the real one.

Neighbours: `plan` is the answer these go with.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from paceline.policy.crew import Crew, Seat, crew_of, with_more
from paceline.policy.facts import PhoneFacts, Rules, SessionFacts
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.policy.hours import phone_zone
from paceline.policy.pacing import PacerFields
from paceline.policy.prospect import Ask, prospect
from paceline.policy.trust import DAY_MS

MORE_NUMBERS = (2, 5)
SHOWN = 5
WORTH_MS = 60_000
WORTH_SHARE = 0.02
"""A change that saves less than a minute, or than a fiftieth of the time, is no advice."""
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


Name = Literal[
    "MORE_NUMBERS", "NO_SPREAD", "NO_GLOBAL_RPM", "ANY_NUMBER", "CONNECT", "UNRESTRICTED", "NO_OVERRIDE", "TRUST_RISES"
]


class Suggestion(msgspec.Struct, frozen=True, rename="camel"):
    change: Name
    finishes_at: int
    text: str


class Change(msgspec.Struct, frozen=True):
    name: Name
    words: str
    ask: Ask
    crew: Crew
    rules: Rules


def suggestions(
    ask: Ask, crew: Crew, rules: Rules, *, everybody: Crew, finish_ms: int | None, ahead: int = ROUTE_AHEAD
) -> tuple[Suggestion, ...]:
    """What helps, the best first. `everybody` is the whole fleet, of which the job may use only a part."""
    if not ask.size:
        return ()
    zone = _zone_of(everybody)
    found = []
    for change in _changes(ask, crew, rules, everybody, zone):
        at = prospect(change.ask, change.crew, change.rules, ahead=ahead).finish_ms
        if at is not None and _helps(at, finish_ms, ask.start_ms):
            found.append(Suggestion(change.name, at, f"{change.words}: done {when(at, zone, ask.start_ms)}"))
    rising = _rising(crew, ask.start_ms, finish_ms, zone)
    return tuple(sorted(found, key=lambda item: item.finishes_at)[:SHOWN]) + rising


def when(at_ms: int, zone: str, now_ms: int) -> str:
    """A moment as people say it: "today 14:20", "Wednesday 14:20", "Wednesday 25 March 14:20"."""
    there = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(zone))
    here = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(zone))
    days = (there.date() - here.date()).days
    if days == 0:
        return f"today {there:%H:%M}"
    if 0 < days < 7:
        return f"{there:%A %H:%M}"
    return f"{there:%A} {there.day} {there:%B}{'' if there.year == here.year else f' {there.year}'} {there:%H:%M}"


def _changes(ask: Ask, crew: Crew, rules: Rules, everybody: Crew, zone: str) -> Iterator[Change]:
    level, now = rules.policy.levels[-1].name, ask.start_ms
    for count in MORE_NUMBERS:
        more = with_more(crew, [_new_number(index, zone, now) for index in range(count)], rules, now_ms=now)
        yield Change("MORE_NUMBERS", f"{_count(count)} more {level} numbers", ask, more, rules)
    if ask.last_ms > now:
        yield Change("NO_SPREAD", "without the spread", msgspec.structs.replace(ask, last_ms=0), crew, rules)
    if rules.global_rpm:
        unlimited = msgspec.structs.replace(rules, global_rpm=0)
        yield Change("NO_GLOBAL_RPM", "without the ceiling of GLOBAL_RPM", ask, crew, unlimited)
    if len(crew.seats) < len(everybody.seats):
        free = msgspec.structs.replace(ask, phone=None)
        yield Change("ANY_NUMBER", "from all numbers instead of the named one", free, everybody, rules)
    for name, words, which, changed in _REPAIRS:
        if meant := which(crew):
            better = list(crew.seats)
            for place in meant:
                better[place] = _with(better[place], changed)
            yield Change(name, words(len(meant)), ask, crew_of(better, rules, now_ms=now, known=crew), rules)


def _numbers(count: int) -> str:
    return f"the {'number' if count == 1 else f'{_count(count)} numbers'}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


_REPAIRS: tuple[
    tuple[Name, Callable[[int], str], Callable[[Crew], Sequence[int]], Callable[[PhoneFacts], PhoneFacts]], ...
] = (
    (
        "CONNECT",
        lambda n: f"with {_numbers(n)} that {_is(n)} not connected",
        lambda crew: crew.away,
        lambda facts: msgspec.structs.replace(facts, sessions=(SessionFacts("again", "CONNECTED"),)),
    ),
    (
        "UNRESTRICTED",
        lambda n: f"without the restriction of {_numbers(n)} that may start no new chats",
        lambda crew: crew.locked,
        lambda facts: msgspec.structs.replace(facts, restriction="", restricted_until=0),
    ),
    (
        "NO_OVERRIDE",
        lambda n: f"without the slower pace set for {_numbers(n)}",
        lambda crew: crew.slowed,
        lambda facts: msgspec.structs.replace(facts, rpm_override=None, rpm_source="", pacer=PacerFields()),
    ),
)
"""Name, words for so many numbers, which are meant, and how they would be."""


def _with(seat: Seat, changed: Callable[[PhoneFacts], PhoneFacts]) -> Seat:
    return msgspec.structs.replace(seat, facts=changed(seat.facts))


def _helps(at: int, finish_ms: int | None, start_ms: int) -> bool:
    if finish_ms is None:
        return True
    return finish_ms - at >= max(WORTH_MS, WORTH_SHARE * (finish_ms - start_ms))


def _new_number(index: int, zone: str, now_ms: int) -> Seat:
    return Seat(
        PhoneFacts(
            # Behind all others where two are equally loaded, as a new number usually is.
            phone=f"99999999999{index:04d}",
            version=0,
            created_at=now_ms - 3_650 * DAY_MS,
            timezone=zone,
            sessions=(SessionFacts("new", "CONNECTED", now_ms),),
        )
    )


def _zone_of(crew: Crew) -> str:
    """Where most numbers are."""
    zones: Counter[str] = Counter()
    for kind, count in crew.groups:
        zones[kind.zone] += count
    if not zones:
        zones.update(phone_zone(seat.facts.phone, seat.facts.timezone) for seat in crew.seats)
    return zones.most_common(1)[0][0] if zones else "UTC"


def _rising(crew: Crew, now_ms: int, finish_ms: int | None, zone: str) -> tuple[Suggestion, ...]:
    """Numbers that reach their next level before the job ends. The forecast counts it in; people ask all the same."""
    if finish_ms is None:
        return ()
    nexts = [kind.shifts[1].from_ms for kind in crew.kinds if kind is not None and len(kind.shifts) > 1]
    moments = sorted(at for at in nexts if at < finish_ms)
    if not moments:
        return ()
    many = f"{_count(len(moments))} number{'s' if len(moments) > 1 else ''}"
    first = f"the first {when(moments[0], zone, now_ms)}" if len(moments) > 1 else when(moments[0], zone, now_ms)
    text = f"{many} will reach a new trust level before the end ({first}): counted in already"
    return (Suggestion("TRUST_RISES", finish_ms, text),)


def _count(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"
