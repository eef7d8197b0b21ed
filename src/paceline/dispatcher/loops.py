"""The dispatcher's loops as supervised tasks: a pool of routers, the pacers, the scheduler, SmartGuard, and what wakes
them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from paceline.compose import Parts
from paceline.dispatcher.fleet import FleetWatch
from paceline.dispatcher.guard import SmartGuard
from paceline.dispatcher.handing import Handing
from paceline.dispatcher.measures import DispatcherMeasures, tell_engine
from paceline.dispatcher.outbox_http import HttpOutbox
from paceline.dispatcher.pacer import TICK_MS, Pacer
from paceline.dispatcher.roster import Roster
from paceline.dispatcher.router import Router
from paceline.dispatcher.scheduler import Scheduler
from paceline.domain.errors import Unavailable
from paceline.kits.stepping import Bell, Step, in_turn, keep_listening, keep_stepping
from paceline.kits.tasks import Supervisor
from paceline.settings import Settings

PACERS = 6
"""Loops that serve due phones: one decides while others wait for Redis. Behind, they share the work as several
dispatchers do; otherwise they look in turn."""


@dataclass(frozen=True)
class Engine:
    """What one dispatcher runs."""

    routers: list[Router]
    pacer: Pacer
    scheduler: Scheduler
    guard: SmartGuard
    roster: Roster
    """The list of all sessions, for those who look."""
    handing: Handing | None = None
    """Only with `SEND_MODE=api`: what is on its way to the orchestrator."""

    @classmethod
    def of(cls, parts: Parts) -> "Engine":
        settings, store = parts.settings, parts.store
        measures = DispatcherMeasures(parts.metrics, store, log_messages=settings.log_messages)
        watch = FleetWatch(store, parts.rules, route_ahead=settings.route_ahead)
        engine = cls(
            [
                Router(store, watch, strategy=settings.routing_strategy, measures=measures)
                for _ in range(settings.max_concurrent_jobs)
            ],
            Pacer(
                store,
                parts.rules,
                parts.rng,
                handoff_ttl_ms=settings.handoff_ttl_ms,
                api=_by_http(settings),
                measures=measures,
            ),
            Scheduler(store),
            SmartGuard(store, parts.rules, enabled=settings.smart_guard_enabled, tick_ms=settings.smart_guard_tick_ms),
            Roster(store, parts.rules),
            Handing(store, _outbox(settings), parts.brain) if _by_http(settings) else None,
        )
        tell_engine(engine, parts.metrics)
        return engine


def _by_http(settings: Settings) -> bool:
    return settings.send_mode == "api"


def _outbox(settings: Settings) -> HttpOutbox:
    key = settings.orchestrator_api_key or settings.api_key
    return HttpOutbox(settings.orchestrator_url, key.get_secret_value() if key else "")


def start(engine: Engine, parts: Parts, tasks: Supervisor) -> None:
    bell = Bell()

    def loop(step: Step, topic: str) -> Callable[[], Awaitable[None]]:
        event: asyncio.Event = bell.listener(topic)
        idle_ms = parts.settings.poll_interval_ms
        return lambda: keep_stepping(step, parts.clock, event, idle_ms=idle_ms, expected=Unavailable)

    for number, router in enumerate(engine.routers, 1):
        tasks.start(f"router-{number}", loop(router.step, "jobs"))
    serve = in_turn(engine.pacer.step, TICK_MS)
    for number in range(1, PACERS + 1):
        tasks.start(f"pacer-{number}", loop(serve, "due"))
    tasks.start("scheduler", loop(engine.scheduler.step, "due"))
    if engine.handing is not None:
        tasks.start("handing", loop(engine.handing.step, "handing"))
    # Nobody rings for it: it has a clock of its own.
    tasks.start("smartguard", loop(engine.guard.step, "smartguard"))
    tasks.start("wakes", lambda: _listen(bell, parts))


async def _listen(bell: Bell, parts: Parts) -> None:
    idle_ms = parts.settings.poll_interval_ms
    await keep_listening(parts.link.wakes, bell.ring, parts.clock, idle_ms=idle_ms, expected=Unavailable)
