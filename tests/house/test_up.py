"""`paceline up` with stand-ins for the services: ready, restart, stop, come back; and what it refuses."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from paceline.launcher.errors import LauncherError, UsageError
from paceline.launcher.preflight import UpOptions, check_options
from paceline.launcher.up import Platform

from .support import alive, pid_in, until, until_sync

STANDIN = Path(__file__).with_name("standin.py")

# `up` as the command line runs it, with the one change that its children are stand-ins.
UP = f"""
import sys
from paceline.launcher import services
services._python = lambda package, name: [sys.executable, {str(STANDIN)!r}, package, name]
from paceline import cli
cli.main()
"""


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def environment(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "WEBHOOK_SECRET", "REDIS_URL", "HOST", "PORT", "PACELINE_POLICY", "DB_PATH", "RUNNER"):
        monkeypatch.delenv(name, raising=False)
    gateway, orchestrator, dispatcher, dashboard = free_ports(4)
    monkeypatch.setenv("PACELINE_DATA", str(data))
    monkeypatch.setenv("GATEWAY_PORT", str(gateway))
    monkeypatch.setenv("ORCHESTRATOR_PORT", str(orchestrator))
    monkeypatch.setenv("DISPATCHER_PORT", str(dispatcher))
    monkeypatch.setenv("DASHBOARD_PORT", str(dashboard))


@pytest.fixture
def demo_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's own, below where it is started."""
    monkeypatch.delenv("PACELINE_DATA")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "demo"


