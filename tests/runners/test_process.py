"""Workers as processes: they outlive whoever started them, are found again, and end when told to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from house.support import alive, until
from paceline.kits.log_files import MAX_BYTES
from paceline.kits.processes import PidFile, Process
from paceline.orchestrator.runners.base import StartRefused
from paceline.orchestrator.runners.process import ProcessRunner
from paceline.orchestrator.runners.programs import SIMULATED, Program, programs_of
from paceline.settings import Settings, load

from .fake import FakeRunner
from .suite import GRACE_MS, RunnerSuite, seen, spec, worker

# Prints its environment and waits; `deaf` does not hear SIGTERM, `short` ends at once.
WORKER = """
import json, os, signal, sys, time
print(json.dumps(dict(os.environ)), flush=True)
if os.environ["DRIVER"] == "short": sys.exit(7)
if os.environ["DRIVER"] == "deaf": signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""
STANDINS = {name: Program([sys.executable, "-c", WORKER]) for name in ("simulated", "short", "deaf")} | {
    "none": Program(["/nowhere/x"]),
    "unbuilt": Program(["/nowhere/x"], missing=lambda: "build it first"),
}


class TestFake(RunnerSuite):
    @pytest.fixture
    def runner(self) -> FakeRunner:
        return FakeRunner()


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[ProcessRunner]:
    running = ProcessRunner(tmp_path, STANDINS)
    yield running
    for one in await running.observe():
        await running.stop(one.handle, 0)


class TestProcess(RunnerSuite):
    @pytest.fixture
    async def runner(self, tmp_path: Path) -> AsyncIterator[ProcessRunner]:
        running = ProcessRunner(tmp_path, STANDINS)
        yield running
        for one in await running.observe():
            await running.stop(one.handle, 0)


async def wait_up(tmp_path: Path) -> None:
    await until(lambda: (tmp_path / "log" / "worker-s1.log").read_text().endswith("up\n"))


