"""The workers of a run, life after life, each with its side of the simulated WhatsApp. Disks and ledgers stay."""

from collections.abc import Coroutine
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from paceline.testing.plans import PhonePlan
from paceline.testing.ports import PatientDriver, SimProtocol, SimWake
from paceline.testing.sim import VirtualClock
from paceline.testing.steps import Killed, Process, Request
from paceline.testing.words import Words
from paceline.worker.core import WorkerCore
from paceline.worker.drivers.account import Account
from paceline.worker.drivers.ledger import LedgerBook, MemoryLedger
from paceline.worker.drivers.whatsapp import WhatsApp
from paceline.worker.journal import MemoryDisk, MemoryJournal
from paceline.worker.protocol import TypingWindow

if TYPE_CHECKING:
    from paceline.testing.world import World

UNKNOWN_GRACE_MS = 10_000
START_MS = 1_000


class Workers:
    def __init__(self, world: "World") -> None:
        self._world = world
        self._sim = world.sim
        phones = world.scenario.phones
        accounts = {plan.phone: Account() for plan in phones}
        self.ledgers = {plan.session: LedgerBook(accounts[plan.phone]) for plan in phones}
        self.ever_banned: set[str] = set()
        """Sessions whose ban was lifted."""
        self._disks = {plan.session: MemoryDisk() for plan in phones}
        self._servers: dict[str, WhatsApp] = {}
        self._lives = {plan.session: 0 for plan in phones}
        self._instances: dict[str, str] = {}
        self._ahead_ms: dict[str, int] = {}
        self._processes = {plan.session: Process(f"worker-{plan.session}", lambda: []) for plan in phones}

    def start(self) -> None:
        """All of them, for as long as the run lasts."""
        for plan in self._world.scenario.phones:
            process = self._processes[plan.session]
            process.boot = partial(self._boot, process, plan)
            process.boot_at_ms = self._world.scenario.start_ms + START_MS
            self._sim.add(process)

    def begin(self, session: str, instance: str) -> Process:
        """One worker, for one life."""
        plan = next(plan for plan in self._world.scenario.phones if plan.session == session)
        process = self._processes[session] = Process(f"worker-{session}", lambda: [], boot_at_ms=self._sim.now_ms)
        process.boot = partial(self._boot, process, plan, instance)
        return self._sim.add(process)

    def of(self, session: str) -> Process:
        return self._processes[session]

    def hear(self, session: str, who: str, text: str, message_id: str) -> None:
        """Somebody writes to the number of this session."""
        if server := self._servers.get(session):
            server.hear(who, text, message_id, self._sim.now_ms)
            self._sim.notify(f"driver:{session}:{self._lives[session]}")

    def lift_bans(self, phone: str) -> None:
        """The platform takes its ban back; what runs does not notice, so it is started anew."""
        for plan in self._world.scenario.phones:
            if plan.phone == phone and self.ledgers[plan.session].banned:
                self.ever_banned.add(plan.session)
                self.ledgers[plan.session].banned = False
                self._sim.kill(self.of(plan.session))

    def _boot(self, process: Process, plan: PhonePlan, instance: str = "") -> list[Coroutine[Request, Any, Any]]:
        world, sim, session = self._world, self._sim, plan.session
        self._lives[session] += 1
        disk, rng = self._disks[session], Random(sim.rng.getrandbits(64))
        disk.crash()
        book, life = self.ledgers[session], self._lives[session]
        comes_back = life > 1 and world.scenario.around.restarts and not instance
        if life > 1 and not comes_back and world.scenario.lost_volumes and sim.chance(0.3):
            disk.wipe()
        if not comes_back:
            skew_ms = world.scenario.around.skew_ms
            self._ahead_ms[session] = sim.rng.randint(-skew_ms, skew_ms) if skew_ms else 0
            self._instances[session] = instance or f"life-{session}-{life}"
        clock = VirtualClock(sim, ahead_ms=self._ahead_ms[session])
        server = WhatsApp(session, world.scenario.behaviour, banned=book.banned, account=book.account)
        self._servers[session] = server
        driver = PatientDriver(
            server,
            MemoryLedger(book),
            clock=world.clock,
            rng=rng,
            wake=SimWake(sim, f"driver:{session}:{life}"),
            behaviour=lambda: world.scenario.behaviour,
            look_every_ms=3_600_000,
        )
        core = WorkerCore(
            session_id=session,
            instance_id=self._instances[session],
            life_id=f"{life}",
            protocol=SimProtocol(
                sim, session, process, world.orchestrator,
                desk=world.desk, settling=world.settling,
                words=Words(sim, session, world.orchestrator, world.inbound, world.outside),
                late_words=world.scenario.around.late_words, files=world.files, terms=self._terms,
            ),
            driver=driver,
            journal=MemoryJournal(disk, new_id=lambda: f"journal-{rng.getrandbits(64):x}", now_ms=clock.now_ms),
            clock=clock,
            rng=rng,
            wake=SimWake(sim, f"poster:{session}:{life}"),
            ping_every_ms=world.ping_ms,
        )  # fmt: skip

        async def main() -> None:
            await core.run()
            raise Killed(process)

        return [main(), core.pump_events(), core.post_events()]

    def _terms(self) -> tuple[int, TypingWindow, int]:
        low, high = self._world.rules.policy.typing_ms
        return self._world.scenario.lease_ms, TypingWindow(min_ms=low, max_ms=high), UNKNOWN_GRACE_MS
