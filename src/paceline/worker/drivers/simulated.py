"""The `simulated` driver: the pure `WhatsApp` with a clock, a ledger and a way to sleep around it.

How it sleeps is up to the `Wake` it is given.
"""

import os
import signal
from collections.abc import Callable

from paceline.kits.clock import Clock
from paceline.kits.rng import Rng
from paceline.worker.drivers.base import (
    Disconnected,
    DriverEvent,
    Lost,
    NotConnected,
    OutgoingMessage,
    PairingCode,
    SendAck,
    SendOutcome,
)
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import Ledger, LedgerLine, Refusal
from paceline.worker.drivers.link import Link
from paceline.worker.drivers.whatsapp import WhatsApp
from paceline.worker.wake import Wake

# A change of simulated.toml is noticed within this time even if nothing else happens.
_LOOK_EVERY_MS = 1_000


class SimulatedDriver:
    """One session on the simulated WhatsApp. Create a new one (and a new `WhatsApp`) for every life of a worker:
    what outlives a worker is the ledger."""

    name = "simulated"

    def __init__(
        self,
        whatsapp: WhatsApp,
        ledger: Ledger,
        *,
        clock: Clock,
        rng: Rng,
        wake: Wake,
        behaviour: Callable[[], Behaviour],
        look_every_ms: int = _LOOK_EVERY_MS,
    ) -> None:
        self._whatsapp = whatsapp
        self._ledger = ledger
        self._clock = clock
        self._rng = rng
        self._wake = wake
        self._behaviour = behaviour
        self._look_every_ms = look_every_ms
        self._events: list[DriverEvent] = []
        self._heard_at_ms = 0
        self._link = Link(whatsapp.session_id, linked=ledger.linked)
        # At most one message is under way at a time; what is said of an older one is an event only.
        self._written = ""
        self._outcome: SendOutcome | None = None

    @property
    def linked(self) -> bool:
        return self._link.linked

    async def pair(self) -> PairingCode:
        return self._link.pair(self._rng)

    async def scan(self) -> None:
        self._take(self._link.scan())
        self._ledger.record_link(True)

    async def logout(self) -> None:
        gone = self._link.logout()
        self._ledger.record_link(False)
        self._whatsapp.disconnect()
        self._take(gone)

    def quiet_ms(self) -> int | None:
        return self._clock.now_ms() - self._heard_at_ms if self._connected() else None

    async def connect(self) -> None:
        self._whatsapp.behaviour = self._behaviour()
        if not self._link.linked and (self._whatsapp.behaviour.linking == "at_once" or not self._whatsapp.out_of_reach):
            shown = self._link.open(self._whatsapp.behaviour, self._clock.now_ms())
            self._ledger.record_link(self._link.linked)
            for event in shown:
                self._take(event)
            if shown:
                return
        with self._ledger.exclusive():
            self._read_ledger()
        self._take(self._whatsapp.connect(self._clock.now_ms()))
        self._wake.notify()

    async def close(self) -> None:
        self._link.close()
        self._whatsapp.disconnect()

    async def wait_connected(self, timeout_ms: int) -> bool:
        deadline_ms = self._clock.now_ms() + timeout_ms
        while not self._connected() and self._clock.now_ms() < deadline_ms:
            await self._nap(deadline_ms)
        return self._connected()

    async def show_typing(self, to: str) -> None:
        if not self._connected():
            raise NotConnected
        self._whatsapp.typing(to, self._clock.now_ms())

    async def write(self, message: OutgoingMessage) -> None:
        if not self._connected():
            raise NotConnected
        if message.to in self._whatsapp.behaviour.poison:
            _die()
        self._written, self._outcome = message.whatsapp_id, None
        with self._ledger.exclusive():
            self._read_ledger()
            match self._whatsapp.receive(message, now_ms=self._clock.now_ms(), rng=self._rng):
                case LedgerLine() as line:
                    self._ledger.append(line)
                case Refusal() as refusal:
                    self._ledger.note_refusal(refusal)
        if self._whatsapp.banned:
            self._ledger.record_ban()
        self._ledger.record_lock()
        self._wake.notify()

    async def wait_ack(self, whatsapp_id: str, timeout_ms: int) -> SendOutcome | None:
        deadline_ms = self._clock.now_ms() + timeout_ms
        if whatsapp_id != self._written:
            raise ValueError(f"{whatsapp_id} was not written by this driver, or not last")
        self._advance()
        while self._outcome is None and self._clock.now_ms() < deadline_ms:
            await self._nap(deadline_ms)
            self._advance()
        return self._outcome

    async def next_event(self, timeout_ms: int) -> DriverEvent | None:
        deadline_ms = self._clock.now_ms() + timeout_ms
        self._advance()
        while not self._events and self._clock.now_ms() < deadline_ms:
            await self._nap(deadline_ms)
            self._advance()
        return self._events.pop(0) if self._events else None

    def _connected(self) -> bool:
        self._advance()
        return self._whatsapp.connected

    def _advance(self) -> None:
        """Let the server act up to now."""
        self._whatsapp.behaviour = self._behaviour()
        now_ms = self._clock.now_ms()
        if self._whatsapp.behaviour.deaf and self._whatsapp.connected:
            return
        self._heard_at_ms = now_ms
        for event in (*self._link.due(self._whatsapp.behaviour, now_ms), *self._whatsapp.due(now_ms)):
            self._take(event)

    def _take(self, event: DriverEvent) -> None:
        match event:
            case SendAck(whatsapp_id=whatsapp_id, outcome=outcome):
                if whatsapp_id == self._written:
                    self._outcome = outcome
            case Disconnected(reason=reason):
                self._outcome = self._outcome or Lost(reason)
        self._events.append(event)
        self._wake.notify()

    def _read_ledger(self) -> None:
        for line in self._ledger.unread():
            self._whatsapp.recall(line)

    async def _nap(self, deadline_ms: int) -> None:
        now_ms = self._clock.now_ms()
        dues = (self._whatsapp.next_due_ms(), self._link.next_due_ms())
        until_ms = min([deadline_ms, *[due_ms for due_ms in dues if due_ms is not None]])
        await self._wake.wait_ms(max(1, min(until_ms - now_ms, self._look_every_ms)))


def _die() -> None:
    """As a message does that makes a library crash: no handler runs, nothing is flushed, nothing was written."""
    os.kill(os.getpid(), signal.SIGKILL)
