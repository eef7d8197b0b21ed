"""What is started: the command and the environment of each process.

The workers are not among them: the orchestrator starts those, each with its own session's secret and nothing else.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr

from paceline.launcher.children import ChildSpec
from paceline.launcher.data import DataDirectory
from paceline.settings import UpSettings

# The orchestrator ends its workers first, which have their own time for that; then what it has open itself.
ORCHESTRATOR_GRACE_MS = 15_000

# A worker whose orchestrator is being restarted must not end; one whose `up` was killed must not stay for long.
ORPHAN_MS = 30_000


@dataclass(frozen=True)
class Service:
    """One service process and where it answers."""

    spec: ChildSpec
    port: int
    url: str


class Processes:
    """Builds the specification of every process from what `up` was told."""

    def __init__(
        self,
        settings: UpSettings,
        data: DataDirectory,
        *,
        redis_url: str,
        policy: str,
        for_workers: Mapping[str, str] | None = None,
    ) -> None:
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
            # All of them: who knows that the WhatsApp is a fake one takes any policy.
            **(for_workers or {}),
        }

    def url(self, port: int) -> str:
        """Where this machine reaches a service of ours; one that listens everywhere listens on loopback too."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def services(self, dispatchers: int) -> list[Service]:
        first = self._settings.dispatcher_port
        names = ["dispatcher", *(f"dispatcher-{number}" for number in range(2, dispatchers + 1))]
        return [
            self._orchestrator(),
            *(self._service(name, "dispatcher", first + index) for index, name in enumerate(names)),
            self._service("gateway", "gateway", self._settings.gateway_port),
            *([self._dashboard()] if self._settings.dashboard_port else []),
        ]

    def _orchestrator(self) -> Service:
        """It runs the workers, as processes that go when `up` goes."""
        is_ours = self._settings.runner == "process"
        runs = {
            "RUNNER": self._settings.runner,
            "STOP_WORKERS": "true",
            # A container would be started again by its engine, and end again.
            "WORKER_ORPHAN_MS": str(self._settings.worker_orphan_ms or ORPHAN_MS) if is_ours else "0",
        }
        port = self._settings.orchestrator_port
        grace_ms = self._settings.worker_grace_ms + ORCHESTRATOR_GRACE_MS
        return self._service("orchestrator", "orchestrator", port, runs, grace_ms)

    def _dashboard(self) -> Service:
        """It asks the others over HTTP, with the key of whoever logs in: none of our secrets, and no Redis."""
        port = self._settings.dashboard_port
        env = self._shared | {
            "HOST": self._host,
            "PORT": str(port),
            "GATEWAY_URL": self.url(self._settings.gateway_port),
            "DISPATCHER_URL": self.url(self._settings.dispatcher_port),
        }
        for secret in ("API_KEY", "WEBHOOK_SECRET", "AUTH_SECRET", "REDIS_URL", "ORCHESTRATOR_API_KEY"):
            env.pop(secret, None)
        return Service(
            ChildSpec("dashboard", _python("dashboard", "dashboard"), env, grace_ms=5_000), port, self.url(port)
        )

    def _service(
        self, name: str, package: str, port: int, more: Mapping[str, str] | None = None, grace_ms: int = 5_000
    ) -> Service:
        env = self._service_env | {"PORT": str(port)} | dict(more or {})
        spec = ChildSpec(name=name, command=_python(package, name), env=env, grace_ms=grace_ms)
        return Service(spec, port, self.url(port))


def _python(package: str, name: str) -> list[str]:
    """Straight to the entry point, without the CLI. The name is for whoever reads `ps`."""
    return [sys.executable, "-c", f"import sys; from paceline.{package}.main import main; sys.exit(main())", name]


def _revealed(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
