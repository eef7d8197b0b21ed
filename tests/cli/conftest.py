"""One running platform for the whole package, and a stand-in for what a running one would not say."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from acceptance.platform import API_KEY, Platform, wait_for
from paceline.cli import app
from paceline.cli.exits import Exit

Answer = Callable[[httpx.Request], httpx.Response]
SETTINGS = ("GATEWAY_URL", "PACELINE_URL", "DISPATCHER_URL", "ORCHESTRATOR_URL", "API_KEY", "PACELINE_DATA")
PORTS = ("GATEWAY_PORT", "DISPATCHER_PORT", "ORCHESTRATOR_PORT", "DASHBOARD_PORT")
_NUMBERS = itertools.count(1)
POLICY = """name = "cli"
typing_ms = [0, 50]
burst_limit = 0

[[level]]
name = "quick"
rpm = 600
delay_ms = [50, 80]
"""


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are shown in the timezone of the terminal; in tests it is this one."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="package")
def platform() -> Iterator[Platform]:
    running = Platform(sessions=2, policy=POLICY)
    keep = True
    try:
        running.start()
        yield running
        running.stop()
        keep = False
    finally:
        running.destroy(keep=keep)


@dataclass
class Cli:
    """A command as a person at this platform would type it."""

    platform: Platform
    environment: dict[str, str]

    def run(self, *arguments: str, stdin: str | bytes = "") -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin, env=self.environment)

    def out(self, *arguments: str, stdin: str | bytes = "", exit_code: int = 0) -> str:
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result.stdout

    def said(self, *arguments: str, exit_code: int = 0) -> str:
        """What was said to people."""
        result = self.run(*arguments)
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result.stderr

    def json(self, *arguments: str) -> Any:
        return json.loads(self.out(*arguments, "--json"))

    def send(self, to: str, text: str = "Hello") -> str:
        return self.out("send", to, text).strip()

    def wait_for(self, what: str, *arguments: str, until: Callable[[Any], bool]) -> Any:
        def look() -> Any:
            found = self.json(*arguments)
            return found if until(found) else None

        return wait_for(what, look)


@pytest.fixture
def cli(platform: Platform) -> Cli:
    platform.simulate()
    return Cli(
        platform,
        {
            "GATEWAY_URL": platform.gateway,
            "DISPATCHER_URL": platform.dispatcher,
            "ORCHESTRATOR_URL": platform.orchestrator,
            "API_KEY": API_KEY,
            "PACELINE_DATA": str(platform.data),
        },
    )


@pytest.fixture
def unlinked(cli: Cli) -> Iterator[str]:
    """A session that shows a code; each its own, since the simulated WhatsApp remembers a link."""
    name = f"cli-qr-{next(_NUMBERS)}"
    cli.platform.simulate({"linking": "qr"})
    assert cli.out("sessions", "create", "447700900077", "--id", name, "--tag", "cli").strip() == name
    cli.wait_for("its code", "sessions", "show", name, until=lambda one: one["status"] == "SCAN_QR")
    yield name
    cli.run("sessions", "remove", name, "--force", "--yes")

    def is_gone(_page: object) -> bool:
        return cli.run("sessions", "show", name).exit_code == Exit.REFUSED

    cli.wait_for("it to be gone", "sessions", "list", until=is_gone)


class Standin:
    """Services that answer as they are told and remember what they were asked."""

    def __init__(self) -> None:
        self.answer: Answer = lambda _request: httpx.Response(200, json={})
        self.asked: list[httpx.Request] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self.answer(request)

    def says(self, status: int, body: Any) -> None:
        self.answer = lambda _request: httpx.Response(status, json=body)


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Standin:
    for name in (*SETTINGS, *PORTS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path))
    (tmp_path / "api-key").write_text("key-of-the-data-directory\n")
    standing = Standin()
    client = httpx.Client

    def with_standin(**options: Any) -> httpx.Client:
        return client(**options | {"transport": httpx.MockTransport(standing.handle)})

    monkeypatch.setattr(httpx, "Client", with_standin)
    return standing


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)
