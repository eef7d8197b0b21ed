"""Redis servers of a run's own, and processes that each have one. Neighbour: `prove` gives them seeds.

A process and its Redis share one core: they take turns anyway, and a wake-up across cores costs more than all the rest
of a call.
"""

import multiprocessing
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from paceline.kits.logging import silence
from paceline.launcher.redis_binary import find_binary
from paceline.store.blocking import BlockingRedis

START_SECONDS = 30


@contextmanager
def redis_server(core: int | None = None) -> Iterator[str]:
    """A Redis of one's own, without persistence, for the time of a run; gives the path of its socket."""
    with tempfile.TemporaryDirectory(prefix="paceline-world-") as directory:
        socket = Path(directory, "redis.sock")
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", directory]
        process = subprocess.Popen(
            [*find_binary().words, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _stay_on(core, process.pid)
            yield str(socket)
        finally:
            process.terminate()
            process.wait()


@contextmanager
def private_redis() -> Iterator[BlockingRedis]:
    with redis_server() as socket:
        redis = _connect(socket)
        yield redis
        redis.close()


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes in which `own_redis` answers."""
    context = multiprocessing.get_context()
    places: SimpleQueue[tuple[str, int | None]] = context.SimpleQueue()
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    with ExitStack() as stack:
        for number in range(workers):
            core = cores[number % len(cores)] if cores else None
            places.put((stack.enter_context(redis_server(core)), core))
        yield stack.enter_context(ProcessPoolExecutor(workers, context, initializer=_move_in, initargs=(places,)))


_redis: BlockingRedis | None = None


def own_redis() -> BlockingRedis:
    assert _redis is not None
    return _redis


def _move_in(places: "SimpleQueue[tuple[str, int | None]]") -> None:
    global _redis  # noqa: PLW0603 - what a process of the pool has is given to it in no other way
    silence()
    socket, core = places.get()
    _stay_on(core, 0)
    _redis = _connect(socket)


def _connect(socket: str) -> BlockingRedis:
    redis = BlockingRedis(socket)
    deadline = time.monotonic() + START_SECONDS
    while not redis.answers() and time.monotonic() < deadline:
        time.sleep(0.02)
    return redis


def _stay_on(core: int | None, pid: int) -> None:
    if core is not None:
        os.sched_setaffinity(pid, {core})
