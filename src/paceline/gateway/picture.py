"""The gateway's picture of the fleet, at most a second old (of a large one some more), for choosing a number at accept
and for forecasts.

No promise rests on it: what must hold is checked again by the scripts when a task is accepted, handed over, claimed.
Neighbours: `watcher` makes it, `choosing` and `plan` ask it.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property

import msgspec

from paceline.domain.jobs import Job, Strategy
from paceline.gateway.singles import Singles
from paceline.policy.course import Point, course
from paceline.policy.crew import Crew, Seat, crew_of
from paceline.policy.facts import Rules, Sender, sender
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.policy.prospect import Ask, Prospect, prospect
from paceline.policy.routing import Fleet, PhoneLoad, phone_load
from paceline.policy.turns import Other, holders
from paceline.store.jobs import SINGLE_SENDS_LIMIT
from paceline.store.pacers import FleetPhone
from paceline.store.rounds import Held

PICTURE_AGE_MS = 1_000
PHONES_A_SECOND = 1_000
"""A second of age for so many numbers: looking at 10,000 every second would keep Redis busy a third of the time."""

SLICE = 50
"""Numbers that are looked at in one go, here and in Redis: about a millisecond."""

CREWS_KEPT = 6
"""For each priority, now and later."""

LATER = 0
"""Stands for the priority of sends for later, whichever they have: all that a number holds counts for them."""

Breathe = Callable[[], Awaitable[None]]
"""Lets others by, between two stretches of work."""


async def go_on() -> None:
    """In the World there is nobody to let by."""


class Estimate(msgspec.Struct, frozen=True):
    finish_ms: int | None
    will_expire: int = 0
    course: list[Point] = []
    """How it should come about; only for those who ask."""


class Picture:
    def __init__(
        self,
        phones: Iterable[FleetPhone],
        unrouted: Mapping[str, Other],
        rules: Rules,
        strategy: Strategy = "sticky",
        ahead: int = ROUTE_AHEAD,
        *,
        resting: Held | None = None,
    ) -> None:
        """`resting` is what lies with the numbers of jobs that are paused: it is in nobody's way."""
        still = resting or {}
        self.phones = {phone.facts.phone: _moving(phone, still.get(phone.facts.phone)) for phone in phones}
        self._resting = sum(map(sum, still.values()))
        self.rules = rules
        self.ahead = ahead
        self._unrouted = unrouted
        self._strategy: Strategy = strategy
        self._fleets: dict[int, Fleet] = {}
        self._loads: dict[int, list[PhoneLoad]] = {}
        """What a fleet will be made of, by its priority."""
        queued = sum(sum(phone.queued) for phone in self.phones.values()) if rules.global_rpm else 0
        self._singles = Singles(rules, queued)
        self._crews: dict[tuple[int, int], Crew] = {}
        """By priority and about when they are asked about."""

    @cached_property
    def lasts_ms(self) -> int:
        """How long it is good enough. A large fleet takes longer to look at, and changes as a whole more slowly."""
        return PICTURE_AGE_MS * max(1, len(self.phones) // PHONES_A_SECOND)

    def fleet(self, *, priority: int, turn: int, now_ms: int) -> Fleet:
        """The numbers as a single send of that priority, or `LATER`, may choose among them; `turn` counts those sends,
        for round_robin. Made once for all sends that share the picture: each choice counts for the next, so that they
        spread."""
        if priority not in self._fleets:
            loads = self._loads.pop(priority, None) or self._loads_of(self.phones.values(), priority, now_ms)
            self._fleets[priority] = Fleet(loads, strategy=self._strategy, turn=turn)
        return self._fleets[priority]

    async def prepare(self, before: "Picture", breathe: Breathe, *, now_ms: int) -> None:
        """For the sends that will choose, as they did in the picture before, in slices that let others by."""
        phones = list(self.phones.values())
        # Others use that picture meanwhile.
        for priority in list(before._fleets):
            loads: list[PhoneLoad] = []
            for start in range(0, len(phones), SLICE):
                loads += self._loads_of(phones[start : start + SLICE], priority, now_ms)
                await breathe()
            self._loads[priority] = loads

    def sender(self, phone: str, *, now_ms: int) -> Sender:
        return sender(self.phones[phone].facts, self.rules, now_ms=now_ms)

    def is_locked(self, phone: str, *, now_ms: int) -> bool:
        """Whether the platform keeps this number from new chats."""
        seen = self.phones.get(phone)
        return seen is not None and bool(seen.facts.restriction) and seen.facts.restricted_until > now_ms

    def job(
        self, job: Job, rest: int, *, now_ms: int, held_by: frozenset[str] | None = frozenset(), busy: int = 0
    ) -> Estimate:
        """When a job will be done with `rest` tasks still to route, some in the queues of `held_by` (None: of any) and
        `busy` ones on their way or about to be tried again."""
        ask = self.ask(job, rest, now_ms=now_ms, expires_ms=None)
        if held_by is None:
            held_by = frozenset(self.phones)
        if rest:
            return Estimate(self._prospect(job, msgspec.structs.replace(ask, held_by=held_by)).finish_ms)
        if held_by:
            # Nobody else gets any of it.
            crew = crew_of(self._seats(held_by, job.priority), self.rules, now_ms=ask.start_ms)
            ask = msgspec.structs.replace(ask, others=())
        else:
            crew = self.crew(job.phone, job.priority, start_ms=ask.start_ms).at_rest()
            ask = msgspec.structs.replace(ask, size=busy, others=())
        return Estimate(prospect(ask, crew, self.rules, ahead=self.ahead).finish_ms)

    def new_job(self, job: Job) -> Estimate:
        """The same of one that is being accepted; a spread one is not done before its last message is due."""
        ask = self.ask(job, job.total, now_ms=job.accepted_at, expires_ms=job.expires_at(job.total - 1))
        found = self._prospect(job, ask)
        return Estimate(found.finish_ms, found.will_expire, course(ask, found))

    def backlog(self, *, now_ms: int) -> Estimate:
        """When all that waits now will have gone out, whichever job it is of, without those that are paused."""
        running = [job for job in self._unrouted.values() if not job.is_paused]
        due = sum(job.due_by(now_ms) for job in running)
        finish = self._all_out(Ask(size=due, start_ms=now_ms, held_by=frozenset(self.phones)))
        later = [job for job in running if job.due_by(now_ms) < job.rest]
        if finish is None or not later:
            return Estimate(finish)
        start = max(finish, *(job.next_ms for job in later))
        rest = sum(job.rest - job.due_by(now_ms) for job in later)
        return Estimate(self._all_out(Ask(size=rest, start_ms=start, is_clear=True)))

    def _all_out(self, ask: Ask) -> int | None:
        crew = self.crew(None, 1, start_ms=ask.start_ms)
        return prospect(ask, crew, self.rules, ahead=self.ahead).finish_ms

    @property
    def unrouted(self) -> int:
        """Tasks that no number has yet."""
        return sum(job.rest for job in self._unrouted.values())

    @property
    def unrouted_jobs(self) -> list[str]:
        return list(self._unrouted)

    @property
    def queued(self) -> int:
        """Tasks that wait for a number, or for something of their own."""
        return sum(sum(phone.queued) + phone.parked for phone in self.phones.values()) + self._resting

    def ask(self, job: Job, rest: int, *, now_ms: int, expires_ms: int | None) -> Ask:
        start_ms = max(now_ms, job.scheduled_at(0))
        others = [other for id_, other in self._unrouted.items() if id_ != job.job_id]
        is_clear = start_ms - now_ms > self.lasts_ms and self._is_clear_by(start_ms, now_ms)
        if is_clear:
            others = [other for other in others if other.due_by(now_ms) < other.rest]
        return Ask(
            size=rest,
            start_ms=start_ms,
            last_ms=job.scheduled_at(job.total - 1) if job.spread_minutes else 0,
            expires_ms=expires_ms,
            zones=job.zones,
            priority=job.priority,
            phone=job.phone,
            others=tuple(others),
            holders=self._holders if others else frozenset(),
            is_clear=is_clear,
        )

    @cached_property
    def _holders(self) -> frozenset[str]:
        return holders([phone.facts for phone in self.phones.values()])

    def _is_clear_by(self, at_ms: int, now_ms: int) -> bool:
        """Whether all that runs now will be done by then."""
        due = sum(other.due_by(now_ms) for other in self._unrouted.values())
        finish = self._all_out(Ask(size=due, start_ms=now_ms, held_by=frozenset(self.phones)))
        return finish is not None and finish <= at_ms

    def crew(self, phone: str | None, priority: int, *, start_ms: int) -> Crew:
        """The numbers a job may use, counted: kept for the next who asks, since in a large fleet that is most of the
        work."""
        if phone is not None:
            return crew_of(self._seats((phone,), priority), self.rules, now_ms=start_ms)
        key = (priority, start_ms // self.lasts_ms)
        if key not in self._crews:
            if len(self._crews) >= CREWS_KEPT:
                self._crews.clear()
            self._crews[key] = crew_of(self._seats(self.phones, priority), self.rules, now_ms=start_ms)
        return self._crews[key]

    def single(self, phone: str, *, priority: int, now_ms: int, start_ms: int = 0, is_known: bool = True) -> int | None:
        """When one more message of this number will go out; it counts for the next. `is_known`: the number has talked
        with them, so no lock on new chats keeps them waiting."""
        seen = self.phones.get(phone)
        if seen is None:
            return None
        is_locked = not is_known and self.is_locked(phone, now_ms=now_ms)
        return self._singles.one_more(seen, priority, now_ms=now_ms, start_ms=start_ms, is_locked=is_locked)

    def take_back(self, phone: str) -> None:
        """A send for now without a priority, chosen for and told its time (`fleet`, `single`), goes elsewhere or
        nowhere."""
        self._fleets[1].uncount(phone)
        self._singles.one_less(phone)

    def _prospect(self, job: Job, ask: Ask) -> Prospect:
        crew = self.crew(job.phone, job.priority, start_ms=ask.start_ms)
        return prospect(ask, crew, self.rules, ahead=self.ahead)

    def _seats(self, phones: Iterable[str], priority: int) -> list[Seat]:
        serving = [self.phones[phone] for phone in phones if phone in self.phones]
        return [Seat(seen.facts, seen.ahead_of(priority), seen.parked) for seen in serving]

    def _loads_of(self, phones: Iterable[FleetPhone], priority: int, now_ms: int) -> list[PhoneLoad]:
        return [self._load_of(phone, priority, now_ms) for phone in phones]

    def _load_of(self, phone: FleetPhone, priority: int, now_ms: int) -> PhoneLoad:
        load = phone_load(
            phone.facts,
            self.rules,
            waiting=phone.ahead_of(priority or 1),
            parked=phone.parked,
            ahead=SINGLE_SENDS_LIMIT,
            now_ms=now_ms,
        )
        room = SINGLE_SENDS_LIMIT - phone.singles
        if priority == LATER:
            # Today's budget is not theirs.
            load.load, load.room, load.wide_room, load.spent = phone.held, room, room, False
        load.room = min(load.room, room)
        return load


def _moving(phone: FleetPhone, resting: tuple[int, int, int] | None) -> FleetPhone:
    return phone.without(resting) if resting else phone
