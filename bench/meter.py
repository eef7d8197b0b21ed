"""What the benchmarks measure with: a durable Redis of their own, processor time and memory of processes, tables."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from paceline.launcher.redis_binary import RedisBinary, find_binary, look_at
from paceline.launcher.redis_server import SMALL_HASHES
from paceline.store.blocking import BlockingRedis

START_S = 30
"""How long a Redis may take until it answers."""


@dataclass(frozen=True)
class Server:
    socket: str
    pid: int

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"


@contextmanager
def durable_redis(*, has_own_core: bool = False) -> Iterator[Server]:
    """As `paceline up` runs it: every write is on the disk before it is answered. With a core of its own, this process
    and those that it starts from now on have the others; where there is but one core, or the system cannot tell, all
    share."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as directory:
        socket = str(Path(directory, "redis.sock"))
        options = {
            "port": "0", "unixsocket": socket, "dir": directory, "save": "", "appendonly": "yes",
            "appendfsync": "always", "auto-aof-rewrite-percentage": "0", **SMALL_HASHES,
        }  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        process = subprocess.Popen([*_server().words, *words], stdout=subprocess.DEVNULL)
        try:
            if has_own_core:
                _part(process.pid)
            connect(socket).close()
            yield Server(socket, process.pid)
        finally:
            process.terminate()
            process.wait()


def _server() -> RedisBinary:
    """What `paceline up` would take, or the one at BENCH_SERVER: to see what another makes of it."""
    path = os.environ.get("BENCH_SERVER")
    server = look_at(Path(path)) if path else find_binary()
    if server is None:
        raise SystemExit(f"BENCH_SERVER: {path} is no Redis or Valkey that runs here")
    return server


def _part(pid: int) -> None:
    cores = psutil.cpu_count() or 1
    if hasattr(psutil.Process, "cpu_affinity") and cores > 1:
        psutil.Process(pid).cpu_affinity([cores - 1])
        psutil.Process().cpu_affinity(list(range(cores - 1)))


def connect(socket: str) -> BlockingRedis:
    redis = BlockingRedis(socket)
    deadline = time.monotonic() + START_S
    while not redis.answers():
        if time.monotonic() > deadline:
            raise SystemExit(f"Redis at {socket} does not answer")
        time.sleep(0.02)
    return redis


@dataclass(frozen=True)
class Usage:
    cpu_s: float
    rss_mb: float


class Meter:
    """Processor time of some processes since it was made, and their memory now."""

    def __init__(self, **pids: int) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._began = {name: _cpu(process) for name, process in self._processes.items()}
        self._began_s = time.monotonic()

    def read(self) -> tuple[float, dict[str, Usage]]:
        """Seconds since the start, and what each process used in them."""
        return time.monotonic() - self._began_s, {
            name: Usage(_cpu(process) - self._began[name], process.memory_info().rss / 1e6)
            for name, process in self._processes.items()
        }


def _cpu(process: psutil.Process) -> float:
    """Seconds all its threads were on a processor, to the nanosecond where the system tells (Linux)."""
    tasks = Path(f"/proc/{process.pid}/task")
    if tasks.is_dir():
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
    times = process.cpu_times()
    return float(times.user + times.system)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that so many of the sorted ones do not exceed; 0 of none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Markdown, so that it can go into the docs as it is printed."""
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " ---: |" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)
    print()
