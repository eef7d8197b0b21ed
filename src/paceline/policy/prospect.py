"""Prospect: a job and the fleet as it stands. The job and what goes before it become a backlog for the crew.

Neighbours: `crew` counts the numbers, `forecast` knows when a backlog is done, `plan` makes it readable, `suggest` asks
what would help, the gateway's picture asks for the estimate of an accepted job.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from paceline.policy import audience, hours, turns
from paceline.policy.crew import Crew
from paceline.policy.facts import Rules
from paceline.policy.forecast import ROUTE_AHEAD, Backlog, Forecast, Outlook
from paceline.policy.kinds import Group
from paceline.policy.overnight import Spread, expired
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import Kind

SPREAD_LOOKS = 3
"""Of a job that is spread over weeks, the last days decide."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a job wants."""

    size: int
    """Its tasks that no number has yet."""
    start_ms: int
    last_ms: int = 0
    """When the last of a spread job may go at the earliest."""
    expires_ms: int | None = None
    zones: Mapping[str, int] = {}
    priority: int = 1
    phone: str | None = None
    """The number it names."""
    others: tuple[turns.Other, ...] = ()
    """What other jobs still have to give out."""
    holders: frozenset[str] = frozenset()
    """The numbers of the whole fleet that take work."""
    held_by: frozenset[str] = frozenset()
    """Those that hold something of it already."""
    is_clear: bool = False
    """It begins later, when all that waits now has gone out."""

    @property
    def mine(self) -> turns.Mine:
        return turns.Mine(self.size, self.start_ms, self.last_ms, self.priority, self.phone)


class Prospect(msgspec.Struct, frozen=True):
    finish_ms: int | None
    will_expire: int = 0
    late_by: str | None = None
    """What keeps most of those waiting, if it is not what says when the job is done."""
    outlook: Outlook | None = None
    spread_decides: bool = False
    crew: Crew | None = None
    """Whose groups the outlook's shares are."""
    forecast: Forecast | None = None
    """For whoever asks about the way there."""


def prospect(ask: Ask, crew: Crew, rules: Rules, *, ahead: int = ROUTE_AHEAD) -> Prospect:
    if not crew.groups:
        return Prospect(None)
    crew = crew.at_rest() if ask.is_clear else crew
    waiting = ask.size + turns.ahead(ask.mine, ask.others, ask.holders)
    found, outlook, crew = _over(crew, waiting, ask, rules, ahead)
    if outlook is not None and (more := turns.joining(ask.mine, ask.others, ask.holders, outlook.finish_ms)):
        found, outlook, crew = _over(crew, waiting + more, ask, rules, ahead)
    finish = None if outlook is None else outlook.finish_ms
    late = 0
    if ask.expires_ms is not None and (finish is None or finish > ask.expires_ms):
        late = min(ask.size, max(0, round(found.late(outlook, ask.expires_ms))))
    if finish is None or ask.last_ms <= ask.start_ms:
        return Prospect(finish, late, None, outlook, crew=crew, forecast=found)
    spread = max((_from(at, ask, crew, rules, ahead) or finish for at in _looks(ask, crew.groups)), default=finish)
    # If all were due at once it would take until `finish`; from another hour of the day a day more at most.
    done_ms = min(max(finish, spread), finish + DAY_MS)
    late, late_by = _late_of_spread(ask, waiting - ask.size, done_ms, crew, rules)
    return Prospect(max(finish, spread), late, late_by, outlook, spread > finish, crew, found)


def _late_of_spread(ask: Ask, before: int, done_ms: int, crew: Crew, rules: Rules) -> tuple[int, str | None]:
    """Each is valid from its own time on. By `done_ms` all is done, at whatever hour of a day it begins."""
    validity_ms = (ask.expires_ms or 0) - ask.last_ms
    if ask.expires_ms is None or done_ms <= ask.start_ms + validity_ms:
        return 0, None
    people, shares = audience.groups(ask.zones, rules.policy)
    job = Spread(ask.size, ask.start_ms, ask.last_ms, validity_ms, people, shares, before)
    return expired(job, crew.groups, rules)


def _over(crew: Crew, waiting: int, ask: Ask, rules: Rules, ahead: int) -> tuple[Forecast, Outlook | None, Crew]:
    """So many messages over that crew; and the crew as it was looked at."""
    crew = crew.for_backlog(waiting)
    found = Forecast(
        _backlog(waiting, ask, rules), crew.groups, rules=rules, ahead=ahead, fails=crew.fails, now_ms=ask.start_ms
    )
    holding = {
        place for seat, place in zip(crew.seats, crew.places, strict=True) if seat.facts.phone in ask.held_by
    } if ask.held_by else ()  # fmt: skip
    return found, found.outlook(holding), crew


def _backlog(size: int, ask: Ask, rules: Rules) -> Backlog:
    return Backlog(size, *audience.groups(ask.zones, rules.policy))


def _looks(ask: Ask, groups: Sequence[Group]) -> list[int]:
    """Moments from which on the rest of a spread job may be what decides: its last one, and the last midnights."""
    zones: Counter[str] = Counter()
    for kind, count in groups:
        zones[kind.zone] += count
    zone = zones.most_common(1)[0][0]
    midnights: list[int] = []
    at = hours.day_starts_at(zone, ask.last_ms)
    while at > ask.start_ms and len(midnights) < SPREAD_LOOKS:
        midnights.append(at)
        at = hours.day_starts_at(zone, at - DAY_MS // 2)
    return [ask.last_ms, *midnights]


def _from(at_ms: int, ask: Ask, crew: Crew, rules: Rules, ahead: int) -> int | None:
    """When what is scheduled from then on is done, if all before it is."""
    rest = max(1, round(ask.size * (ask.last_ms - at_ms) / (ask.last_ms - ask.start_ms)))
    groups: Counter[Kind] = Counter()
    for kind, count in crew.groups:
        groups[_at_rest(kind, ask.start_ms, at_ms)] += count
    found = Forecast(_backlog(rest, ask, rules), groups.items(), rules=rules, ahead=ahead, now_ms=at_ms).outlook()
    return None if found is None else found.finish_ms


def _at_rest(kind: Kind, now_ms: int, at_ms: int) -> Kind:
    """The same number then, with nothing waiting for it. What is past by then tells nobody apart."""
    is_today = hours.local_day(kind.zone, now_ms) == hours.local_day(kind.zone, at_ms)
    used = kind.used_today if is_today else 0
    begun = sum(shift.from_ms <= at_ms for shift in kind.shifts[1:])
    return msgspec.structs.replace(
        kind,
        shifts=(msgspec.structs.replace(kind.shifts[begun], from_ms=0), *kind.shifts[begun + 1 :]),
        used_today=used,
        sends_from_ms=kind.sends_from_ms if kind.sends_from_ms > at_ms else 0,
        takes_from_ms=kind.takes_from_ms if kind.takes_from_ms > at_ms else 0,
        burst=0,
        load=0,
        parked=0,
    )
