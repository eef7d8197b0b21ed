"""The rows of sessions as the provisioner reads them, and what it writes down of their workers' ends.

Part of `fleet.FleetStore`. `policy.reconcile` decides, `orchestrator.provisioner` asks it. The script is idempotent
by the worker's instance: the end of a worker that is no longer the wanted one changes nothing.
"""

import msgspec

from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs


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


class WorkerRows:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def wanted(self, after: str, limit: int) -> tuple[list[WorkerRow], str | None]:
        """Rows in the order of their ids, after a given one, and where the next page begins."""
        ids = sorted(id_ for id_ in await self._caller.read_one("SMEMBERS", keys.sessions()) if id_ > after)
        page = ids[:limit]
        if not page:
            return [], None
        found = await self._caller.read(*[("HGETALL", keys.session(id_)) for id_ in page])
        rows = [(id_, fields) for id_, row in zip(page, found, strict=True) if (fields := _pairs(row)).get("phone")]
        marks = await self._caller.read(*[("HGET", keys.phone(row["phone"]), "quarantined") for _, row in rows])
        views = [_row(id_, row, mark == "1") for (id_, row), mark in zip(rows, marks, strict=True)]
        return views, page[-1] if len(ids) > limit else None

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


def _row(session: str, row: dict[str, str], quarantined: bool) -> WorkerRow:
    return WorkerRow(
        session_id=session,
        phone=row["phone"],
        driver=row.get("driver", ""),
        desired=row.get("desired", "running"),
        connection=row.get("connection", ""),
        authorisation=row.get("authorisation", ""),
        quarantined=quarantined,
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
