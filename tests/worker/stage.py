"""A stage for the worker's core: coroutines stepped by hand in virtual time, and a small strict orchestrator.

Nothing here sleeps. `Stage.run` resumes the coroutine whose time has come first; a crash is a dropped stage.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Coroutine, Generator
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from types import coroutine
from typing import Any

from paceline.domain.ids import whatsapp_id
from paceline.kits.rng import new_rng
from paceline.worker.book import SendError
from paceline.worker.core import Exit, WorkerCore
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import LedgerBook, MemoryLedger
from paceline.worker.drivers.simulated import SimulatedDriver
from paceline.worker.drivers.whatsapp import WhatsApp
from paceline.worker.journal import MemoryDisk, MemoryJournal
from paceline.worker.protocol import (
    ByRaw,
    ClaimAnswer,
    ClaimedTask,
    Command,
    Handle,
    HelloAnswer,
    NotWanted,
    PendingTask,
    ProtocolUnavailable,
    StaleEpoch,
    TypingWindow,
    WorkerEvent,
)
from paceline.worker.wake import ClockWake

START_MS = 1_800_000_000_000
NAP_MS = 2_000
"""For tests that crash a worker at every step: a crash in the middle of a sleep is like one at its end, so shorter naps
are only more of the same."""

Script = Callable[[], Coroutine[Any, Any, Any]]


@coroutine
def resume_at(at_ms: int) -> Generator[int, None, None]:
    yield at_ms


class VirtualClock:
    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    async def sleep_ms(self, ms: int) -> None:
        await resume_at(self.ms + max(0, ms))


class Stage:
    """Steps coroutines in virtual time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._ready: list[tuple[int, int, Script | Coroutine[Any, Any, Any]]] = []
        self.results: list[Any] = []

    def spawn(self, script: Script) -> None:
        """The coroutine is made at its first step, so that a stage can be dropped before that."""
        heapq.heappush(self._ready, (self._clock.ms, next(self._order), script))

    def step(self) -> None:
        at_ms, _, entry = heapq.heappop(self._ready)
        self._clock.ms = max(self._clock.ms, at_ms)
        task = entry() if callable(entry) else entry
        try:
            wake_ms = task.send(None)
        except StopIteration as stop:
            self.results.append(stop.value)
            return
        heapq.heappush(self._ready, (wake_ms, next(self._order), task))

    def run(self, until: Callable[[], bool], *, within_ms: int, max_steps: int | None = None) -> bool:
        """Step until the condition holds; False if time or steps ran out first."""
        end_ms = self._clock.ms + within_ms
        for _ in itertools.count() if max_steps is None else range(max_steps):
            if until():
                return True
            if not self._ready or self._ready[0][0] > end_ms:
                return False
            self.step()
        return until()


class Stepped:
    """A port that can be left at two points of every call: before it acts and before its answer arrives."""

    def __init__(self, port: Any, clock: VirtualClock) -> None:
        self._port, self._clock = port, clock

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if not iscoroutinefunction(attribute):
            return attribute

        async def call(*args: Any, **kwargs: Any) -> Any:
            await resume_at(self._clock.ms)
            answer = await attribute(*args, **kwargs)
            await resume_at(self._clock.ms)
            return answer

        return call


class Lossy:
    """A line that loses the n-th request or the n-th answer (of `only` one kind), for the given numbers."""

    def __init__(
        self,
        port: Any,
        *,
        requests: Container[int] = (),
        answers: Container[int] = (),
        only: str | None = None,
    ) -> None:
        self._port, self._requests, self._answers, self._only = port, requests, answers, only
        self._calls = itertools.count()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if self._only not in (None, name):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            number = next(self._calls)
            if number in self._requests:
                raise ProtocolUnavailable("request lost")
            answer = await method(*args, **kwargs)
            if number in self._answers:
                raise ProtocolUnavailable("answer lost")
            return answer

        return call


