"""What can be done to a platform, and what a seed draws of it. Each fault is over when `strike` returns: what follows
is recovery."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from random import Random

import redis

from acceptance.platform import Platform, wait_for
from docker.engine import Engine

from .disk import Disk

MARGIN_BYTES = 64 * 1_024
"""What Redis may still take under the memory limit: a few dozen messages' worth."""
CONTAINER_ORDERS = {signal.SIGKILL: "kill", signal.SIGSTOP: "pause", signal.SIGCONT: "unpause"}
LONGEST_SECONDS = 5.0
"""Longer than a lease (3 s) and a hand-over (4 s)."""


@dataclass(frozen=True)
class Fault:
    kind: str
    target: str = ""
    """The process; empty where all of it is meant."""
    seconds: float = 0.0

    @property
    def session(self) -> str | None:
        """The one that is hurt more than the others."""
        return self.target.removeprefix("worker-") if self.target.startswith("worker-") else None

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target}{lasting}".replace("  ", " ")


WEIGHTS = {
    "kill": 44,
    "stop": 24,
    "redis restart": 6,
    "connections cut": 8,
    "scripts forgotten": 4,
    "memory limit": 6,
    "disk full": 4,
    "power cut": 4,
    "container removed": 8,
    "engine killed": 4,
}
NEED_A_DISK = ("disk full", "power cut")
NEED_CONTAINERS = ("container removed", "engine killed")


def draw(rng: Random, targets: list[str], *, left_out: Collection[str]) -> Fault:
    kinds = [kind for kind in WEIGHTS if kind not in left_out]
    [kind] = rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])
    target, seconds = rng.choice(targets), round(rng.uniform(0.3, LONGEST_SECONDS), 1)
    if kind == "container removed":
        return Fault(kind, rng.choice([target for target in targets if target.startswith("worker-")]))
    if kind == "kill":
        return Fault(kind, target)
    if kind == "stop":
        return Fault(kind, target, seconds)
    return Fault(kind, seconds=seconds if kind in ("memory limit", "disk full", "engine killed") else 0.0)


class Nemesis:
    def __init__(self, platform: Platform, disk: Disk | None, engine: Engine | None = None) -> None:
        self._platform = platform
        self._disk = disk
        self._engine = engine
        """Where the workers are containers: what kills or stops them goes through it."""
        self.up_restarted = 0
        """How often `up` itself had ended and was started again, as systemd would."""

    def strike(self, fault: Fault) -> None:
        deeds: dict[str, Callable[[], None]] = {
            "kill": lambda: self._signal(fault.target, signal.SIGKILL),
            "stop": lambda: self._stop(fault),
            "redis restart": lambda: self._signal("redis", signal.SIGTERM),
            "connections cut": lambda: self._order("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
            "scripts forgotten": lambda: self._order("SCRIPT", "FLUSH"),
            "memory limit": lambda: self._limit_memory(fault.seconds),
            "disk full": lambda: self._fill_disk(fault.seconds),
            "power cut": self._cut_power,
            "container removed": lambda: self._container("rm", fault.target, "-f"),
            "engine killed": lambda: self._kill_engine(fault.seconds),
        }
        deeds[fault.kind]()

    def keep_up(self) -> None:
        """`up` may give up, for example on a full disk; then somebody starts it again."""
        up = self._platform.up
        if up is not None and up.poll() is not None:
            self.up_restarted += 1
            self._start()

    def _signal(self, target: str, number: signal.Signals) -> None:
        if self._engine is not None and target.startswith("worker-"):
            self._container(CONTAINER_ORDERS[number], target)
            return
        pid = self._platform.pids().get(target)
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)

    def _stop(self, fault: Fault) -> None:
        self._signal(fault.target, signal.SIGSTOP)
        time.sleep(fault.seconds)
        self._signal(fault.target, signal.SIGCONT)

    def _container(self, order: str, target: str, *options: str) -> None:
        assert self._engine is not None
        # It may be gone from the fault before.
        self._engine.docker(order, *options, f"wa_session_{target.removeprefix('worker-')}", check=False)

    def _kill_engine(self, seconds: float) -> None:
        assert self._engine is not None
        self._engine.kill()
        time.sleep(seconds)
        self._engine.start()

    def _order(self, *command: str) -> None:
        # Redis may be down from the fault before.
        with contextlib.suppress(redis.RedisError):
            self._platform.redis.execute_command(*command)

    def _limit_memory(self, seconds: float) -> None:
        with contextlib.suppress(redis.RedisError):
            used = int(self._platform.redis.info("memory")["used_memory"])
            self._order("CONFIG", "SET", "maxmemory", str(used + MARGIN_BYTES))
            time.sleep(seconds)

        def lifted() -> bool:
            with contextlib.suppress(redis.RedisError):
                return bool(self._platform.redis.config_set("maxmemory", 0))
            return False

        wait_for("Redis to take its limit back", lifted)

    def _fill_disk(self, seconds: float) -> None:
        assert self._disk is not None
        with self._filled(self._disk):
            time.sleep(seconds)

    @contextlib.contextmanager
    def _filled(self, disk: Disk) -> Iterator[None]:
        try:
            disk.fill()
            yield
        finally:
            disk.free()

    def _cut_power(self) -> None:
        """All stand still, the disk loses what it was not forced to keep, all are gone; then the machine boots."""
        assert self._disk is not None
        assert self._platform.up is not None
        pids = self._platform.processes()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if number == signal.SIGSTOP:
                self._disk.cut_power()
        self._platform.up.wait()
        wait_for("the dead to be gone", lambda: not self._platform.processes())
        self._platform.redis.close()
        self._disk.unmount()
        self._disk.mount()
        self._start()

    def _start(self) -> None:
        if self._platform.up is not None and self._platform.up.stdout is not None:
            self._platform.up.stdout.close()
        self._platform.start()
