"""A simulated WhatsApp server, seen by one session, as a pure state machine: time and chance are arguments.

The asyncio worker and the World run the same object; `simulated.py` puts a clock and a ledger around it. What
it does to a message is decided by `react` from the `Behaviour`, and every effect on the client (ack, receipt,
reply, the end of the connection) is an event with a time, handed out by `due`.
"""

import heapq
import random
from dataclasses import dataclass, field

from paceline.domain.failures import NOT_ON_WHATSAPP, RATE_LIMIT, RESTRICTED_463
from paceline.kits.rng import Rng
from paceline.worker.drivers.base import (
    Accepted,
    Connected,
    Delivered,
    Disconnected,
    DriverEvent,
    OutgoingMessage,
    Read,
    Received,
    Refused,
    SendAck,
)
from paceline.worker.drivers.config import Behaviour, Window
from paceline.worker.drivers.ledger import LedgerLine

CONNECTION_CLOSED = 428
CONNECTION_LOST = 408
BANNED = 403

# How long the server keeps receipts for a client that is away.
RECEIPT_MEMORY_MS = 24 * 3600 * 1000

_REFUSALS = {
    RATE_LIMIT: Refused(RATE_LIMIT, "too many messages"),
    NOT_ON_WHATSAPP: Refused(NOT_ON_WHATSAPP, "the number is not on WhatsApp"),
    RESTRICTED_463: Refused(RESTRICTED_463, "463: starting new chats is restricted"),
}


@dataclass(frozen=True)
class Accept:
    """Take the message; ack it after `ack_after_ms`, or never; then perhaps end the connection."""

    ack_after_ms: int | None
    disconnect: bool = False


@dataclass(frozen=True)
class Drop:
    """End the connection with this code; the message is not taken."""

    code: int
    reason: str


Reaction = Accept | Refused | Drop


def react(behaviour: Behaviour, to: str, nth: int, rng: Rng) -> Reaction:
    """What the server does with the n-th message. Lists come before counters, counters before chance."""
    return _by_recipient(behaviour, to) or _by_count(behaviour, nth) or _by_chance(behaviour, rng)


def _by_recipient(behaviour: Behaviour, to: str) -> Reaction | None:
    if to in behaviour.not_on_whatsapp:
        return _REFUSALS[NOT_ON_WHATSAPP]
    if to in behaviour.restricted_463:
        return _REFUSALS[RESTRICTED_463]
    return _REFUSALS[RATE_LIMIT] if to in behaviour.rate_limited else None


def _by_count(behaviour: Behaviour, nth: int) -> Reaction | None:
    if _every(behaviour.rate_limit_every, nth):
        return _REFUSALS[RATE_LIMIT]
    if _every(behaviour.disconnect_every, nth):
        return Drop(CONNECTION_CLOSED, "connection closed")
    return Accept(None) if _every(behaviour.lose_ack_every, nth) else None


def _by_chance(behaviour: Behaviour, rng: Rng) -> Reaction:
    # One draw walks along all probabilities, so they exclude each other and add up.
    draw = rng.random()
    for probability, reaction in (
        (behaviour.rate_limit, _REFUSALS[RATE_LIMIT]),
        (behaviour.not_registered, _REFUSALS[NOT_ON_WHATSAPP]),
        (behaviour.restricted, _REFUSALS[RESTRICTED_463]),
        (behaviour.ban, Drop(BANNED, "account banned")),
        (behaviour.disconnect_before, Drop(CONNECTION_CLOSED, "connection closed")),
        (behaviour.disconnect_after, Accept(None, disconnect=True)),
        (behaviour.lost_ack, Accept(None)),
        (behaviour.slow_ack, Accept(rng.randint(*behaviour.slow_ack_delay_ms))),
    ):
        if draw < probability:
            return reaction
        draw -= probability
    return Accept(rng.randint(*behaviour.ack_delay_ms))


def receipts_of(line: LedgerLine, behaviour: Behaviour) -> list[DriverEvent]:
    """What the recipient does with a message. Drawn from the message id alone, so a server that was restarted
    remembers it without having kept it."""
    rng = random.Random(line.whatsapp_id)
    is_delivered, is_read, is_answered = (
        rng.random() < ratio for ratio in (behaviour.delivered_ratio, behaviour.read_ratio, behaviour.reply_ratio)
    )
    delivered_ms = line.at + _skewed(behaviour.delivered_delay_ms, rng)
    read_ms = delivered_ms + _skewed(behaviour.read_delay_ms, rng)
    if not is_delivered:
        return []
    receipts: list[DriverEvent] = [Delivered(line.whatsapp_id, line.to, delivered_ms)]
    if is_read:
        receipts.append(Read(line.whatsapp_id, line.to, read_ms))
    if is_read and is_answered:
        reply_id = f"3A{rng.getrandbits(72):018X}"
        receipts.append(Received(line.to, behaviour.reply_text, reply_id, read_ms + 1_000))
    return receipts


