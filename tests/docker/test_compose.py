"""`compose.yaml` as a newcomer uses it: an .env, the images, `up`, a number, a job. On images built here."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .engine import BASE, BUILD_SECONDS, PROJECT, SERVICES, WORKER, Engine

# Whoever comes first builds the images.
pytestmark = pytest.mark.timeout(900)

PATIENCE_SECONDS = 120
PHONE = "972540000077"


def compose_command(folder: Path) -> list[str]:
    """The plugin on compose.yaml; where there is only docker-compose 1, which knows no optional files, that on a copy
    without them."""
    if subprocess.run(["docker", "compose", "version"], check=False, capture_output=True).returncode == 0:
        return ["docker", "compose", "--file", "compose.yaml"]
    config = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    for service in config["services"].values():
        service["env_file"] = [file for file in service.get("env_file", []) if isinstance(file, str)]
    copy = folder / "compose.yaml"
    copy.write_text(yaml.safe_dump(config))
    return ["docker-compose", "--project-directory", str(PROJECT), "--file", str(copy)]


class Composition:
    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self.data = folder / "data"
        self.ports = {name: _free_port() for name in ("GATEWAY", "DISPATCHER", "ORCHESTRATOR", "DASHBOARD")}
        self._command = compose_command(folder)
        self._env_file = folder / ".env"
        subprocess.run(
            ["tools/compose-env", str(self._env_file)], cwd=PROJECT, check=True,
            env={**engine.env, "HOST_DATA": str(self.data), "DOCKER_SOCKET": str(engine.socket)},
        )  # fmt: skip
        made = self._env_file.read_text().splitlines()
        self.settings = dict(line.split("=", 1) for line in made if not line.startswith("#"))
        self.settings |= {
            "PACELINE_IMAGE": SERVICES, "WORKER_IMAGE": WORKER, "REDIS_IMAGE": BASE, "PACELINE_POLICY": "demo",
            "WORKER_NETWORK": "paceline-test-workers",
        } | {f"{name}_PORT": str(port) for name, port in self.ports.items()}  # fmt: skip
        self._env_file.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))

    def run(self, *arguments: str) -> str:
        options = ["--project-name", "paceline-test", "--env-file", str(self._env_file)]
        command = [*self._command, *options, *arguments]
        done = subprocess.run(
            command,
            check=False,
            cwd=PROJECT,
            env=self._engine.env,
            text=True,
            capture_output=True,
            timeout=BUILD_SECONDS,
        )
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}\n{done.stdout}"
        return done.stdout

    def ask(self, service: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports[service]}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-API-KEY": self.settings["API_KEY"], "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def wait(self, service: str, path: str, *, until: dict[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        found: dict[str, Any] = {}
        while time.monotonic() < deadline:
            try:
                found = self.ask(service, path)
            except (OSError, urllib.error.HTTPError) as error:
                found = {"error": str(error)}
            if until.items() <= found.items():
                return found
            time.sleep(0.2)
        raise AssertionError(f"{path} never became {until}: {found}\n{self.run('logs', '--tail=30')}")


@pytest.fixture
def composition(engine: Engine) -> Iterator[Composition]:
    # Not tmp_path: the engine mounts it, and a worker's user must be able to walk to it.
    folder = Path(tempfile.mkdtemp(prefix="paceline-compose-", dir="/var/tmp"))
    folder.chmod(0o755)
    composed = Composition(engine, folder)
    try:
        yield composed
    finally:
        engine.clear()
        composed.run("down", "--volumes")
        shutil.rmtree(folder)


def test_the_whole_composition_takes_a_job_to_its_end(engine: Engine, composition: Composition) -> None:
    config = composition.run("config")
    assert all(image in config for image in (SERVICES, WORKER, "whatsapp-worker-baileys"))
    composition.run("up", "--detach", "--no-build")
    for service, well in (
        ("GATEWAY", {"status": "ok"}),
        ("DISPATCHER", {"running": True}),
        ("ORCHESTRATOR", {"status": "ok"}),
        ("DASHBOARD", {"status": "ok"}),
    ):
        composition.wait(service, "/health", until=well)
    session = composition.ask("ORCHESTRATOR", "/api/sessions", {"phone": PHONE, "sessionId": "one"})
    composition.wait("ORCHESTRATOR", f"/api/sessions/{session['sessionId']}", until={"connection": "CONNECTED"})
    contacts = [f"9725400001{index:02}" for index in range(10)]
    job = composition.ask("GATEWAY", "/v1/jobs", {"contacts": contacts, "text": "hello"})
    done = composition.wait("GATEWAY", f"/v1/jobs/{job['jobId']}", until={"state": "DONE"})
    assert done["progress"]["sent"] == len(contacts)
    assert engine.docker("ps", "--format", "{{.Names}}", "--filter", "name=wa_session_").stdout.split() == [
        "wa_session_one"
    ]
    # Nothing that holds a number or a key runs as root, or can write to its own image.
    for name in engine.docker("ps", "--format", "{{.Names}}").stdout.split():
        about = json.loads(engine.docker("inspect", name).stdout)[0]
        if "redis" not in name:
            assert about["Config"]["User"].startswith("10001"), name
            assert about["HostConfig"]["ReadonlyRootfs"], name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
