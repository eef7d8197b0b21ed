"""The link between a number and one simulated session, as a pure state machine: codes that change, a scan, a logout.

`simulated.py` drives it beside the `WhatsApp`, which knows nothing but linked sessions.
"""

import hashlib

from paceline.kits.rng import Rng
from paceline.worker.drivers.base import CannotLink, Disconnected, DriverEvent, LinkBlocked, PairingCode, QrShown
from paceline.worker.drivers.config import Behaviour

TIMED_OUT, LOGGED_OUT, RESTART_REQUIRED = 408, 401, 515
QR_ENDED = "QR_ENDED"
PAIRING_VALID_MS = 180_000
_LETTERS = "123456789ABCDEFGHJKLMNPQRSTVWXYZ"
"""As WhatsApp's codes: nothing that reads like something else."""


class Link:
    def __init__(self, session_id: str, *, linked: bool) -> None:
        self._session_id = session_id
        self.linked = linked
        self._shown = 0
        self._next_ms: int | None = None
        """When the next code is due; None while none is shown."""

    def open(self, behaviour: Behaviour, now_ms: int) -> list[DriverEvent]:
        """A connection of a session that is not linked. Nothing if it may connect: it is linked now."""
        if self.linked or behaviour.linking == "at_once":
            self.linked = True
            return []
        if behaviour.linking == "blocked":
            return [LinkBlocked("no device can be linked now")]
        self._shown, self._next_ms = 0, now_ms
        return self.due(behaviour, now_ms)

    def due(self, behaviour: Behaviour, now_ms: int) -> list[DriverEvent]:
        events: list[DriverEvent] = []
        while self._next_ms is not None and self._next_ms <= now_ms:
            if behaviour.qr_codes and self._shown >= behaviour.qr_codes:
                self._next_ms = None
                events.append(Disconnected(TIMED_OUT, QR_ENDED))
            else:
                self._shown += 1
                self._next_ms += behaviour.qr_ms
                events.append(QrShown(self._text(), behaviour.qr_ms))
        # Of codes that passed while nobody looked only the last counts.
        return events[-1:]

    def next_due_ms(self) -> int | None:
        return self._next_ms

    def close(self) -> None:
        self._next_ms = None

    def scan(self) -> Disconnected:
        """Somebody scanned what is shown, or typed the code. The server asks for a new connection, as the real one."""
        self._must_show()
        self.linked, self._next_ms = True, None
        return Disconnected(RESTART_REQUIRED, "restart required")

    def pair(self, rng: Rng) -> PairingCode:
        self._must_show()
        letters = "".join(_LETTERS[rng.randrange(len(_LETTERS))] for _ in range(8))
        return PairingCode(f"{letters[:4]}-{letters[4:]}", PAIRING_VALID_MS)

    def logout(self) -> Disconnected:
        if not self.linked:
            raise CannotLink("it is not linked")
        self.linked = False
        return Disconnected(LOGGED_OUT, "logged out")

    def _must_show(self) -> None:
        if self.linked:
            raise CannotLink("it is linked already")
        if self._next_ms is None:
            raise CannotLink("no code is shown now")

    def _text(self) -> str:
        """In the form of the real one; what stands in it links to nothing."""
        key = hashlib.sha256(f"{self._session_id}:{self._shown}:{self._next_ms}".encode()).hexdigest()
        return f"https://wa.me/settings/linked_devices#2@SIMULATED{key[:24]},{key[24:44]},{key[44:]},1"
