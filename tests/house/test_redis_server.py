"""The embedded Redis: which options it runs with, and that nothing written is lost by a kill."""

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lua.servers import IDS, OLDEST, system_redis
from paceline.launcher.children import Child, ChildSpec
from paceline.launcher.data import DataDirectory
from paceline.launcher.redis_binary import RedisBinary, bundled, look_at
from paceline.launcher.redis_server import RedisServer

from .support import until, until_async


@pytest.fixture(params=IDS)
def binary(request: pytest.FixtureRequest) -> RedisBinary:
    path = {"embedded": bundled, "system": system_redis, "oldest": lambda: OLDEST}[request.param]()
    found = look_at(Path(str(path)))
    assert found
    return found


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
    server = RedisServer(DataDirectory(tmp_path / ("deep" * 30)), RedisBinary(Path("redis-server"), (7, 0, 15)))
    assert len(os.fsencode(server.socket)) <= 100
    assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
    server.socket.parent.rmdir()
