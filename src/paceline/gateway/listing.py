"""Lists of jobs, of a job's messages and of a person's messages, page by page.

A cursor is a place in the order of the list, so that nothing is skipped or repeated whatever happens between two pages.
Neighbours: `store.lists` reads, `answers` and `waiting` make the items.
"""

import re
from collections.abc import Collection

from paceline.domain.errors import BadRequest, NotFound
from paceline.domain.ids import is_job_id
from paceline.domain.numbers import notations
from paceline.domain.states import MESSAGE_STATE, JobState
from paceline.domain.times import moment_ms
from paceline.gateway import answers, checks
from paceline.gateway.list_views import JobPage, MessageItem, MessagePage
from paceline.gateway.waiting import Teller
from paceline.store.jobs import MessageView
from paceline.store.lists import JobFilter, Place
from paceline.store.store import Store

IDS_LOOKED_AT = 2_000
"""For one page of jobs. A filter that matches nothing ends after so many, with a cursor to go on."""
SEARCH_CALLS = 100
"""Scripts of 1,000 contacts each in one search for a person who may still wait in large jobs: together at most a sixth
of a second of Redis, in pieces of 1 to 2 ms."""

_JOB_CURSOR = re.compile(r"(?P<at>\d{1,15})-(?P<id>[0-9A-Z]{26})", re.ASCII)
_PERSON_CURSOR = re.compile(_JOB_CURSOR.pattern + r"-(?P<index>\d{1,6})", re.ASCII)
_INDEX = re.compile(r"\d{1,6}", re.ASCII)
_SPACE_FOR_PLUS = re.compile(r" (?=\d\d:\d\d$)", re.ASCII)

BYTES_OF = {
    state: "".join(byte for byte, name in MESSAGE_STATE.items() if name == state) for state in MESSAGE_STATE.values()
}


class Listing:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def jobs(self, wanted: JobFilter, cursor: str, limit: int) -> JobPage:
        after = _place(_JOB_CURSOR, cursor)
        page = await self._store.lists.jobs(wanted, after, limit=limit, look=IDS_LOOKED_AT)
        next_cursor = f"{page.next.at}-{page.next.id}" if page.next else None
        return JobPage(items=[answers.job_item(job) for job in page.jobs], next_cursor=next_cursor)

    async def messages(self, job_id: str, state: str, cursor: str, limit: int, *, now_ms: int) -> MessagePage:
        start = int(cursor) if _INDEX.fullmatch(cursor) else 0
        if cursor and not _INDEX.fullmatch(cursor):
            raise _not_ours()
        names = _names(state, BYTES_OF)
        wanted = "".join(BYTES_OF[name] for name in names) if names else None
        job = await self._store.jobs.get(job_id) if is_job_id(job_id) else None
        page = await self._store.lists.messages(job, start, limit=limit, bytes_=wanted) if job else None
        if page is None:
            raise NotFound("UNKNOWN_JOB", "there is no such job", field="jobId")
        next_cursor = str(page.next) if page.next is not None else None
        return MessagePage(items=await self._items(page.views, now_ms), next_cursor=next_cursor)

    async def of_person(self, raw: str, cursor: str, limit: int, *, now_ms: int) -> MessagePage:
        """By when they were accepted, newest first, whether they have a number yet or not.

        A task that gets its number keeps its place. It may get one between the two looks below; the second one finds
        it then, and what both found is one.
        """
        people, after = notations(checks.number(raw, "to")), _place(_PERSON_CURSOR, cursor)
        search = await self._store.lists.unrouted(people, after, limit=limit, calls=SEARCH_CALLS)
        places = {place.task: place for place in search.found}
        for to in people:
            places.update((place.task, place) for place in await self._store.lists.of_person(to))
        # What lies beyond the end of an unfinished search belongs to a later page.
        found = [
            place
            for place in places.values()
            if (after is None or place.is_after(after)) and not (search.next and place.is_after(search.next))
        ]
        found.sort(key=lambda place: place.index or 0)
        found.sort(key=lambda place: (place.at, place.id), reverse=True)
        last = found[limit - 1] if len(found) > limit else search.next
        views = await self._store.lists.views([place.task for place in found[:limit]])
        next_cursor = f"{last.at}-{last.id}-{last.index}" if last else None
        return MessagePage(items=await self._items(views, now_ms), next_cursor=next_cursor)

    async def _items(self, views: list[MessageView], now_ms: int) -> list[MessageItem]:
        fleet, tellers = await self._store.queues.fleet(), dict[str | None, Teller]()
        items = []
        for view in views:
            phone = view.phone or view.job.phone
            if phone not in tellers:
                tellers[phone] = Teller(fleet, phone, view.phone_known.get("timezone"), now_ms=now_ms)
            items.append(answers.message_item(view, tellers[phone]))
        return items


def job_filter(*, state: str, tag: str, by: str, single: bool | None, since: str, until: str) -> JobFilter:
    """What a caller asked for; what was left out is empty."""
    return JobFilter(
        states=_names(state, JobState.__members__),
        tag=tag or None,
        by=by or None,
        single=single,
        from_ms=_moment(since, "from"),
        until_ms=_moment(until, "until"),
    )


def _names(given: str, known: Collection[str]) -> list[str] | None:
    if not given:
        return None
    names = list(dict.fromkeys(name.strip() for name in given.split(",")))
    for name in names:
        if name not in known:
            message = "must be some of these, separated by commas"
            raise BadRequest("INVALID_REQUEST", message, field="state", details={"allowed": list(known)})
    return names


def _moment(given: str, field: str) -> int | None:
    if not given:
        return None
    # A plus that was not escaped arrives as a space.
    text = _SPACE_FOR_PLUS.sub("+", given)
    at = moment_ms(int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text)
    if at is None:
        message = "must be Unix milliseconds, or ISO 8601 with an offset such as 2026-01-31T09:00:00+02:00"
        raise BadRequest("INVALID_TIME", message, field=field)
    return at


def _place(kind: re.Pattern[str], cursor: str) -> Place | None:
    if not cursor:
        return None
    found = kind.fullmatch(cursor)
    if found is None:
        raise _not_ours()
    parts = found.groupdict()
    return Place(int(parts["at"]), parts["id"], int(parts["index"]) if "index" in parts else None)


def _not_ours() -> BadRequest:
    return BadRequest("INVALID_REQUEST", "not a cursor of ours", field="cursor")
