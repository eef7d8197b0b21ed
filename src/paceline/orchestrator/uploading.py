"""An uploaded inventory file: every bad line is named with its number and reason, the rest is stored in pieces.

Each piece is one idempotent script, so whoever got no answer uploads the same file again: what is there is a duplicate.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from paceline.domain.errors import BadRequest, TooLarge
from paceline.domain.lines import NotText, numbered, read_text
from paceline.domain.proxies import Refused
from paceline.orchestrator.inventory_views import Rejected, Uploaded
from paceline.store.inventory import Added

MAX_LINES = 100_000
"""As many as a pool holds; whoever has more splits the file."""
REJECTED_SHOWN = 1_000
"""Bad lines in an answer; `rejectedTotal` counts all. Whoever has more has uploaded the wrong file."""
PIECE = 250
"""Lines read and stored at once: some 5 ms of this process and of Redis, in which nobody is sent anything."""
FULL = "the pool is full"


class Named(Protocol):
    @property
    def key(self) -> str:
        """The same for two lines that mean the same."""
        ...


Item = TypeVar("Item", bound=Named)
Read = Callable[[str], Item | Refused]
Add = Callable[[Sequence[Item]], Awaitable[Added]]


async def take_lines(data: bytes, read: Read[Item], add: Add[Item]) -> Uploaded:
    text = read_text(data)
    if isinstance(text, NotText):
        raise BadRequest("INVALID_FILE", f"line {text.line} {text.reason}", field="file", details={"line": text.line})
    lines = list(numbered(text))
    if not lines:
        raise BadRequest("INVALID_FILE", "the file has no lines", field="file")
    if len(lines) > MAX_LINES:
        message = f"at most {MAX_LINES:,} lines at once"
        raise TooLarge("TOO_MANY_LINES", message, field="file", details={"limit": MAX_LINES})
    tally = _Tally(read)
    for first in range(0, len(lines), PIECE):
        found = tally.sift(lines[first : first + PIECE])
        if found:
            answer = await add([item for _, item in found])
            tally.stored([number for number, _ in found], answer)
    return tally.answer()


class _Tally(Generic[Item]):
    def __init__(self, read: Read[Item]) -> None:
        self._read = read
        self._seen: set[str] = set()
        self._added = 0
        self._duplicates = 0
        self._rejected: list[Rejected] = []

    def sift(self, lines: list[tuple[int, str]]) -> list[tuple[int, Item]]:
        """The good lines that were not in the file before."""
        found = []
        for number, line in lines:
            item = self._read(line)
            if isinstance(item, Refused):
                self._rejected.append(Rejected(number, item.reason))
            elif item.key in self._seen:
                self._duplicates += 1
            else:
                self._seen.add(item.key)
                found.append((number, item))
        return found

    def stored(self, numbers: list[int], answer: Added) -> None:
        self._added += answer.added
        self._duplicates += answer.duplicates
        self._rejected += [Rejected(numbers[position], FULL) for position in answer.refused]

    def answer(self) -> Uploaded:
        self._rejected.sort(key=lambda rejected: rejected.line)
        return Uploaded(
            added=self._added,
            duplicates=self._duplicates,
            rejected=self._rejected[:REJECTED_SHOWN],
            rejected_total=len(self._rejected),
        )
