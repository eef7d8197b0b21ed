"""A crew: the numbers a job may use, each with what waits for it, counted into kinds once for all questions.

Neighbours: `kinds` makes the kinds, `prospect` and `plan` ask about a job, `suggest` about the crew with a change. The
gateway's picture keeps a crew as long as itself.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from paceline.policy.facts import PhoneFacts, Rules
from paceline.policy.kinds import HORIZON_DAYS, Group, Maker, together
from paceline.policy.pacing import PacerFields
from paceline.policy.trouble import share_of_failures
from paceline.policy.turns import is_expected, is_ready
from paceline.policy.workday import Kind

NOBODY = -1
LONG_DAYS = 5
"""In a job of so many days the minutes in which numbers differ are nothing."""
WALKED_APART = 500
"""Days of kinds of numbers that are walked one by one: about 10 ms."""
_AS_IT_IS = PacerFields()


class Seat(msgspec.Struct, frozen=True, gc=False):
    """A number with what waits for it."""

    facts: PhoneFacts
    load: int = 0
    parked: int = 0

    @property
    def is_connected(self) -> bool:
        return any(session.connection == "CONNECTED" for session in self.facts.sessions)

    def takes_work(self, *, if_back: bool) -> bool:
        """Whether it is counted on; `if_back` also while it is away."""
        return is_expected(self.facts) if if_back else is_ready(self.facts)


class Crew(msgspec.Struct, frozen=True):
    seats: Sequence[Seat]
    kinds: Sequence[Kind | None]
    """Of each seat; None for one that does nothing."""
    groups: Sequence[Group]
    """Those that do something, taken together."""
    places: Sequence[int]
    """The group of each seat, `NOBODY` for one in none."""
    fails: float
    """The share of attempts that have to be repeated."""
    waits_for_all: bool = False
    """Nobody is ready, so all who may come back are counted on."""
    away: Sequence[int] = ()
    """The places of those that are not connected,"""
    locked: Sequence[int] = ()
    """that may start no new chats now,"""
    slowed: Sequence[int] = ()
    """whose pace somebody or SmartGuard has set."""

    @property
    def held(self) -> int:
        """What waits for these numbers now."""
        return sum(count * (kind.load + kind.parked) for kind, count in self.groups)

    def at_rest(self) -> "Crew":
        """The same numbers with nothing waiting for them."""
        groups = [(msgspec.structs.replace(kind, load=0, parked=0), count) for kind, count in self.groups]
        return msgspec.structs.replace(self, groups=groups)

    def for_backlog(self, size: int) -> "Crew":
        """As a forecast of so many messages looks at it: a long one takes numbers together like those of a large fleet,
        or walking each of them through months would take a tenth of a second, at every look at a job."""
        caps = [(kind.shifts[0].cap, count) for kind, count in self.groups]
        daily = sum(count * cap for cap, count in caps if cap is not None)
        days = 0 if any(cap is None for cap, _ in caps) else min(HORIZON_DAYS, size // max(1, daily))
        if days < LONG_DAYS or days * len(self.groups) <= WALKED_APART:
            return self
        groups, places = together(self.groups, apart=0)
        return msgspec.structs.replace(
            self, groups=groups, places=[NOBODY if place == NOBODY else places[place] for place in self.places]
        )


def crew_of(seats: Sequence[Seat], rules: Rules, *, now_ms: int, known: Crew | None = None) -> Crew:
    """Of the numbers that take work (`turns.holders`).

    Of seats that are the very same in `known`, a crew of the same moment and rules, the kinds are taken over: in a
    large fleet making them is most of the work.
    """
    maker = Maker(rules, now_ms)
    waits_for_all = not any(is_ready(seat.facts) for seat in seats)
    before: Sequence[Seat] = ()
    kinds_before: Sequence[Kind | None] = ()
    if known is not None and known.waits_for_all == waits_for_all:
        before, kinds_before = known.seats, known.kinds
    kinds: list[Kind | None] = []
    for index, seat in enumerate(seats):
        if index < len(before) and before[index] is seat:
            kinds.append(kinds_before[index])
        elif seat.takes_work(if_back=waits_for_all):
            kinds.append(maker.of(seat.facts, load=seat.load, parked=seat.parked))
        else:
            kinds.append(None)
    groups, places = _counted(kinds)
    fails = share_of_failures([seat.facts for seat in seats], now_ms=now_ms) if known is None else known.fails
    return Crew(
        seats,
        kinds,
        groups,
        places,
        fails,
        waits_for_all,
        away=[place for place, seat in enumerate(seats) if seat.facts.sessions and not seat.is_connected],
        locked=[place for place, seat in enumerate(seats) if seat.facts.restriction and _is_locked(seat, now_ms)],
        slowed=[place for place, seat in enumerate(seats) if _is_slowed(seat.facts)],
    )


def _is_locked(seat: Seat, now_ms: int) -> bool:
    return seat.facts.restricted_until > now_ms


def _is_slowed(facts: PhoneFacts) -> bool:
    return facts.rpm_override is not None or facts.pacer != _AS_IT_IS


def with_more(crew: Crew, new: Sequence[Seat], rules: Rules, *, now_ms: int) -> Crew:
    """The crew with some more numbers, which are all alike."""
    (kind,) = {Maker(rules, now_ms).of(seat.facts) for seat in new}
    if kind is None or crew.waits_for_all:
        return crew_of([*crew.seats, *new], rules, now_ms=now_ms, known=crew)
    return Crew(
        [*crew.seats, *new],
        [*crew.kinds, *(kind for _ in new)],
        [*crew.groups, (kind, len(new))],
        [*crew.places, *(len(crew.groups) for _ in new)],
        crew.fails,
    )


def _counted(kinds: Iterable[Kind | None]) -> tuple[list[Group], list[int]]:
    """Counted by identity, which is quick; whoever is equal all the same is only told apart."""
    every = list(kinds)
    numbers = Counter(map(id, every))
    distinct = {id(kind): kind for kind in every if kind is not None}
    groups, places = together((kind, numbers[at]) for at, kind in distinct.items())
    place_of = dict(zip(distinct, places, strict=True))
    return groups, [place_of.get(id(kind), NOBODY) for kind in every]
