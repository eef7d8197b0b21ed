"""The rows of sessions as the provisioner reads them, and what it writes down of their workers' ends.

Part of `fleet.FleetStore`. `policy.reconcile` decides, `orchestrator.provisioner` asks it. The script is idempotent
by the worker's instance: the end of a worker that is no longer the wanted one changes nothing.
"""

from collections.abc import Iterator, Sequence

import msgspec

from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs

PAGE = 500
"""Sessions read at once: some milliseconds of Redis."""
LOOK = ""
NO_WORKER = "-"


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session as far as its worker is concerned; what is absent from its hash has the default."""

    session_id: str
    phone: str
    driver: str
    desired: str
    connection: str
    authorisation: str
    quarantined: bool = False
    removing: bool = False
    generation: int = 1
    restart_reason: str = ""
    wanted_instance: str | None = None
    started_generation: int = 0
    started_at: int = 0
    ended_instance: str = ""
    healthy_at: int = 0
    starts: int = 0
    not_before: int = 0
    holds: bool = False
    answers: bool = False
    """Whether its worker has messages in its hands."""
    instance_id: str = ""
    """Who said hello last."""
    last_seen: int = 0
    claimed_at: int = 0
    connected_since: int = 0
    heard_at: int | None = None
    """When its worker last heard WhatsApp; None: it cannot say."""
    down_since: int = 0
    down_told: bool = False
    trouble_told: bool = False
    """That it failed, or had to wait."""


class Expected(Answer, frozen=True):
    expected: list[str] = []
    """As they were asked for: "<generation> <instance>", NO_WORKER, or LOOK where only the whole row tells."""


class WorkerRows:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def ids(self) -> list[str]:
        """Of all sessions, in their order."""
        return sorted(await self._caller.read_one("SMEMBERS", keys.sessions()))

    async def rows(self, ids: Sequence[str]) -> list[WorkerRow]:
        """Of those that are still there, read in pages."""
        return [row for page in _pages(ids) for row in await self._page(page)]

    async def expected(self, ids: Sequence[str], *, elsewhere: Sequence[str], per_proxy: int) -> list[str]:
        """For each session the one worker it should have, as `Expected` says it; see expected_workers.lua. Those with a
        driver that runs `elsewhere` have none here."""
        found: list[str] = []
        for page in _pages(ids):
            answer = await self._caller.call(
                "expected_workers", Expected, sessions=page, elsewhere=elsewhere, perProxy=per_proxy
            )
            found += answer.expected
        return found

    async def _page(self, ids: Sequence[str]) -> list[WorkerRow]:
        found = await self._caller.read(*[("HGETALL", keys.session(id_)) for id_ in ids])
        rows = [(id_, fields) for id_, row in zip(ids, found, strict=True) if (fields := _pairs(row)).get("phone")]
        marks = await self._caller.read(*[("HGET", keys.phone(row["phone"]), "quarantined") for _, row in rows])
        held = await self._caller.read(*[("LLEN", keys.processing(id_)) for id_, _ in rows])
        return [
            _row(id_, row, quarantined=mark == "1", answers=count > 0)
            for (id_, row), mark, count in zip(rows, marks, held, strict=True)
        ]

    async def ended(
        self,
        session: str,
        instance: str,
        *,
        exit_code: int | None,
        reason: str,
        starts: int,
        not_before_ms: int,
        now_ms: int,
    ) -> str:
        """OK | AGAIN (written down before) | STALE (not the wanted one) | UNKNOWN_SESSION."""
        answer = await self._caller.call(
            "worker_ended", Answer, session=session, instance=instance, exitCode=exit_code, reason=reason,
            starts=starts, notBefore=not_before_ms, now=now_ms,
        )  # fmt: skip
        return answer.code

    async def failed(self, session: str, instance: str, reason: str, *, exit_code: int | None, now_ms: int) -> str:
        """Given up until an operator restarts it: FAILED, with an incident. The codes of `ended`."""
        answer = await self._caller.call(
            "worker_ended", Answer, session=session, instance=instance, exitCode=exit_code, reason=reason,
            failed=True, now=now_ms,
        )  # fmt: skip
        return answer.code

    async def hold_lease(self, name: str, holder: str, *, ttl_ms: int, now_ms: int) -> bool:
        """Whether this work is ours alone until then."""
        answer = await self._caller.call("hold_lease", Answer, name=name, holder=holder, ttl=ttl_ms, now=now_ms)
        return answer.code == "OK"


def _pages(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + PAGE] for start in range(0, len(ids), PAGE))


def _row(session: str, row: dict[str, str], *, quarantined: bool, answers: bool) -> WorkerRow:
    return WorkerRow(
        session_id=session,
        phone=row["phone"],
        driver=row.get("driver", ""),
        desired=row.get("desired", "running"),
        connection=row.get("connection", ""),
        authorisation=row.get("authorisation", ""),
        quarantined=quarantined,
        answers=answers,
        removing=row.get("removing") == "1",
        generation=int(row.get("generation", 1)),
        restart_reason=row.get("restartReason", ""),
        wanted_instance=row.get("wantedInstance"),
        started_generation=int(row.get("startedGeneration", 0)),
        started_at=int(row.get("startedAt", 0)),
        ended_instance=row.get("endedInstance", ""),
        healthy_at=int(row.get("healthyAt", 0)),
        starts=int(row.get("starts", 0)),
        not_before=int(row.get("notBefore", 0)),
        holds=row.get("holds") == "1",
        instance_id=row.get("instanceId", ""),
        last_seen=int(row.get("lastSeen", 0)),
        claimed_at=int(row.get("claimedAt", 0)),
        connected_since=int(row.get("connectedSince", 0)),
        heard_at=int(row["heardAt"]) if "heardAt" in row else None,
        down_since=int(row.get("downSince", 0)),
        down_told=row.get("downTold") == "1",
        trouble_told=row.get("troubleTold") == "1",
    )
