"""`paceline doctor` on real things: a running platform, a Redis that forgets, a port that is taken."""

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from acceptance.platform import WEBHOOK_SECRET, free_ports
from lua.servers import start_redis
from paceline.cli.exits import Exit
from paceline.store import keys

from .conftest import PORTS, SETTINGS, Cli, run


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which nothing runs; the data directory."""
    for name in (*SETTINGS, "REDIS_URL", "RUNNER", "HOST", "WEBHOOK_SECRET", "DOCKER_HOST"):
        monkeypatch.delenv(name, raising=False)
    first = free_ports(len(PORTS))
    for number, name in enumerate(PORTS):
        monkeypatch.setenv(name, str(first + number))
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    monkeypatch.setenv("PACELINE_DATA", str(data))
    return data


def found(exit_code: int) -> dict[str, dict[str, Any]]:
    """By what it is about; of several the worst."""
    result = run("doctor", "--json")
    assert result.exit_code == exit_code, result.output
    order = ("ok", "note", "warning", "fault")
    return {one["about"]: one for one in sorted(json.loads(result.stdout), key=lambda one: order.index(one["state"]))}


def test_a_fresh_machine_has_no_fault(quiet: Path) -> None:
    told = found(Exit.DONE)
    assert told["API_KEY"]["state"] == "note"
    assert "paceline up" in told["Redis"]["found"]
    assert "API key" not in told, "nothing runs that could be asked"


def test_a_running_platform_is_well(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = dict(zip(PORTS, (cli.platform.gateway, cli.platform.dispatcher, cli.platform.orchestrator), strict=False))
    for name, url in ports.items():
        monkeypatch.setenv(name, url.rpartition(":")[2])
    monkeypatch.setenv("DASHBOARD_PORT", str(free_ports(1)))
    monkeypatch.setenv("WEBHOOK_SECRET", WEBHOOK_SECRET)
    for name, value in cli.environment.items():
        monkeypatch.setenv(name, value)
    told = found(Exit.DONE)
    assert told["Redis durability"]["found"] == "every write is on the disk before it is answered"
    assert told["API key"]["found"] == "accepted; may send, read, admin"
    assert {one["state"] for about, one in told.items() if about.startswith("port ")} == {"ok"}
    words = run("doctor")
    assert "0 faults" in words.stderr
    monkeypatch.setenv("API_KEY", "somebody-elses-key-1")
    assert found(Exit.FAILED)["API key"]["state"] == "fault"


@pytest.fixture
def forgetful() -> Iterator[str]:
    """A Redis as a distribution sets it up."""
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        process, path = start_redis("system", folder)
        try:
            yield f"unix://{path}"
        finally:
            process.terminate()
            process.wait()


def test_a_redis_that_forgets_is_a_fault_with_its_remedy(
    quiet: Path, forgetful: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", forgetful)
    durability = found(Exit.FAILED)["Redis durability"]
    assert (durability["state"], "CONFIG SET appendonly yes" in durability["mend"]) == ("fault", True)


def test_a_fleet_that_was_mixed_before_is_a_fault(quiet: Path, forgetful: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", forgetful)
    with redis.Redis(unix_socket_path=forgetful.removeprefix("unix://")) as client:
        for session, driver in (("s1", "simulated"), ("r1", "baileys"), ("r2", "baileys")):
            client.sadd(keys.sessions(), session)
            client.hset(keys.session(session), "driver", driver)
    told = found(Exit.FAILED)["numbers"]
    assert (told["state"], told["found"].partition(":")[0]) == ("fault", "1 simulated beside 2 real")


def test_a_redis_that_is_away_is_a_fault_without_its_password(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", f"redis://:canary@127.0.0.1:{free_ports(1)}")
    result = run("doctor")
    assert result.exit_code == Exit.FAILED
    assert "FAULT Redis: no answer" in result.stdout
    assert "canary" not in result.output


def test_a_port_that_somebody_else_has(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        # It answers nothing, so doctor must not wait for ever.
        other.settimeout(0.1)
        port = other.getsockname()[1]
        monkeypatch.setenv("GATEWAY_PORT", str(port))
        monkeypatch.setattr("paceline.cli.examining.ASK_SECONDS", 0.2)
        assert found(Exit.FAILED)[f"port {port}"]["state"] == "fault"


def test_docker_that_is_wanted_and_away(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNNER", "docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{quiet}/no.sock")
    assert found(Exit.FAILED)["Docker"]["state"] == "fault"


def test_files_that_others_can_read(quiet: Path) -> None:
    os.chmod(quiet, 0o755)
    key = quiet / "api-key"
    key.write_text("a-key-that-nobody-guesses-1\n")
    key.chmod(0o644)
    told = found(Exit.FAILED)
    assert (told["data directory"]["state"], told["API_KEY"]["state"]) == ("warning", "fault")
    assert f"chmod 600 {key}" in told["API_KEY"]["mend"]


def test_bad_settings_are_named_all_at_once(quiet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PORT", "many")
    monkeypatch.setenv("RUNNER", "nobody")
    told = found(Exit.FAILED)
    assert {name for name, one in told.items() if one["state"] == "fault"} == {"GATEWAY_PORT", "RUNNER"}
