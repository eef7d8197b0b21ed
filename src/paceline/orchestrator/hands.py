"""Carries out what `policy.reconcile` decided, one action at a time: scripts and the runner in the right order.

Every action may be cut off after any of its steps and be asked for again; the next look finds what is left. Neighbour:
`provisioner` decides when, and for whom.
"""

from collections.abc import Callable

import msgspec
import structlog

from paceline.domain.drivers import DRIVERS
from paceline.kits.failpoint import failpoint
from paceline.orchestrator.runners.base import Runner, StartRefused, WorkerSpec
from paceline.policy import reconcile
from paceline.policy.reconcile import (
    Action,
    Adopt,
    Begin,
    Ended,
    Fail,
    FinishRemoval,
    Release,
    Remove,
    Rules,
    Stop,
    Wait,
    Wanted,
)
from paceline.store.fleet import AllocationLimits, FleetStore
from paceline.store.workers import WorkerRow

log = structlog.stdlib.get_logger(__name__)

START_REFUSED = "START_REFUSED"
STOPPED = "STOPPED"
REASON_LIMIT = 300
"""A line of what an engine says."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What every worker is told alike, and the limits they are begun under."""

    webhook_url: str
    keep_alive: bool = True
    orphan_ms: int = 0
    log_level: str = "info"
    grace_ms: int = 10_000
    interval_ms: int = 2_000
    limits: AllocationLimits = AllocationLimits()
    rules: Rules = Rules()
    whatsapp_url: str = ""
    """With `{session}` and `{phone}` to be filled in."""
    whatsapp_version: str = ""


class Hands:
    def __init__(
        self,
        fleet: FleetStore,
        runner: Runner,
        terms: Terms,
        *,
        secret_of: Callable[[str], str],
        auth_key_of: Callable[[str], str],
        new_id: Callable[[], str],
        now_ms: Callable[[], int],
    ) -> None:
        """`secret_of` gives a session's own secret, `auth_key_of` the key of its login."""
        self._fleet = fleet
        self._runner = runner
        self._terms = terms
        self._secret_of = secret_of
        self._auth_key_of = auth_key_of
        self._new_id = new_id
        self._now_ms = now_ms

    async def carry_out(self, action: Action, row: WorkerRow | None) -> bool:
        """Whether it makes another look worth while now."""
        match action:
            case Begin():
                return row is not None and await self._begin(action, row)
            case Adopt(session_id=session, generation=generation, instance=instance):
                log.info("a running worker is adopted", session_id=session, instance=instance)
                await self._fleet.begin_start(
                    session, generation=generation, instance=instance, limits=self._terms.limits, now_ms=self._now_ms()
                )
                return False
            case Stop(session_id=session, handle=handle, reason=reason):
                log.info("stopping a worker", session_id=session, handle=handle, reason=reason)
                await self._runner.stop(handle, self._terms.grace_ms)
            case Remove(handle=handle):
                await self._runner.remove(handle)
            case Ended():
                await self.note_end(action)
            case Fail(session_id=session, instance=instance, exit_code=code, reason=reason):
                log.error("a session is given up", session_id=session, reason=reason, exit_code=code)
                await self._fleet.failed(session, instance, reason, exit_code=code, now_ms=self._now_ms())
            case Release(session_id=session, instance=instance, reason=reason):
                await self._fleet.release(session, instance=instance, reason=reason, now_ms=self._now_ms())
            case FinishRemoval(session_id=session):
                answer = await self._fleet.finish_removal(session, now_ms=self._now_ms())
                # BUSY: what its worker held has not ended; the sweeper sees to that, and we ask again.
                log.info("a session goes", session_id=session, answer=answer.code, tasks=answer.tasks)
                return False
            case Wait():
                return False
        return True

    async def _begin(self, action: Begin, row: WorkerRow) -> bool:
        instance = action.instance or self._new_id()
        begun = await self._fleet.begin_start(
            row.session_id,
            generation=action.generation,
            instance=instance,
            limits=self._terms.limits,
            now_ms=self._now_ms(),
            after=row.wanted_instance or "",
        )
        failpoint("worker-begun")
        if begun.code not in ("OK", "AGAIN"):
            log.debug("not begun", session_id=row.session_id, answer=begun.code)
            return False
        spec = self._spec(row, instance, action.generation, begun.proxy)
        try:
            await self._runner.start(spec)
        except StartRefused as error:
            log.error("a worker cannot be started", session_id=row.session_id, reason=str(error))
            await self.carry_out(self._refused(spec, row, str(error)), None)
            return True
        log.info("a worker was started", session_id=row.session_id, instance=instance, generation=action.generation)
        return False

    def _spec(self, row: WorkerRow, instance: str, generation: int, proxy_url: str) -> WorkerSpec:
        spec = WorkerSpec(
            session_id=row.session_id,
            phone=row.phone,
            driver=row.driver,
            instance=instance,
            generation=generation,
            webhook_url=self._terms.webhook_url,
            webhook_secret=self._secret_of(row.session_id),
            proxy_url=proxy_url,
            keep_alive=self._terms.keep_alive,
            orphan_ms=self._terms.orphan_ms,
            log_level=self._terms.log_level,
        )
        kind = DRIVERS.get(row.driver)
        if kind is None or not kind.keeps_login:
            return spec
        server = self._terms.whatsapp_url.replace("{session}", row.session_id).replace("{phone}", row.phone)
        return msgspec.structs.replace(
            spec,
            auth_key=self._auth_key_of(row.session_id),
            whatsapp_url=server,
            whatsapp_version=self._terms.whatsapp_version,
        )

    def _refused(self, spec: WorkerSpec, row: WorkerRow, reason: str) -> Action:
        """It counts like a worker that ended at once. Why stands where an operator looks: nothing of it ever ran, so no
        log of its own could tell."""
        begun = msgspec.structs.replace(
            wanted_of(row, True),
            instance=spec.instance,
            begun_generation=spec.generation,
            started_at=self._now_ms(),
            healthy_at=0,
        )
        said = f"{START_REFUSED}: {reason}"[:REASON_LIMIT]
        action = reconcile.after_end(begun, None, said, self._terms.rules, self._now_ms())
        return msgspec.structs.replace(action, reason=said)

    async def note_end(self, action: Ended) -> None:
        code = await self._fleet.ended(
            action.session_id,
            action.instance,
            exit_code=action.exit_code,
            reason=action.reason,
            starts=action.starts,
            not_before_ms=action.not_before_ms,
            now_ms=self._now_ms(),
        )
        if code == "OK" and action.reason != STOPPED:
            log.warning(
                "a worker ended",
                session_id=action.session_id,
                how=action.reason,
                exit_code=action.exit_code,
                starts=action.starts,
            )


def wanted_of(row: WorkerRow, runs_here: bool) -> Wanted:
    return Wanted(
        session_id=row.session_id,
        runs_here=runs_here,
        desired=row.desired,
        removing=row.removing,
        connection=row.connection,
        authorisation=row.authorisation,
        quarantined=row.quarantined,
        generation=row.generation,
        restart_reason=row.restart_reason,
        instance=row.wanted_instance,
        begun_generation=row.started_generation,
        ended=row.ended_instance,
        started_at=row.started_at,
        healthy_at=row.healthy_at,
        starts=row.starts,
        not_before=row.not_before,
        holds=row.holds,
        answers=row.answers,
    )