@dataclass(order=True)
class _Due:
    at_ms: int
    order: int
    event: DriverEvent = field(compare=False)
    connection: int | None = field(compare=False)
    """Set for what concerns one connection and dies with it; receipts wait for the next."""


class WhatsApp:
    """The server's side of one session."""

    def __init__(self, session_id: str, behaviour: Behaviour | None = None, *, banned: bool = False) -> None:
        self.session_id = session_id
        self.behaviour = behaviour or Behaviour()
        self.connected = False
        self.last_typing: tuple[str, int] | None = None
        self._banned = banned
        self._connection = 0
        self._frames = 0
        self._ids: set[str] = set()
        self._unscheduled: list[LedgerLine] = []
        self._dues: list[_Due] = []
        self._order = 0

    @property
    def banned(self) -> bool:
        return self._banned or self.behaviour.banned

    def recall(self, line: LedgerLine) -> None:
        """A line of the ledger that this object did not accept itself; its receipts come at the next connect."""
        if line.whatsapp_id not in self._ids or not self.behaviour.dedupe:
            self._unscheduled.append(line)
        self._ids.add(line.whatsapp_id)

    def connect(self, now_ms: int) -> Connected | Disconnected:
        if self.banned:
            return Disconnected(BANNED, "account banned")
        if self.behaviour.offline:
            return Disconnected(CONNECTION_LOST, "offline")
        self.connected = True
        self._connection += 1
        for line in self._unscheduled:
            if line.at > now_ms - RECEIPT_MEMORY_MS:
                self._schedule_receipts(line)
        self._unscheduled.clear()
        return Connected(now_ms)

    def disconnect(self) -> None:
        """The client went away by itself."""
        self.connected = False

    def typing(self, to: str, now_ms: int) -> None:
        self.last_typing = (to, now_ms)

    def receive(self, message: OutgoingMessage, *, now_ms: int, rng: Rng) -> LedgerLine | None:
        """A message arrives. If it is accepted, the line to put in the ledger before anything else happens."""
        self._frames += 1
        match react(self.behaviour, message.to, self._frames, rng):
            case Refused() as refusal:
                delay_ms = rng.randint(*self.behaviour.ack_delay_ms)
                self._schedule(now_ms + delay_ms, SendAck(message.whatsapp_id, refusal))
                return None
            case Drop(code=code, reason=reason):
                self._banned = self._banned or code == BANNED
                self._schedule(now_ms, Disconnected(code, reason))
                return None
            case Accept() as accept:
                return self._accept(message, accept, now_ms)

    def due(self, now_ms: int) -> list[DriverEvent]:
        """Everything that has reached the client by now, in order."""
        self._notice_outage(now_ms)
        events: list[DriverEvent] = []
        while self.connected and self._dues and self._dues[0].at_ms <= now_ms:
            due = heapq.heappop(self._dues)
            if due.connection not in (None, self._connection):
                continue
            if isinstance(due.event, Disconnected):
                self.connected = False
            events.append(due.event)
        return events

    def next_due_ms(self) -> int | None:
        """When `due` will next have something to say."""
        return self._dues[0].at_ms if self.connected and self._dues else None

    def _accept(self, message: OutgoingMessage, accept: Accept, now_ms: int) -> LedgerLine:
        repeat = message.whatsapp_id in self._ids
        self._ids.add(message.whatsapp_id)
        line = LedgerLine(
            at=now_ms,
            session_id=self.session_id,
            to=message.to,
            whatsapp_id=message.whatsapp_id,
            task_id=message.task_id,
            text=message.text,
            media_sha256=message.media_sha256,
            repeat=repeat,
        )
        if accept.ack_after_ms is not None:
            self._schedule(now_ms + accept.ack_after_ms, SendAck(message.whatsapp_id, Accepted()))
        if accept.disconnect:
            self._schedule(now_ms, Disconnected(CONNECTION_CLOSED, "connection closed"))
        if not (repeat and self.behaviour.dedupe):
            self._schedule_receipts(line)
        return line

    def _notice_outage(self, now_ms: int) -> None:
        if not self.connected:
            return
        if self.banned:
            self._schedule(now_ms, Disconnected(BANNED, "account banned"))
        elif self.behaviour.offline:
            self._schedule(now_ms, Disconnected(CONNECTION_LOST, "offline"))

    def _schedule(self, at_ms: int, event: DriverEvent) -> None:
        self._push(at_ms, event, self._connection)

    def _schedule_receipts(self, line: LedgerLine) -> None:
        for event in receipts_of(line, self.behaviour):
            if isinstance(event, Delivered | Read | Received):
                self._push(event.at_ms, event, None)

    def _push(self, at_ms: int, event: DriverEvent, connection: int | None) -> None:
        self._order += 1
        heapq.heappush(self._dues, _Due(at_ms, self._order, event, connection))


def _every(n: int, nth: int) -> bool:
    return n > 0 and nth % n == 0


def _skewed(window: Window, rng: Rng) -> int:
    low_ms, high_ms = window
    return low_ms + int((high_ms - low_ms) * rng.random() ** 2.5)
