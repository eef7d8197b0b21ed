"""The dispatcher's loops as supervised tasks: a pool of routers, the pacer, the scheduler, and what wakes them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from paceline.compose import Parts
from paceline.dispatcher.pacer import Pacer
from paceline.dispatcher.router import Router
from paceline.dispatcher.scheduler import Scheduler
from paceline.domain.errors import Unavailable
from paceline.kits.stepping import Bell, Step, keep_listening, keep_stepping
from paceline.kits.tasks import Supervisor


@dataclass(frozen=True)
class Engine:
    """What one dispatcher runs. Each router has its own object: its picture of the fleet is not made for sharing."""

    routers: list[Router]
    pacer: Pacer
    scheduler: Scheduler

    @classmethod
    def of(cls, parts: Parts) -> "Engine":
        settings, store = parts.settings, parts.store
        return cls(
            [Router(store, parts.rules, route_ahead=settings.route_ahead) for _ in range(settings.max_concurrent_jobs)],
            Pacer(store, parts.rules, parts.rng, handoff_ttl_ms=settings.handoff_ttl_ms),
            Scheduler(store),
        )


def start(engine: Engine, parts: Parts, tasks: Supervisor) -> None:
    bell = Bell()

    def loop(step: Step, topic: str) -> Callable[[], Awaitable[None]]:
        event: asyncio.Event = bell.listener(topic)
        idle_ms = parts.settings.poll_interval_ms
        return lambda: keep_stepping(step, parts.clock, event, idle_ms=idle_ms, expected=Unavailable)

    for number, router in enumerate(engine.routers, 1):
        tasks.start(f"router-{number}", loop(router.step, "jobs"))
    tasks.start("pacer", loop(engine.pacer.step, "due"))
    tasks.start("scheduler", loop(engine.scheduler.step, "due"))
    tasks.start("wakes", lambda: _listen(bell, parts))


async def _listen(bell: Bell, parts: Parts) -> None:
    idle_ms = parts.settings.poll_interval_ms
    await keep_listening(parts.link.wakes, bell.ring, parts.clock, idle_ms=idle_ms, expected=Unavailable)
