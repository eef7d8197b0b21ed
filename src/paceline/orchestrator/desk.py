"""The desk where workers get tasks. A claim is the last gate before the wire.

Everything here is a coroutine over the store with `now_ms` as an argument; HTTP, long polling and loops are in `app`
and `main`. Neighbour: `settling` takes back what became of a task.
"""

import msgspec

from paceline.domain.errors import Conflict, NotFound
from paceline.domain.failures import UNKNOWN_OUTCOME
from paceline.domain.ids import whatsapp_id
from paceline.domain.media import Media, Mode
from paceline.domain.states import TERMINAL
from paceline.kits.failpoint import failpoint
from paceline.orchestrator.days import stats_day
from paceline.orchestrator.measures import Measures
from paceline.policy import gate
from paceline.policy.facts import Rules, sender
from paceline.store.outbox import Command, Held, Times
from paceline.store.store import Store
from paceline.store.texts import Texts

LONGEST_LEASE_MS = 600_000
"""Ten minutes from the claim on, however often a worker extends: longer is not slow, it is lost."""

_OUTCOME = {
    "return": "returned",
    "park": "parked",
    "expire": "expired",
    "suppress": "suppressed",
    "fail": "failed",
}


class TaskForWorker(msgspec.Struct, frozen=True, rename="camel"):
    task_id: str
    to: str
    text: str
    whatsapp_id: str
    attempt: int
    resend: bool
    send_after_ms: int
    send_before_ms: int
    lease_until_ms: int
    token: int
    mode: Mode = "message"
    media_ref: str | msgspec.UnsetType = msgspec.UNSET
    media_type: str | msgspec.UnsetType = msgspec.UNSET
    media_size: int | msgspec.UnsetType = msgspec.UNSET
    media_name: str | msgspec.UnsetType = msgspec.UNSET
    request_id: str | msgspec.UnsetType = msgspec.UNSET
    """Of the request it came with, for the lines that the worker logs about it."""


class Pending(msgspec.Struct, frozen=True, rename="camel"):
    """A task the worker must answer for from its journal. The token is opaque to it, hence text."""

    task_id: str
    token: str
    whatsapp_id: str
    to: str


class Welcome(msgspec.Struct, frozen=True):
    epoch: int
    pending: list[Pending]
    commands: list[Command] = []


class Claim(msgspec.Struct, frozen=True):
    task: TaskForWorker | None = None
    pending: list[Pending] = []
    commands: list[Command] = []

    @property
    def is_empty(self) -> bool:
        return self.task is None and not self.pending and not self.commands


