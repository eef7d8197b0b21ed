"""Dead letters for people who look at them: which match, what may be done about each, page by page.

Over the store alone. Neighbour: `replaying` sends letters again; whether one may be is judged here (`verdict`), since a
page shows what a replay would say.
"""

import re
from typing import Literal

import msgspec

from paceline.domain.errors import BadRequest, NotFound
from paceline.domain.failures import FailureClass, failure_class
from paceline.domain.ids import is_job_id, parse_task_id
from paceline.domain.numbers import canonical
from paceline.domain.states import MESSAGE_STATE
from paceline.domain.times import moment_ms
from paceline.gateway.letter_schemas import DeadLetter, DeadLetterPage, ReplayFilter
from paceline.store.letters import PAGE, Letter, LetterState, Placed
from paceline.store.people import ERASED
from paceline.store.store import Store

SEARCHED = 20_000
"""Letters one request looks at; a filter that matches nothing must not read the whole list at once."""

_CURSOR = re.compile(r"(?P<place>\d{1,7})-(?P<task>[0-9A-Z]{26}:\d{1,6})", re.ASCII)
_REPEAT_REFUSED = re.compile(r"a repeat was refused: (\S+)")

Verdict = Literal["OK", "NOT_REPLAYABLE", "ALREADY_REPLAYED"]


class Wanted(msgspec.Struct, frozen=True):
    code: str | None = None
    class_: str | None = None
    phone: str | None = None
    job_id: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None

    def matches(self, letter: Letter) -> bool:
        return (
            (self.code is None or letter.code == self.code)
            and (self.class_ is None or failure_class(letter.code) == self.class_)
            and (self.phone is None or letter.phone == self.phone)
            and (self.job_id is None or letter.job_id == self.job_id)
            and (self.from_ms is None or letter.at >= self.from_ms)
            and (self.until_ms is None or letter.at < self.until_ms)
        )


def wanted_of(asked: ReplayFilter) -> Wanted:
    """The filter of a body or a query, checked."""
    if asked.job_id is not None and not is_job_id(asked.job_id):
        raise BadRequest("INVALID_ID", "not the id of a job", field="jobId")
    return Wanted(
        code=asked.code,
        class_=asked.class_,
        phone=None if asked.phone is None else _digits(asked.phone),
        job_id=asked.job_id,
        from_ms=_moment(asked.from_, "from"),
        until_ms=_moment(asked.until, "until"),
    )


def verdict(letter: Letter, state: LetterState, *, again: bool) -> Verdict:
    """Whether it may be sent again. What the platform refused is pushed through by no number (I10)."""
    if state.byte != "F" or letter.to in (None, ERASED) or refused_by_platform(letter):
        return "NOT_REPLAYABLE"
    return "ALREADY_REPLAYED" if state.replayed_as is not None and not again else "OK"


def refused_by_platform(letter: Letter) -> bool:
    """At any of its tries: an unknown end that came after a 463 is still a 463."""
    codes = [letter.code, *(str(line.get("code", "")) for line in letter.lines())]
    words = [letter.message, *(str(line.get("message", "")) for line in letter.lines())]
    codes += [found[1] for word in words if (found := _REPEAT_REFUSED.search(word))]
    return any(failure_class(code) is FailureClass.PLATFORM for code in codes)


class DeadLetters:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, wanted: Wanted, cursor: str, limit: int) -> DeadLetterPage:
        """There may be fewer than `limit` and still more to come: then a cursor says where to go on."""
        letters, next_cursor = await self.search(wanted, cursor, limit)
        states = await self._store.letters.states(letters)
        items = [_shown(letter, state) for letter, state in zip(letters, states, strict=True)]
        return DeadLetterPage(items=items, next_cursor=next_cursor)

    async def search(self, wanted: Wanted, cursor: str, limit: int) -> tuple[list[Letter], str | None]:
        """Up to `limit` letters that match, newest first, and where to go on; None at the end of the list."""
        start, seen = _place_of(cursor)
        found: list[Letter] = []
        last: Placed | None = None
        for _ in range(SEARCHED // PAGE):
            page = await self._store.letters.page(start)
            for placed in _after(page.letters, seen):
                last = placed
                if wanted.matches(placed.letter):
                    found.append(placed.letter)
                if len(found) == limit:
                    return found, _cursor_after(placed)
            if page.next is None:
                return found, None
            start, seen = page.next, None
        return found, _cursor_after(last) if last else None

    async def get(self, letter_id: str) -> Letter:
        letter = await self._store.letters.find(letter_id) if parse_task_id(letter_id) else None
        if letter is None:
            raise NotFound("UNKNOWN_LETTER", "there is no such dead letter", field="id")
        return letter


def _shown(letter: Letter, state: LetterState) -> DeadLetter:
    return DeadLetter(
        id=letter.task_id,
        task_id=letter.task_id,
        job_id=letter.job_id,
        at=letter.at,
        code=letter.code,
        class_=failure_class(letter.code),
        message=letter.message,
        to=letter.to,
        phone=letter.phone,
        session_id=letter.session_id,
        attempts=letter.attempts,
        history=letter.lines(),
        state=MESSAGE_STATE.get(state.byte),
        replayable=verdict(letter, state, again=True) == "OK",
        replayed_as=state.replayed_as,
    )


def _cursor_after(placed: Placed) -> str | None:
    return f"{placed.place - 1}-{placed.letter.task_id}" if placed.place > 0 else None


def _place_of(cursor: str) -> tuple[int | None, str | None]:
    if not cursor:
        return None, None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise BadRequest("INVALID_REQUEST", "not a cursor of ours", field="cursor")
    return int(match["place"]), match["task"]


def _after(letters: list[Placed], seen: str | None) -> list[Placed]:
    """Places move when the oldest letters are dropped for new ones; what was shown already is recognised."""
    tasks = [placed.letter.task_id for placed in letters]
    return letters[tasks.index(seen) + 1 :] if seen in tasks else letters


def _digits(phone: str) -> str:
    digits = canonical(phone)
    if digits is None:
        raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="phone")
    return digits


def _moment(value: int | str | None, field: str) -> int | None:
    if value is None:
        return None
    at = moment_ms(int(value[:16]) if isinstance(value, str) and value.isascii() and value.isdigit() else value)
    if at is None:
        message = "must be Unix milliseconds, or ISO 8601 with an offset such as 2026-01-31T09:00:00+02:00"
        raise BadRequest("INVALID_TIME", message, field=field)
    return at
