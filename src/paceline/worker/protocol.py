"""The worker protocol as the worker sees it: the port, its messages, and its errors.

`protocol_http.py` speaks it over HTTP; the World answers it from the orchestrator's own logic.

    ProtocolError (a domain.errors.PacelineError)
    ├── ProtocolUnavailable    no usable answer (network, timeout, 408, 429, 5xx, somebody else's): ask again later
    │   └── Blocked            a 4xx of something in between: it may be about this one request
    ├── StaleEpoch             409 STALE_EPOCH: another instance took over
    ├── NotWanted              409 NOT_WANTED: this instance is not the one that should run
    └── RequestRefused         any other 4xx of the orchestrator itself: asking again will not help
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from paceline.domain.errors import PacelineError
from paceline.worker.book import SendError

CLAIM_TIMEOUT_SECONDS = 20
BLOCKED_TRIES = 5
"""So often is a page of something in between taken for an outage that passes: some seconds."""


class ProtocolError(PacelineError):
    """The root of what can go wrong between worker and orchestrator."""


class ProtocolUnavailable(ProtocolError):
    """No usable answer. `maybe_done` is False only if the request certainly never arrived."""

    def __init__(self, reason: str, *, maybe_done: bool = True) -> None:
        super().__init__(reason)
        self.maybe_done = maybe_done


class Blocked(ProtocolUnavailable):
    """Something in between (a firewall, a proxy) did not let this request through. Others it may let through."""


class StaleEpoch(ProtocolError):
    """Another instance of this session said hello after us."""


class NotWanted(ProtocolError):
    """The orchestrator does not want this instance to run."""


class RequestRefused(ProtocolError):
    """The orchestrator understood and said no."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code

    @property
    def is_about_us(self) -> bool:
        """Our secret is refused, not what we said: it has been heard by nobody, and waits for who has the right one."""
        return self.status in (401, 403)


class _Message(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    pass


class TypingWindow(_Message, frozen=True):
    min_ms: int
    max_ms: int


class PendingTask(_Message, frozen=True):
    """A task that this session claimed under an earlier epoch and never answered for."""

    task_id: str
    token: str
    whatsapp_id: str
    to: str


class Command(_Message, frozen=True):
    """What an operator wants of this session beside sending: pair, scan or logout. It may come more than once."""

    id: str
    kind: str
    until: int = 0


class HelloAnswer(_Message, frozen=True):
    """The terms of this life of the worker."""

    epoch: int
    now_ms: int
    lease_ms: int
    typing: TypingWindow
    unknown_grace_ms: int
    pending: list[PendingTask]
    commands: list[Command] = []


class ClaimedTask(_Message, frozen=True):
    task_id: str
    to: str
    text: str
    whatsapp_id: str
    attempt: int
    send_after_ms: int
    send_before_ms: int
    lease_until_ms: int
    resend: bool = False
    mode: str = "message"
    media_ref: str | None = None
    media_type: str = ""
    media_size: int = 0
    media_name: str | None = None
    request_id: str = ""
    """Of the request it came with: in every line that is logged about it."""


class ClaimAnswer(_Message, frozen=True):
    now_ms: int
    waited_ms: int = 0
    """How long the orchestrator had let us wait by then."""
    task: ClaimedTask | None = None
    raw: str | None = None
    pending: list[PendingTask] = []
    """What we hold by the orchestrator's books although we are asking for work: a claim whose answer got lost, or a
    lease that ended. It is answered for as after a `hello`."""
    commands: list[Command] = []


class ByRaw(_Message, frozen=True):
    """A task named by the opaque string that came with its claim."""

    raw: str


class ByToken(_Message, frozen=True):
    """A task named as in `pending`."""

    task_id: str
    token: str


Handle = ByRaw | ByToken


class WorkerEvent(_Message, frozen=True):
    """One webhook. The same fact always has the same `event_id`."""

    session_id: str
    event: str
    data: Mapping[str, object]
    timestamp: int
    event_id: str


class WorkerProtocol(Protocol):
    """What the orchestrator offers a worker. Every call may raise any `ProtocolError`."""

    async def hello(self, *, instance_id: str, life_id: str, journal_id: str, driver: str) -> HelloAnswer: ...
    async def claim(self, *, epoch: int, commands_only: bool = False) -> ClaimAnswer:
        """Waits up to CLAIM_TIMEOUT_SECONDS for a task. `commands_only` waits for nothing and takes none. Which of the
        two tells whether the worker is connected."""

    async def ack(self, handle: Handle, *, epoch: int, whatsapp_id: str) -> None: ...
    async def nack(self, handle: Handle, *, epoch: int, not_sent: bool, error: SendError | None) -> None: ...
    async def extend(self, handle: ByRaw, *, epoch: int) -> int:
        """The new end of the lease, in server time."""

    async def media(self, ref: str, *, size: int) -> bytes:
        """The file of a task that we hold; no more than `size` bytes of it."""

    async def webhook(self, event: WorkerEvent) -> None: ...
