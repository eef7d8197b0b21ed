"""From settings to the parts every service is made of: the one place that wires store, rules, clock and chance.

Each service's `main` takes these parts, adds its own loops and routes, and runs.
"""

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import structlog
import uvloop

from paceline.domain.drivers import is_simulated
from paceline.domain.errors import ConfigError, Unavailable
from paceline.edge import Keys
from paceline.kits.bodies import BodyLimits
from paceline.kits.brain import Brain, BrainPort, NoBrain, new_client
from paceline.kits.clock import SampledClock, monotonic_ms
from paceline.kits.http import serve
from paceline.kits.logging import configure_logging
from paceline.kits.metrics import Metrics
from paceline.kits.rng import Rng, new_rng
from paceline.kits.service import Service
from paceline.kits.tasks import Supervisor
from paceline.kits.web import MEGABYTE
from paceline.policy.facts import Rules
from paceline.policy.pacing import PaceDefaults
from paceline.policy.retry import RetrySettings
from paceline.policy.trust import DEMO, parse
from paceline.settings import Settings, load, read_policy
from paceline.store.client import RedisLink
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store
from paceline.telemetry.link import TimedLink
from paceline.telemetry.service import about_service, new_metrics, watch_requests

log = structlog.stdlib.get_logger(__name__)

REDIS_PATIENCE_MS = 60_000
"""How long a starting service waits for Redis: it may be reading its log back in. Then whoever started us is told."""
REDIS_RETRY_MS = 250
DAY_SECONDS = 86_400
COLLECTED_AT_ONCE = 10_000
"""New objects between two looks of the collector: some megabytes."""


@dataclass(frozen=True)
class Parts:
    settings: Settings
    link: RedisLink
    store: Store
    rules: Rules
    retries: RetrySettings
    clock: SampledClock
    keys: Keys
    rng: Rng
    brain: BrainPort
    metrics: Metrics
    before_stop: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What a service ends in order while it still answers, in the order it was added."""


def build(settings: Settings) -> Parts:
    rules = rules_of(settings)
    link = RedisLink(settings.redis_url)
    # The scripts must score a phone as early as the policy hands over, or it would wake too late.
    config = ScriptConfig(
        lead_ms=rules.lead_ms,
        stats_ttl=settings.job_stats_ttl_seconds,
        message_ttl=settings.messages_kept_days * DAY_SECONDS,
        job_ttl=settings.jobs_kept_days * DAY_SECONDS,
        global_rpm=settings.global_rpm,
        frequency_cap=settings.recipient_cap,
        frequency_window=settings.recipient_cap_hours * 3_600_000,
        events_kept=settings.events_kept,
    )
    metrics = new_metrics()
    store = Store(TimedLink(link, metrics), config)
    clock = SampledClock(link.time_ms)
    return Parts(
        settings=settings,
        link=link,
        store=store,
        rules=rules,
        retries=RetrySettings(settings.max_retries, settings.retry_delay_ms),
        clock=clock,
        keys=Keys(store, clock),
        rng=new_rng(),
        brain=Brain(settings.session_brain_url, new_client()) if settings.session_brain_url else NoBrain(),
        metrics=metrics,
    )


def rules_of(settings: Settings) -> Rules:
    defaults = PaceDefaults(
        min_delay_ms=settings.default_min_delay_ms,
        max_delay_ms=settings.default_max_delay_ms,
        burst_limit=settings.burst_limit,
        burst_cooldown_ms=settings.burst_cooldown_ms,
    )
    return Rules(
        parse(read_policy(settings.policy)),
        defaults,
        liveness_ms=settings.liveness_ms,
        global_rpm=settings.global_rpm,
        retry_delay_ms=settings.retry_delay_ms,
    )


async def wait_for_redis(parts: Parts) -> None:
    """Until the clock has its first sample, which is the first answer of Redis."""
    started_ms, told = monotonic_ms(), False
    while True:
        try:
            return await parts.clock.sample()
        except Unavailable as error:
            if monotonic_ms() - started_ms > REDIS_PATIENCE_MS:
                raise ConfigError([f"REDIS_URL: no answer for {REDIS_PATIENCE_MS // 1000} s ({error})"]) from error
            if not told:
                log.warning("waiting for Redis", reason=str(error), patience_ms=REDIS_PATIENCE_MS)
                told = True
        await asyncio.sleep(REDIS_RETRY_MS / 1000)


def simulated_only(settings: Settings, rules: Rules) -> bool:
    """Whether no real number may be sent from on these terms. Against a WhatsApp for tests none is real."""
    return rules.policy.name == DEMO and settings.whatsapp_url is None


async def check_fleet(parts: Parts) -> None:
    """The numbers that are there may be sent from under this policy."""
    if not simulated_only(parts.settings, parts.rules):
        return
    found = await parts.store.sessions.drivers()
    if real := sum(count for driver, count in found.items() if not is_simulated(driver)):
        fault = f"PACELINE_POLICY: the demo policy has no limits, and {real} of the sessions are real (DEMO_POLICY)"
        raise ConfigError([f"{fault}; use another policy, or another Redis and data directory"])


Prepare = Callable[[Parts, Supervisor], Awaitable[Service]]
"""Starts a service's own loops and gives its HTTP application."""


def run(name: str, default_port: int, prepare: Prepare, kind: type[Settings] = Settings) -> None:
    """The life of a service process. Ends 0 when it was asked to stop, 2 when it cannot start on these settings.
    `kind` says what this service needs of them."""
    try:
        settings = load(kind)
        secrets = (
            settings.api_key,
            settings.webhook_secret,
            settings.auth_secret,
            settings.orchestrator_api_key,
            settings.telegram_bot_token,
            settings.alert_urls,
        )
        configure_logging(
            name, settings.log_level, secrets=tuple(secret.get_secret_value() for secret in secrets if secret)
        )
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_live(name, settings.port or default_port, prepare, build(settings)))
    except ConfigError as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error


async def _live(name: str, port: int, prepare: Prepare, parts: Parts) -> None:
    try:
        await wait_for_redis(parts)
        await check_fleet(parts)
        if parts.settings.api_key is not None:
            await parts.keys.save_bootstrap(parts.settings.api_key.get_secret_value())
        else:
            log.warning("API_KEY is not set: only keys that are stored already are accepted")
        async with Supervisor() as tasks:
            tasks.start("clock", parts.clock.run)
            if isinstance(parts.brain, Brain):
                tasks.start("brain", parts.brain.run)
            about_service(name, parts.store, parts.metrics)
            app = await prepare(parts, tasks)
            watch_requests(app, parts.metrics)
            app.hold_to(BodyLimits(parts.settings.body_timeout_seconds, parts.settings.bodies_at_once_mb * MEGABYTE))
            _spare_collector()
            log.info("listening", host=parts.settings.host, port=port, service=name)
            await serve(app, parts.settings.host, port, partial(_say_goodbye, parts))
    finally:
        await parts.link.close()


def _spare_collector() -> None:
    """What is there now stays; looking through it again and again, and at every few requests, is a tenth of a busy
    process' time. What requests leave behind is freed by its count, without the collector."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AT_ONCE, 20, 50)


async def _say_goodbye(parts: Parts) -> None:
    for end in parts.before_stop:
        await end()
