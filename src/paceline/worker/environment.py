"""The worker's environment, read by hand: one process per session makes every megabyte of imports count."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.domain.errors import ConfigError

# It becomes the name of a directory.
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DRIVERS = ("simulated",)
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


@dataclass(frozen=True)
class Environment:
    """What the runner tells a worker. Everything it must not guess is required."""

    session_id: str
    """SESSION_ID: the session this worker holds."""
    webhook_url: str
    """WEBHOOK_URL: base address of the orchestrator."""
    webhook_secret: str
    """WEBHOOK_SECRET: this session's own secret, derived by the orchestrator."""
    data: Path
    """PACELINE_DATA: below it lie the worker's volume and the simulated WhatsApp's ledger."""
    driver: str
    """DRIVER: the way to WhatsApp."""
    keep_alive: bool
    """ENABLE_KEEP_ALIVE: a PING every 15 s, so that the watchdog can tell idle from dead."""
    log_level: str
    """LOG_LEVEL."""

    @property
    def volume(self) -> Path:
        return self.data / "sessions" / self.session_id


def read_environment(env: Mapping[str, str]) -> Environment:
    """Raises ConfigError with all that is wrong at once."""
    faults = [f"{name}: is not set" for name in ("SESSION_ID", "WEBHOOK_URL", "WEBHOOK_SECRET") if not env.get(name)]
    session_id, url = env.get("SESSION_ID", ""), env.get("WEBHOOK_URL", "")
    if session_id and not _SESSION_ID.fullmatch(session_id):
        faults.append("SESSION_ID: must be letters, digits, '-', '_' and '.', beginning with a letter or digit")
    if url and not url.startswith(("http://", "https://")):
        faults.append("WEBHOOK_URL: must be an http:// or https:// address")
    driver = env.get("DRIVER", "simulated")
    if driver not in _DRIVERS:
        faults.append(f"DRIVER: must be one of {', '.join(_DRIVERS)}")
    keep_alive = env.get("ENABLE_KEEP_ALIVE", "true").lower()
    if keep_alive not in _TRUE + _FALSE:
        faults.append("ENABLE_KEEP_ALIVE: must be true or false")
    if faults:
        raise ConfigError(faults)
    return Environment(
        session_id=session_id,
        webhook_url=url.rstrip("/"),
        webhook_secret=env["WEBHOOK_SECRET"],
        data=Path(env.get("PACELINE_DATA", "./data")),
        driver=driver,
        keep_alive=keep_alive in _TRUE,
        log_level=env.get("LOG_LEVEL", "info"),
    )
