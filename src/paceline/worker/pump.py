"""Driver events to webhooks: what WhatsApp tells goes first into our own knowledge, then to the `poster`.

Taking in waits for nobody but the driver and the disk. A slow or absent orchestrator never keeps events from being
taken in, because a receipt may be the proof that the sender is waiting for.
"""

from collections.abc import Mapping

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
    LinkBlocked,
    QrShown,
    Read,
    Received,
    Refused,
    Restriction,
    SendAck,
)
from paceline.worker.poster import MESSAGE_RECEIVED, Poster
from paceline.worker.protocol import WorkerEvent
from paceline.worker.reporter import Subject, message_event
from paceline.worker.shift import Shift

log = structlog.stdlib.get_logger(__name__)

LOGGED_OUT = 401

# An event ends the wait; this only says "for long".
_IDLE_MS = 3_600_000


class EventPump:
    """Takes in driver events for ever and keeps the connection up."""

    def __init__(self, shift: Shift, *, driver: Driver, poster: Poster, clock: Clock, rng: Rng) -> None:
        self._shift = shift
        self._journal = shift.journal
        self._driver = driver
        self._poster = poster
        self._clock = clock
        self._rng = rng
        self._told_connected: bool | None = None
        self._connect_failures = 0
        self._reconnect_at_ms: int | None = None

    async def run(self) -> None:
        while True:
            event = await self._driver.next_event(self._idle_ms())
            if event is not None:
                await self._take_in(event)
            elif self._reconnect_at_ms is not None and self._reconnect_at_ms <= self._clock.now_ms():
                self._reconnect_at_ms = None
                await self._driver.connect()

    def _idle_ms(self) -> int:
        if self._reconnect_at_ms is None:
            return _IDLE_MS
        return max(0, self._reconnect_at_ms - self._clock.now_ms())

    async def _take_in(self, event: DriverEvent) -> None:
        match event:
            case Connected():
                self._connect_failures = 0
                self._tell_connection(True, "CONNECTED", {})
            case Disconnected(code=code, reason=reason):
                # A ban often shows only when one comes back: that is news although the connection was gone before.
                is_final = not reconnects_after(code, reason)
                if not (self._shift.logging_out and code == LOGGED_OUT):
                    self._tell_connection(False, "DISCONNECTED", {"code": code, "reason": reason}, is_news=is_final)
                self._plan_reconnect(code, reason)
            case QrShown(text=text, valid_ms=valid_ms):
                self._told_connected = None
                self._poster.tell("QR", {"qr": text, "expiresInMs": valid_ms})
            case LinkBlocked(reason=reason):
                self._shift.ended_for_good = True
                self._poster.tell("LINK_BLOCKED", {"reason": reason})
            case SendAck(whatsapp_id=whatsapp_id, outcome=Accepted()):
                await self._take_in_ack(whatsapp_id)
            case SendAck(whatsapp_id=whatsapp_id, outcome=Refused() as refusal):
                self._shift.note_refusal(whatsapp_id, refusal)
            case Delivered(whatsapp_id=whatsapp_id):
                await self._take_in_receipt(whatsapp_id, "delivered")
            case Read(whatsapp_id=whatsapp_id):
                await self._take_in_receipt(whatsapp_id, "read")
            case Received():
                self._poster.post(_received(self._shift, event))
            case Restriction(kind=kind, until_ms=until_ms, at_ms=at_ms):
                self._poster.tell("RESTRICTION", {"kind": kind, "until": until_ms}, at_ms=at_ms)

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
        log.info("receipt", receipt=kind, **Subject.of(entry).named)
        name = "MESSAGE_DELIVERED" if kind == "delivered" else "MESSAGE_READ"
        event = message_event(self._shift, name, Subject.of(entry), self._clock.now_ms())
        self._poster.post(event, receipt=(whatsapp_id, kind), request_id=entry.request_id)

    async def _prove(self, entry: Entry) -> None:
        """WhatsApp will not tell twice, so the proof goes to the disk before anything else."""
        if entry.sent:
            return
        await self._journal.conclude(Result(entry.task_id, Outcome.SENT, self._clock.now_ms()))
        if entry.whatsapp_id != self._shift.in_flight:
            event = message_event(self._shift, "MESSAGE_SENT", Subject.of(entry), self._clock.now_ms())
            self._poster.post(event, request_id=entry.request_id)

    def _plan_reconnect(self, code: int, reason: str) -> None:
        if not reconnects_after(code, reason):
            log.error("the connection ended for good", code=code)
            self._shift.ended_for_good = True
            return
        self._reconnect_at_ms = self._clock.now_ms() + backoff_ms(self._connect_failures, self._rng)
        self._connect_failures += 1

    def _tell_connection(
        self, connected: bool, name: str, data: Mapping[str, object], *, is_news: bool = False
    ) -> None:
        if is_news or connected != self._told_connected:
            self._told_connected = connected
            self._poster.tell(name, data)


def _received(shift: Shift, event: Received) -> WorkerEvent:
    return WorkerEvent(
        session_id=shift.session_id,
        event=MESSAGE_RECEIVED,
        data={"from": event.sender, "text": event.text, "whatsappId": event.whatsapp_id},
        timestamp=event.at_ms,
        event_id=f"{MESSAGE_RECEIVED}:{event.whatsapp_id}",
    )
