"""Every setting of every service, read from the environment once, at the entry point.

Belongs here: one field per variable, its documentation directly under it (meaning, unit, why this default); the
docs and a test read them from there. Does not belong here: what a service makes of a setting.

    section.py     what all topics share: how a variable is read, units, addresses
    access.py      who reaches a service: where it listens, secrets, how much it takes
    neighbours.py  where Redis, the orchestrator and the data are
    pacing.py      pacing, routing and retries; people who say stop
    sending.py     the send protocol and the watchdog over it
    workers.py     proxies, and the workers with their runner
    content.py     media, events and webhooks
    alerting.py    Telegram and other channels
    keeping.py     what is kept and how long; logs; crash tests
    services.py    the topics put together, for all services and for each that needs more
    loading.py     reading them, with every fault named at once; policy files
"""

from paceline.settings.loading import SettingsError, env_name, load, load_settings, read_policy
from paceline.settings.services import DashboardSettings, DispatcherSettings, OrchestratorSettings, Settings, UpSettings

__all__ = [
    "DashboardSettings",
    "DispatcherSettings",
    "OrchestratorSettings",
    "Settings",
    "SettingsError",
    "UpSettings",
    "env_name",
    "load",
    "load_settings",
    "read_policy",
]
