"""The monitor tick: which workers have gone quiet, who is away, what they all take of their host.

It only wishes and writes down; the provisioner makes a restart happen, with the pauses and the end that
`policy.reconcile` knows. Neighbours: `policy.watchdog` decides, `proxy_checks` looks after the proxies.
"""

from typing import Protocol

import structlog

from paceline.orchestrator.runners.base import Runner, RunnerAway
from paceline.policy.watchdog import Watched, WatchRules, ailment, is_down
from paceline.store.store import Store
from paceline.store.workers import WorkerRow

log = structlog.stdlib.get_logger(__name__)

LEASE = "watchdog"
BY = "watchdog"


class Watchdog:
    def __init__(
        self, store: Store, runner: Runner, rules: WatchRules, *, holder: str, interval_ms: int = 30_000
    ) -> None:
        self._store = store
        self._runner = runner
        self._rules = rules
        self._holder = holder
        self._interval_ms = interval_ms
        self._since_ms = 0
        self._stepped_ms = 0

    async def step(self, now_ms: int) -> int:
        next_ms = now_ms + self._interval_ms
        if not await self._store.fleet.hold_lease(LEASE, self._holder, ttl_ms=3 * self._interval_ms, now_ms=now_ms):
            self._stepped_ms = 0
            return next_ms
        # We were away, or the store was (one look that failed), or we began a moment ago: what nobody could tell us is
        # not silence.
        if not 0 <= now_ms - self._stepped_ms < 2 * self._interval_ms:
            self._since_ms = now_ms
        self._stepped_ms = now_ms
        for row in await self._store.fleet.rows(await self._store.fleet.ids()):
            await self._look(row, now_ms)
        await self._measure(now_ms)
        return next_ms

    async def _look(self, row: WorkerRow, now_ms: int) -> None:
        one = watched(row, self._runner)
        if found := ailment(one, self._rules, since_ms=self._since_ms, now_ms=now_ms):
            wished = await self._store.fleet.wish(
                row.session_id, "restart", reason=found, by=BY, generation=row.generation, now_ms=now_ms
            )
            log.warning("a worker does not do its work", session_id=row.session_id, how=found, answer=wished.code)
        away = is_down(one, self._rules, since_ms=self._since_ms, now_ms=now_ms)
        # Who was stopped, failed or was banned meanwhile is not back; it may be, one day.
        is_back = row.connection == "CONNECTED" and not away and not one.is_over
        if (away and not row.down_told) or (is_back and (row.down_told or row.trouble_told)):
            await self._store.watch.down(row.session_id, away, reason=found or row.connection, now_ms=now_ms)

    async def _measure(self, now_ms: int) -> None:
        try:
            handles = [one.handle for one in await self._runner.observe() if one.state == "running"]
            used = await self._runner.usage(handles)
        except RunnerAway:
            return
        await self._store.watch.usage(
            {session: (one.memory_bytes, one.cpu_seconds) for session, one in used.items()}, now_ms=now_ms
        )


class Drivers(Protocol):
    def runs(self, driver: str) -> bool: ...


def watched(row: WorkerRow, runner: Drivers) -> Watched:
    wants_one = row.desired == "running" and not row.removing
    is_begun = row.started_generation == row.generation and row.wanted_instance not in (None, "", row.ended_instance)
    has_ended = row.connection in ("FAILED", "STOPPED") or row.authorisation in ("LOGGED_OUT", "LINK_BLOCKED")
    return Watched(
        session_id=row.session_id,
        is_ours=runner.runs(row.driver) and is_begun,
        connection=row.connection,
        is_over=not wants_one or has_ended or row.quarantined,
        started_at=row.started_at,
        seen_at=row.last_seen,
        claimed_at=row.claimed_at,
        connected_at=row.connected_since,
        heard_at=row.heard_at,
        down_since=row.down_since,
    )
