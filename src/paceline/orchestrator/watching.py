"""From settings to the loops that look after workers and proxies. `main` starts them; nothing here decides."""

import asyncio

from paceline.compose import Parts
from paceline.domain.errors import Unavailable
from paceline.kits.stepping import keep_stepping
from paceline.kits.tasks import Supervisor
from paceline.orchestrator.provisioning import holder_of
from paceline.orchestrator.proxy_checks import ProxyChecks
from paceline.orchestrator.runners.base import Runner
from paceline.orchestrator.watchdog import Watchdog
from paceline.policy.watchdog import WatchRules


def start_watching(parts: Parts, tasks: Supervisor, runner: Runner, port: int) -> None:
    settings, store, clock = parts.settings, parts.store, parts.clock
    rules = WatchRules(
        silent_ms=settings.liveness_ms,
        stuck_ms=settings.stuck_ms,
        deaf_ms=settings.deaf_ms,
        down_ms=settings.down_ms,
    )
    monitor_ms, check_ms = settings.monitor_interval_ms, settings.proxy_check_interval_ms
    watchdog = Watchdog(store, runner, rules, holder=holder_of(port), interval_ms=monitor_ms)
    tasks.start(
        "watchdog",
        lambda: keep_stepping(watchdog.step, clock, asyncio.Event(), idle_ms=monitor_ms, expected=Unavailable),
    )
    if settings.proxy_check_url:
        checks = ProxyChecks(store, target=settings.proxy_check_url, interval_ms=check_ms, holder=holder_of(port))
        tasks.start(
            "proxy checks",
            lambda: keep_stepping(checks.step, clock, asyncio.Event(), idle_ms=check_ms, expected=Unavailable),
        )
