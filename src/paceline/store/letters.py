"""Dead letters: reading them page by page, finding one, and what became of each since.

A letter's id is its task: a task is given up once, and what is proven sent afterwards stays in the list with its state
saying so. Neighbours: `lib/20_task.lua` writes them, `jobs.accept` marks those that are sent again.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from paceline.domain.ids import parse_task_id
from paceline.domain.jobs import Contact, decode_contact
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.scripts import CHUNK

PAGE = 200
"""Letters in one read: with forty lines of history each still under a megabyte."""
FIND_PAGE = 1_000
"""Letters that are only searched, not returned."""


class Letter(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    at: int
    code: str = ""
    message: str = ""
    to: str | None = None
    phone: str | None = None
    session_id: str | None = None
    attempts: int = 0
    history: str = ""

    @property
    def job_id(self) -> str:
        return self.task_id.partition(":")[0]

    @property
    def index(self) -> int:
        return int(self.task_id.partition(":")[2])

    def lines(self) -> list[dict[str, Any]]:
        """What happened to it, oldest first."""
        return [msgspec.json.decode(line) for line in self.history.splitlines() if line]


class Placed(msgspec.Struct, frozen=True):
    place: int
    letter: Letter


class LetterPage(msgspec.Struct, frozen=True):
    letters: list[Placed]
    next: int | None


class LetterState(msgspec.Struct, frozen=True):
    byte: str
    """Empty if its job is gone."""
    replayed_as: str | None


class _Raw(msgspec.Struct, frozen=True):
    place: int
    json: str


class _Page(Answer, frozen=True):
    letters: list[_Raw] = []
    next: int | None = None


_decode = msgspec.json.Decoder(Letter).decode


class Letters:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def page(self, start: int | None, limit: int = PAGE) -> LetterPage:
        found = await self._caller.call("letters_page", _Page, limit=limit, **{"from": start})
        return LetterPage([Placed(raw.place, _decode(raw.json)) for raw in found.letters], found.next)

    async def find(self, task: str) -> Letter | None:
        """All of the list in bounded steps: it is at most as long as `dead_letters` of the configuration."""
        start: int | None = None
        while True:
            found = await self._caller.call("letters_page", _Page, limit=FIND_PAGE, task=task, **{"from": start})
            if found.letters:
                return _decode(found.letters[0].json)
            if found.next is None:
                return None
            start = found.next

    async def states(self, letters: Sequence[Letter]) -> list[LetterState]:
        """What is true of their tasks now."""
        if not letters:
            return []
        bytes_ = await self._caller.read(
            *[("GETRANGE", keys.job_states(letter.job_id), letter.index, letter.index) for letter in letters]
        )
        marks = await self._caller.read(
            *[("HGET", keys.job_replays(letter.job_id), str(letter.index)) for letter in letters]
        )
        return [LetterState(byte, mark) for byte, mark in zip(bytes_, marks, strict=True)]

    async def contacts(self, tasks: Sequence[str]) -> list[Contact | None]:
        """Whom these tasks were for; None if nobody knows any more."""
        parsed = [parse_task_id(task) for task in tasks]
        places = [(job_id, *divmod(index, CHUNK)) for job_id, index in filter(None, parsed)]
        if len(places) != len(tasks):
            raise ValueError("not a task id")
        if not places:
            return []
        raw = await self._caller.read(
            *[("LINDEX", keys.job_contacts(job_id, chunk), offset) for job_id, chunk, offset in places]
        )
        return [None if text is None else decode_contact(text) for text in raw]
