"""What the coroutines of one worker share: the terms it works under, what time it is, and what it knows to be
out.

Plain data with a few questions. `core` owns it; `sender`, `recovery`, `pump`, `poster` and `reporter` read and note.
"""

from dataclasses import dataclass, field

from paceline.worker.drivers.base import Refused
from paceline.worker.journal import Journal
from paceline.worker.protocol import ByRaw, HelloAnswer
from paceline.worker.servertime import ServerTime


class Interrupted(Exception):
    """The worker was asked to stop while nothing could be said of a task yet. Its journal and the next `hello`
    take care of it."""


@dataclass
class Lease:
    """Our hold on a claimed task."""

    handle: ByRaw
    until_ms: int
    lost: bool = False


@dataclass
class Shift:
    """One worker's working life."""

    session_id: str
    instance_id: str
    life_id: str
    """Of this run of the instance's process."""
    journal: Journal
    time: ServerTime = field(default_factory=ServerTime)
    terms: HelloAnswer | None = None
    stopping: bool = False
    stale: bool = False
    """Another instance took over; finish what is in the air and go."""
    ended_for_good: bool = False
    """The connection ended in a way after which none is opened again: no receipt can come any more."""
    logging_out: bool = False
    """An operator asked for the logout that is under way: its end is told as such, not as a loss."""
    in_flight: str | None = None
    """The whatsappId that the sender is busy with."""
    _seen: set[str] = field(default_factory=set)
    _refusals: dict[str, Refused] = field(default_factory=dict)

    @property
    def agreed(self) -> HelloAnswer:
        """The terms, for those who only work once there are some."""
        if self.terms is None:
            raise RuntimeError("no hello has been answered yet")
        return self.terms

    def take_up(self, whatsapp_id: str) -> None:
        self.in_flight = whatsapp_id
        self._forget()

    def put_down(self) -> None:
        self.in_flight = None
        self._forget()

    def note_proof(self, whatsapp_id: str) -> None:
        """WhatsApp spoke of this message, so it has it."""
        self._seen.add(whatsapp_id)

    def note_refusal(self, whatsapp_id: str, refusal: Refused) -> None:
        """The server said no, perhaps after the sender's patience had ended."""
        if whatsapp_id == self.in_flight:
            self._refusals[whatsapp_id] = refusal

    def refused(self, whatsapp_id: str) -> Refused | None:
        return self._refusals.get(whatsapp_id)

    def _forget(self) -> None:
        self._seen.clear()
        self._refusals.clear()

    def proven(self, whatsapp_id: str) -> bool:
        entry = self.journal.find(whatsapp_id)
        return whatsapp_id in self._seen or (entry is not None and entry.sent)
