"""What can be done to a platform, and what a seed draws of it. Each fault is over when `strike` returns: what follows
is recovery. `strike_together` is for several that overlap."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
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

    def strike_together(self, faults: Sequence[Fault]) -> list[Fault]:
        """Those that last begin first, and the others strike while they do; but the power is cut last, since nothing
        more can happen to a machine that is off. Those that hit something."""
        lasting = list({(fault.kind, fault.target): fault for fault in faults if fault.seconds}.values())
        cuts = [fault for fault in faults if fault.kind == "power cut"]
        at_once = [fault for fault in faults if not fault.seconds and fault not in cuts]
        with ThreadPoolExecutor() as threads:
            begun = [threads.submit(self.strike, fault) for fault in lasting]
            time.sleep(min((fault.seconds for fault in lasting), default=0.0) / 2)
            hits = [fault for fault in at_once if self.strike(fault)]
            hits += [fault for fault, ended in zip(lasting, begun, strict=True) if ended.result()]
        for fault in lasting:
            # An engine that was dead at the time could not let its container go on.
            if fault.kind == "stop":
                self._reach(fault.target)(signal.SIGCONT)
        return hits + [fault for fault in cuts if self.strike(fault)]

    def strike(self, fault: Fault) -> bool:
        """Whether it hit something: what it is meant for may be down from the fault before."""
        deeds: dict[str, Callable[[], bool]] = {
            "kill": lambda: self._reach(fault.target)(signal.SIGKILL),
            "stop": lambda: self._stop(fault),
            # Whoever restarts it waits until it is there: `up` may be at that, and on a full disk it notes no pid.
            "redis restart": lambda: _signal(self._platform.pid("redis"), signal.SIGTERM),
            "connections cut": lambda: self._order("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
            "scripts forgotten": lambda: self._order("SCRIPT", "FLUSH"),
            "memory limit": lambda: self._limit_memory(fault.seconds),
            "disk full": lambda: self._fill_disk(fault.seconds),
            "power cut": self._cut_power,
            "container removed": lambda: self._container("rm", fault.target, "-f"),
            "engine killed": lambda: self._kill_engine(fault.seconds),
        }
        return deeds[fault.kind]()

    def keep_up(self) -> None:
        """`up` may give up, for example on a full disk; then somebody starts it again."""
        up = self._platform.up
        if up is not None and up.poll() is not None:
            self.up_restarted += 1
            self._start()

    def _reach(self, target: str) -> Callable[[signal.Signals], bool]:
        """What sends signals to the one that has this name now, also when another has it by then."""
        if self._engine is not None and target.startswith("worker-"):
            return lambda number: self._container(CONTAINER_ORDERS[number], target)
        return partial(_signal, self._platform.pids().get(target))

    def _stop(self, fault: Fault) -> bool:
        signaled = self._reach(fault.target)
        hit = signaled(signal.SIGSTOP)
        if hit:
            time.sleep(fault.seconds)
            signaled(signal.SIGCONT)
        return hit

    def _container(self, order: str, target: str, *options: str) -> bool:
        assert self._engine is not None
        name = f"wa_session_{target.removeprefix('worker-')}"
        return self._engine.docker(order, *options, name, check=False).returncode == 0

    def _kill_engine(self, seconds: float) -> bool:
        assert self._engine is not None
        self._engine.kill()
        time.sleep(seconds)
        self._engine.start()
        return True

    def _order(self, *command: str) -> bool:
        try:
            self._platform.redis.execute_command(*command)
        except redis.RedisError:
            return False
        return True

    def _limit_memory(self, seconds: float) -> bool:
        hit = False
        with contextlib.suppress(redis.RedisError):
            used = int(self._platform.redis.info("memory")["used_memory"])
            hit = self._order("CONFIG", "SET", "maxmemory", str(used + MARGIN_BYTES))
            time.sleep(seconds)

        def lifted() -> bool:
            with contextlib.suppress(redis.RedisError):
                return bool(self._platform.redis.config_set("maxmemory", 0))
            return False

        wait_for("Redis to take its limit back", lifted)
        return hit

    def _fill_disk(self, seconds: float) -> bool:
        assert self._disk is not None
        with self._filled(self._disk):
            time.sleep(seconds)
        return True

    @contextlib.contextmanager
    def _filled(self, disk: Disk) -> Iterator[None]:
        try:
            disk.fill()
            yield
        finally:
            disk.free()

    def _cut_power(self) -> bool:
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
        return True

    def _start(self) -> None:
        if self._platform.up is not None and self._platform.up.stdout is not None:
            self._platform.up.stdout.close()
        self._platform.start()


def _signal(pid: int | None, number: signal.Signals) -> bool:
    try:
        if pid is not None:
            os.kill(pid, number)
    except ProcessLookupError:
        return False
    return pid is not None
