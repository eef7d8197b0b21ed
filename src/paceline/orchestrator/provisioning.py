"""From settings to a runner and the loop around the provisioner. `main` starts it; nothing here decides."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from paceline.compose import Parts
from paceline.domain.errors import ConfigError, Unavailable
from paceline.domain.ids import new_ulid
from paceline.kits.errands import Errands
from paceline.kits.secrets import derive
from paceline.kits.stepping import keep_stepping
from paceline.kits.tasks import Supervisor
from paceline.orchestrator.hands import Hands, Terms
from paceline.orchestrator.provisioner import Provisioner
from paceline.orchestrator.runners.base import Runner
from paceline.orchestrator.runners.external import ExternalRunner
from paceline.orchestrator.runners.process import ProcessRunner
from paceline.orchestrator.runners.programs import programs_of
from paceline.policy.reconcile import Rules
from paceline.settings import Settings
from paceline.store.fleet import AllocationLimits

TOPIC = "fleet"
"""What is rung when something about a session's worker is wished."""


def new_runner(settings: Settings) -> Runner:
    if settings.runner == "external":
        return ExternalRunner()
    if settings.runner == "docker":
        # Its library takes a while to load, and the others do without.
        from paceline.orchestrator.runners.container import Containers
        from paceline.orchestrator.runners.docker import DockerRunner

        if not settings.docker_host.startswith(("unix://", "tcp://", "http://", "https://")):
            # Only here: whoever has it set for other tools need not care while it is not used.
            raise ConfigError(["DOCKER_HOST: must start with unix://, tcp://, http:// or https://"])
        return DockerRunner(settings.docker_host, Containers.of(settings))
    return ProcessRunner(settings.data, programs_of(settings))


def terms_of(settings: Settings) -> Terms:
    return Terms(
        webhook_url=settings.webhook_url or settings.orchestrator_url,
        keep_alive=settings.enable_keep_alive,
        orphan_ms=settings.worker_orphan_ms,
        log_level=settings.log_level,
        grace_ms=settings.worker_grace_ms,
        interval_ms=settings.provisioning_interval_ms,
        limits=AllocationLimits(settings.max_sessions_per_proxy, settings.max_sessions_per_phone),
        rules=Rules(starts_max=settings.worker_starts_max, healthy_ms=settings.worker_healthy_ms),
        whatsapp_url=settings.whatsapp_url or "",
        whatsapp_version=settings.whatsapp_version or "",
    )


def auth_key_of(settings: Settings) -> Callable[[str], str]:
    """The key of each session's login. Under a label that no session's own secret has: no sessionId holds a colon."""
    secret = settings.auth_secret or settings.webhook_secret
    master = secret.get_secret_value() if secret else ""
    return lambda session: derive(master, f"auth:{session}")


def holder_of(port: int) -> str:
    """Who holds a lease: the next orchestrator at this address is this one, started again, and need not wait for its
    own lease to end."""
    return f"{socket.gethostname()}:{port}"


def start_provisioning(parts: Parts, tasks: Supervisor, runner: Runner, port: int) -> Callable[[str], None]:
    """Starts the loop. What comes back is to be told every wake-up."""
    settings, clock, errands, bell = parts.settings, parts.clock, Errands(), asyncio.Event()
    master = settings.webhook_secret.get_secret_value() if settings.webhook_secret else ""
    fleet, terms = parts.store.fleet, terms_of(settings)
    hands = Hands(
        fleet,
        runner,
        terms,
        secret_of=partial(derive, master),
        auth_key_of=auth_key_of(settings),
        new_id=lambda: new_ulid(clock.now_ms(), parts.rng),
        now_ms=clock.now_ms,
    )
    provisioner = Provisioner(
        fleet,
        runner,
        terms,
        hands,
        holder=holder_of(port),
        errands=errands,
        now_ms=clock.now_ms,
        look_again=bell.set,
    )
    looking = asyncio.Lock()

    async def step(now_ms: int) -> int:
        async with looking:
            return await provisioner.step(now_ms)

    async def goodbye() -> None:
        async with looking:
            try:
                await provisioner.rest(stop_workers=settings.stop_workers)
            finally:
                await errands.close()
                await runner.close()

    timing: dict[str, Any] = {"idle_ms": settings.provisioning_interval_ms, "expected": Unavailable}
    tasks.start("provisioner", lambda: keep_stepping(step, clock, bell, **timing))

    parts.before_stop.append(goodbye)
    return lambda topic: bell.set() if topic == TOPIC else None
