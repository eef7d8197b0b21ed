"""The orchestrator process."""

import asyncio
from typing import Any

from paceline import compose
from paceline.compose import Parts
from paceline.domain.errors import Unavailable
from paceline.kits.media_store import MediaFiles
from paceline.kits.stepping import keep_listening, keep_stepping
from paceline.kits.tasks import Supervisor
from paceline.kits.web import Service
from paceline.orchestrator.app import Terms, WorkerGate, create_app
from paceline.orchestrator.desk import Desk
from paceline.orchestrator.inbound import Inbound, StopRules
from paceline.orchestrator.registry import Registry
from paceline.orchestrator.settling import Settling
from paceline.orchestrator.waiters import Waiters
from paceline.settings import OrchestratorSettings

DEFAULT_PORT = 3000


def main() -> None:
    compose.run("orchestrator", DEFAULT_PORT, _prepare, OrchestratorSettings)


async def _prepare(parts: Parts, tasks: Supervisor) -> Service:
    settings, store = parts.settings, parts.store
    settling = Settling(store, parts.retries, parts.brain)
    waiters = Waiters(store)
    timing: dict[str, Any] = {"idle_ms": settings.poll_interval_ms, "expected": Unavailable}
    tasks.start("wakes", lambda: keep_listening(parts.link.wakes, waiters.ring, parts.clock, **timing))
    tasks.start("waiters", lambda: keep_stepping(waiters.check, parts.clock, asyncio.Event(), **timing))
    tasks.start("sweeper", lambda: keep_stepping(settling.sweep, parts.clock, asyncio.Event(), **timing))
    return create_app(
        store=store,
        desk=Desk(store, parts.rules, lease_ms=settings.lease_ms),
        settling=settling,
        inbound=Inbound(
            store,
            settling,
            StopRules(settings.stop_confirmation, settings.stop_words.split(",")),
            tell_text=settings.event_inbound_text,
        ),
        registry=Registry(store, parts.rng),
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
    )


if __name__ == "__main__":
    main()
