"""The dashboard process."""

import asyncio
import logging
import sys
from typing import cast

import structlog
from uvicorn._types import ASGIApplication

from paceline.client import Urls
from paceline.dashboard.app import create_app
from paceline.domain.errors import ConfigError
from paceline.kits.clock import SystemClock
from paceline.kits.http import serve
from paceline.kits.logging import configure_logging
from paceline.settings import DashboardSettings, load

DEFAULT_PORT = 8080

log = structlog.stdlib.get_logger(__name__)


def main() -> None:
    """Ends 0 when it was asked to stop, 2 when it cannot start on these settings."""
    try:
        settings = load(DashboardSettings)
    except ConfigError as error:
        print(f"dashboard: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    configure_logging("dashboard", settings.log_level)
    # It tells of every browser that comes and goes.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    asyncio.run(_live(settings))


async def _live(settings: DashboardSettings) -> None:
    urls = Urls(settings.gateway_url, settings.dispatcher_url, settings.orchestrator_url)
    app, visitors = create_app(urls, SystemClock())
    port = settings.port or DEFAULT_PORT
    log.info("listening", host=settings.host, port=port, service="dashboard")
    # Starlette and uvicorn spell the same protocol differently.
    await serve(cast(ASGIApplication, app), settings.host, port, visitors.end_all)


if __name__ == "__main__":
    main()
