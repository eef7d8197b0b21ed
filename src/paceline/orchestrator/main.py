"""The orchestrator process."""

import asyncio
from typing import Any

import structlog

from paceline import compose
from paceline.alerts.wiring import alerts_of
from paceline.compose import Parts
from paceline.domain.drivers import is_simulated
from paceline.domain.errors import Unavailable
from paceline.kits.media_store import MediaFiles
from paceline.kits.service import Service
from paceline.kits.stepping import keep_listening, keep_stepping
from paceline.kits.tasks import Supervisor
from paceline.orchestrator.app import Terms, WorkerGate, create_app
from paceline.orchestrator.audit import AuditFollower, AuditThread
from paceline.orchestrator.audit_db import AuditDb
from paceline.orchestrator.days import ZONE_AGE_MS, StatsDays
from paceline.orchestrator.desk import Desk
from paceline.orchestrator.inbound import Inbound
from paceline.orchestrator.inventory import Inventory, InventoryRules
from paceline.orchestrator.measures import OrchestratorMeasures
from paceline.orchestrator.provisioning import holder_of, new_runner, start_provisioning
from paceline.orchestrator.registry import Registry
from paceline.orchestrator.routes_audit import AuditPages
from paceline.orchestrator.settling import Settling
from paceline.orchestrator.stops import StopRules
from paceline.orchestrator.waiters import Waiters
from paceline.orchestrator.watching import start_watching
from paceline.settings import OrchestratorSettings
from paceline.store.fleet import AllocationLimits
from paceline.store.store import Store
from paceline.telemetry.fleet import FleetReadings

DEFAULT_PORT = 3000

log = structlog.stdlib.get_logger(__name__)


def main() -> None:
    compose.run("orchestrator", DEFAULT_PORT, _prepare, OrchestratorSettings)


async def _prepare(parts: Parts, tasks: Supervisor) -> Service:
    settings, store = parts.settings, parts.store
    await warn_of_mixed_fleet(store)
    measures = OrchestratorMeasures(parts.metrics, store, log_messages=settings.log_messages)
    parts.metrics.read(FleetReadings(store, parts.rules, parts.clock).read)
    settling = Settling(store, parts.retries, parts.brain, measures, StatsDays(store, age_ms=ZONE_AGE_MS))
    waiters = Waiters(store)
    timing: dict[str, Any] = {"idle_ms": settings.poll_interval_ms, "expected": Unavailable}
    runner, port = new_runner(settings), settings.port or DEFAULT_PORT
    tell_provisioner = start_provisioning(parts, tasks, runner, port)
    start_watching(parts, tasks, runner, port)

    def ring(topic: str) -> None:
        waiters.ring(topic)
        tell_provisioner(topic)

    tasks.start("wakes", lambda: keep_listening(parts.link.wakes, ring, parts.clock, **timing))
    tasks.start("waiters", lambda: keep_stepping(waiters.check, parts.clock, asyncio.Event(), **timing))
    tasks.start("sweeper", lambda: keep_stepping(settling.sweep, parts.clock, asyncio.Event(), **timing))
    limits = AllocationLimits(settings.max_sessions_per_proxy, settings.max_sessions_per_phone)
    inventory = Inventory(store, InventoryRules(limits, settings.inventory_low))
    tasks.start("inventory", lambda: keep_stepping(inventory.watch, parts.clock, asyncio.Event(), **timing))
    alerts = alerts_of(settings, store.alerts, holder=holder_of(port))
    tasks.start("alerts", lambda: keep_stepping(alerts.step, parts.clock, asyncio.Event(), **timing))
    trail, in_thread = AuditDb(settings.audit_path), AuditThread()
    follower = AuditFollower(store, trail, kept_days=settings.audit_kept_days, in_thread=in_thread)
    tasks.start("audit", lambda: keep_stepping(follower.step, parts.clock, asyncio.Event(), **timing))
    return create_app(
        store=store,
        desk=Desk(
            store,
            parts.rules,
            lease_ms=settings.lease_ms,
            any_instance=settings.runner == "external",
            measures=measures,
        ),
        settling=settling,
        inbound=Inbound(
            store,
            settling,
            StopRules(settings.stop_confirmation, settings.stop_words.split(",")),
            tell_text=settings.event_inbound_text,
        ),
        registry=Registry(
            store,
            parts.rng,
            per_phone=limits.per_phone,
            simulated_only=compose.simulated_only(settings, parts.rules),
        ),
        waiters=waiters,
        gate=WorkerGate(settings.webhook_secret.get_secret_value() if settings.webhook_secret else ""),
        keys=parts.keys,
        clock=parts.clock,
        terms=Terms(
            lease_ms=settings.lease_ms,
            typing_ms=parts.rules.policy.typing_ms,
            unknown_grace_ms=settings.unknown_grace_ms,
        ),
        # The gateway's: both run on one machine.
        media=MediaFiles(settings.data / "media"),
        inventory=inventory,
        audit=AuditPages(settings.audit_path, asyncio.to_thread),
        alerts=alerts,
        logs=runner.logs,
        metrics=parts.metrics,
    )


async def warn_of_mixed_fleet(store: Store) -> None:
    """One that was mixed before that was refused goes on as it is, but not without a word."""
    found = await store.sessions.drivers()
    simulated = sum(count for driver, count in found.items() if is_simulated(driver))
    if simulated and (real := sum(found.values()) - simulated):
        log.warning(
            "simulated numbers beside real ones take a share of every job and call it sent: remove their sessions",
            simulated=simulated,
            real=real,
        )


if __name__ == "__main__":
    main()
