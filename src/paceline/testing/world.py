"""The platform put together in virtual time: two dispatchers, an orchestrator, a gateway, one worker per session, and
a client.

    world = World(scenario.draw(seed), redis)
    ended = world.run(Limits())
    violations = checkers.check(world, ended)
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import msgspec

from paceline.dispatcher.fleet import FLEET_AGE_MS, FleetWatch
from paceline.dispatcher.guard import SmartGuard
from paceline.dispatcher.handing import Handing
from paceline.dispatcher.pacer import Pacer
from paceline.dispatcher.router import Router
from paceline.dispatcher.scheduler import Scheduler
from paceline.domain.errors import Unavailable
from paceline.domain.states import CLOSED_JOB_STATES
from paceline.kits import failpoint
from paceline.orchestrator.days import StatsDays
from paceline.orchestrator.desk import Desk
from paceline.orchestrator.enqueue import Enqueue
from paceline.orchestrator.inbound import Inbound
from paceline.orchestrator.settling import Settling
from paceline.orchestrator.stops import StopRules
from paceline.policy.facts import Rules
from paceline.policy.retry import RetrySettings
from paceline.policy.trust import DAY_MS
from paceline.store import keys
from paceline.store.blocking import BlockingRedis
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store
from paceline.testing import customers, fleet
from paceline.testing.asking import Question, ask
from paceline.testing.files import Files
from paceline.testing.operators import Operators
from paceline.testing.outside import Outside
from paceline.testing.people import Client
from paceline.testing.plans import HOUR_MS, JobPlan, Scenario
from paceline.testing.ports import SimLink
from paceline.testing.posting import SimOutbox
from paceline.testing.sim import Sim, VirtualClock
from paceline.testing.steps import Pause, Process, Request
from paceline.testing.workers import Workers

POLL_MS = 3_600_000
"""The longest idle sleep of a loop. Far longer than in production: a wake-up that is lost shall hurt, and an idle night
costs few steps."""
LIVENESS_MS = 900_000
PING_MS = 600_000
"""Often enough for LIVENESS_MS."""
STILL_MS = 60_000
AFTERWARDS_MS = 600_000
GUARDED_MS = 2 * HOUR_MS
LOOK_EVERY_STEPS = 50
"""Asking whether all has ended costs more than a step."""

_OWNER = {
    "staged-not-accepted": "gateway",
    "accepted-not-answered": "gateway",
    "claimed-not-answered": "orchestrator",
    "enqueued-not-answered": "orchestrator",
    "settled-not-answered": "orchestrator",
}


class Limits(msgspec.Struct, frozen=True):
    """How long a run may take; what has not ended by then never will."""

    steps: int = 400_000
    virtual_ms: int = 32 * DAY_MS
    """Longer than a message is valid: one that a banned number held when its worker died may wait so long for a word,
    since nobody but an operator starts that worker again."""


class World:
    liveness_ms = LIVENESS_MS
    ping_ms = PING_MS
    fleet_age_ms = FLEET_AGE_MS
    route_ahead = 5
    """Fewer than in production, so that few messages are enough to fill a queue."""
    zone_age_ms = 0
    rest_ms = 0
    """A loop that is woken rests for so long before it looks: what comes meanwhile is served together."""
    simulator: type[Sim] = Sim
    link: type[SimLink] = SimLink

    def __init__(
        self, scenario: Scenario, redis: BlockingRedis, *, mutate: dict[str, tuple[str, str]] | None = None
    ) -> None:
        self.scenario = scenario
        self.sim = self.simulator(scenario.seed, scenario.start_ms, scenario.faults)
        self.clock = VirtualClock(self.sim)
        self.rules = Rules(scenario.policy, liveness_ms=self.liveness_ms, global_rpm=scenario.global_rpm)
        self.jobs: dict[str, JobPlan] = {}
        """What the gateway accepted, by job id."""
        self.canceled_at: dict[str, int] = {}
        self.posted_at: dict[str, int] = {}
        """When a job was first asked for, by its name."""
        self.outside = Outside({phone.session: phone.phone for phone in scenario.phones}, self.jobs)
        self.redis = redis
        self._mutate = mutate
        receiver = scenario.around.receiver
        self.customer = customers.Customer(self, receiver) if receiver else None
        self.files = Files(self.sim, scenario.around.bad_files)
        self.runner = fleet.SimRunner(self) if scenario.around.provisioned else None
        self.workers = Workers(self)
        self.ledgers = self.workers.ledgers
        self._looked_at_step = 0
        redis.flush()
        self._build()

    def run(self, limits: Limits) -> bool:
        """True when everything that was accepted has ended."""
        with self.failing():
            deadline_ms = self.scenario.start_ms + limits.virtual_ms
            ended = self.sim.run(
                self._now_and_then(self._everything_ended), deadline_ms=deadline_ms, max_steps=limits.steps
            )
            # Receipts come later, and what they prove corrects what was believed. What the last fault hit is looked
            # after meanwhile.
            quiet_ms = max(self.sim.now_ms, self.scenario.faults.until_ms)
            self.sim.run(lambda: False, deadline_ms=quiet_ms + AFTERWARDS_MS, max_steps=limits.steps)
            if self.customer is not None:
                told_by_ms = self.sim.now_ms + customers.PATIENCE_MS
                self.sim.run(self._now_and_then(self.customer.has_all), deadline_ms=told_by_ms, max_steps=limits.steps)
            return ended

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Failpoints kill by chance; at the end nothing is left."""
        failpoint.set_hook(self._failpoint)
        try:
            yield
        finally:
            failpoint.set_hook(None)
            self.sim.close()

    def store(self, process: Process) -> Store:
        return Store(self.link(self.sim, process, self.redis, self.outside), self.config(), mutate=self._mutate)

    def config(self) -> ScriptConfig:
        cap, window_ms = self.scenario.frequency
        return ScriptConfig(
            lead_ms=self.rules.lead_ms,
            global_rpm=self.scenario.global_rpm,
            frequency_cap=cap,
            frequency_window=window_ms or DAY_MS,
        )

    def ask(self, *questions: Question) -> list[Any]:
        """Questions to the store from outside the World; nothing can go wrong with them."""
        return ask(self.redis, *questions)

    # The processes

    def _build(self) -> None:
        self._client, operators = Client(self), Operators(self)
        self.gateway = Process("gateway", lambda: [])
        if self.customer is not None:
            self.gateway.boot = partial(self.customer.loops, self.gateway)
        self.sim.add(self.gateway)
        self.orchestrator = self.sim.add(Process("orchestrator", self._orchestrator))
        self.services = [self.gateway, self.orchestrator]
        self._owners = {process.name: process for process in self.services}
        self._serve()
        for number in (1, 2):
            process = Process(f"dispatcher-{number}", lambda: [])
            process.boot = partial(self._dispatcher, process)
            self.services.append(self.sim.add(process))
        self.dispatcher = process
        self.dispatcher_store, self.gateway_store = self.store(process), self.store(self.gateway)
        if self.runner is None:
            self.workers.start()
        client = Process("client", lambda: [])
        client.boot = lambda: [self._client.live(client)]
        self.sim.add(client)
        operator = Process("operator", lambda: [], boot_at_ms=self.scenario.start_ms + 10_000)
        operator.boot = lambda: [operators.press_all(operator), operators.watch(operator)]
        self.sim.add(operator)

    def _serve(self) -> None:
        """The orchestrator's logic, which workers call; it keeps nothing that a crash could lose."""
        store = self.store(self.orchestrator)
        self.desk = Desk(store, self.rules, lease_ms=self.scenario.lease_ms)
        self.settling = Settling(store, RetrySettings(), days=StatsDays(store, age_ms=self.zone_age_ms))
        self.inbound = Inbound(store, self.settling, StopRules(self.scenario.around.confirmation))
        self.enqueue = Enqueue(store)

    def _orchestrator(self) -> list[Coroutine[Request, Any, Any]]:
        loop = partial(self._loop, self.orchestrator)
        loops = [loop(self.settling.sweep, "sweep")]
        if self.runner is not None:
            loops += fleet.loops(self, self.store(self.orchestrator), self.runner, loop)
        return loops

    def _dispatcher(self, process: Process) -> list[Coroutine[Request, Any, Any]]:
        store = self.store(process)
        rng = Random(self.sim.rng.getrandbits(64))
        pacer = Pacer(store, self.rules, rng, handoff_ttl_ms=60_000, api=self.scenario.api)
        watch = FleetWatch(store, self.rules, route_ahead=self.route_ahead, age_ms=self.fleet_age_ms)
        routers = [Router(store, watch) for _ in range(2)]
        loop = partial(self._loop, process)
        loops = [
            loop(pacer.step, "due"),
            loop(Scheduler(store).step, "due"),
            *[loop(router.step, "jobs") for router in routers],
        ]
        if self.scenario.api:
            outbox = SimOutbox(self.sim, process, self.orchestrator, self.enqueue)
            loops.append(loop(Handing(store, outbox).step, "handing"))
        if self.scenario.guard_tick_ms:
            loops.append(loop(partial(self._guard, SmartGuard(store, self.rules, enabled=True, tick_ms=0)), "-"))
        return loops

    async def _guard(self, guard: SmartGuard, now_ms: int) -> int | None:
        """In the first hours it looks often; then as seldom as a run of many days can afford."""
        young = now_ms - self.scenario.start_ms < GUARDED_MS
        guard.tick_ms = self.scenario.guard_tick_ms if young else POLL_MS
        return await guard.step(now_ms)

    async def _loop(self, process: Process, step: Callable[[int], Awaitable[int | None]], key: str) -> None:
        while True:
            try:
                next_ms = await step(self.sim.time_of(process))
            except Unavailable:
                next_ms = self.sim.time_of(process) + 500
            wait_ms = POLL_MS if next_ms is None else min(next_ms - self.sim.time_of(process), POLL_MS)
            # Nothing becomes due while a clock stands still; in production that is looked at again and again.
            if self.sim.stands_still(process):
                wait_ms = max(wait_ms, STILL_MS)
            await Pause(self.sim.now_ms + wait_ms, key)
            if self.rest_ms:
                await Pause(self.sim.now_ms + self.rest_ms)

    # What the people reach for

    def ids_of(self, job: JobPlan) -> list[str]:
        return [job_id for job_id, plan in self.jobs.items() if plan is job]

    # The end

    def _now_and_then(self, question: Callable[[], bool]) -> Callable[[], bool]:
        def asked() -> bool:
            if self.sim.steps - self._looked_at_step < LOOK_EVERY_STEPS:
                return False
            self._looked_at_step = self.sim.steps
            return question()

        return asked

    def _everything_ended(self) -> bool:
        if not self._client.done:
            return False
        runs = self.redis.read(*[("HMGET", keys.job_run(job_id), "state", "closedAt") for job_id in self.jobs])
        return all(state in CLOSED_JOB_STATES and closed_at for state, closed_at in runs)

    def _failpoint(self, name: str) -> None:
        current = self.sim.current_process
        owner = _OWNER.get(name)
        process = current if owner is None else self._owners[owner]
        if process is not None:
            self.sim.failpoint(name, process)
