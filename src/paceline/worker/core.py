"""The worker's core: say hello, answer for the past, then claim and send, one task at a time.

Three coroutines over ports, `run`, `pump_events` and `post_events`, which the composition root (or the World) runs side
by side.
Nothing new is claimed while a result is unreported.
"""

from dataclasses import dataclass

import structlog

from paceline.domain.ids import whatsapp_id
from paceline.kits.clock import Clock
from paceline.kits.failpoint import failpoint
from paceline.kits.rng import Rng
from paceline.worker.decisions import NotSent, Verdict, backoff_ms, outcome_of
from paceline.worker.drivers.base import Driver
from paceline.worker.journal import Journal
from paceline.worker.orders import Orders
from paceline.worker.poster import PING_EVERY_MS, Poster
from paceline.worker.protocol import (
    ByRaw,
    ClaimAnswer,
    ClaimedTask,
    HelloAnswer,
    NotWanted,
    ProtocolUnavailable,
    RequestRefused,
    StaleEpoch,
    WorkerProtocol,
)
from paceline.worker.pump import EventPump
from paceline.worker.recovery import Recovery
from paceline.worker.reporter import Reporter, Subject
from paceline.worker.sender import Sender
from paceline.worker.shift import Interrupted, Lease, Shift
from paceline.worker.wake import Wake

log = structlog.stdlib.get_logger(__name__)

EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_REPLACED = 3

_WAIT_CONNECTED_MS = 1_000
_ORDERS_EVERY_MS = 15_000
"""How often a linked worker without a connection asks whether it is to do something. One that is not linked asks every
second: somebody waits for its pairing code."""
# An orchestrator that answers a long poll at once with nothing must not be asked in a tight loop.
_MIN_POLL_MS = 250


@dataclass(frozen=True)
class Exit:
    """Why `run` ended; `code` is the exit status of the process."""

    code: int
    reason: str


