"""Posting webhooks: one after the other, in the order they were given, each until it is answered; pings in between.

What something in between does not let through (a firewall that dislikes a person's text) is put aside after a few tries
and tried again when nothing else waits. Words on the session still come in their order: a later one waits for it.

A coroutine of its own, because a call to an orchestrator that stands still takes ten seconds, and whoever takes in
driver events must not wait for that.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from paceline.kits.clock import Clock
from paceline.kits.rng import Rng
from paceline.worker.book import ReceiptKind
from paceline.worker.decisions import backoff_ms
from paceline.worker.protocol import (
    BLOCKED_TRIES,
    Blocked,
    ProtocolError,
    ProtocolUnavailable,
    RequestRefused,
    WorkerEvent,
    WorkerProtocol,
)
from paceline.worker.shift import Shift
from paceline.worker.wake import Wake

log = structlog.stdlib.get_logger(__name__)

MESSAGE_RECEIVED = "MESSAGE_RECEIVED"
# Three missed ones make a worker silent for the watchdog (LIVENESS_MS 60,000).
PING_EVERY_MS = 15_000
# Five days of receipts of the busiest phone; beyond that something is dropped, see `_rank`.
_MAX_WAITING = 5_000
# Of many dropped in a row, how often a line tells so.
_TOLD_EVERY = 1_000
# Until the next of those that were put aside is tried: each try is a line in the log.
_ASIDE_MS = 60_000
# Whoever has something to post wakes the poster; this only says "for long".
_IDLE_MS = 3_600_000


@dataclass(eq=False)
class _Post:
    event: WorkerEvent
    receipt: tuple[str, ReceiptKind] | None = None
    request_id: str = ""
    blocked: int = 0
    tried_at_ms: int = 0

    @property
    def is_aside(self) -> bool:
        return self.blocked >= BLOCKED_TRIES

    @property
    def is_of_session(self) -> bool:
        """A later one of these may take back what an earlier one says."""
        return not self.event.event.startswith("MESSAGE_")

    @property
    def named(self) -> dict[str, object]:
        """As lines of the log name it: what happened, and to which message if it is about one."""
        task = self.event.data.get("messageId")
        about = {} if task is None else {"task_id": task, "request_id": self.request_id}
        return {"name": self.event.event, **about}


def _rank(post: _Post) -> int:
    """What is missed least comes first: receipts are in the journal and told again after a restart, a later word about
    the connection replaces an earlier one, and what a person wrote is nowhere else."""
    if post.receipt is not None:
        return 0
    return 2 if post.event.event == MESSAGE_RECEIVED else 1


def _was_not_heard(error: ProtocolError) -> bool:
    return isinstance(error, ProtocolUnavailable) or (isinstance(error, RequestRefused) and error.is_about_us)


class Poster:
    """Webhooks to the orchestrator. `post` and `tell` only put something in the line; `run` works it off."""

    def __init__(
        self,
        shift: Shift,
        *,
        protocol: WorkerProtocol,
        clock: Clock,
        rng: Rng,
        wake: Wake,
        ping_every_ms: int,
        quiet_ms: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`quiet_ms`: for how long WhatsApp has not been heard; the watchdog is told with each ping."""
        self._shift = shift
        self._protocol = protocol
        self._clock = clock
        self._rng = rng
        self._wake = wake
        self._ping_every_ms = ping_every_ms
        self._quiet_ms = quiet_ms
        self._waiting: deque[_Post] = deque()
        self._dropped: Counter[str] = Counter()
        self._events = 0
        # A runner may start an instance again after a crash; its second life must not repeat the ids of the first.
        self._life = clock.now_ms()
        self._failures = 0
        self._retry_at_ms = 0
        self._aside_at_ms = 0
        self._ping_at_ms = 0

    def post(self, event: WorkerEvent, receipt: tuple[str, ReceiptKind] | None = None, *, request_id: str = "") -> None:
        """Have this told. That a receipt was told is noted in the journal."""
        if len(self._waiting) >= _MAX_WAITING:
            self._drop_one()
        self._waiting.append(_Post(event, receipt, request_id))
        self._wake.notify()

    def tell(self, name: str, data: Mapping[str, object], *, at_ms: int | None = None) -> None:
        """Have an event of the session told."""
        self.post(self._session_event(name, data, at_ms))

    async def say(self, name: str, data: Mapping[str, object]) -> None:
        """Post one event of the session now, once, whatever becomes of it."""
        try:
            await self._protocol.webhook(self._session_event(name, data, None))
        except ProtocolError as error:
            log.info("webhook not delivered", name=name, reason=str(error))

    async def run(self) -> None:
        while True:
            now_ms, post = self._clock.now_ms(), self._next()
            if self._pings and self._ping_at_ms <= now_ms:
                self._ping_at_ms = now_ms + self._ping_every_ms
                quiet_ms = self._quiet_ms()
                await self.say("PING", {} if quiet_ms is None else {"quietMs": quiet_ms})
            elif post is not None and self._due_at_ms(post) <= now_ms:
                await self._post(post, now_ms)
            else:
                await self._wake.wait_ms(self._idle_ms(post, now_ms))

    @property
    def _pings(self) -> bool:
        return self._ping_every_ms > 0 and self._shift.terms is not None

    def _idle_ms(self, post: _Post | None, now_ms: int) -> int:
        timers = [None if post is None else self._due_at_ms(post), self._ping_at_ms if self._pings else None]
        return min((at_ms - now_ms for at_ms in timers if at_ms is not None), default=_IDLE_MS)

    def _next(self) -> _Post | None:
        """The first in line. If all that may go are put aside: the one that was tried longest ago."""
        aside: list[_Post] = []
        session_waits = False
        for post in self._waiting:
            if post.is_of_session and session_waits:
                continue
            if not post.is_aside:
                return post
            aside.append(post)
            session_waits = session_waits or post.is_of_session
        return min(aside, key=lambda post: post.tried_at_ms, default=None)

    def _due_at_ms(self, post: _Post) -> int:
        return max(self._retry_at_ms, self._aside_at_ms) if post.is_aside else self._retry_at_ms

    def _put_off(self, post: _Post, error: ProtocolError) -> None:
        now_ms = self._clock.now_ms()
        post.blocked += isinstance(error, Blocked)
        if post.is_aside:
            self._aside_at_ms = now_ms + _ASIDE_MS
            log.error("webhook not let through; the others go first", reason=str(error), **post.named)
            return
        self._retry_at_ms = now_ms + backoff_ms(self._failures, self._rng)
        self._failures += 1
        log.warning("webhook not answered; posting it again", reason=str(error), **post.named)

    async def _post(self, post: _Post, now_ms: int) -> None:
        post.tried_at_ms = now_ms
        try:
            await self._protocol.webhook(post.event)
        except ProtocolError as error:
            if _was_not_heard(error):
                self._put_off(post, error)
                return
            log.error("webhook refused; it is not repeated", reason=str(error), **post.named)
        self._failures = 0
        # A line that is full drops one, perhaps this one, while it is on its way.
        if post in self._waiting:
            self._waiting.remove(post)
        if post.receipt is not None:
            await self._shift.journal.mark_receipt(*post.receipt)

    def _drop_one(self) -> None:
        """The oldest of those that are missed least."""
        least = min(range(len(self._waiting)), key=lambda place: _rank(self._waiting[place]))
        name = self._waiting[least].event.event
        del self._waiting[least]
        self._dropped[name] += 1
        if self._dropped[name] % _TOLD_EVERY == 1:
            # A lost word of a person may have been "stop": somebody must look at the chat.
            write = log.error if name == MESSAGE_RECEIVED else log.warning
            write("the line of webhooks is full; some are dropped", name=name, dropped=self._dropped[name])

    def _session_event(self, name: str, data: Mapping[str, object], at_ms: int | None) -> WorkerEvent:
        self._events += 1
        return WorkerEvent(
            session_id=self._shift.session_id,
            event=name,
            # With the epoch a late word of an old instance can be told from one of the present.
            data={**data, "epoch": self._shift.terms.epoch if self._shift.terms else 0},
            timestamp=self._clock.now_ms() if at_ms is None else at_ms,
            event_id=f"{self._shift.instance_id}:{self._life}:{self._events}",
        )
