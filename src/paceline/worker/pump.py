"""Driver events to webhooks: what WhatsApp tells goes first into our own knowledge, then to the orchestrator.

One coroutine with three timers (retry, reconnect, ping). A slow or absent orchestrator never keeps events from being
taken in, because a receipt may be the proof that the sender is waiting for.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from paceline.kits.clock import Clock
from paceline.kits.rng import Rng
from paceline.worker.book import Entry, Outcome, ReceiptKind, Result
from paceline.worker.decisions import backoff_ms, reconnects_after
from paceline.worker.drivers.base import (
    Accepted,
    Connected,
    Delivered,
    Disconnected,
    Driver,
    DriverEvent,
    Read,
    Received,
    SendAck,
)
from paceline.worker.protocol import ProtocolError, ProtocolUnavailable, WorkerEvent, WorkerProtocol
from paceline.worker.reporter import Subject, message_event
from paceline.worker.shift import Shift

log = structlog.stdlib.get_logger(__name__)

# Three missed ones make a worker silent for the watchdog (LIVENESS_MS 60,000).
PING_EVERY_MS = 15_000
# Five days of receipts of the busiest phone; beyond that the oldest are dropped, and told again after a restart.
_MAX_WAITING = 5_000
_IDLE_MS = 60_000


@dataclass(frozen=True)
class _Post:
    event: WorkerEvent
    receipt: tuple[str, ReceiptKind] | None = None


class EventPump:
    """Takes in driver events for ever, keeps the connection up, and posts webhooks."""

    def __init__(
        self, shift: Shift, *, protocol: WorkerProtocol, driver: Driver, clock: Clock, rng: Rng, ping_every_ms: int
    ) -> None:
        self._shift = shift
        self._journal = shift.journal
        self._protocol = protocol
        self._driver = driver
        self._clock = clock
        self._rng = rng
        self._ping_every_ms = ping_every_ms
        self._waiting: deque[_Post] = deque(maxlen=_MAX_WAITING)
        self._events = 0
        self._told_connected: bool | None = None
        self._post_failures = self._connect_failures = 0
        self._retry_at_ms = 0
        self._reconnect_at_ms: int | None = None
        self._ping_at_ms = 0

    async def run(self) -> None:
        while True:
            event = await self._driver.next_event(self._idle_ms())
            if event is not None:
                await self._take_in(event)
            else:
                await self._do_what_is_due()

    async def say(self, name: str, data: Mapping[str, object]) -> None:
        """Post one event now, once, whatever becomes of it."""
        try:
            await self._protocol.webhook(self._session_event(name, data))
        except ProtocolError as error:
            log.info("webhook not delivered", name=name, reason=str(error))

    def _idle_ms(self) -> int:
        timers = [
            self._retry_at_ms if self._waiting else None,
            self._reconnect_at_ms,
            self._ping_at_ms if self._pings else None,
        ]
        now_ms = self._clock.now_ms()
        return max(0, min((at_ms - now_ms for at_ms in timers if at_ms is not None), default=_IDLE_MS))

    @property
    def _pings(self) -> bool:
        return self._ping_every_ms > 0 and self._shift.terms is not None

    async def _do_what_is_due(self) -> None:
        now_ms = self._clock.now_ms()
        if self._reconnect_at_ms is not None and self._reconnect_at_ms <= now_ms:
            self._reconnect_at_ms = None
            await self._driver.connect()
        elif self._pings and self._ping_at_ms <= now_ms:
            self._ping_at_ms = now_ms + self._ping_every_ms
            await self.say("PING", {})
        elif self._waiting and self._retry_at_ms <= now_ms:
            await self._post_first()

    async def _post_first(self) -> None:
        post = self._waiting[0]
        try:
            await self._protocol.webhook(post.event)
        except ProtocolUnavailable as error:
            self._retry_at_ms = self._clock.now_ms() + backoff_ms(self._post_failures, self._rng)
            self._post_failures += 1
            log.warning("webhook not answered; posting it again", name=post.event.event, reason=str(error))
            return
        except ProtocolError as error:
            log.error("webhook refused; it is not repeated", name=post.event.event, reason=str(error))
        self._post_failures = 0
        if self._waiting and self._waiting[0] is post:
            self._waiting.popleft()
        if post.receipt is not None:
            await self._journal.mark_receipt(*post.receipt)

    async def _take_in(self, event: DriverEvent) -> None:
        match event:
            case Connected():
                self._connect_failures = 0
                self._tell_connection(True, "CONNECTED", {})
            case Disconnected(code=code, reason=reason):
                self._tell_connection(False, "DISCONNECTED", {"code": code, "reason": reason})
                self._plan_reconnect(code)
            case SendAck(whatsapp_id=whatsapp_id, outcome=Accepted()):
                await self._take_in_ack(whatsapp_id)
            case Delivered(whatsapp_id=whatsapp_id):
                await self._take_in_receipt(whatsapp_id, "delivered")
            case Read(whatsapp_id=whatsapp_id):
                await self._take_in_receipt(whatsapp_id, "read")
            case Received(sender=sender, text=text, whatsapp_id=whatsapp_id, at_ms=at_ms):
                data = {"from": sender, "text": text, "whatsappId": whatsapp_id}
                self._post(
                    WorkerEvent(
                        session_id=self._shift.session_id,
                        event="MESSAGE_RECEIVED",
                        data=data,
                        timestamp=at_ms,
                        event_id=f"MESSAGE_RECEIVED:{whatsapp_id}",
                    )
                )

    async def _take_in_ack(self, whatsapp_id: str) -> None:
        """An ack that the sender waits for is the sender's to write down; a late one is ours."""
        if whatsapp_id == self._shift.in_flight:
            self._shift.note_proof(whatsapp_id)
        elif entry := self._journal.find(whatsapp_id):
            await self._prove(entry)

    async def _take_in_receipt(self, whatsapp_id: str, kind: ReceiptKind) -> None:
        entry = self._journal.find(whatsapp_id)
        if entry is None:
            log.info("receipt of a message that is not in the journal", whatsapp_id=whatsapp_id)
            return
        await self._prove(entry)
        if kind in entry.receipts:
            return
        name = "MESSAGE_DELIVERED" if kind == "delivered" else "MESSAGE_READ"
        event = message_event(self._shift, name, Subject.of(entry), self._clock.now_ms())
        self._post(event, receipt=(whatsapp_id, kind))

    async def _prove(self, entry: Entry) -> None:
        """WhatsApp will not tell twice, so the proof goes to the disk before anything else."""
        if entry.sent:
            return
        await self._journal.conclude(Result(entry.task_id, Outcome.SENT, self._clock.now_ms()))
        if entry.whatsapp_id != self._shift.in_flight:
            self._post(message_event(self._shift, "MESSAGE_SENT", Subject.of(entry), self._clock.now_ms()))

    def _plan_reconnect(self, code: int) -> None:
        if not reconnects_after(code):
            log.error("the connection ended for good", code=code)
            return
        self._reconnect_at_ms = self._clock.now_ms() + backoff_ms(self._connect_failures, self._rng)
        self._connect_failures += 1

    def _tell_connection(self, connected: bool, name: str, data: Mapping[str, object]) -> None:
        if connected != self._told_connected:
            self._told_connected = connected
            self._post(self._session_event(name, data))

    def _session_event(self, name: str, data: Mapping[str, object]) -> WorkerEvent:
        self._events += 1
        return WorkerEvent(
            session_id=self._shift.session_id,
            event=name,
            # With the epoch a late word of an old instance can be told from one of the present.
            data={**data, "epoch": self._shift.terms.epoch if self._shift.terms else 0},
            timestamp=self._clock.now_ms(),
            event_id=f"{self._shift.instance_id}:{self._events}",
        )

    def _post(self, event: WorkerEvent, receipt: tuple[str, ReceiptKind] | None = None) -> None:
        self._waiting.append(_Post(event, receipt))