class WorkerCore:
    """One session's worker, apart from processes, sockets and files."""

    def __init__(
        self,
        *,
        session_id: str,
        instance_id: str,
        life_id: str,
        protocol: WorkerProtocol,
        driver: Driver,
        journal: Journal,
        clock: Clock,
        rng: Rng,
        wake: Wake,
        ping_every_ms: int = PING_EVERY_MS,
    ) -> None:
        """`wake` is for the webhooks alone; the driver has one of its own."""
        self._shift = Shift(session_id, instance_id, life_id, journal)
        self._protocol = protocol
        self._driver = driver
        self._clock = clock
        self._rng = rng
        self._reporter = Reporter(self._shift, protocol=protocol, clock=clock, rng=rng)
        self._sender = Sender(self._shift, protocol=protocol, driver=driver, clock=clock, rng=rng)
        self._recovery = Recovery(self._shift, driver=driver, reporter=self._reporter, clock=clock)
        self._poster = Poster(
            self._shift,
            protocol=protocol,
            clock=clock,
            rng=rng,
            wake=wake,
            ping_every_ms=ping_every_ms,
            quiet_ms=driver.quiet_ms,
        )
        self._orders = Orders(self._shift, driver=driver, poster=self._poster)
        self._pump = EventPump(self._shift, driver=driver, poster=self._poster, clock=clock, rng=rng)
        self._asked_orders_ms = clock.now_ms()
        self.polling = False
        """True while the worker holds nothing and only waits for a task: it may be cut off without harm."""

    async def run(self) -> Exit:
        """Work until asked to stop or told that another instance does."""
        try:
            while not self._shift.stopping:
                welcome = await self._greet()
                await self._recovery.answer(welcome.pending)
                await self._orders.obey(welcome.commands)
                await self._claim_while_sure()
        except Interrupted:
            return Exit(EXIT_DONE, "stopped; the open task is answered for at the next start")
        except StaleEpoch:
            return Exit(EXIT_REPLACED, "STALE_EPOCH")
        except NotWanted:
            return Exit(EXIT_REPLACED, "NOT_WANTED")
        except RequestRefused as error:
            return Exit(EXIT_REFUSED, str(error))
        return Exit(EXIT_DONE, "stopped")

    async def pump_events(self) -> None:
        """Takes driver events in and reconnects; never returns."""
        await self._pump.run()

    async def post_events(self) -> None:
        """Webhooks and keep-alives; never returns."""
        await self._poster.run()

    def request_stop(self) -> None:
        """Let `run` end soon: an unsent task is given back, a written one is waited for."""
        self._shift.stopping = True

    async def farewell(self) -> None:
        """Close the connection and say so, best effort. After `run` has ended."""
        await self._driver.close()
        await self._poster.say("DISCONNECTED", {"code": 0, "reason": "stopped"})

    async def _greet(self) -> HelloAnswer:
        """Hello until it is answered, then open the connection: an instance that is not wanted must not
        connect, or it would throw out the one that is."""
        failures = 0
        while True:
            asked_ms = self._clock.now_ms()
            try:
                terms = await self._protocol.hello(
                    instance_id=self._shift.instance_id,
                    life_id=self._shift.life_id,
                    journal_id=self._shift.journal.journal_id,
                    driver=self._driver.name,
                )
                break
            except ProtocolUnavailable as error:
                log.warning("hello not answered", reason=str(error))
            if self._shift.stopping:
                raise Interrupted
            await self._clock.sleep_ms(backoff_ms(failures, self._rng))
            failures += 1
        self._shift.time.observe(terms.now_ms, asked_ms=asked_ms, answered_ms=self._clock.now_ms())
        first = self._shift.terms is None
        self._shift.terms = terms
        if first:
            await self._driver.connect()
        return terms

    async def _claim_while_sure(self) -> None:
        """Claim and send until asked to stop, or until a claim got no answer: it may have been carried out, and
        then the next `hello` says so."""
        in_vain = 0
        while not self._shift.stopping:
            if not await self._driver.wait_connected(_WAIT_CONNECTED_MS):
                await self._ask_for_orders()
                continue
            self._asked_orders_ms = self._clock.now_ms()
            try:
                answer = await self._claim()
            except ProtocolUnavailable as error:
                log.warning("claim not answered", reason=str(error))
                in_vain = await self._pause_after(in_vain)
                if error.maybe_done:
                    return
                continue
            if answer.pending:
                # By the orchestrator's books we hold something although we ask for work; we answer as after a hello.
                await self._recovery.answer(answer.pending)
            await self._orders.obey(answer.commands)
            if answer.task is None or answer.raw is None:
                continue
            if await self._carry_out(answer.task, answer.raw) == NotSent():
                # Given back, and perhaps offered again at once: the two of us must not go round in circles.
                in_vain = await self._pause_after(in_vain)
            else:
                in_vain = 0

    async def _ask_for_orders(self) -> None:
        """Who is not connected claims nothing, but must hear that it is to pair, or to go. Asking so tells besides that
        it is not connected, as a claim tells that it is."""
        now_ms = self._clock.now_ms()
        if self._driver.linked and now_ms - self._asked_orders_ms < _ORDERS_EVERY_MS:
            return
        self._asked_orders_ms = now_ms
        try:
            answer = await self._protocol.claim(epoch=self._shift.agreed.epoch, commands_only=True)
        except ProtocolUnavailable as error:
            log.warning("asked for orders, not answered", reason=str(error))
            return
        await self._orders.obey(answer.commands)

    async def _pause_after(self, in_vain: int) -> int:
        if not self._shift.stopping:
            await self._clock.sleep_ms(backoff_ms(in_vain, self._rng))
        return in_vain + 1

    async def _claim(self) -> ClaimAnswer:
        asked_ms = self._clock.now_ms()
        self.polling = True
        answer = await self._protocol.claim(epoch=self._shift.agreed.epoch)
        self.polling = False
        answered_ms = self._clock.now_ms()
        self._shift.time.observe(answer.now_ms, asked_ms=asked_ms, answered_ms=answered_ms, waited_ms=answer.waited_ms)
        if answer.task is None and answered_ms - asked_ms < _MIN_POLL_MS:
            await self._clock.sleep_ms(_MIN_POLL_MS)
        return answer

    async def _carry_out(self, task: ClaimedTask, raw: str) -> Verdict:
        failpoint("claimed-not-sent")
        message_id = whatsapp_id(task.task_id)
        self._shift.take_up(message_id)
        lease = Lease(ByRaw(raw=raw), task.lease_until_ms)
        subject = Subject(task.task_id, message_id, task.to, task.request_id)
        log.info("sending", attempt=task.attempt, **subject.named)
        verdict = await self._sender.send(task, lease)
        log.info("sending ended", outcome=outcome_of(verdict)[0], **subject.named)
        await self._reporter.report(subject, lease.handle, verdict)
        self._shift.put_down()
        if self._shift.stale:
            raise StaleEpoch("another instance took over while this one was sending")
        return verdict
