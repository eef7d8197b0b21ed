"""Which server the embedded Redis is, and that no server is let near data it cannot read."""

import asyncio
from pathlib import Path

import pytest

from lua.servers import OLDEST, system_redis
from paceline.launcher import redis_binary
from paceline.launcher.children import Child, ChildSpec
from paceline.launcher.data import DataDirectory
from paceline.launcher.errors import LauncherError
from paceline.launcher.redis_binary import RedisBinary, bundled, find_binary, look_at, signature_of
from paceline.launcher.redis_server import RedisServer

from .support import until_async

NOWHERE = "/nowhere"


def server(directory: Path, name: str, says: str) -> Path:
    """A program that says it is that server."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation whose wheel has no server for this machine."""
    monkeypatch.setattr(redis_binary, "bundled", lambda: None)


def test_the_embedded_server_is_always_there() -> None:
    found = find_binary(search_path=NOWHERE)
    assert found.path == bundled()
    assert found.is_valkey
    assert found.version >= (8, 1)


def test_valkey_comes_first_then_the_embedded_one_then_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redis = server(tmp_path, "redis-server", "Redis server v=7.4.1 sha=0 malloc=jemalloc-5.3.0 bits=64")
    assert find_binary(search_path=str(tmp_path)).path == bundled()
    valkey = server(tmp_path, "valkey-server", "Valkey server v=8.1.1 sha=0 malloc=jemalloc-5.3.0 bits=64")
    assert find_binary(search_path=str(tmp_path)) == RedisBinary(valkey, (8, 1, 1), is_valkey=True)
    monkeypatch.setattr(redis_binary, "bundled", lambda: None)
    valkey.unlink()
    assert find_binary(search_path=str(tmp_path)) == RedisBinary(redis, (7, 4, 1))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "says", ["Redis server v=5.0.14 sha=0 bits=64", "Redis server v=6.0.16 sha=0", "a server of the future", ""]
)
def test_a_server_that_is_too_old_or_says_nothing_is_passed_over(tmp_path: Path, says: str) -> None:
    server(tmp_path, "redis-server", says)
    with pytest.raises(LauncherError, match="no Redis found"):
        find_binary(search_path=str(tmp_path))


def test_a_server_without_a_memory_keeper_of_its_own_gets_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_binary, "_better_allocator", lambda: "libjemalloc.so.2")
    plain = look_at(server(tmp_path, "valkey-server", "Valkey server v=9.1.2 sha=0 malloc=libc bits=64"))
    assert plain
    assert plain.words == ["/usr/bin/env", "LD_PRELOAD=libjemalloc.so.2", str(plain.path)]
    own = look_at(server(tmp_path, "valkey-server", "Valkey server v=9.1.2 sha=0 malloc=jemalloc-5.3.0 bits=64"))
    assert own
    assert own.words == [str(own.path)]


OLD = RedisBinary(Path("redis-6.2"), (6, 2, 14))
REDIS_7 = RedisBinary(Path("redis-7"), (7, 0, 15))
REDIS_8 = RedisBinary(Path("redis-8"), (8, 0, 2))
VALKEY_8 = RedisBinary(Path("valkey-8"), (8, 1, 1), is_valkey=True)
VALKEY_9 = RedisBinary(Path("valkey-9"), (9, 1, 2), is_valkey=True)
ALL = (OLD, REDIS_7, REDIS_8, VALKEY_8, VALKEY_9)


@pytest.mark.parametrize(
    ("signature", "readers"),
    [
        (None, ALL),
        ("", (REDIS_7, REDIS_8, VALKEY_8, VALKEY_9)),
        ("REDIS0010", (REDIS_7, REDIS_8, VALKEY_8, VALKEY_9)),
        ("REDIS0011", (REDIS_7, REDIS_8, VALKEY_8, VALKEY_9)),
        ("REDIS0012", (REDIS_7, REDIS_8)),
        ("VALKEY080", (VALKEY_9,)),
        ("nonsense!", (REDIS_7, REDIS_8, VALKEY_8, VALKEY_9)),
    ],
)
def test_who_can_read_what(signature: str | None, readers: tuple[RedisBinary, ...]) -> None:
    """A server that is too old for its own kind's data says so by itself; one of another kind takes it for broken."""
    assert tuple(one for one in ALL if one.can_read(signature)) == readers


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    directory = DataDirectory(tmp_path / "data")
    directory.create()
    return directory


async def say(data: DataDirectory, binary: RedisBinary | None, command: str) -> bytes:
    """Start the server on that data, ask it one thing, and end it."""
    assert binary
    redis = RedisServer(data, binary)
    child = Child(ChildSpec("redis", redis.command(), env={}), data)
    child.start()
    try:
        await until_async(redis.is_ready)
        reader, writer = await asyncio.open_unix_connection(str(redis.socket))
        writer.write(f"{command}\r\nQUIT\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer
    finally:
        await child.stop()


async def test_what_an_older_installation_wrote_is_read_and_not_let_back(data: DataDirectory) -> None:
    """From the 6.2 that came with Paceline once, over a system's Redis 7, to the Valkey that comes with it now."""
    embedded = bundled()
    assert embedded
    await say(data, look_at(OLDEST), "SET canary alive")
    assert signature_of(data.redis) is None
    assert b"alive" in await say(data, look_at(Path(system_redis())), "GET canary")
    assert not look_at(OLDEST).can_read(signature_of(data.redis))  # type: ignore[union-attr]
    assert b"alive" in await say(data, find_binary(data.redis, NOWHERE), "GET canary")


async def test_what_valkey_began_is_refused_to_a_redis(
    data: DataDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(data, find_binary(data.redis, NOWHERE), "SET canary alive")
    assert signature_of(data.redis) == "VALKEY080"
    monkeypatch.setattr(redis_binary, "bundled", lambda: None)
    here = server(tmp_path, "redis-server", "Redis server v=7.0.15 sha=0 malloc=jemalloc-5.3.0 bits=64")
    with pytest.raises(LauncherError, match=r"VALKEY080.* install Valkey 9"):
        find_binary(data.redis, str(here.parent))


async def test_what_a_newer_redis_began_is_given_to_it_though_valkey_comes_first(
    data: DataDirectory, tmp_path: Path
) -> None:
    here = server(tmp_path, "redis-server", "Redis server v=8.0.2 sha=0 malloc=jemalloc-5.3.0 bits=64")
    directory = data.redis / "appendonlydir"
    directory.mkdir()
    (directory / "appendonly.aof.1.base.rdb").write_bytes(b"REDIS0012\xfa and so on")
    assert find_binary(data.redis, str(tmp_path)).path == here
    with pytest.raises(LauncherError, match="install the Redis that wrote it"):
        find_binary(data.redis, NOWHERE)
