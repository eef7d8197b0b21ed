"""Ids that a shell completes: asked of the platform, where it is by the environment; nothing if it does not answer
within a second, since somebody waits for the next letter."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.client import Operator

PATIENCE_SECONDS = 1.0
SHOWN = 100


def sessions(incomplete: str) -> list[str]:
    return _ids(incomplete, lambda p: (one.session_id for one in p.sessions.list(limit=SHOWN).items), of_fleet=True)


def jobs(incomplete: str) -> list[str]:
    return _ids(incomplete, lambda p: (one.job_id for one in p.jobs.list(limit=SHOWN).items))


def proxies(incomplete: str) -> list[str]:
    return _ids(incomplete, lambda p: (one.proxy_id for one in p.proxies.list(limit=SHOWN).items), of_fleet=True)


def keys(incomplete: str) -> list[str]:
    return _ids(incomplete, lambda p: (one.key_id for one in p.keys.list(limit=SHOWN).items))


def webhooks(incomplete: str) -> list[str]:
    return _ids(incomplete, lambda p: (one.webhook_id for one in p.webhooks.list(limit=SHOWN).items))


def _ids(incomplete: str, find: "Callable[[Operator], Iterable[str]]", *, of_fleet: bool = False) -> list[str]:
    from paceline.cli.asking import FleetApi, GatewayApi
    from paceline.client import PacelineError, Retries
    from paceline.launcher.errors import LauncherError

    api = (FleetApi if of_fleet else GatewayApi)(key=os.environ.get("API_KEY"))
    try:
        with api.opened(retries=Retries(tries=1), timeout_seconds=PATIENCE_SECONDS) as operator:
            return [found for found in find(operator) if found.startswith(incomplete)]
    except (PacelineError, LauncherError):
        return []
