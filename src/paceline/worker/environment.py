"""The worker's environment, read by hand: one process per session makes every megabyte of imports count."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.domain.errors import ConfigError

# It becomes the name of a directory.
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DRIVERS = ("simulated",)
_INSTANCE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


@dataclass(frozen=True)
class Environment:
    """What the runner tells a worker. Everything it must not guess is required."""

    session_id: str
    """SESSION_ID: the session this worker holds."""
    phone: str
    """PHONE: the number it is linked to; a volume that belongs to another one is refused."""
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
    instance_id: str
    """INSTANCE_ID: which of the session's workers this is, given by the runner; unset, it takes one of its own."""
    generation: int
    """GENERATION: how many workers were wished for before, for whoever looks at its volume."""
    orphan_ms: int
    """ORPHAN_MS: it ends when no orchestrator has answered for so long; 0 waits for ever, as a worker should that
    somebody looks after."""

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
    instance_id = env.get("INSTANCE_ID") or uuid.uuid4().hex
    if not _INSTANCE_ID.fullmatch(instance_id):
        faults.append("INSTANCE_ID: must be at most 128 letters, digits, '-' and '_'")
    numbers = {name: env.get(name) or "0" for name in ("GENERATION", "ORPHAN_MS")}
    faults += [f"{name}: must be a number" for name, text in numbers.items() if not _is_number(text)]
    if faults:
        raise ConfigError(faults)
    return Environment(
        session_id=session_id,
        phone=env.get("PHONE", ""),
        webhook_url=url.rstrip("/"),
        webhook_secret=env["WEBHOOK_SECRET"],
        data=Path(env.get("PACELINE_DATA", "./data")),
        driver=driver,
        keep_alive=keep_alive in _TRUE,
        log_level=env.get("LOG_LEVEL", "info"),
        instance_id=instance_id,
        generation=int(numbers["GENERATION"]),
        orphan_ms=int(numbers["ORPHAN_MS"]),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15
