"""A simulated WhatsApp server, seen by one session, as a pure state machine: time and chance are arguments.

The asyncio worker and the World run the same object; `simulated.py` puts a clock and a ledger around it. What
it does to a message is decided by `react` from the `Behaviour` and the `Account`, and every effect on the client (ack,
receipt, reply, a stated limit, the end of the connection) is an event with a time, handed out by `due`.
"""

import hashlib
import heapq
import random
from dataclasses import dataclass, field

from paceline.kits.rng import Rng
from paceline.worker.drivers.account import Account
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
    Restriction,
    RestrictionKind,
    SendAck,
)
from paceline.worker.drivers.config import Behaviour, Window
from paceline.worker.drivers.ledger import LedgerLine, Refusal
from paceline.worker.drivers.reaction import (
    BANNED,
    CONNECTION_CLOSED,
    CONNECTION_LOST,
    Accept,
    Drop,
    Restrict,
    react,
)

# How long the server keeps receipts for a client that is away.
RECEIPT_MEMORY_MS = 24 * 3600 * 1000


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

    def __init__(
        self,
        session_id: str,
        behaviour: Behaviour | None = None,
        *,
        banned: bool = False,
        account: Account | None = None,
    ) -> None:
        self.session_id = session_id
        self.behaviour = behaviour or Behaviour()
        self.account = account or Account()
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

    @property
    def out_of_reach(self) -> bool:
        """A connection would only be told so."""
        return self.banned or self.behaviour.offline

    def recall(self, line: LedgerLine) -> None:
        """A line of the ledger that this object did not accept itself; its receipts come at the next connect."""
        if line.whatsapp_id not in self._ids or not self.behaviour.dedupe:
            self._unscheduled.append(line)
        self._ids.add(line.whatsapp_id)
        self.account.talk(line.to, self.behaviour, line.at)

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
        for limit in self.account.restrictions(self.behaviour, now_ms):
            self._schedule(now_ms, limit)
        return Connected(now_ms)

    def disconnect(self) -> None:
        """The client went away by itself."""
        self.connected = False

    def typing(self, to: str, now_ms: int) -> None:
        self.last_typing = (to, now_ms)

    def hear(self, sender: str, text: str, whatsapp_id: str, now_ms: int) -> None:
        """Somebody writes to the account, unasked."""
        self.account.hear(sender)
        self._push(now_ms, Received(sender, text, whatsapp_id, now_ms), None)

    def receive(self, message: OutgoingMessage, *, now_ms: int, rng: Rng) -> LedgerLine | Refusal | None:
        """A message arrives. What to put in the ledger before anything else happens; None if the connection ended."""
        self._frames += 1
        standing = self.account.standing(message.to, self.behaviour, now_ms)
        match react(self.behaviour, message.to, self._frames, rng, standing):
            case Refused() as refusal:
                return self._refuse(message, refusal, now_ms, rng)
            case Restrict(kind=kind, refusal=refusal):
                self._restrict(kind, now_ms)
                return self._refuse(message, refusal, now_ms, rng)
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

    def _refuse(self, message: OutgoingMessage, refused: Refused, now_ms: int, rng: Rng) -> Refusal:
        delay_ms = rng.randint(*self.behaviour.ack_delay_ms)
        self._schedule(now_ms + delay_ms, SendAck(message.whatsapp_id, refused))
        return Refusal(now_ms, self.session_id, message.to, message.task_id, refused.code)

    def _restrict(self, kind: RestrictionKind, now_ms: int) -> None:
        if kind == "TIME_LOCKED":
            self.account.lock(now_ms + self.behaviour.time_lock_ms)
            self._schedule(now_ms, Restriction(kind, self.account.locked_until_ms, now_ms))
        else:
            self._schedule(now_ms, Restriction(kind, self.account.cycle_ends_ms(self.behaviour), now_ms))

    def _accept(self, message: OutgoingMessage, accept: Accept, now_ms: int) -> LedgerLine:
        repeat = message.whatsapp_id in self._ids
        self._ids.add(message.whatsapp_id)
        self.account.talk(message.to, self.behaviour, now_ms)
        line = LedgerLine(
            at=now_ms,
            session_id=self.session_id,
            to=message.to,
            whatsapp_id=message.whatsapp_id,
            task_id=message.task_id,
            text=message.text,
            mode=message.mode,
            # Of what came, not of what it is called.
            media_sha256=hashlib.sha256(message.media.content).hexdigest() if message.media else None,
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


def _skewed(window: Window, rng: Rng) -> int:
    low_ms, high_ms = window
    return low_ms + int((high_ms - low_ms) * rng.random() ** 2.5)
