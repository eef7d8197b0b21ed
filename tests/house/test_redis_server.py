"""The embedded Redis: which binary, which options, and that nothing written is lost by a kill."""

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from needed import skip_if
from paceline.launcher.children import Child, ChildSpec
from paceline.launcher.data import DataDirectory
from paceline.launcher.errors import LauncherError
from paceline.launcher.redis_server import OLDEST, RedisBinary, RedisServer, _bundled, _version_of, find_binary

from .support import until, until_async

EMBEDDED = RedisBinary(_bundled()[0], _version_of(_bundled()[0]) or (0,))
SYSTEM = find_binary()


@pytest.fixture(params=["embedded", "system"])
def binary(request: pytest.FixtureRequest) -> RedisBinary:
    if request.param == "embedded":
        return EMBEDDED
    skip_if("no system redis-server; see tools/ensure-redis" if SYSTEM.path == EMBEDDED.path else "")
    return SYSTEM


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    directory = DataDirectory(tmp_path)
    directory.create()
    return directory


@pytest.fixture
async def running(data: DataDirectory, binary: RedisBinary) -> AsyncIterator[tuple[RedisServer, Child]]:
    server = RedisServer(data, binary)
    child = Child(ChildSpec("redis", server.command(), env={}), data)
    child.start()
    await until_async(server.is_ready)
    yield server, child
    await child.stop()


async def ask(server: RedisServer, command: str) -> list[bytes]:
    reader, writer = await asyncio.open_unix_connection(str(server.socket))
    writer.write(f"{command}\r\nQUIT\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.split(b"\r\n")


async def test_it_runs_with_the_options_that_keep_messages_safe(running: tuple[RedisServer, Child]) -> None:
    server, _ = running
    wanted = {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory-policy": "noeviction",
        "aof-load-truncated": "yes",
        "save": "",
        "port": "0",
        "hash-max-ziplist-value": "1024",
        "hash-max-ziplist-entries": "64",
    }
    got = {name: (await ask(server, f"CONFIG GET {name}"))[4].decode() for name in wanted}
    assert got == wanted


async def test_what_was_answered_is_still_there_after_a_kill(running: tuple[RedisServer, Child]) -> None:
    server, child = running
    assert (await ask(server, "SET canary alive"))[0] == b"+OK"
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    await until(lambda: child.deaths)
    await until_async(server.is_ready)
    assert b"alive" in await ask(server, "GET canary")


async def test_only_this_user_can_talk_to_it(running: tuple[RedisServer, Child]) -> None:
    server, _ = running
    assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700


def test_a_data_directory_too_deep_for_a_socket_gets_one_in_the_temp_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    server = RedisServer(DataDirectory(tmp_path / ("deep" * 30)), EMBEDDED)
    assert len(os.fsencode(server.socket)) <= 100
    assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
    server.socket.parent.rmdir()


def test_an_old_server_is_not_let_near_newer_data(data: DataDirectory) -> None:
    """Redis 6.2 does not look into the directory where Redis 7 keeps its data, and would start with nothing."""
    (data.redis / "appendonlydir").mkdir()
    with pytest.raises(LauncherError, match="Redis 7"):
        RedisServer(data, EMBEDDED).check_data()
    RedisServer(data, RedisBinary(Path("redis-server"), (7, 0, 15))).check_data()


def test_the_embedded_server_is_always_there_and_new_enough() -> None:
    assert EMBEDDED.version >= OLDEST
    assert find_binary("/nowhere").path == EMBEDDED.path


def test_a_server_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.14 sha=0 bits=64'\n")
    old.chmod(0o755)
    assert find_binary(str(tmp_path)).path == EMBEDDED.path
    old.write_text("#!/bin/sh\necho 'Server v=8.0.1 sha=0 bits=64'\n")
    assert find_binary(str(tmp_path)) == RedisBinary(old, (8, 0, 1))
