"""The list of people who must not be written to: adding, removing, reading it page by page; also as CSV.

All of it in bounded batches over the store, so that a long list holds nobody up. Neighbour: `suppression_csv` reads and
writes the rows.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from paceline.domain.errors import BadRequest, NotFound
from paceline.domain.numbers import person
from paceline.gateway import suppression_csv
from paceline.gateway.schemas import (
    ImportedSuppressions,
    Removed,
    Suppressed,
    SuppressionItem,
    SuppressionPage,
    SuppressRequest,
)
from paceline.store.guards import Suppression
from paceline.store.store import Store

BATCH = 1_000


async def _go_on() -> None:
    """Where there is nobody to let by."""


class Suppressions:
    def __init__(self, store: Store, breathe: Callable[[], Awaitable[None]] = _go_on) -> None:
        self._store = store
        self._breathe = breathe

    async def add(self, request: SuppressRequest, *, by: str, now_ms: int) -> Suppressed:
        """All or nothing: a list with a mistake in it is refused before anything is stored."""
        if isinstance(request.to, str):
            people = [_number(request.to, "to")]
        else:
            people = [_number(raw, f"to[{index}]") for index, raw in enumerate(request.to)]
        items = [Suppression(to, now_ms, request.reason, by) for to in dict.fromkeys(people)]
        return Suppressed(added=await self._store_all(items))

    async def import_csv(self, body: bytes, *, by: str, now_ms: int) -> ImportedSuppressions:
        """Bad rows are listed, the rest is stored. Repeating it after a crash finds what is there."""
        sheet = suppression_csv.Sheet(body)
        for _ in sheet.stretches():
            await self._breathe()
        items = [Suppression(row.to, now_ms, row.reason, by) for row in sheet.rows]
        added = await self._store_all(items)
        return ImportedSuppressions(added=added, duplicates=len(items) - added, rejected=sheet.rejected)

    async def _store_all(self, items: list[Suppression]) -> int:
        added = 0
        for start in range(0, len(items), BATCH):
            added += await self._store.guards.suppress(items[start : start + BATCH])
        return added

    async def remove(self, raw: str, *, by: str, now_ms: int) -> Removed:
        to = _number(raw, "to")
        if not await self._store.guards.unsuppress(to, by=by, now_ms=now_ms):
            raise NotFound("NOT_FOUND", "this person is not on the list", field="to")
        return Removed(to=to)

    async def page(self, cursor: str, limit: int) -> SuppressionPage:
        if cursor and not (cursor.isascii() and cursor.isdigit()):
            raise BadRequest("INVALID_REQUEST", "not a cursor of ours", field="cursor")
        found, next_cursor = await self._store.guards.suppressions(cursor, limit)
        return SuppressionPage(items=[_item(one) for one in found], next_cursor=next_cursor)

    async def of_person(self, raw: str, cursor: str) -> SuppressionPage:
        """A page with this person alone, or empty if they may be written to."""
        if cursor:
            raise BadRequest("INVALID_REQUEST", "one person has no further page", field="cursor")
        found = await self._store.guards.suppressions_of(_number(raw, "to"))
        return SuppressionPage(items=[_item(one) for one in found], next_cursor=None)

    async def export_csv(self, first: SuppressionPage) -> AsyncIterator[str]:
        """The rest of the list from a first page on, a page at a time. What is added meanwhile may be among it."""
        yield suppression_csv.header() + suppression_csv.lines(first.items)
        cursor = first.next_cursor
        while cursor is not None:
            page = await self.page(cursor, BATCH)
            yield suppression_csv.lines(page.items)
            cursor = page.next_cursor


def _item(one: Suppression) -> SuppressionItem:
    return SuppressionItem(to=one.to, at=one.at, reason=one.reason, source=one.source, confirmation=one.confirmation)


def _number(raw: str, field: str) -> str:
    to = person(raw)
    if to is None:
        raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field=field)
    return to
