"""What would end a job earlier: each change is made to the facts, and the changed fleet forecast like the real one.

Neighbours: `plan` is the answer these go with.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from paceline.policy.facts import PhoneFacts, Rules, SessionFacts
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.policy.hours import phone_zone
from paceline.policy.pacing import PacerFields
from paceline.policy.prospect import NOTHING_KNOWN, Ask, Known, Seat, prospect
from paceline.policy.trust import DAY_MS

MORE_NUMBERS = (2, 5)
SHOWN = 5
WORTH_MS = 60_000
WORTH_SHARE = 0.02
"""A change that saves less than a minute, or than a fiftieth of the time, is no advice."""
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


class Suggestion(msgspec.Struct, frozen=True, rename="camel"):
    change: str
    finishes_at: int
    text: str


class Change(msgspec.Struct, frozen=True):
    name: str
    words: str
    ask: Ask
    seats: Sequence[Seat]
    rules: Rules


def suggestions(
    ask: Ask,
    seats: Sequence[Seat],
    rules: Rules,
    *,
    everybody: Sequence[Seat],
    finish_ms: int | None,
    ahead: int = ROUTE_AHEAD,
    known: Known = NOTHING_KNOWN,
) -> tuple[Suggestion, ...]:
    """What helps, the best first. `everybody` is the whole fleet, of which the job may use only a part."""
    if not ask.size:
        return ()
    zone = _zone_of(everybody)
    found = []
    for change in _changes(ask, seats, rules, everybody):
        at = prospect(change.ask, change.seats, change.rules, ahead=ahead, known=known).finish_ms
        if at is not None and _helps(at, finish_ms, ask.start_ms):
            found.append(Suggestion(change.name, at, f"{change.words}: done {when(at, zone, ask.start_ms)}"))
    rising = _rising(seats, rules, ask.start_ms, finish_ms, zone)
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


def _changes(ask: Ask, seats: Sequence[Seat], rules: Rules, everybody: Sequence[Seat]) -> Iterator[Change]:
    level = rules.policy.levels[-1].name
    for count in MORE_NUMBERS:
        more = [*seats, *(_new_number(index, everybody, ask.start_ms) for index in range(count))]
        yield Change("MORE_NUMBERS", f"{_count(count)} more {level} numbers", ask, more, rules)
    if ask.last_ms > ask.start_ms:
        yield Change("NO_SPREAD", "without the spread", msgspec.structs.replace(ask, last_ms=0), seats, rules)
    if rules.global_rpm:
        unlimited = msgspec.structs.replace(rules, global_rpm=0)
        yield Change("NO_GLOBAL_RPM", "without the ceiling of GLOBAL_RPM", ask, seats, unlimited)
    if len(seats) < len(everybody):
        yield Change("ANY_NUMBER", "from all numbers instead of the named one", ask, everybody, rules)
    for name, words, is_meant, changed in _REPAIRS:
        meant = [seat for seat in seats if is_meant(seat, ask.start_ms)]
        if meant:
            better = [_with(seat, changed) if is_meant(seat, ask.start_ms) else seat for seat in seats]
            yield Change(name, words(len(meant)), ask, better, rules)


def _numbers(count: int) -> str:
    return f"the {'number' if count == 1 else f'{_count(count)} numbers'}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


_REPAIRS: tuple[
    tuple[str, Callable[[int], str], Callable[[Seat, int], bool], Callable[[PhoneFacts], PhoneFacts]], ...
] = (
    (
        "CONNECT",
        lambda n: f"with {_numbers(n)} that {_is(n)} not connected",
        lambda seat, _: bool(seat.facts.sessions) and not seat.is_connected,
        lambda facts: msgspec.structs.replace(facts, sessions=(SessionFacts("again", "CONNECTED"),)),
    ),
    (
        "UNRESTRICTED",
        lambda n: f"without the restriction of {_numbers(n)} that may start no new chats",
        lambda seat, now: bool(seat.facts.restriction) and seat.facts.restricted_until > now,
        lambda facts: msgspec.structs.replace(facts, restriction="", restricted_until=0),
    ),
    (
        "NO_OVERRIDE",
        lambda n: f"without the slower pace set for {_numbers(n)}",
        lambda seat, _: seat.facts.rpm_override is not None or seat.facts.pacer != PacerFields(),
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


def _new_number(index: int, everybody: Sequence[Seat], now_ms: int) -> Seat:
    return Seat(
        PhoneFacts(
            # Behind all others where two are equally loaded, as a new number usually is.
            phone=f"99999999999{index:04d}",
            version=0,
            created_at=now_ms - 3_650 * DAY_MS,
            timezone=_zone_of(everybody),
            sessions=(SessionFacts("new", "CONNECTED", now_ms),),
        )
    )


def _zone_of(seats: Sequence[Seat]) -> str:
    zones = Counter(phone_zone(seat.facts.phone, seat.facts.timezone) for seat in seats)
    return zones.most_common(1)[0][0] if zones else "UTC"


def _rising(
    seats: Sequence[Seat], rules: Rules, now_ms: int, finish_ms: int | None, zone: str
) -> tuple[Suggestion, ...]:
    """Numbers that reach their next level before the job ends. The forecast counts it in; people ask all the same."""
    if finish_ms is None:
        return ()
    moments = sorted(at for seat in seats if (at := _next_level_at(seat, rules, now_ms)) and at < finish_ms)
    if not moments:
        return ()
    many = f"{_count(len(moments))} number{'s' if len(moments) > 1 else ''}"
    first = f"the first {when(moments[0], zone, now_ms)}" if len(moments) > 1 else when(moments[0], zone, now_ms)
    text = f"{many} will reach a new trust level before the end ({first}): counted in already"
    return (Suggestion("TRUST_RISES", finish_ms, text),)


def _next_level_at(seat: Seat, rules: Rules, now_ms: int) -> int | None:
    born = seat.facts.created_at
    if born is None:
        return None
    ages = (level.max_age_days for level in rules.policy.levels)
    return next((at for age in ages if age is not None and (at := born + round(age * DAY_MS)) > now_ms), None)


def _count(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"