@dataclass
class Task:
    task_id: str
    to: str = "447700900001"
    text: str = "hello"
    mode: str = "message"
    media_ref: str | None = None
    state: str = "queued"
    attempt: int = 0
    epoch: int = 0
    token: str = ""
    resend: bool = False
    lease_until_ms: int = 0
    send_after_ms: int = 0
    send_before_ms: int | None = None
    unknown_at_ms: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Orchestrator:
    """The other side of the protocol, as strict as the contract and no wiser: a claim whose answer was lost is
    not offered again to the same epoch."""

    def __init__(self, clock: VirtualClock, *, on_unknown: str = "resend") -> None:
        self.clock = clock
        self.on_unknown = on_unknown
        self.tasks: dict[str, Task] = {}
        self.queue: list[str] = []
        self.epoch = 0
        self.wanted: str | None = None
        self.lease_ms = 120_000
        self.typing = TypingWindow(min_ms=1_000, max_ms=3_000)
        self.grace_ms = 10_000
        self.events: list[WorkerEvent] = []
        self.calls: list[tuple[str, Any]] = []
        self.extend_error: Exception | None = None
        self.report_error: Exception | None = None
        self.journal_ids: list[str] = []
        self.files: dict[str, bytes] = {}
        self.commands: list[Command] = []
        """Given at every claim, until the test takes them away."""
        self.media_errors: list[Exception] = []
        """Raised instead of giving a file, one for each time it is asked for."""

    def add(self, task_id: str, **fields: Any) -> Task:
        task = Task(task_id, **fields)
        self.tasks[task_id] = task
        self.queue.append(task_id)
        return task

    @property
    def settled(self) -> bool:
        return all(task.state in ("sent", "failed") for task in self.tasks.values())

    def events_named(self, name: str) -> list[WorkerEvent]:
        return [event for event in self.events if event.event == name]

    def lapse(self) -> None:
        for task in self.tasks.values():
            if task.state == "claimed" and task.lease_until_ms <= self.clock.ms:
                self._unknown(task, "LEASE_ENDED")

    async def hello(self, *, instance_id: str, life_id: str, journal_id: str, driver: str) -> HelloAnswer:
        if self.wanted not in (None, instance_id):
            raise NotWanted("another one")
        self.journal_ids.append(journal_id)
        self.lapse()
        self.epoch += 1
        pending = [
            PendingTask(task_id=task.task_id, token=task.token, whatsapp_id=whatsapp_id(task.task_id), to=task.to)
            for task in self.tasks.values()
            if task.state == "claimed"
        ]
        self.calls.append(("hello", pending))
        return HelloAnswer(
            epoch=self.epoch,
            now_ms=self.clock.ms,
            lease_ms=self.lease_ms,
            typing=self.typing,
            unknown_grace_ms=self.grace_ms,
            pending=pending,
            commands=list(self.commands),
        )

    async def claim(self, *, epoch: int, commands_only: bool = False) -> ClaimAnswer:
        end_ms = self.clock.ms + 20_000
        while self.clock.ms < end_ms:
            self._fence(epoch)
            if self.wanted == "nobody":
                raise NotWanted("go")
            if commands_only:
                self.calls.append(("commands", epoch))
            if self.commands or commands_only:
                return ClaimAnswer(now_ms=self.clock.ms, commands=list(self.commands))
            self.lapse()
            busy = any(task.state == "claimed" for task in self.tasks.values())
            if self.queue and not busy:
                return self._give(self.tasks[self.queue.pop(0)])
            await self.clock.sleep_ms(1_000)
        return ClaimAnswer(now_ms=self.clock.ms)

    async def ack(self, handle: Handle, *, epoch: int, whatsapp_id: str) -> None:
        self.calls.append(("ack", whatsapp_id))
        self._refuse_if_told()
        self._sent(self._held(handle))

    async def nack(self, handle: Handle, *, epoch: int, not_sent: bool, error: SendError | None) -> None:
        self._fence(epoch)
        self.calls.append(("nack", (not_sent, error and error.code)))
        self._refuse_if_told()
        task = self._held(handle)
        if task.state != "claimed" or task.token != self._token(handle):
            return
        if not not_sent:
            self._unknown(task, error.code if error else "")
        elif error is None:
            task.state, task.attempt = "queued", task.attempt - 1
            self.queue.insert(0, task.task_id)
        else:
            task.state = "failed"
            task.errors.append(error.code)

    async def extend(self, handle: ByRaw, *, epoch: int) -> int:
        self.calls.append(("extend", epoch))
        if self.extend_error is not None:
            raise self.extend_error
        self._fence(epoch)
        task = self._held(handle)
        task.lease_until_ms = self.clock.ms + self.lease_ms
        return task.lease_until_ms

    async def media(self, ref: str, *, size: int) -> bytes:
        self.calls.append(("media", ref))
        if self.media_errors:
            raise self.media_errors.pop(0)
        return self.files[ref]

    async def webhook(self, event: WorkerEvent) -> None:
        self.events.append(event)
        if event.event in ("MESSAGE_SENT", "MESSAGE_DELIVERED", "MESSAGE_READ"):
            self._sent(self.tasks[str(event.data["messageId"])])

    def _give(self, task: Task) -> ClaimAnswer:
        task.state, task.epoch, task.attempt = "claimed", self.epoch, task.attempt + 1
        task.token = f"{self.epoch}-{task.attempt}-{len(self.calls)}"
        task.lease_until_ms = self.clock.ms + self.lease_ms
        self.calls.append(("claim", task.task_id))
        return ClaimAnswer(
            now_ms=self.clock.ms,
            raw=f"{task.task_id}|{task.token}",
            task=ClaimedTask(
                task_id=task.task_id,
                to=task.to,
                text=task.text,
                mode=task.mode,
                media_ref=task.media_ref,
                media_type="image/png" if task.media_ref else "",
                media_size=len(self.files.get(task.media_ref or "", b"")),
                media_name="picture.png" if task.media_ref else None,
                whatsapp_id=whatsapp_id(task.task_id),
                attempt=task.attempt,
                resend=task.resend,
                send_after_ms=task.send_after_ms or self.clock.ms + 2_000,
                send_before_ms=task.send_before_ms or task.lease_until_ms,
                lease_until_ms=task.lease_until_ms,
            ),
        )

    def _held(self, handle: Handle) -> Task:
        return self.tasks[handle.raw.split("|")[0] if isinstance(handle, ByRaw) else handle.task_id]

    def _token(self, handle: Handle) -> str:
        return handle.raw.split("|")[1] if isinstance(handle, ByRaw) else handle.token

    def _sent(self, task: Task) -> None:
        task.state = "sent"
        self.queue = [task_id for task_id in self.queue if task_id != task.task_id]

    def _unknown(self, task: Task, code: str) -> None:
        task.errors.append(code)
        task.unknown_at_ms.append(self.clock.ms)
        if self.on_unknown == "hold":
            task.state = "failed"
            return
        task.state, task.resend = "queued", True
        self.queue.insert(0, task.task_id)

    def _fence(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise StaleEpoch("older")

    def _refuse_if_told(self) -> None:
        if self.report_error is not None:
            raise self.report_error


class Theatre:
    """One session: what outlives its workers (disk, ledger, orchestrator), and the worker of the moment."""

    def __init__(self, *, on_unknown: str = "resend", seed: int = 1, step_ms: int = 200, **behaviour: Any) -> None:
        self.clock = VirtualClock()
        self.orchestrator = Orchestrator(self.clock, on_unknown=on_unknown)
        self.disk = MemoryDisk()
        self.ledger = LedgerBook()
        self.behaviour = Behaviour(**behaviour)
        self.rng = new_rng(seed)
        self.lives = 0
        self.step_ms = step_ms
        """How long a worker sleeps through at most."""
        self.line: Callable[[Any], Any] = lambda protocol: protocol
        self.journal_type: type[MemoryJournal] = MemoryJournal

    def start(self, *, stepped: bool = False) -> None:
        """Begin a new life. With `stepped` it can be left at every port call."""
        self.lives += 1
        wrap: Callable[[Any], Any] = (lambda port: Stepped(port, self.clock)) if stepped else (lambda port: port)
        self.whatsapp = WhatsApp("s1", self.behaviour, banned=self.ledger.banned, account=self.ledger.account)
        self.driver = SimulatedDriver(
            self.whatsapp,
            MemoryLedger(self.ledger),
            clock=self.clock,
            rng=self.rng,
            wake=ClockWake(self.clock, self.step_ms),
            behaviour=lambda: self.behaviour,
        )
        self.journal = self.journal_type(self.disk, new_id=lambda: f"journal-{self.lives}", now_ms=self.clock.now_ms)
        self.core = WorkerCore(
            session_id="s1",
            instance_id=f"instance-{self.lives}",
            life_id="life",
            protocol=wrap(self.line(self.orchestrator)),
            driver=wrap(self.driver),
            journal=wrap(self.journal),
            clock=self.clock,
            rng=self.rng,
            wake=ClockWake(self.clock, self.step_ms),
        )
        self.stage = Stage(self.clock)
        self.stage.spawn(self.core.run)
        self.stage.spawn(self.core.pump_events)
        self.stage.spawn(self.core.post_events)

    def crash(self) -> None:
        """The process is gone; what was not forced to the disk is lost."""
        self.disk.crash()
        del self.stage, self.core, self.driver, self.whatsapp, self.journal

    def play(self, until: Callable[[], bool] | None = None, *, within_ms: int = 1_200_000) -> bool:
        return self.stage.run(until or (lambda: self.orchestrator.settled), within_ms=within_ms)

    def play_to_exit(self, *, within_ms: int = 1_200_000) -> Exit:
        assert self.stage.run(lambda: bool(self.stage.results), within_ms=within_ms)
        result = self.stage.results[0]
        assert isinstance(result, Exit)
        return result

    def check_ledger(self) -> None:
        """I2: one message id per task, and no repetition that was not preceded by a recorded unknown outcome."""
        lines: Counter[str] = Counter()
        for line in self.ledger.lines:
            assert line.whatsapp_id == whatsapp_id(line.task_id)
            assert line.repeat == (lines[line.task_id] > 0)
            known = [ms for ms in self.orchestrator.tasks[line.task_id].unknown_at_ms if ms <= line.at]
            assert lines[line.task_id] <= len(known), "repeated without a recorded unknown outcome"
            assert not line.repeat or self.orchestrator.on_unknown == "resend", "repeated with `hold`"
            lines[line.task_id] += 1


def do(awaitable: Awaitable[Any]) -> Any:
    """Finish a coroutine that never has to wait."""
    try:
        awaitable.__await__().__next__()
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it had to wait")