class Desk:
    def __init__(
        self,
        store: Store,
        rules: Rules,
        *,
        lease_ms: int,
        any_instance: bool = False,
        measures: Measures | None = None,
    ) -> None:
        """`any_instance`: somebody else starts the workers, so whichever says hello is the wanted one."""
        self._store = store
        self._rules = rules
        self._lease_ms = lease_ms
        self._any_instance = any_instance
        self._texts = Texts(store.jobs)
        self._measures = measures or Measures()

    async def hello(self, session: str, instance: str, journal: str, *, now_ms: int, life: str = "") -> Welcome:
        """The instance becomes the newest; what older ones held, or an earlier life of this one, is asked of it, or
        ends if nobody can know."""
        answer = await self._store.outbox.hello(
            session, instance, journal, life=life, now_ms=now_ms, any_instance=self._any_instance
        )
        _raise_for(answer.code)
        for held in answer.lost:
            await self._store.outbox.settle(
                held.task, "failed", now_ms=now_ms, from_="cu", token=held.token, code=UNKNOWN_OUTCOME,
                message="the journal that could tell is lost", onWire=True,
                statsDay=await stats_day(self._store, answer.phone, now_ms),
            )  # fmt: skip
        return Welcome(answer.epoch, [_pending(held) for held in answer.pending], answer.commands)

    async def claim(
        self, session: str, epoch: int, *, now_ms: int, commands_only: bool = False, again: bool = False
    ) -> Claim:
        """The next task, if there is one and it may still go; before it what the worker has to answer for or to do.
        `again`: another look within one long poll."""
        opened = await self._store.outbox.open_claim(
            session, epoch, now_ms=now_ms, commands_only=commands_only, again=again
        )
        _raise_for(opened.code)
        if opened.pending or opened.commands:
            return Claim(pending=[_pending(held) for held in opened.pending], commands=opened.commands)
        if opened.task is None or opened.facts is None:
            return Claim()
        if opened.task.state in TERMINAL:
            await self._store.outbox.settle(opened.task.task, "cleared", now_ms=now_ms, from_=TERMINAL)
            return Claim()
        who = sender(opened.facts, self._rules, now_ms=now_ms)
        verdict = gate.decide(opened.task, who, self._rules, lease_ms=self._lease_ms, now_ms=now_ms)
        if isinstance(verdict, gate.Refuse):
            await self._refuse(opened.task.task, opened.facts.phone, verdict, now_ms)
            await self._measures.refused(session, opened.task.task, verdict)
            return Claim()
        return Claim(await self._give(session, epoch, opened.task, verdict, times=opened.times, now_ms=now_ms))

    async def extend(self, session: str, epoch: int, task: str, token: int, *, now_ms: int) -> int:
        answer = await self._store.outbox.extend(
            session, epoch, task, token, lease_ms=self._lease_ms, longest_ms=LONGEST_LEASE_MS, now_ms=now_ms
        )
        if answer.code != "OK":
            raise Conflict("STALE_TOKEN", "this lease is not yours any more", field="raw")
        return answer.lease_until

    async def _refuse(self, task: str, phone: str, verdict: gate.Refuse, now_ms: int) -> None:
        await self._store.outbox.settle(
            task, _OUTCOME[verdict.kind], now_ms=now_ms, from_="h", unitBack=True, reason=verdict.reason,
            untilMs=verdict.until_ms, code=verdict.reason, message="refused at the gate", recipientOnly=True,
            statsDay=await stats_day(self._store, phone, now_ms),
        )  # fmt: skip

    async def _give(
        self, session: str, epoch: int, task: gate.OutboxTask, verdict: gate.Give, *, times: Times, now_ms: int
    ) -> TaskForWorker | None:
        content = await self._texts.content(task.task)
        if content is None:
            # Nobody can read what should be sent; it ends visibly, or it would hold up its number for ever.
            await self._store.outbox.settle(
                task.task, "failed", now_ms=now_ms, from_="h", unitBack=True, recipientOnly=True, code="JOB_MALFORMED",
                message="its job cannot be read any more",
            )  # fmt: skip
            return None
        claimed = await self._store.outbox.claim(
            session,
            epoch,
            task.task,
            lease_until_ms=verdict.lease_until_ms,
            handed_off_at=times.handed_off_at,
            now_ms=now_ms,
        )
        failpoint("claimed-not-answered")
        if claimed.code != "OK":
            # Somebody was quicker (a cancel, a stop word, the fleet's pause); the next claim sees what is left.
            return None
        self._measures.claimed(session, task.task, content, times, attempt=claimed.attempt, now_ms=now_ms)
        given = TaskForWorker(
            task_id=task.task,
            to=task.to,
            text=content.text,
            whatsapp_id=whatsapp_id(task.task),
            attempt=claimed.attempt,
            resend=claimed.resend,
            send_after_ms=verdict.send_after_ms,
            send_before_ms=verdict.send_before_ms,
            lease_until_ms=verdict.lease_until_ms,
            token=claimed.token,
            mode=content.mode,
            request_id=content.request_id or msgspec.UNSET,
        )
        return given if content.media is None else _with(given, content.media)


def _with(task: TaskForWorker, media: Media) -> TaskForWorker:
    return msgspec.structs.replace(
        task,
        media_ref=media.ref,
        media_type=media.type,
        media_size=media.size,
        media_name=media.name or msgspec.UNSET,
    )


def _pending(held: Held) -> Pending:
    return Pending(held.task, str(held.token), whatsapp_id(held.task), held.to)


def _raise_for(code: str) -> None:
    match code:
        case "UNKNOWN_SESSION":
            raise NotFound("UNKNOWN_SESSION", "there is no such session", field="sessionId")
        case "NOT_WANTED":
            raise Conflict("NOT_WANTED", "this instance is not wanted for this session", field="instanceId")
        case "STALE_EPOCH":
            raise Conflict("STALE_EPOCH", "a newer instance holds this session", field="epoch")
