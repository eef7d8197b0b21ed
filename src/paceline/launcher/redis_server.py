"""The embedded Redis of `paceline up`: with which options it runs, where it listens, and when it is ready.

It listens on a private unix socket only. Spoken to in bare RESP, because the redis library belongs to
`paceline.store` alone. Neighbour: `redis_binary` says which server it is.
"""

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

from paceline.launcher.data import DataDirectory
from paceline.launcher.errors import LauncherError
from paceline.launcher.redis_binary import RedisBinary

# A message is a hash with values longer than the 64 bytes that Redis packs by itself; packed, it takes two thirds of
# the room. What is packed is searched from its beginning, so the hashes over all numbers must not be: Redis by itself
# packs up to 512 entries. Redis 7 has new names for these and knows the old ones, which 6.2 has.
SMALL_HASHES = {"hash-max-ziplist-value": "1024", "hash-max-ziplist-entries": "64"}

# The kernel's limit is 108 bytes on Linux and 104 on macOS, the closing zero included.
MAX_SOCKET_PATH_BYTES = 100


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
        return [*self.binary.words, *(part for key, value in options.items() for part in (f"--{key}", value))]

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
