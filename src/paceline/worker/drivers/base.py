"""The driver port: what the worker's core needs of a connection to WhatsApp, and what it hears from it.

A driver never decides to send, to repeat or to reconnect; it carries out and tells what it saw. All waiting has
a limit that the caller gives.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from paceline.domain.errors import PacelineError


class CannotLink(PacelineError):
    """What was asked for cannot be done now: it is linked, it is not, or there is nothing to scan."""


class NotConnected(PacelineError):
    """There is no connection, so certainly nothing was written to it."""


@dataclass(frozen=True)
class OutgoingMedia:
    """A file as it goes out, checked against its hash. The name is shown with a document."""

    sha256: str
    type: str
    content: bytes = field(repr=False)
    name: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class OutgoingMessage:
    """One message as it goes out. `task_id` is for the simulated WhatsApp's ledger; no real one is told."""

    task_id: str
    whatsapp_id: str
    to: str
    text: str
    """Of an image or a document the caption, which may be empty."""
    mode: str = "message"
    media: OutgoingMedia | None = None


@dataclass(frozen=True)
class Accepted:
    """The server acknowledged the message."""


@dataclass(frozen=True)
class Refused:
    """The server said no to the message: it is not out. Codes are those of `domain.failures`."""

    code: str
    message: str


@dataclass(frozen=True)
class Lost:
    """The connection ended (or patience did) before the server said anything."""

    reason: str


SendOutcome = Accepted | Refused | Lost


@dataclass(frozen=True)
class Connected:
    at_ms: int


@dataclass(frozen=True)
class Disconnected:
    """The connection ended or could not be opened; codes as in Baileys' DisconnectReason."""

    code: int
    reason: str


@dataclass(frozen=True)
class SendAck:
    """The server's word on one message, also when nobody waits for it any more."""

    whatsapp_id: str
    outcome: Accepted | Refused


@dataclass(frozen=True)
class Delivered:
    whatsapp_id: str
    to: str
    at_ms: int


@dataclass(frozen=True)
class Read:
    whatsapp_id: str
    to: str
    at_ms: int


@dataclass(frozen=True)
class Received:
    """A message from somebody else."""

    sender: str
    text: str
    whatsapp_id: str
    at_ms: int


RestrictionKind = Literal["TIME_LOCKED", "CAPPED", "NONE"]


@dataclass(frozen=True)
class Restriction:
    """The platform tells the account its own limit: no new chats until then. NONE says that there is no limit any
    more; nothing says so when the stated time is over."""

    kind: RestrictionKind
    until_ms: int | None
    at_ms: int


@dataclass(frozen=True)
class QrShown:
    """A code that links whoever scans it, for so long. The next one ends it."""

    text: str = field(repr=False)
    valid_ms: int


@dataclass(frozen=True)
class LinkBlocked:
    """The platform refuses to link a device to this number now."""

    reason: str


@dataclass(frozen=True)
class PairingCode:
    """To be typed into the number's phone instead of scanning."""

    text: str = field(repr=False)
    valid_ms: int


DriverEvent = Connected | Disconnected | SendAck | Delivered | Read | Received | Restriction | QrShown | LinkBlocked


class Driver(Protocol):
    """One session's connection. `connect` tries once; whether it worked comes as an event."""

    @property
    def name(self) -> str: ...

    @property
    def linked(self) -> bool:
        """Whether the number has linked this session; else `connect` shows codes."""

    async def pair(self) -> PairingCode:
        """Raises CannotLink."""

    async def scan(self) -> None:
        """As if somebody scanned the code that is shown. Raises CannotLink, as every real driver does."""

    async def logout(self) -> None:
        """Ends the link and with it the connection (401). Raises CannotLink."""

    def quiet_ms(self) -> int | None:
        """For how long not a sign has come over the connection, keep-alives included; None while there is none."""

    async def connect(self) -> None: ...
    async def close(self) -> None: ...
    async def wait_connected(self, timeout_ms: int) -> bool: ...
    async def show_typing(self, to: str) -> None:
        """Raises NotConnected."""

    async def write(self, message: OutgoingMessage) -> None:
        """Hand the message to the connection. Raises NotConnected if nothing was written."""

    async def wait_ack(self, whatsapp_id: str, timeout_ms: int) -> SendOutcome | None:
        """The server's word on a written message; None if there is none yet."""

    async def next_event(self, timeout_ms: int) -> DriverEvent | None:
        """The next event, in order; None if none came in time."""