async def test_the_next_orchestrator_finds_what_the_last_one_started(runner: ProcessRunner, tmp_path: Path) -> None:
    await runner.start(spec())
    pid = int((await worker(runner)).handle.split("/")[1])
    assert os.getsid(pid) == pid, "what ends our terminal or our group would end it too"
    successor = ProcessRunner(tmp_path, STANDINS)
    assert await seen(successor) == [("s1", "i1", 1, "running")]
    handle = (await worker(successor)).handle
    await successor.stop(handle, GRACE_MS)
    await runner.observe()
    assert await seen(successor) == [("s1", "i1", 1, "exited")]
    await successor.remove(handle)
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_worker_outlives_a_killed_orchestrator(tmp_path: Path) -> None:
    """The one that starts it is a process of its own here, killed without mercy."""
    script = f"""
import asyncio, os, signal, sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from paceline.orchestrator.runners.process import ProcessRunner
from runners.suite import spec
from runners.test_process import STANDINS
asyncio.run(ProcessRunner(Path({str(tmp_path)!r}), STANDINS).start(spec()))
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False)  # noqa: ASYNC221
    assert ended.returncode == -signal.SIGKILL
    runner = ProcessRunner(tmp_path, STANDINS)
    found = await worker(runner)
    assert (found.instance, found.state) == ("i1", "running")
    await runner.stop(found.handle, GRACE_MS)


async def test_one_that_ended_by_itself_tells_how(runner: ProcessRunner) -> None:
    await runner.start(spec(driver="short"))
    while (found := await worker(runner)).state == "running":
        pass
    assert found.exit_code == 7


@pytest.mark.parametrize("driver", ["deaf", "simulated"])
async def test_one_that_does_not_listen_is_killed(runner: ProcessRunner, tmp_path: Path, driver: str) -> None:
    """Deaf, or frozen by SIGSTOP."""
    await runner.start(spec(driver=driver))
    await wait_up(tmp_path)
    found = await worker(runner)
    pid = int(found.handle.split("/")[1])
    if driver == "simulated":
        os.kill(pid, signal.SIGSTOP)
    await runner.stop(found.handle, 50)
    assert not alive(pid)


async def test_a_worker_knows_its_own_secret_and_no_other(
    runner: ProcessRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "REDIS_URL", "WEBHOOK_SECRET", "TELEGRAM_BOT_TOKEN", "PROXY_URL", "ANYTHING_ELSE"):
        monkeypatch.setenv(name, f"canary-{name}")
    await runner.start(spec(proxy_url="http://u:p@10.0.0.1:1"))
    await wait_up(tmp_path)
    told = json.loads((tmp_path / "log" / "worker-s1.log").read_text().splitlines()[0])
    assert [name for name, value in told.items() if "canary" in value] == []
    names = ("SESSION_ID", "PHONE", "WEBHOOK_SECRET", "PROXY_URL", "INSTANCE_ID", "ENABLE_KEEP_ALIVE", "PACELINE_DATA")
    assert [told[name] for name in names] == [
        "s1", "447700900001", "secret-of-this-session", "http://u:p@10.0.0.1:1", "i1", "true", str(tmp_path)
    ]  # fmt: skip
    assert "secret-of-this-session" not in repr(spec())


async def test_a_pid_that_belongs_to_somebody_else_now_is_not_our_worker(runner: ProcessRunner, tmp_path: Path) -> None:
    await runner.start(spec())
    found = await worker(runner)
    await runner.stop(found.handle, GRACE_MS)
    about = {"instance": "i1", "generation": "1"}
    PidFile(Process(os.getpid(), 1), about).write(tmp_path / "run" / "worker-s1.pid")
    impostor = await worker(runner)
    assert impostor.state == "exited"
    await runner.stop(impostor.handle, 0)


async def test_one_without_a_pid_file_is_seen_by_the_lock_of_its_volume(tmp_path: Path) -> None:
    """Its orchestrator was killed between the start and the pid file; the worker itself tells who it is."""
    runner = ProcessRunner(tmp_path, {"simulated": SIMULATED})
    await runner.start(spec())
    lock = tmp_path / "sessions" / "s1" / "worker.lock"
    await until(lambda: PidFile.read(lock))
    (tmp_path / "run" / "worker-s1.pid").unlink()
    found = await worker(runner)
    assert (found.instance, found.generation, found.state) == ("i1", 1, "running")
    await runner.stop(found.handle, GRACE_MS)
    await runner.observe()
    assert await runner.observe() == []


async def test_a_file_that_was_written_by_half_is_no_worker(runner: ProcessRunner, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "worker-s1.pid").write_text("12")
    assert await runner.observe() == []
    PidFile(Process(os.getpid(), 1), {"generation": "many"}).write(tmp_path / "run" / "worker-s1.pid")
    assert await seen(runner) == [("s1", "", 0, "exited")]
    await runner.start(spec())
    assert (await worker(runner)).state == "running"


async def test_a_long_log_is_cut_while_its_worker_runs(runner: ProcessRunner, tmp_path: Path) -> None:
    """Only `paceline up` did that; an orchestrator by itself let them grow for ever."""
    await runner.start(spec())
    log = tmp_path / "log" / "worker-s1.log"
    await until(lambda: log.read_bytes().endswith(b"up\n"))
    with log.open("ab") as file:
        file.truncate(MAX_BYTES + 1)
    await runner.usage([(await worker(runner)).handle])
    assert (log.stat().st_size, log.with_suffix(".log.1").stat().st_size) == (0, MAX_BYTES + 1)


async def test_what_cannot_be_started_says_why(runner: ProcessRunner) -> None:
    with pytest.raises(StartRefused, match="No such file"):
        await runner.start(spec(driver="none"))
    with pytest.raises(StartRefused, match="build it first"):
        await runner.start(spec(driver="unbuilt"))
    assert await runner.observe() == []


async def test_a_start_reads_the_files_of_its_own_session_alone(
    runner: ProcessRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every start read those of all: a fleet of 500 took minutes to begin, and its orchestrator answered nobody."""
    (tmp_path / "run").mkdir()
    for number in range(20):
        PidFile(Process.of(os.getpid())).write(tmp_path / "run" / f"worker-other{number}.pid")
    read: list[Path] = []

    def noted(path: Path) -> PidFile | None:
        read.append(path)
        return None

    monkeypatch.setattr(PidFile, "read", noted)
    await runner.start(spec())
    assert [path for path in read if "other" in path.name] == []
    monkeypatch.undo()
    for path in (tmp_path / "run").glob("worker-other*"):
        path.unlink()


def test_what_a_baileys_worker_misses_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = programs_of(load(Settings, baileys_path=tmp_path))["baileys"]
    script = tmp_path / "dist" / "src" / "main.js"
    assert program.command[-1] == str(script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert "install Node.js 20" in (program.missing() or "")
    _fake_node(tmp_path / "bin" / "node", "v18.20.1")
    assert "Node.js 18; 20 or newer" in (program.missing() or "")
    _fake_node(tmp_path / "bin" / "node", "v22.1.0")
    assert "tools/ensure-node" in (program.missing() or "")
    script.parent.mkdir(parents=True)
    script.touch()
    assert program.missing() is None


def _fake_node(path: Path, version: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)


def test_only_the_login_of_a_driver_that_keeps_one_is_given_its_key() -> None:
    environment = spec(driver="baileys", auth_key="k", whatsapp_url="wss://w").environment()
    assert (environment["AUTH_KEY"], environment["WHATSAPP_URL"]) == ("k", "wss://w")
    assert not {"AUTH_KEY", "WHATSAPP_URL", "WHATSAPP_VERSION"} & spec().environment().keys()
