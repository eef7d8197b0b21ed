"""The dry run of a job: the same checks, nothing stored, nothing sent; then what the forecast says, in words too.

Neighbours: `glance` finds the contacts that are good for certain, `sifting` judges the others like a real job's,
`policy.plan` and `policy.suggest` know the answer.
"""

from collections.abc import Awaitable, Callable

import msgspec

from paceline.domain.jobs import Contact, Job
from paceline.domain.numbers import are_in_one_notation, identity
from paceline.gateway import checks
from paceline.gateway.glance import glance
from paceline.gateway.picture import Picture
from paceline.gateway.schemas import JobRequest, Out, Rejected
from paceline.gateway.sifting import Sift
from paceline.policy import plan as planning
from paceline.policy.audience import zones_of_people
from paceline.policy.crew import Crew
from paceline.policy.prospect import Ask
from paceline.policy.suggest import Suggestion, suggestions
from paceline.store.scripts import CHUNK
from paceline.store.store import Store


class WillExpire(Out, frozen=True, kw_only=True):
    count: int
    why: str | None


class RefusedPeople(Out, frozen=True, kw_only=True):
    reason: str
    count: int


class OtherPhones(Out, frozen=True, kw_only=True):
    phones: int
    messages: int


class JobPlan(Out, frozen=True, kw_only=True):
    accepted: int
    suppressed: int
    duplicates: int
    rejected: list[Rejected]
    """The first 1,000."""
    starts_at: int | None
    finishes_at: int | None
    """None while no number could send, or if the end is more than a year away."""
    days: list[planning.Day]
    phones: list[planning.PhonePlan]
    """The 100 with the largest part."""
    other_phones: OtherPhones
    will_expire: WillExpire
    refused: list[RefusedPeople]
    bottleneck: str
    suggestions: list[Suggestion]


class Counted(msgspec.Struct, frozen=True):
    """A job's contacts, counted but not kept."""

    accepted: int
    suppressed: int
    duplicates: int
    rejected: list[Rejected]
    zones: dict[str, int]


class Planner:
    def __init__(self, store: Store, *, breathe: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._breathe = breathe

    async def plan(self, request: JobRequest, phone: str | None, picture: Picture, *, now_ms: int) -> JobPlan:
        checks.job(request)
        send_at = checks.send_at(request.send_at, now_ms)
        counted = await self.count(request)
        job = Job(
            job_id="",
            total=counted.accepted,
            text="",
            accepted_at=now_ms,
            accepted_by="",
            priority=request.priority,
            phone=phone,
            send_at=send_at,
            spread_minutes=request.spread_minutes,
            validity_seconds=request.validity_seconds,
            zones=counted.zones,
        )
        return forecast(job, counted, picture)

    async def count(self, request: JobRequest) -> Counted:
        """As the intake would, and with the same refusals."""
        look = glance(request.contacts, request.text)
        await self._breathe()
        sift = Sift(request.text)
        doubtful: list[Contact] = []
        for count, index in enumerate(look.doubtful):
            contact = sift.judge(index, request.contacts[index])
            if contact is not None:
                doubtful.append(contact)
            if count % CHUNK == CHUNK - 1:
                await self._breathe()
        good = [*filter(None, look.digits), *(contact.to for contact in doubtful)] if look.doubtful else look.digits
        people = _each_once(good)
        suppressed = await self._store.guards.suppressed_among(people)
        sift.duplicates += len(good) - len(people)
        sift.suppressed = len(suppressed)
        people -= suppressed
        sift.refuse(strict=request.strict, accepted=len(people))
        zones = _zones(list(people), look.timezones | {to.to: to.timezone for to in doubtful if to.timezone})
        return Counted(len(people), sift.suppressed, sift.duplicates, sift.rejected, zones)


def _each_once(good: list[str]) -> set[str]:
    """Of a person in several notations the first. Nearly always there is none, which is told faster."""
    people = set(good)
    if are_in_one_notation(good) or len(set(map(identity, people))) == len(people):
        return people
    return set({identity(to): to for to in reversed(good)}.values())


def _zones(people: list[str], timezones: dict[str, str]) -> dict[str, int]:
    if not timezones:
        return zones_of_people(people)
    own = [timezones[to] for to in people if to in timezones]
    return zones_of_people([to for to in people if to not in timezones], own)


def forecast(job: Job, counted: Counted, picture: Picture) -> JobPlan:
    ask = picture.ask(job, job.total, now_ms=job.accepted_at, expires_ms=job.expires_at(job.total - 1))
    crew = picture.crew(job.phone, job.priority, start_ms=ask.start_ms)
    found = planning.plan(ask, crew, picture.rules, ahead=picture.ahead)
    return JobPlan(
        accepted=counted.accepted,
        suppressed=counted.suppressed,
        duplicates=counted.duplicates,
        rejected=counted.rejected,
        starts_at=found.starts_at,
        finishes_at=found.finishes_at,
        days=list(found.days),
        phones=list(found.phones),
        other_phones=OtherPhones(phones=found.other_phones, messages=found.other_messages),
        will_expire=WillExpire(count=found.will_expire, why=found.late_by if found.will_expire else None),
        refused=[RefusedPeople(reason=reason, count=count) for reason, count in found.refused],
        bottleneck=found.bottleneck,
        suggestions=_advice(ask, crew, found, picture, job.priority),
    )


def _advice(ask: Ask, crew: Crew, found: planning.Plan, picture: Picture, priority: int) -> list[Suggestion]:
    sendable = msgspec.structs.replace(ask, size=max(0, ask.size - sum(count for _, count in found.refused)))
    everybody = picture.crew(None, priority, start_ms=ask.start_ms)
    given = suggestions(
        sendable, crew, picture.rules, everybody=everybody, finish_ms=found.finishes_at, ahead=picture.ahead
    )
    return list(given)
