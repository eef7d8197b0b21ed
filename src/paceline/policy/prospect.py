"""Prospect: a job and the fleet as it stands. Facts become kinds of numbers, the job and what goes before it a backlog.

Neighbours: `forecast` knows when a backlog is done, `plan` makes it readable and asks what would help, the gateway's
picture asks for the estimate of an accepted job.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from paceline.policy import audience, hours
from paceline.policy.facts import PhoneFacts, Rules
from paceline.policy.forecast import ROUTE_AHEAD, Backlog, Forecast, Outlook, ahead_of, kind_of
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import Kind

SPREAD_LOOKS = 3
"""Of a job that is spread over weeks, the last days decide."""


class Seat(msgspec.Struct, frozen=True):
    """A number with what waits for it."""

    facts: PhoneFacts
    load: int = 0
    parked: int = 0

    @property
    def is_connected(self) -> bool:
        return any(session.connection == "CONNECTED" for session in self.facts.sessions)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a job wants."""

    size: int
    """Its tasks that no number has yet."""
    start_ms: int
    last_ms: int = 0
    """When the last of a spread job may go at the earliest."""
    expires_ms: int | None = None
    zones: Mapping[str, int] = {}
    others: tuple[int, ...] = ()
    """What other jobs still have to give out."""


class Prospect(msgspec.Struct, frozen=True):
    finish_ms: int | None
    will_expire: int = 0
    outlook: Outlook | None = None
    kinds: tuple[Kind | None, ...] = ()
    """Of each seat; None for one that does nothing."""
    spread_decides: bool = False


class Known(msgspec.Struct, frozen=True):
    """Seats whose kinds were found before, for the same rules and moment: in a large fleet that is most of the work."""

    seats: Sequence[Seat] = ()
    kinds: Sequence[Kind | None] = ()


NOTHING_KNOWN = Known()


def prospect(
    ask: Ask, seats: Sequence[Seat], rules: Rules, *, ahead: int = ROUTE_AHEAD, known: Known = NOTHING_KNOWN
) -> Prospect:
    serving = kinds_of(seats, rules, ask.start_ms, known)
    kinds = [kind for kind in serving if kind is not None]
    if not kinds:
        return Prospect(None, kinds=serving)
    waiting = ahead_of(ask.size, others=ask.others)
    found = Forecast(_backlog(waiting, ask, rules), kinds, rules=rules, ahead=ahead, now_ms=ask.start_ms)
    outlook = found.outlook()
    finish = None if outlook is None else outlook.finish_ms
    late = 0
    if ask.expires_ms is not None and (finish is None or finish > ask.expires_ms):
        held = sum(kind.load + kind.parked for kind in kinds)
        late = min(ask.size, max(0, round(waiting + held - found.sent_by(ask.expires_ms))))
    if finish is None or ask.last_ms <= ask.start_ms:
        return Prospect(finish, late, outlook, serving)
    spread = max((_from(at, ask, seats, rules, ahead) or finish for at in _looks(ask, kinds)), default=finish)
    return Prospect(max(finish, spread), late, outlook, serving, spread > finish)


def kinds_of(seats: Sequence[Seat], rules: Rules, now_ms: int, known: Known = NOTHING_KNOWN) -> tuple[Kind | None, ...]:
    """Who is away gets nothing new while others are there; if nobody is, all will come back or nothing goes."""
    anybody = any(seat.is_connected for seat in seats)
    same = len(known.seats) if anybody == any(seat.is_connected for seat in known.seats) else 0
    found = []
    for index, seat in enumerate(seats):
        if index < same and known.seats[index] is seat:
            found.append(known.kinds[index])
        elif anybody and not seat.is_connected:
            found.append(None)
        else:
            found.append(kind_of(seat.facts, rules, now_ms=now_ms, load=seat.load, parked=seat.parked))
    return tuple(found)


def _backlog(size: int, ask: Ask, rules: Rules) -> Backlog:
    return Backlog(size, *audience.groups(ask.zones, rules.policy))


def _looks(ask: Ask, kinds: Sequence[Kind]) -> list[int]:
    """Moments from which on the rest of a spread job may be what decides: its last one, and the last midnights."""
    zone = Counter(kind.zone for kind in kinds).most_common(1)[0][0]
    midnights: list[int] = []
    at = hours.day_starts_at(zone, ask.last_ms)
    while at > ask.start_ms and len(midnights) < SPREAD_LOOKS:
        midnights.append(at)
        at = hours.day_starts_at(zone, at - DAY_MS // 2)
    return [ask.last_ms, *midnights]


def _from(at_ms: int, ask: Ask, seats: Sequence[Seat], rules: Rules, ahead: int) -> int | None:
    """When what is scheduled from then on is done, if all before it is."""
    rest = max(1, round(ask.size * (ask.last_ms - at_ms) / (ask.last_ms - ask.start_ms)))
    empty = [Seat(seat.facts) for seat in seats]
    kinds = [kind for kind in kinds_of(empty, rules, at_ms) if kind is not None]
    found = Forecast(_backlog(rest, ask, rules), kinds, rules=rules, ahead=ahead, now_ms=at_ms).outlook()
    return None if found is None else found.finish_ms
