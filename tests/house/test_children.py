"""A supervised child: restarted when it dies, gone when it is stopped, never left behind."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from paceline.kits.log_files import rotate
from paceline.launcher.children import Child, ChildSpec
from paceline.launcher.data import DataDirectory, tail

from .support import alive, pid_in, until, until_sync

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"

StartChild = Callable[..., Child]


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    directory = DataDirectory(tmp_path / "data")
    directory.create()
    return directory


@pytest.fixture
async def start(data: DataDirectory) -> AsyncIterator[StartChild]:
    children: list[Child] = []

    def start_child(code: str, grace_ms: int = 5_000, pause_ms_after: dict[int, int] | None = None) -> Child:
        command = [sys.executable, "-c", code]
        spec = ChildSpec("child", command, dict(os.environ), grace_ms, pause_ms_after or {})
        child = Child(spec, data)
        children.append(child)
        child.start()
        return child

    yield start_child
    await asyncio.gather(*(child.stop() for child in children))


def is_up(data: DataDirectory) -> bool:
    return "up" in tail(data.log_file("child"))


async def test_a_killed_child_comes_back_with_a_new_pid_in_its_file(data: DataDirectory, start: StartChild) -> None:
    child = start(SLEEP)
    await until(lambda: pid_in(data.pid_file("child")))
    first = pid_in(data.pid_file("child"))
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: pid_in(data.pid_file("child")) not in (None, first))
    assert pid_in(data.pid_file("child")) == child.pid
    assert child.deaths == 1


async def test_a_child_whose_pid_cannot_be_written_is_kept_all_the_same(data: DataDirectory, start: StartChild) -> None:
    """On a full disk the keeper itself died of it, and Redis was not started again when there was room."""
    in_the_way = data.pid_file("child").with_suffix(".new")
    in_the_way.mkdir()
    child = start(SLEEP)
    await until(lambda: child.pid is not None)
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.pid not in (None, first))
    in_the_way.rmdir()
    await until(lambda: pid_in(data.pid_file("child")) == child.pid)


async def test_a_stopped_child_is_gone_with_its_pid_file(data: DataDirectory, start: StartChild) -> None:
    child = start(SLEEP)
    await until(lambda: is_up(data))
    pid = child.pid
    assert pid is not None
    await child.stop()
    assert not alive(pid)
    assert not data.pid_file("child").exists()
    assert child.deaths == 0


@pytest.mark.parametrize("freeze", [False, True], ids=["ignores SIGTERM", "frozen by SIGSTOP"])
async def test_a_child_that_does_not_listen_is_killed(data: DataDirectory, start: StartChild, freeze: bool) -> None:
    child = start(DEAF, grace_ms=50)
    await until(lambda: is_up(data))
    pid = child.pid
    assert pid is not None
    if freeze:
        os.kill(pid, signal.SIGSTOP)
    await child.stop()
    assert not alive(pid)


async def test_stop_does_not_wait_for_the_pause_before_a_restart(start: StartChild) -> None:
    child = start("raise SystemExit(3)", pause_ms_after={3: 3_600_000})
    await until(lambda: child.deaths)
    await child.stop()
    assert child.deaths == 1


async def test_a_command_that_does_not_exist_counts_as_a_death_and_says_so(data: DataDirectory) -> None:
    child = Child(ChildSpec("child", ["/nowhere/paceline-canary"], {}), data)
    child.start()
    await until(lambda: child.deaths)
    await child.stop()
    assert "paceline-canary" in tail(data.log_file("child"))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux'")
def test_a_parent_killed_without_mercy_leaves_no_child_behind(data: DataDirectory) -> None:
    """The parent is a process of its own here; even a child that ignores SIGTERM must go with it."""
    script = f"""
import asyncio, os, sys
from pathlib import Path
from paceline.launcher.children import Child, ChildSpec
from paceline.launcher.data import DataDirectory

async def main():
    spec = ChildSpec("child", [sys.executable, "-c", {DEAF!r}], dict(os.environ))
    Child(spec, DataDirectory(Path({str(data.root)!r}))).start()
    await asyncio.Event().wait()

asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    try:
        until_sync(lambda: is_up(data) and pid_in(data.pid_file("child")) is not None)
        child = pid_in(data.pid_file("child"))
    finally:
        parent.kill()
        parent.wait()
    until_sync(lambda: not alive(child))


def test_a_long_log_is_cut_while_its_child_goes_on_writing(data: DataDirectory) -> None:
    path = data.log_file("child")
    with open(path, "ab", buffering=0) as writer:
        writer.write(b"x" * 2_000 + b"\n")
        rotate(path, max_bytes=1_000)
        writer.write(b"after\n")
    assert path.read_bytes() == b"after\n"
    assert path.with_suffix(".log.1").stat().st_size == 2_001
