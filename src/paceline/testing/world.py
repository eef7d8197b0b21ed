"""The platform put together in virtual time: two dispatchers, an orchestrator, a gateway, one worker per session, and
a client.

    world = World(scenario.draw(seed), redis)
    ended = world.run(Limits())
    violations = checkers.check(world, ended)
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from itertools import islice
from random import Random
from types import coroutine
from typing import Any

import msgspec

from paceline.dispatcher.pacer import Pacer
from paceline.dispatcher.router import Router
from paceline.dispatcher.scheduler import Scheduler
from paceline.domain.errors import Conflict, RequestError, Unavailable
from paceline.domain.states import CLOSED_JOB_STATES
from paceline.gateway.idempotency import Idempotency
from paceline.gateway.intake import Intake
from paceline.gateway.schemas import JobRequest, SendRequest
from paceline.kits import failpoint
from paceline.orchestrator.desk import Desk
from paceline.orchestrator.inbound import Inbound
from paceline.orchestrator.settling import Settling
from paceline.policy.facts import Rules
from paceline.policy.retry import RetrySettings
from paceline.policy.trust import DAY_MS
from paceline.store import keys
from paceline.store.blocking import BlockingRedis
from paceline.store.client import Command
from paceline.store.guards import Suppression
from paceline.store.scripts import Script, ScriptConfig
from paceline.store.store import Store
from paceline.testing.ports import SimLink, SimProtocol, SimWake
from paceline.testing.scenario import JobPlan, PhonePlan, Scenario
from paceline.testing.sim import Killed, Pause, Point, Process, ProcessDied, Request, Sim, VirtualClock
from paceline.worker.core import WorkerCore
from paceline.worker.drivers.account import Account
from paceline.worker.drivers.ledger import LedgerBook, MemoryLedger
from paceline.worker.drivers.simulated import SimulatedDriver
from paceline.worker.drivers.whatsapp import WhatsApp
from paceline.worker.journal import MemoryDisk, MemoryJournal
from paceline.worker.protocol import TypingWindow

POLL_MS = 3_600_000
"""The longest idle sleep of a loop. Far longer than in production: a wake-up that is lost shall hurt, and an idle night
costs few steps."""
LIVENESS_MS = 900_000
PING_MS = 600_000
"""Often enough for `LIVENESS_MS`."""
UNKNOWN_GRACE_MS = 10_000
AFTERWARDS_MS = 600_000
LOOK_EVERY_STEPS = 50
"""Asking whether all has ended costs more than a step."""

_OWNER = {
    "accepted-not-answered": "gateway",
    "claimed-not-answered": "orchestrator",
    "settled-not-answered": "orchestrator",
}


class Limits(msgspec.Struct, frozen=True):
    """How long a run may take; what has not ended by then never will."""

    steps: int = 400_000
    virtual_ms: int = 20 * DAY_MS
    """However slow a policy is, everything has ended by then."""


class World:
    def __init__(
        self, scenario: Scenario, redis: BlockingRedis, *, mutate: dict[str, tuple[str, str]] | None = None
    ) -> None:
        self.scenario = scenario
        self.sim = Sim(scenario.seed, scenario.start_ms, scenario.faults)
        self.clock = VirtualClock(self.sim)
        self.rules = Rules(scenario.policy, liveness_ms=LIVENESS_MS)
        self.jobs: dict[str, JobPlan] = {}
        """What the gateway accepted, by job id."""
        self.suppressed_at: dict[str, int] = {}
        self.canceled_at: dict[str, int] = {}
        accounts = {phone.phone: Account() for phone in scenario.phones}
        self.ledgers = {phone.session: LedgerBook(accounts[phone.phone]) for phone in scenario.phones}
        self._redis = redis
        self._mutate = mutate
        self._disks = {phone.session: MemoryDisk() for phone in scenario.phones}
        self._lives = 0
        self._client_done = False
        self._looked_at_step = 0
        self._direct = Store(_Asking())
        redis.flush()
        self._build()

    def run(self, limits: Limits) -> bool:
        """True when everything that was accepted has ended."""
        failpoint.set_hook(self._failpoint)
        try:
            deadline_ms = self.scenario.start_ms + limits.virtual_ms
            ended = self.sim.run(self._everything_ended, deadline_ms=deadline_ms, max_steps=limits.steps)
            # Receipts come later, and what they prove corrects what was believed.
            self.sim.run(lambda: False, deadline_ms=self.sim.now_ms + AFTERWARDS_MS, max_steps=limits.steps)
            return ended
        finally:
            failpoint.set_hook(None)

    def store(self, process: Process) -> Store:
        config = ScriptConfig(lead_ms=self.rules.lead_ms)
        return Store(SimLink(self.sim, process, self._redis), config, mutate=self._mutate)

    def ask(self, *questions: Callable[[Store], Coroutine[Any, Any, Any]]) -> list[Any]:
        """Questions to the store from outside the World; nothing can go wrong with them. They are asked side by side,
        so that what they read comes in a few large answers instead of many small ones."""
        answers: list[Any] = [None] * len(questions)
        asking: list[tuple[int, Coroutine[Any, Any, Any], list[Any] | None]]
        asking = [(number, question(self._direct), None) for number, question in enumerate(questions)]
        while asking:
            wanted: list[tuple[int, Coroutine[Any, Any, Any], Sequence[Command]]] = []
            for number, question, found in asking:
                try:
                    wanted.append((number, question, question.send(found)))
                except StopIteration as answer:
                    answers[number] = answer.value
            found_all = iter(self._redis.read(*[command for _, _, commands in wanted for command in commands]))
            asking = [
                (number, question, list(islice(found_all, len(commands)))) for number, question, commands in wanted
            ]
        return answers

    # The processes

    def _build(self) -> None:
        self.gateway = self.sim.add(Process("gateway", lambda: []))
        self.orchestrator = self.sim.add(Process("orchestrator", self._orchestrator))
        self._serve()
        for number in (1, 2):
            process = Process(f"dispatcher-{number}", lambda: [])
            process.boot = partial(self._dispatcher, process)
            self.sim.add(process)
        for phone in self.scenario.phones:
            process = Process(f"worker-{phone.session}", lambda: [])
            process.boot = partial(self._worker, process, phone)
            process.boot_at_ms = self.scenario.start_ms + 1_000
            self.sim.add(process)
        client = Process("client", lambda: [])
        client.boot = lambda: [self._client(client)]
        self.sim.add(client)

    def _serve(self) -> None:
        """The orchestrator's logic, which workers call; it keeps nothing that a crash could lose."""
        store = self.store(self.orchestrator)
        self.desk = Desk(store, self.rules, lease_ms=self.scenario.lease_ms)
        self.settling = Settling(store, RetrySettings())
        self.inbound = Inbound(store, self.settling)

    def _orchestrator(self) -> list[Coroutine[Request, Any, Any]]:
        return [self._loop(self.settling.sweep, "sweep")]

    def _dispatcher(self, process: Process) -> list[Coroutine[Request, Any, Any]]:
        store = self.store(process)
        rng = Random(self.sim.rng.getrandbits(64))
        pacer = Pacer(store, self.rules, rng, handoff_ttl_ms=60_000)
        routers = [Router(store, self.rules, route_ahead=5) for _ in range(2)]
        return [
            self._loop(pacer.step, "due"),
            self._loop(Scheduler(store).step, "due"),
            *[self._loop(router.step, "jobs") for router in routers],
        ]

    async def _loop(self, step: Callable[[int], Awaitable[int | None]], key: str) -> None:
        while True:
            try:
                next_ms = await step(self.sim.now_ms)
            except Unavailable:
                next_ms = self.sim.now_ms + 500
            latest_ms = self.sim.now_ms + POLL_MS
            await Pause(latest_ms if next_ms is None else min(next_ms, latest_ms), key)

    def _worker(self, process: Process, phone: PhonePlan) -> list[Coroutine[Request, Any, Any]]:
        self._lives += 1
        disk, session, rng = self._disks[phone.session], phone.session, Random(self.sim.rng.getrandbits(64))
        disk.crash()
        if process.crashes and self.scenario.lost_volumes and self.sim.chance(0.3):
            disk.wipe()
        book = self.ledgers[session]
        driver = SimulatedDriver(
            WhatsApp(session, self.scenario.behaviour, banned=book.banned, account=book.account),
            MemoryLedger(book),
            clock=self.clock,
            rng=rng,
            wake=SimWake(self.sim, f"driver:{session}:{self._lives}"),
            behaviour=lambda: self.scenario.behaviour,
            look_every_ms=3_600_000,
        )
        core = WorkerCore(
            session_id=session,
            instance_id=f"life-{self._lives}",
            protocol=SimProtocol(
                self.sim, session, process, self.orchestrator,
                desk=self.desk, settling=self.settling, inbound=self.inbound, terms=self._terms,
            ),
            driver=driver,
            journal=MemoryJournal(disk, new_id=lambda: f"journal-{rng.getrandbits(64):x}", now_ms=self.clock.now_ms),
            clock=self.clock,
            rng=rng,
            wake=SimWake(self.sim, f"poster:{session}:{self._lives}"),
            ping_every_ms=PING_MS,
        )  # fmt: skip

        async def main() -> None:
            await core.run()
            raise Killed(process)

        return [main(), core.pump_events(), core.post_events()]

    def _terms(self) -> tuple[int, TypingWindow, int]:
        low, high = self.rules.policy.typing_ms
        return self.scenario.lease_ms, TypingWindow(min_ms=low, max_ms=high), UNKNOWN_GRACE_MS

    # The people

    async def _client(self, process: Process) -> None:
        """Registers the fleet, then does everything the scenario says, each at its time and until it is answered."""
        store = self.store(self.gateway)
        intake = Intake(store, self.rules, Random(self.scenario.seed))
        for phone in self.scenario.phones:
            await self._insist(process, partial(self._register, store, phone))
        for at_ms, deed in sorted(self._deeds(store, intake), key=lambda item: item[0]):
            await Pause(at_ms)
            await self._insist(process, deed)
        self._client_done = True

    def _deeds(self, store: Store, intake: Intake) -> list[tuple[int, Callable[[], Awaitable[None]]]]:
        deeds: list[tuple[int, Callable[[], Awaitable[None]]]] = []
        idempotency = Idempotency(store)
        for job in self.scenario.jobs:
            deeds.append((job.at_ms, partial(self._submit, intake, idempotency, job)))
        for at_ms, to in self.scenario.suppressions:
            deeds.append((at_ms, partial(self._suppress, store, to)))
        deeds.append((self.scenario.outage[0], self._outage))
        for at_ms, index in self.scenario.cancels:
            deeds.append((at_ms, partial(self._cancel, store, self.scenario.jobs[index])))
        return deeds

    async def _insist(self, process: Process, deed: Callable[[], Awaitable[None]]) -> None:
        """As a careful caller does: again, with the same id, until there is an answer."""
        while True:
            try:
                await Point(process)
                return await deed()
            except (ProcessDied, Unavailable):
                await Pause(self.sim.now_ms + 700)

    async def _register(self, store: Store, phone: PhonePlan) -> None:
        await store.sessions.register(
            phone.session, phone.phone, driver="simulated", created_at_ms=self.scenario.start_ms - phone.age_ms,
            timezone=phone.timezone, tags=[], limit=4, now_ms=self.sim.now_ms,
        )  # fmt: skip

    async def _submit(self, intake: Intake, idempotency: Idempotency, job: JobPlan) -> None:
        """The caller knows no job id, only its Idempotency-Key; each try brings a new id, and one of them counts."""
        try:
            answer = await idempotency.answer(
                by="world", key=job.name, body=job.name, job_id=intake.new_job_id(self.sim.now_ms),
                now_ms=self.sim.now_ms, work=partial(self._accept, intake, job),
            )  # fmt: skip
            await Point(self.gateway)
        except Conflict as error:
            raise Unavailable("the first request is still in flight") from error
        except RequestError:
            # Refused, e.g. everybody in it said stop before: then nothing of it may ever be sent.
            return
        named = msgspec.json.decode(answer)
        self.jobs[named.get("jobId") or named["messageId"].partition(":")[0]] = job

    async def _accept(self, intake: Intake, job: JobPlan, job_id: str) -> bytes:
        now_ms = self.sim.now_ms
        send_at = job.at_ms + job.delay_ms if job.at_ms + job.delay_ms > now_ms else None
        answer: msgspec.Struct
        if job.single:
            single = SendRequest(to=job.contacts[0], message=job.text, priority=job.priority, send_at=send_at)
            answer = await intake.send(single, by="world", job_id=job_id, idem_key=job.name, now_ms=now_ms)
        else:
            request = JobRequest(
                mode="message",
                contacts=list(job.contacts),
                text=job.text,
                priority=job.priority,
                on_unknown=job.on_unknown,  # type: ignore[arg-type]
                validity_seconds=job.validity_seconds,
                send_at=send_at,
                spread_minutes=job.spread_minutes,
            )
            answer = await intake.job(request, by="world", job_id=job_id, idem_key=job.name, now_ms=now_ms)
        return msgspec.json.encode(answer)

    async def _outage(self) -> None:
        worker = next(p for p in self.sim.processes if p.name == f"worker-{self.scenario.phones[0].session}")
        worker.frozen_until_ms = self.sim.now_ms + self.scenario.outage[1]

    async def _suppress(self, store: Store, to: str) -> None:
        await store.guards.suppress([Suppression(to, self.sim.now_ms)])
        self.suppressed_at.setdefault(to, self.sim.now_ms)

    async def _cancel(self, store: Store, job: JobPlan) -> None:
        for job_id in [id_ for id_, plan in self.jobs.items() if plan is job]:
            if (await store.jobs.cancel(job_id, now_ms=self.sim.now_ms)).code == "OK":
                self.canceled_at.setdefault(job_id, self.sim.now_ms)

    # The end

    def _everything_ended(self) -> bool:
        if not self._client_done or self.sim.steps - self._looked_at_step < LOOK_EVERY_STEPS:
            return False
        self._looked_at_step = self.sim.steps
        runs = self._redis.read(*[("HMGET", keys.job_run(job_id), "state", "closedAt") for job_id in self.jobs])
        return all(state in CLOSED_JOB_STATES and closed_at for state, closed_at in runs)

    def _failpoint(self, name: str) -> None:
        current = self.sim.current_process
        owner = _OWNER.get(name)
        process = next((p for p in self.sim.processes if p.name == owner), current)
        if process is not None:
            self.sim.failpoint(name, process)


class _Asking:
    """A link that only hands its questions up, to whoever drives the coroutine."""

    async def run(self, script: Script, argument: str) -> Any:
        raise RuntimeError("who asks from outside changes nothing")

    async def read(self, *commands: Command) -> list[Any]:
        return await _handed_up(commands)


@coroutine
def _handed_up(commands: Sequence[Command]) -> Generator[Sequence[Command], list[Any], list[Any]]:
    return (yield commands)
