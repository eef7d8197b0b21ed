"""Everything that can be refused before a process is started: options, settings, policy, keys, ports.

Neighbour: `up.py`, which starts nothing before these have passed.
"""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from paceline.kits import secrets
from paceline.kits.node import missing_for
from paceline.launcher.data import DEMO_DATA, DataDirectory
from paceline.launcher.errors import LauncherError, UsageError
from paceline.launcher.fake_whatsapp import SCRIPT
from paceline.launcher.services import Service
from paceline.settings import SettingsError, UpSettings, env_name, load, read_policy

# The drivers that `up` can run as a plain process of its own.
DRIVERS = ("simulated", "baileys")

# Ofcom keeps 07700 900000 to 900999 free for fiction: nobody is called by accident.
FIRST_PHONE = 447700900001
MAX_SESSIONS = 999

# Far beyond use: one dispatcher keeps up with any fleet that fits on one machine.
MAX_DISPATCHERS = 16


@dataclass(frozen=True)
class UpOptions:
    """What the command line says. `policy` and `data` None leave it to the environment."""

    sessions: int = 0
    policy: str | None = None
    driver: str = "simulated"
    dispatchers: int = 1
    data: Path | None = None
    fake_whatsapp: bool = False
    is_demo: bool = False


def check_options(options: UpOptions) -> None:
    if options.is_demo:
        check_demo()
    if options.driver not in DRIVERS:
        raise UsageError(f"unknown driver {options.driver!r}; `paceline up` can run: {', '.join(DRIVERS)}")
    if options.fake_whatsapp and options.driver != "baileys":
        raise UsageError("--fake-whatsapp goes with --driver baileys; simulated numbers have a WhatsApp of their own")
    if options.driver == "baileys" and options.sessions and not options.fake_whatsapp:
        raise UsageError(
            "real numbers are linked by somebody who scans their QR code, so `up` cannot connect them by itself: "
            "create them with POST /api/sessions (docs/workers.md), or add --fake-whatsapp to try it without a phone"
        )
    if not 0 <= options.sessions <= MAX_SESSIONS:
        raise UsageError(f"--sessions must be 0 to {MAX_SESSIONS}, as many numbers as are kept free for fiction")
    if not 1 <= options.dispatchers <= MAX_DISPATCHERS:
        raise UsageError(f"--dispatchers must be 1 to {MAX_DISPATCHERS}")


def check_demo() -> None:
    """The demo has a Redis, an audit trail and workers of its own: its policy knows no limits, and a real fleet has
    some."""
    given = {name: value for name in ("PACELINE_DATA", "REDIS_URL", "DB_PATH", "RUNNER") if (value := os.getenv(name))}
    if Path(given.get("PACELINE_DATA", DEMO_DATA)).expanduser().absolute() == DEMO_DATA.absolute():
        given.pop("PACELINE_DATA", None)
    if given.get("RUNNER", "").lower() == "process":
        del given["RUNNER"]
    if given:
        raise UsageError(
            f"the demo runs on {DEMO_DATA} and a Redis of its own only, because its policy would send without limits "
            f"from the numbers of another installation: unset {', '.join(given)}"
        )


def check_policy(name: str) -> str:
    """The policy under a name that children find from anywhere, after proving that it can be read."""
    try:
        read_policy(name)
    except SettingsError as error:
        raise UsageError(str(error)) from error
    is_file = "/" in name or name.endswith(".toml")
    return str(Path(name).expanduser().absolute()) if is_file else name


def load_up_settings(options: UpOptions) -> tuple[UpSettings, list[str]]:
    """The settings, and which of the keys `add_keys` must still fill in. All bad values are named before anything is
    made."""
    missing = [field for field in ("api_key", "webhook_secret") if not os.environ.get(env_name(field))]
    overrides = {"data": options.data} if options.data else {}
    placeholders = dict.fromkeys(missing, "is made in add_keys")
    return load(UpSettings, **overrides, **placeholders), missing


def add_keys(settings: UpSettings, missing: list[str], data: DataDirectory) -> UpSettings:
    """Keys that are not in the environment come from the data directory; the first run makes them there."""
    files = {"api_key": data.api_key, "webhook_secret": data.webhook_secret}
    keys = {field: SecretStr(secrets.read_or_create(files[field])) for field in missing}
    return settings.model_copy(update=keys)


def check_fake_whatsapp(options: UpOptions, settings: UpSettings) -> None:
    if not options.fake_whatsapp:
        return
    shares_loopback = settings.runner == "docker" and settings.worker_network == "host"
    if settings.runner != "process" and not shares_loopback:
        raise UsageError(
            "--fake-whatsapp listens on loopback, where only processes of this machine reach it; "
            f"RUNNER is {settings.runner}, and must be process, or docker with WORKER_NETWORK=host"
        )
    if reason := missing_for(settings.baileys_folder / SCRIPT):
        raise UsageError(f"--fake-whatsapp cannot be run: {reason}")


def check_ports(host: str, services: list[Service]) -> None:
    for service in services:
        name = service.spec.name
        check_port(host, service.port, name, f"{name.partition('-')[0].upper()}_PORT")


def check_port(host: str, port: int, name: str, variable: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As the servers do: a port whose last connections are still fading away is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise LauncherError(
                f"port {port} for the {name} cannot be used ({error.strerror}); "
                f"stop what uses it, or set {variable} to another port"
            ) from None
