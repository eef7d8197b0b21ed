"""Copies facts from Redis into the audit trail: bindings and operators' actions from `audit`, confirmed sends from
`events`.

How far it has read stands in the same SQLite transaction as the rows, so each fact is one row through any crash; only
then is the copied part of `audit` freed. If the file takes nothing (full disk, broken file, another orchestrator) the
facts wait in Redis; sending and the API do not notice. Neighbours: `audit_db` is the file, `audit_rows` its rows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

import structlog

from paceline.domain.events import START, order
from paceline.kits.failpoint import failpoint
from paceline.orchestrator.audit_db import AuditAway, AuditBusy, AuditDb, Batch
from paceline.orchestrator.audit_rows import Row, row_of, sent_of
from paceline.store.store import Store

log = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")
BATCH = 500
"""Facts in one transaction: a few milliseconds of writing, one sync of the disk."""
DAY_MS = 86_400_000
RETRY_MS = 5_000
"""How soon a file that took nothing is tried again."""
PRUNE_BATCH = 5_000


class InThread(Protocol):
    """Runs a call off the loop; in tests, at once."""

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]: ...


class AuditThread:
    """One thread for the file, so that its calls come one after the other and never on the loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="audit")

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        return asyncio.get_running_loop().run_in_executor(self._pool, call)


class AuditFollower:
    def __init__(self, store: Store, db: AuditDb, *, kept_days: int, in_thread: InThread) -> None:
        self._store = store
        self._db = db
        self._kept_ms = kept_days * DAY_MS
        self._in_thread = in_thread
        self._cursors: dict[str, str] | None = None
        self._away_since_ms: int | None = None
        self._busy_told = False
        self._freed = START
        self._told_full = False
        self._told_behind = START
        self._not_before_ms = 0
        self._prune_ms = 0

    async def step(self, now_ms: int) -> int | None:
        """Copies what is there; now if there may be more."""
        if now_ms < self._not_before_ms:
            return self._not_before_ms
        try:
            more = await self._copy(now_ms)
            if now_ms >= self._prune_ms:
                await self._prune(now_ms)
        except AuditBusy as error:
            self._cursors = None
            self._not_before_ms = now_ms + RETRY_MS
            if not self._busy_told:
                log.warning("the audit trail is written by somebody else; waiting", reason=str(error))
            self._busy_told = True
            return self._not_before_ms
        except AuditAway as error:
            # What the transaction did is not known; the file's own word counts when it is back.
            self._cursors = None
            self._not_before_ms = now_ms + RETRY_MS
            await self._note_away(str(error), now_ms)
            return self._not_before_ms
        await self._note_back(now_ms)
        return now_ms if more else None

    async def _copy(self, now_ms: int) -> bool:
        if self._cursors is None:
            self._cursors = await self._in_thread(self._db.cursors)
            self._busy_told = False
        cursors = self._cursors
        facts = await self._store.audit.after(cursors.get("audit", START), limit=BATCH)
        if facts.unreadable:
            log.warning("entries in the audit stream that are not ours were left out", count=facts.unreadable)
        await self._note_full(facts.full, now_ms)
        sends, place, more_sends = await self._sends(cursors.get("events", START), now_ms)
        failpoint("audit-read")
        rows: list[Row] = [*(row_of(fact) for fact in facts.items), *sends]
        read = {"audit": facts.place, "events": place}
        if read != {stream: cursors.get(stream, START) for stream in read}:
            await self._in_thread(partial(self._db.append, Batch(rows, read), now_ms=now_ms))
            failpoint("audit-committed")
            self._cursors = read
        # Also if nothing is new: whoever copied it may have died before this.
        if facts.place not in (START, self._freed):
            await self._store.audit.trim(facts.place)
            self._freed = facts.place
            failpoint("audit-trimmed")
        return more_sends or len(facts.items) + facts.unreadable == BATCH

    async def _sends(self, place: str, now_ms: int) -> tuple[list[Row], str, bool]:
        events = self._store.events
        newest = await events.newest()
        if newest != START and order(newest) < order(place):
            # Another Redis than the one the place is from, or an older copy of it. What is known is not written again.
            place = START
        found = await events.after(place, limit=BATCH, wants=lambda kind: kind == "message.sent")
        if found.behind and place not in (START, self._told_behind):
            self._told_behind = place
            await self._store.alerts.note("AUDIT_BEHIND", {"stream": "events", "after": place}, now_ms=now_ms)
            log.error("confirmed sends are missing in the audit trail: newer events took their room", after=place)
        named = await events.named([event.message_id or "" for event in found.events])
        rows: list[Row] = [sent_of(event, known) for event, known in zip(found.events, named, strict=True)]
        return rows, found.place, found.more

    async def _prune(self, now_ms: int) -> None:
        gone = await self._in_thread(partial(self._db.prune, now_ms - self._kept_ms, limit=PRUNE_BATCH))
        # So many at a time, that the file is never held for long; the rest goes in the next steps.
        self._prune_ms = now_ms if gone >= PRUNE_BATCH else now_ms + DAY_MS
        if gone:
            log.info("old rows of the audit trail were removed", rows=gone)

    async def _note_full(self, full: bool, now_ms: int) -> None:
        if full and not self._told_full:
            await self._store.alerts.note("AUDIT_BEHIND", {"stream": "audit"}, now_ms=now_ms)
            log.error("the audit stream is full: the oldest facts make room before they are copied")
        self._told_full = full

    async def _note_away(self, reason: str, now_ms: int) -> None:
        if self._away_since_ms is None:
            log.error("the audit trail takes nothing; facts wait in Redis", reason=reason)
            await self._store.alerts.note("AUDIT_BROKEN", {"reason": reason}, now_ms=now_ms)
            self._away_since_ms = now_ms

    async def _note_back(self, now_ms: int) -> None:
        if self._away_since_ms is not None:
            away_ms = now_ms - self._away_since_ms
            log.info("the audit trail takes facts again", away_ms=away_ms)
            await self._store.alerts.note("AUDIT_RECOVERED", {"awayMs": away_ms}, now_ms=now_ms)
            self._away_since_ms = None
