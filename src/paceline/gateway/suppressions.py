"""The list of people who must not be written to: adding, removing, reading it page by page."""

from paceline.domain.errors import BadRequest, NotFound
from paceline.gateway import checks
from paceline.gateway.schemas import Removed, Suppressed, SuppressionItem, SuppressionPage, SuppressRequest
from paceline.store.guards import Suppression
from paceline.store.store import Store

BATCH = 1_000


class Suppressions:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, request: SuppressRequest, *, by: str, now_ms: int) -> Suppressed:
        """All or nothing: a list with a mistake in it is refused before anything is stored."""
        if isinstance(request.to, str):
            people = [checks.number(request.to, "to")]
        else:
            people = [checks.number(raw, f"to[{index}]") for index, raw in enumerate(request.to)]
        items = [Suppression(to, now_ms, request.reason, by) for to in dict.fromkeys(people)]
        added = 0
        for start in range(0, len(items), BATCH):
            added += await self._store.guards.suppress(items[start : start + BATCH])
        return Suppressed(added=added)

    async def remove(self, raw: str) -> Removed:
        to = checks.number(raw, "to")
        if not await self._store.guards.unsuppress(to):
            raise NotFound("NOT_FOUND", "this person is not on the list", field="to")
        return Removed(to=to)

    async def page(self, cursor: str, limit: int) -> SuppressionPage:
        if cursor and not (cursor.isascii() and cursor.isdigit()):
            raise BadRequest("INVALID_REQUEST", "not a cursor of ours", field="cursor")
        found = await self._store.guards.suppressions(cursor, limit)
        items = [SuppressionItem(to=item.to, at=item.at, reason=item.reason, source=item.source) for item in found]
        return SuppressionPage(items=items, next_cursor=items[-1].to if len(items) == limit else None)