@contextlib.contextmanager
def running_up(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", UP, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ready_facts(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    word, *facts = shlex.split(process.stdout.readline())
    assert word == "ready"
    return dict(fact.split("=", 1) for fact in facts)


def pids(data: Path) -> dict[str, int]:
    # A file may vanish between the listing and the reading: then that child is between two lives.
    return {path.stem: pid for path in (data / "run").glob("*.pid") if (pid := pid_in(path)) is not None}


def make_fail(data: Path, name: str) -> None:
    data.mkdir(exist_ok=True)
    (data / f"fail-{name}").write_text("1")


def make_look(data: Path, session: str, seen: dict[str, object]) -> None:
    data.mkdir(exist_ok=True)
    (data / f"look-{session}").write_text(json.dumps(seen))


@pytest.fixture
async def platform(data: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    monkeypatch.setattr("paceline.launcher.services._python", lambda *a: [sys.executable, str(STANDIN), *a])
    async with Platform(UpOptions(sessions=1), say=lambda message: None) as running:
        await running.start()
        yield running


def test_one_ready_line_all_pid_files_and_a_clean_stop(data: Path) -> None:
    with running_up("up", "--sessions", "2", "--dispatchers", "2") as up:
        facts = ready_facts(up)
        assert facts["gateway"] == f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}"
        assert facts["dispatcher-2"] == f"http://127.0.0.1:{int(os.environ['DISPATCHER_PORT']) + 1}"
        assert (facts["sessions"], facts["data"]) == ("2", str(data))
        started = pids(data)
        assert facts["dashboard"] == f"http://127.0.0.1:{os.environ['DASHBOARD_PORT']}"
        numbers = {"worker-sim-1", "worker-sim-2"}
        services = {"redis", "gateway", "dispatcher", "dispatcher-2", "orchestrator", "dashboard", *numbers}
        assert started.keys() == services
        up.send_signal(signal.SIGTERM)
        rest, _ = up.communicate(timeout=30)
        assert (up.returncode, rest) == (0, "")
        assert [name for name, pid in started.items() if alive(pid)] == []
        assert pids(data) == {}


def test_started_again_it_keeps_its_key_and_its_numbers(data: Path) -> None:
    for sessions in ("1", "0"):
        with running_up("up", "--sessions", sessions) as up:
            key_file = Path(ready_facts(up)["key-file"])
            key = key_file.read_text()
            assert key_file.stat().st_mode & 0o777 == 0o600
            until_sync(lambda: pid_in(data / "run" / "worker-sim-1.pid"))
            up.send_signal(signal.SIGINT)
            assert up.wait(30) == 0
    assert key == (data / "api-key").read_text()
    assert len(json.loads((data / "standin-sessions.json").read_text())) == 1


def test_killed_without_mercy_it_leaves_only_workers_and_starts_again(data: Path) -> None:
    """A worker ends by itself when nobody answers it (the stand-in's does not); the next `up` has it again."""
    with running_up("up", "--sessions", "1") as up:
        ready_facts(up)
        left = pids(data)
        worker = left.pop("worker-sim-1")
        up.kill()
        up.wait()
        until_sync(lambda: not any(alive(pid) for pid in left.values()))
    with running_up("up", "--sessions", "1") as up:
        assert ready_facts(up)["sessions"] == "1"
        assert (pids(data)["worker-sim-1"], alive(worker)) == (worker, True)
        up.send_signal(signal.SIGTERM)
        assert up.wait(30) == 0
    assert not alive(worker)


async def test_whatever_dies_comes_back(platform: Platform, data: Path) -> None:
    before = pids(data)
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    await until(lambda: (now := pids(data)).keys() == before.keys() and not set(now.values()) & set(before.values()))


async def test_a_child_that_keeps_dying_is_given_up_with_the_end_of_its_log(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.launcher.services._python", lambda *a: [sys.executable, str(STANDIN), *a])
    make_fail(data, "gateway")
    with pytest.raises(LauncherError, match="the canary died"):
        async with Platform(UpOptions(), say=lambda message: None) as platform:
            await platform.start()
    assert pids(data) == {}


async def test_a_number_whose_worker_keeps_dying_is_given_up_too(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.launcher.services._python", lambda *a: [sys.executable, str(STANDIN), *a])
    make_fail(data, "sim-1")
    with pytest.raises(LauncherError, match=r"worker-sim-1 keeps dying[\s\S]*the canary died"):
        async with Platform(UpOptions(sessions=1), say=lambda message: None) as platform:
            await platform.start()
    assert pids(data) == {}


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param({"connection": "STOPPED", "desired": "stopped"}, id="stopped"),
        pytest.param({"connection": "FAILED", "failedReason": "CRASH_LOOP", "starts": 9}, id="failed"),
        pytest.param({"connection": "STARTING", "authorisation": "LOGGED_OUT"}, id="logged out"),
        pytest.param({"connection": "STARTING", "restriction": "QUARANTINED"}, id="banned"),
    ],
)
async def test_a_number_that_should_not_run_is_told_of_and_not_waited_for(
    data: Path, monkeypatch: pytest.MonkeyPatch, seen: dict[str, object]
) -> None:
    """One that was stopped or banned kept `up` from starting on the same data ever again."""
    monkeypatch.setattr("paceline.launcher.services._python", lambda *a: [sys.executable, str(STANDIN), *a])
    monkeypatch.setattr("paceline.launcher.up.READY_SECONDS", 20.0)
    make_look(data, "sim-1", seen)
    said: list[str] = []
    async with Platform(UpOptions(sessions=2), say=said.append) as platform:
        await platform.start()
    reason = seen.get("failedReason", seen["connection"])
    assert [line for line in said if "sim-" in line] == [
        f"sim-1 is not connected ({reason}); it stays so until somebody starts it"
    ]


async def test_a_second_one_on_the_same_data_is_refused(data: Path) -> None:
    async with Platform(UpOptions(), say=lambda message: None):
        with pytest.raises(LauncherError, match=f"pid {os.getpid()}"):
            async with Platform(UpOptions(), say=lambda message: None):
                pass


async def test_a_port_in_use_is_named_with_its_variable_and_nothing_is_started(data: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(os.environ["DISPATCHER_PORT"])))
        taken.listen()
        with pytest.raises(LauncherError, match=rf"{os.environ['DISPATCHER_PORT']}.*DISPATCHER_PORT"):
            async with Platform(UpOptions(), say=lambda message: None) as platform:
                await platform.start()
    assert not (data / "log" / "redis.log").exists()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        pytest.param(UpOptions(driver="pigeon"), "pigeon", id="driver"),
        pytest.param(UpOptions(policy="reckless"), "reckless", id="policy name"),
        pytest.param(UpOptions(policy="./nowhere.toml"), "nowhere.toml", id="policy file"),
        pytest.param(UpOptions(sessions=1_000), "999", id="sessions"),
        pytest.param(UpOptions(dispatchers=0), "--dispatchers", id="dispatchers"),
        pytest.param(UpOptions(driver="baileys", sessions=1), "scans their QR code", id="numbers nobody links"),
        pytest.param(UpOptions(fake_whatsapp=True), "--driver baileys", id="a WhatsApp for nobody"),
        pytest.param(UpOptions(driver="baileys", fake_whatsapp=True), "tools/ensure-node|Node.js 20", id="no build"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_is_made(
    options: UpOptions, names: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAILEYS_PATH", str(data.parent))

    async def enter() -> None:
        async with Platform(options):
            pass

    with pytest.raises(UsageError, match=names):
        asyncio.run(enter())
    assert not data.exists()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PACELINE_DATA", "elsewhere"),
        ("REDIS_URL", "redis://127.0.0.1:6379"),
        ("DB_PATH", "elsewhere/orchestrator.sqlite"),
        ("RUNNER", "docker"),
    ],
)
def test_the_demo_refuses_to_run_on_another_installation_before_anything_is_made(
    demo_data: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """Its policy has no limits: it ran a real fleet's numbers without any."""
    monkeypatch.setenv(variable, value)
    with running_up("demo", "--exit") as demo:
        _, said = demo.communicate(timeout=60)
    assert demo.returncode == 2
    assert f"unset {variable}" in said
    assert len(said.splitlines()) == 1
    assert not demo_data.exists()
    assert not Path("elsewhere").exists()


def test_the_demo_may_be_told_of_its_own_directory(demo_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_DATA", str(demo_data))
    check_options(UpOptions(is_demo=True))


@pytest.mark.parametrize(("state", "exit_code"), [("DONE", 0), ("DONE_WITH_ERRORS", 1)])
def test_the_demo_without_a_terminal_prints_lines_and_ends_with_the_job(
    demo_data: Path, monkeypatch: pytest.MonkeyPatch, state: str, exit_code: int
) -> None:
    monkeypatch.setenv("STANDIN_JOB_STATE", state)
    with running_up("demo", "--exit") as demo:
        output, _ = demo.communicate(timeout=60)
    assert demo.returncode == exit_code
    assert "200 contacts accepted" in output
    assert "sent 200/200, delivered 7, read 3, failed 0" in output
    assert "sim-3.jsonl" in output
    assert "curl -X POST" in output
    assert "Ctrl-C" not in output
    assert "\x1b" not in output


def test_the_demo_ends_with_the_dashboards_address_and_stays_up(demo_data: Path) -> None:
    with running_up("demo") as demo:
        assert demo.stdout is not None
        lines = list(iter(demo.stdout.readline, "It stays up until you press Ctrl-C.\n"))
        assert f": http://127.0.0.1:{os.environ['DASHBOARD_PORT']}\n" in lines[-3]
        assert str(demo_data / "api-key") in lines[-2]
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 0


async def test_the_dashboard_is_given_no_secret_and_no_redis(platform: Platform) -> None:
    given = platform.services["dashboard"].spec.env
    secrets = {"API_KEY", "WEBHOOK_SECRET", "AUTH_SECRET", "ORCHESTRATOR_API_KEY", "REDIS_URL"}
    assert not secrets & given.keys()
    assert given["GATEWAY_URL"] == platform.services["gateway"].url
    assert given["ORCHESTRATOR_URL"] == platform.services["orchestrator"].url


async def test_without_a_port_there_is_no_dashboard(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHBOARD_PORT", "0")
    monkeypatch.setattr("paceline.launcher.services._python", lambda *a: [sys.executable, str(STANDIN), *a])
    async with Platform(UpOptions(), say=lambda message: None) as platform:
        await platform.start()
        assert "dashboard" not in platform.services
        assert "dashboard" not in platform.ready_line()


async def test_the_logs_and_the_ready_line_hold_no_key(platform: Platform, data: Path) -> None:
    written = platform.ready_line() + "".join(path.read_text() for path in (data / "log").glob("*.log"))
    kept = [(data / name).read_text().strip() for name in ("api-key", "webhook-secret")]
    assert [secret for secret in kept if secret in written] == []
