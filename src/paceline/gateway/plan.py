"""The dry run of a job: the same checks, nothing stored, nothing sent; then what the forecast says, in words too.

Most lists are bare digits. Those are judged by groups (their first digits and their length tell whether a number is
possible), since sifting a hundred thousand contacts one by one takes far longer than the whole forecast; anything else
goes through `sifting` like a real job.
"""

from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from paceline.domain.jobs import Contact, Job
from paceline.domain.numbers import canonical
from paceline.domain.text import variables
from paceline.gateway import checks
from paceline.gateway.picture import Picture
from paceline.gateway.schemas import JobRequest, Out, Rejected
from paceline.gateway.sifting import Sift
from paceline.policy import plan as planning
from paceline.policy.audience import zones_of, zones_of_contacts
from paceline.policy.prospect import Ask, Known, Seat
from paceline.policy.suggest import Suggestion, suggestions
from paceline.store import keys
from paceline.store.scripts import CHUNK
from paceline.store.store import Store

SUPPRESSIONS_READ = 20_000
"""A suppression list up to this length is read whole, which is cheaper than asking for each of 100,000 contacts."""
_PAGE = 1_000
_TOLD_BY = 3
"""A country code has at most so many digits; it and the length say whether a number is possible."""


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
        return await self._bare(request) or await self._one_by_one(request)

    async def _bare(self, request: JobRequest) -> Counted | None:
        """None unless every contact is a possible number in bare digits, each person once."""
        contacts = request.contacts
        if variables(request.text) or not all(type(contact) is str for contact in contacts):
            return None
        numbers: list[str] = contacts  # type: ignore[assignment]
        together = "".join(numbers)
        people = set(numbers)
        if not (together.isascii() and together.isdigit()) or not _are_possible(numbers):
            return None
        suppressed = await self._suppressed(people)
        if len(suppressed) == len(people):
            return None
        kept = [to for to in people if to not in suppressed] if suppressed else people
        await self._breathe()
        return Counted(len(kept), len(suppressed), len(numbers) - len(people), [], zones_of(kept))

    async def _one_by_one(self, request: JobRequest) -> Counted:
        sift = Sift(request.text)
        for start in range(0, len(request.contacts), CHUNK):
            good = sift.take(request.contacts[start : start + CHUNK])
            sift.accept(good, await self._store.guards.suppressed([contact.to for contact in good]) if good else set())
            await self._breathe()
        sift.refuse(strict=request.strict)
        accepted: list[Contact] = sift.accepted
        return Counted(len(accepted), sift.suppressed, sift.duplicates, sift.rejected, zones_of_contacts(accepted))

    async def _suppressed(self, people: set[str]) -> set[str]:
        lengths = await self._store.pacers.queue_status((("list", "ZCARD", keys.suppressions()),))
        if not lengths["list"]:
            return set()
        if lengths["list"] > SUPPRESSIONS_READ or lengths["list"] > len(people):
            return await self._store.guards.suppressed(list(people))
        found: set[str] = set()
        after: str | None = ""
        while after is not None:
            page, after = await self._store.guards.suppressions(after, _PAGE)
            found.update(item.to for item in page if item.to in people)
        return found


def _are_possible(numbers: list[str]) -> bool:
    """Whether all are: one of each beginning and length stands for the rest."""
    if len(lengths := Counter(map(len, numbers))) == 1:
        kinds = {to[:_TOLD_BY]: to for to in numbers}
        return all(canonical(to) == to for to in kinds.values())
    by_length: dict[tuple[str, int], str] = {(to[:_TOLD_BY], len(to)): to for to in numbers}
    return bool(lengths) and all(canonical(to) == to for to in by_length.values())


def forecast(job: Job, counted: Counted, picture: Picture) -> JobPlan:
    ask = picture.ask(job, job.total, now_ms=job.accepted_at, expires_ms=job.expires_at(job.total - 1))
    seats = picture.seats(job.phone, job.priority)
    found = planning.plan(ask, seats, picture.rules, ahead=picture.ahead)
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
        will_expire=WillExpire(count=found.will_expire, why=found.bottleneck if found.will_expire else None),
        refused=[RefusedPeople(reason=reason, count=count) for reason, count in found.refused],
        bottleneck=found.bottleneck,
        suggestions=_advice(ask, seats, found, picture, job.priority),
    )


def _advice(ask: Ask, seats: list[Seat], found: planning.Plan, picture: Picture, priority: int) -> list[Suggestion]:
    sendable = msgspec.structs.replace(ask, size=max(0, ask.size - sum(count for _, count in found.refused)))
    everybody = picture.seats(None, priority)
    given = suggestions(
        sendable,
        seats,
        picture.rules,
        everybody=everybody,
        finish_ms=found.finishes_at,
        ahead=picture.ahead,
        known=Known(seats, found.kinds),
    )
    return list(given)
