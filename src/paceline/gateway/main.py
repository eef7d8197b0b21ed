"""The gateway process."""

import asyncio
import contextlib
from typing import Any

from paceline import compose
from paceline.compose import Parts
from paceline.domain.errors import Unavailable
from paceline.edge import Keys, Limits
from paceline.gateway.app import create_app
from paceline.gateway.intake import Intake
from paceline.gateway.measures import GatewayMeasures
from paceline.gateway.media import SWEEP_EVERY_MS, MediaDesk
from paceline.gateway.media import Limits as MediaLimits
from paceline.gateway.outlets import Outlets
from paceline.gateway.picture import PICTURE_AGE_MS
from paceline.kits.media_store import MediaFiles
from paceline.kits.safe_http import SafeHttp
from paceline.kits.service import Service
from paceline.kits.stepping import keep_stepping
from paceline.kits.tasks import Supervisor
from paceline.kits.web import MEGABYTE

DEFAULT_PORT = 4000


def main() -> None:
    compose.run("gateway", DEFAULT_PORT, _prepare)


async def _prepare(parts: Parts, tasks: Supervisor) -> Service:
    strategy, log_messages = parts.settings.routing_strategy, parts.settings.log_messages
    measures = GatewayMeasures(parts.metrics, parts.store, parts.clock, log_messages=log_messages)
    media = MediaDesk(
        parts.store,
        MediaFiles(parts.settings.data / "media"),
        limits=MediaLimits(
            parts.settings.media_max_bytes,
            parts.settings.media_kept_days,
            parts.settings.media_max_total_mb * MEGABYTE,
        ),
        in_thread=asyncio.to_thread,
    )
    intake = Intake(
        parts.store,
        parts.rules,
        parts.rng,
        strategy=strategy,
        route_ahead=parts.settings.route_ahead,
        media=media,
        breathe=lambda: asyncio.sleep(0),
        measures=measures,
    )
    with contextlib.suppress(Unavailable):
        # Before the first requests, or each of them would read the whole fleet.
        await intake.watcher.look(parts.clock.now_ms())
    watching: dict[str, Any] = {"idle_ms": PICTURE_AGE_MS, "expected": Unavailable}
    tasks.start("picture", lambda: keep_stepping(intake.watcher.step, parts.clock, asyncio.Event(), **watching))
    # Seldom in a hurry: what it removes was not used for weeks.
    timing: dict[str, Any] = {"idle_ms": SWEEP_EVERY_MS, "expected": Unavailable}
    tasks.start("media", lambda: keep_stepping(media.sweep, parts.clock, asyncio.Event(), **timing))
    # Only callers from outside are held to a rate; a dispatcher's calls to the orchestrator are paced already.
    limits = Limits(parts.settings.key_rate_per_minute, parts.settings.rate_per_minute)
    outlets = Outlets.of(
        parts.store,
        parts.clock,
        parts.rng,
        new_id=intake.new_job_id,
        http=SafeHttp(allow_private=parts.settings.webhook_allow_private),
        streams=parts.settings.event_streams,
        measures=measures,
    )
    outlets.start(tasks, parts.clock, idle_ms=parts.settings.poll_interval_ms)
    keys = Keys(parts.store, parts.clock, limits)
    return create_app(parts.store, intake, media, keys, parts.clock, outlets=outlets, metrics=parts.metrics)


if __name__ == "__main__":
    main()
