"""The World's side of the ports: Redis that may crash its caller, the worker protocol without HTTP, a wake-up
without asyncio."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar

import msgspec

from paceline.domain.errors import RequestError, Unavailable
from paceline.orchestrator.desk import Desk, Pending
from paceline.orchestrator.inbound import WorkerEvent as InboundEvent
from paceline.orchestrator.settling import Settling, Word
from paceline.store import outbox
from paceline.store.blocking import BlockingRedis
from paceline.store.client import Command
from paceline.store.scripts import Script
from paceline.testing.files import Files
from paceline.testing.outside import TAPPED, Outside
from paceline.testing.sim import Sim
from paceline.testing.steps import Do, Pause, Point, Process, ProcessDied
from paceline.testing.words import Words
from paceline.worker import protocol
from paceline.worker.book import SendError
from paceline.worker.drivers.simulated import SimulatedDriver
from paceline.worker.protocol import (
    ByRaw,
    ClaimAnswer,
    ClaimedTask,
    Handle,
    HelloAnswer,
    NotWanted,
    PendingTask,
    ProtocolUnavailable,
    RequestRefused,
    StaleEpoch,
    TypingWindow,
    WorkerEvent,
)

T = TypeVar("T")

CLAIM_WAIT_MS = 3_600_000
"""A long poll in virtual time; longer than in production, so that idle nights cost few steps."""

BANNED_WAIT_MS = 3_600_000
TIMEOUT_MS = 5_000

_SET_DEADLINES = ("hand_plain", "hand_off", "claim_outbox")
"""The sweeper is woken by nobody in production: it looks every second. Here it sleeps until a deadline is set."""


class SimLink:
    """Redis as one process sees it."""

    is_shared = False

    def __init__(self, sim: Sim, process: Process, redis: BlockingRedis, outside: Outside) -> None:
        self._sim = sim
        self._process = process
        self._redis = redis
        self._outside = outside

    async def run(self, script: Script, argument: bytes) -> Any:
        return await Do(self._process, lambda: self._run(script, argument))

    async def read(self, *commands: Command) -> list[Any]:
        found: list[Any] = await Do(self._process, lambda: self._redis.read(*commands))
        return found

    def _run(self, script: Script, argument: bytes) -> Any:
        answer = self._redis.run(script, argument)
        if script.name in TAPPED:
            self._outside.tap(script.name, argument, answer, self._sim.now_ms)
        self._wake(script)
        return answer

    def _wake(self, script: Script) -> None:
        for topic in self._redis.wakes():
            self._sim.notify(topic)
        if script.name in _SET_DEADLINES:
            self._sim.notify("sweep")
        self._sim.notify("events")


class SimWake:
    """What wakes the simulated driver of one worker."""

    def __init__(self, sim: Sim, key: str) -> None:
        self._sim = sim
        self._key = key

    async def wait_ms(self, ms: int) -> None:
        await Pause(self._sim.now_ms + ms, self._key)

    def notify(self) -> None:
        self._sim.notify(self._key)


class PatientDriver(SimulatedDriver):
    """A worker whose account is banned asks every second whether it is connected. Here it asks once an hour: nothing
    but a new worker can change it."""

    async def wait_connected(self, timeout_ms: int) -> bool:
        return await super().wait_connected(BANNED_WAIT_MS if self._whatsapp.banned else timeout_ms)


class SimProtocol:
    """The worker protocol, answered by the orchestrator's own logic; requests and answers may get lost on the way."""

    def __init__(
        self,
        sim: Sim,
        session: str,
        worker: Process,
        server: Process,
        *,
        desk: Desk,
        settling: Settling,
        words: Words,
        late_words: float,
        files: Files,
        terms: Callable[[], tuple[int, TypingWindow, int]],
    ) -> None:
        self._sim = sim
        self._session = session
        self._worker = worker
        self._server = server
        self._desk = desk
        self._settling = settling
        self._words = words
        self._late_words = late_words
        self._files = files
        self._terms = terms

    @property
    def _now_ms(self) -> int:
        """By the orchestrator's clock."""
        return self._sim.time_of(self._server)

    async def hello(self, *, instance_id: str, life_id: str, journal_id: str, driver: str) -> HelloAnswer:
        welcome = await self._ask(
            lambda: self._desk.hello(self._session, instance_id, journal_id, life=life_id, now_ms=self._now_ms)
        )
        lease_ms, typing, grace_ms = self._terms()
        return HelloAnswer(
            epoch=welcome.epoch,
            now_ms=self._now_ms,
            lease_ms=lease_ms,
            typing=typing,
            unknown_grace_ms=grace_ms,
            pending=_pending(welcome.pending),
            commands=_commands(welcome.commands),
        )

    async def claim(self, *, epoch: int, commands_only: bool = False) -> ClaimAnswer:
        began_ms = self._sim.now_ms
        until_ms = began_ms + (0 if commands_only else CLAIM_WAIT_MS)
        looks, key = count(), f"outbox:{self._session}"
        while True:
            rung = self._sim.rung(key)
            claim = await self._ask(
                lambda: self._desk.claim(
                    self._session, epoch, now_ms=self._now_ms, commands_only=commands_only, again=next(looks) > 0
                )
            )
            if not claim.is_empty or commands_only:
                break
            if self._sim.rung(key) == rung:
                await Pause(until_ms, key)
            if self._sim.now_ms >= until_ms:
                break
        raw = None if claim.task is None else msgspec.json.encode(claim.task).decode()
        task = None if raw is None else msgspec.json.decode(raw, type=ClaimedTask)
        commands = _commands(claim.commands)
        return ClaimAnswer(
            now_ms=self._now_ms, waited_ms=self._sim.now_ms - began_ms, task=task, raw=raw,
            pending=_pending(claim.pending), commands=commands,
        )  # fmt: skip

    async def ack(self, handle: Handle, *, epoch: int, whatsapp_id: str) -> None:
        task, _ = _names(handle)
        await self._ask(lambda: self._settling.sent(self._session, task, whatsapp_id, now_ms=self._now_ms))

    async def nack(self, handle: Handle, *, epoch: int, not_sent: bool, error: SendError | None) -> None:
        word = Word(self._session, epoch, *_names(handle))

        async def say() -> str:
            now_ms = self._now_ms
            if not not_sent:
                return await self._settling.unknown(word, error.message if error else "", now_ms=now_ms)
            if error is None:
                return await self._settling.returned(word, now_ms=now_ms)
            return await self._settling.refused(word, error.code, error.message, now_ms=now_ms)

        await self._ask(say)

    async def extend(self, handle: ByRaw, *, epoch: int) -> int:
        task, token = _names(handle)
        return await self._ask(lambda: self._desk.extend(self._session, epoch, task, token, now_ms=self._now_ms))

    async def media(self, ref: str, *, size: int) -> bytes:
        async def serve() -> bytes:
            return self._files.served(ref)

        return await self._ask(serve)

    async def webhook(self, event: WorkerEvent) -> None:
        inbound = msgspec.convert(msgspec.to_builtins(event), InboundEvent)
        if self._sim.chance(self._late_words):
            self._words.comes_late(inbound)
            await Pause(self._sim.now_ms + TIMEOUT_MS)
            raise ProtocolUnavailable("no answer in time")
        for _ in range(1 + self._sim.chance(self._sim.faults.lose_reply)):
            # Now and then a webhook comes twice.
            await self._ask(lambda: self._words.tell(inbound))

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        await Point(self._worker)
        if not self._server.up or self._server.frozen_until_ms > self._sim.now_ms:
            raise ProtocolUnavailable("the orchestrator is down", maybe_done=False)
        try:
            answer = await question()
            await Point(self._server)
        except (ProcessDied, Unavailable) as error:
            raise ProtocolUnavailable(str(error)) from error
        except RequestError as error:
            raise _translated(error) from error
        if self._sim.chance(self._sim.faults.lose_reply):
            raise ProtocolUnavailable("the answer was lost")
        return answer


def _translated(error: RequestError) -> Exception:
    if error.code == "STALE_EPOCH":
        return StaleEpoch(error.message)
    if error.code == "NOT_WANTED":
        return NotWanted(error.message)
    return RequestRefused(error.status, error.code, error.message)


def _pending(items: list[Pending]) -> list[PendingTask]:
    return [msgspec.convert(msgspec.to_builtins(item), PendingTask) for item in items]


def _commands(items: list[outbox.Command]) -> list[protocol.Command]:
    return [msgspec.convert(msgspec.to_builtins(item), protocol.Command) for item in items]


def _names(handle: Handle) -> tuple[str, int]:
    if isinstance(handle, ByRaw):
        raw = msgspec.json.decode(handle.raw)
        return raw["taskId"], raw["token"]
    return handle.task_id, int(handle.token)
