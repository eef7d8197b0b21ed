"""The provisioner and the watchdog of a run, on a runner whose workers are processes of the World.

A worker that ends stays down until the provisioner begins another. Production looks every two seconds; here it is woken
by a wish or by a worker's end, and looks every few minutes besides, so that idle nights cost few steps.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from paceline.kits.errands import Work
from paceline.orchestrator.hands import Hands, Terms
from paceline.orchestrator.provisioner import Provisioner
from paceline.orchestrator.runners.base import RunnerAway, Seen, Usage, WorkerSpec
from paceline.orchestrator.watchdog import Watchdog
from paceline.policy.reconcile import Rules
from paceline.policy.watchdog import WatchRules
from paceline.store.fleet import AllocationLimits
from paceline.store.store import Store
from paceline.testing.plans import HOUR_MS, MINUTE_MS
from paceline.testing.steps import Pause, Point, Process, Request

if TYPE_CHECKING:
    from paceline.testing.world import World

PER_PROXY = 2
"""Fewer than in production, so that few numbers are enough to fill one."""
WATCH_MS = 5 * MINUTE_MS
LOOK_MS = 5 * MINUTE_MS
KILLED = 137


class Life(msgspec.Struct):
    """One worker, from its start to its end."""

    spec: WorkerSpec
    process: Process
    began_ms: int
    ended_ms: int | None = None
    is_removed: bool = False

    def overlaps(self, from_ms: int, to_ms: int) -> bool:
        return self.began_ms < to_ms and (self.ended_ms is None or self.ended_ms > from_ms)


class SimRunner:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._sim = world.sim
        self.lives: list[Life] = []
        """All there ever were, in the order of their starts."""
        self.doubled: list[tuple[Life, int]] = []
        """Workers that still ran when another of their session was begun, and when that was."""

    def runs(self, driver: str) -> bool:
        return True

    async def observe(self) -> list[Seen]:
        await Point(self._world.orchestrator)
        if self._sim.chance(self._sim.faults.refuse):
            raise RunnerAway("the engine does not answer")
        return [_seen(life, handle) for handle, life in enumerate(self.lives) if not life.is_removed]

    async def start(self, spec: WorkerSpec) -> None:
        await Point(self._world.orchestrator)
        running = [life for life in self.lives if life.spec.session_id == spec.session_id and life.ended_ms is None]
        if any(life.spec.instance == spec.instance for life in running):
            return
        for life in running:
            self.doubled.append((life, self._sim.now_ms))
            self._end(life)
        process = self._world.workers.begin(spec.session_id, spec.instance)
        life = Life(spec, process, self._sim.now_ms)
        process.on_death = lambda: self._died(life)
        self.lives.append(life)
        await Point(self._world.orchestrator)

    async def stop(self, handle: str, grace_ms: int) -> None:
        await Pause(self._sim.now_ms + self._sim.rng.randrange(2_000))
        self._end(self.lives[int(handle)])

    async def remove(self, handle: str) -> None:
        await Point(self._world.orchestrator)
        self.lives[int(handle)].is_removed = True

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        return {}

    async def logs(self, session_id: str, lines: int) -> list[str]:
        return []

    async def close(self) -> None:
        return

    def _end(self, life: Life) -> None:
        if life.ended_ms is None:
            self._sim.end(life.process)

    def _died(self, life: Life) -> None:
        life.ended_ms = self._sim.now_ms
        self._sim.notify("fleet")


class SimErrands:
    """Threads of the orchestrator; they end with it."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._busy: set[str] = set()

    @property
    def busy(self) -> frozenset[str]:
        return frozenset(self._busy)

    async def run(self, name: str, work: Work) -> None:
        self._busy.add(name)
        self._world.sim.start(self._world.orchestrator, self._do(name, work))

    async def settled(self) -> None:
        raise NotImplementedError("nobody drains a World")

    async def _do(self, name: str, work: Work) -> None:
        try:
            await work()
        finally:
            self._busy.discard(name)


def loops(
    world: "World", store: Store, runner: SimRunner, loop: Callable[..., Coroutine[Request, Any, Any]]
) -> list[Coroutine[Request, Any, Any]]:
    """What an orchestrator does for its workers; made anew after each of its crashes."""
    terms = Terms(
        webhook_url="https://orchestrator.example",
        interval_ms=LOOK_MS,
        limits=AllocationLimits(PER_PROXY),
        rules=Rules(),
    )

    def now_ms() -> int:
        return world.sim.time_of(world.orchestrator)

    hands = Hands(
        store.fleet, runner, terms, secret_of=lambda session: "", auth_key_of=lambda session: "",
        new_id=lambda: f"worker-{world.sim.rng.getrandbits(64):x}", now_ms=now_ms,
    )  # fmt: skip
    provisioner = Provisioner(
        store.fleet, runner, terms, hands, holder="world", errands=SimErrands(world), now_ms=now_ms,
        monotonic=lambda: world.sim.now_ms - world.sim.jumped_ms,
        look_again=lambda: world.sim.notify("fleet"),
    )  # fmt: skip
    rules = WatchRules(silent_ms=world.rules.liveness_ms, stuck_ms=4 * HOUR_MS, deaf_ms=365 * 24 * HOUR_MS)
    watchdog = Watchdog(store, runner, rules, holder="world", interval_ms=WATCH_MS)
    return [loop(provisioner.step, "fleet"), loop(watchdog.step, "-")]


def _seen(life: Life, handle: int) -> Seen:
    return Seen(
        life.spec.session_id,
        life.spec.instance,
        life.spec.generation,
        "running" if life.ended_ms is None else "exited",
        str(handle),
        None if life.ended_ms is None else KILLED,
        life.began_ms,
    )
