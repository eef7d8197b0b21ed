"""What is started: the command and the environment of each process.

Each process gets the secrets it needs and no others: a worker knows its own session's secret, not the master, not the
API key, not Redis.
"""

import os
import sys
from dataclasses import dataclass

from pydantic import SecretStr

from paceline.kits import secrets
from paceline.launcher.children import ChildSpec
from paceline.launcher.data import DataDirectory
from paceline.settings import UpSettings

# A worker that is told it is not wanted (another instance took over, or the session was stopped) exits with this code.
NOT_WANTED_EXIT = 3
NOT_WANTED_PAUSE_MS = 5_000

# Time for a message in flight (typing, acknowledgement) to come to its end.
WORKER_GRACE_MS = 10_000

_NOT_FOR_WORKERS = ("API_KEY", "ORCHESTRATOR_API_KEY", "REDIS_URL", "WEBHOOK_SECRET", "PORT", "PROXY_URL")


@dataclass(frozen=True)
class Service:
    """One service process and where it answers."""

    spec: ChildSpec
    port: int
    url: str


class Processes:
    """Builds the specification of every process from what `up` was told."""

    def __init__(self, settings: UpSettings, data: DataDirectory, *, redis_url: str, policy: str) -> None:
        self._settings = settings
        self._data = data
        self._host = settings.host
        self._shared = {
            **os.environ,
            "PACELINE_DATA": str(data.root),
            "PACELINE_POLICY": policy,
            "ORCHESTRATOR_URL": self.url(settings.orchestrator_port),
            "PYTHONUNBUFFERED": "1",
        }
        self._service_env = {
            **self._shared,
            "HOST": settings.host,
            "REDIS_URL": redis_url,
            "SEND_MODE": os.environ.get("SEND_MODE") or "redis",
            "API_KEY": _revealed(settings.api_key),
            "WEBHOOK_SECRET": _revealed(settings.webhook_secret),
        }

    def url(self, port: int) -> str:
        """Where this machine reaches a service of ours; one that listens everywhere listens on loopback too."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def services(self, dispatchers: int) -> list[Service]:
        first = self._settings.dispatcher_port
        names = ["dispatcher", *(f"dispatcher-{number}" for number in range(2, dispatchers + 1))]
        return [
            self._service("orchestrator", "orchestrator", self._settings.orchestrator_port),
            *(self._service(name, "dispatcher", first + index) for index, name in enumerate(names)),
            self._service("gateway", "gateway", self._settings.gateway_port),
        ]

    def worker(self, session_id: str, phone: str, driver: str) -> ChildSpec:
        inherited = {key: value for key, value in self._shared.items() if key not in _NOT_FOR_WORKERS}
        own = {
            "SESSION_ID": session_id,
            "PHONE": phone,
            "DRIVER": driver,
            "WEBHOOK_URL": self._shared["ORCHESTRATOR_URL"],
            "WEBHOOK_SECRET": secrets.derive(_revealed(self._settings.webhook_secret), session_id),
        }
        return ChildSpec(
            name=f"worker-{session_id}",
            command=_python("worker", session_id),
            env=inherited | own,
            grace_ms=WORKER_GRACE_MS,
            pause_ms_after={NOT_WANTED_EXIT: NOT_WANTED_PAUSE_MS},
        )

    def _service(self, name: str, package: str, port: int) -> Service:
        env = self._service_env | {"PORT": str(port)}
        return Service(ChildSpec(name=name, command=_python(package, name), env=env), port, self.url(port))


def _python(package: str, name: str) -> list[str]:
    """Straight to the entry point: importing the CLI would cost each of many workers a quarter of a second.

    The name is for whoever reads `ps`.
    """
    return [sys.executable, "-c", f"import sys; from paceline.{package}.main import main; sys.exit(main())", name]


def _revealed(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
