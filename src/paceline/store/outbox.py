"""Outboxes: a worker's epoch, what it is given under a lease, and how what became of it is settled."""

from functools import cached_property
from typing import Any

import msgspec

from paceline.policy.facts import PhoneFacts
from paceline.policy.gate import OutboxTask
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.proofs import Proof, Proofs, Settled
from paceline.store.rows import Row, facts_of, message_of
from paceline.store.scripts import ScriptConfig


class Held(msgspec.Struct, frozen=True):
    """A task in a worker's hands."""

    task: str
    token: int
    to: str
    epoch: int
    state: str


class Command(msgspec.Struct, frozen=True):
    """What a worker is told to do, beside sending."""

    id: str
    kind: str
    until: int


class Hello(Answer, frozen=True):
    epoch: int = 0
    phone: str = ""
    pending: list[Held] = []
    lost: list[Held] = []
    commands: list[Command] = []


class Times(msgspec.Struct, frozen=True, rename="camel"):
    """When a task came as far as it has; 0 if nobody wrote it down."""

    handed_off_at: int = 0
    routed_at: int = 0


class Opened(Answer, frozen=True, dict=True):
    pending: list[Held] = []
    commands: list[Command] = []
    task: OutboxTask | None = None
    times: Times = Times()
    row: Row = []

    @cached_property
    def facts(self) -> PhoneFacts | None:
        """What the gate reads about the number."""
        return facts_of(self.row) if self.row else None


class Claimed(Answer, frozen=True):
    token: int = 0
    attempt: int = 0
    resend: bool = False


class Extended(Answer, frozen=True):
    lease_until: int = 0


class OverdueTask(msgspec.Struct, frozen=True):
    task: str
    state: str
    session: str | None = None
    phone: str | None = None


class Unreadable(msgspec.Struct, frozen=True):
    task: str
    error: str


class Overdue(Answer, frozen=True):
    tasks: list[OverdueTask] = []
    unreadable: list[Unreadable] = []
    next_at: int | None = None


class MessageFacts(msgspec.Struct, frozen=True):
    """What settling decisions read about a message."""

    attempts: int
    failures: int
    crashes: int
    epoch: int
    token: int
    crash_token: int
    session_id: str | None
    phone: str | None
    maybe_sent: bool = False
    """An earlier claim than the present one may have sent it."""
    claimed_at: int = 0
    send_after: int = 0
    sent_at: int = 0
    delivered_at: int = 0


class Outbox:
    def __init__(self, caller: Caller, config: ScriptConfig) -> None:
        self._caller = caller
        self._proofs = Proofs(caller, config)

    async def hello(
        self, session: str, instance: str, journal: str, *, now_ms: int, life: str = "", any_instance: bool = False
    ) -> Hello:
        """`life` names one run of the instance's process; empty if the worker does not tell."""
        return await self._caller.call(
            "hello", Hello, session=session, instance=instance, journal=journal, life=life or None, now=now_ms,
            anyInstance=any_instance or None,
        )  # fmt: skip

    async def open_claim(
        self, session: str, epoch: int, *, now_ms: int, commands_only: bool = False, again: bool = False
    ) -> Opened:
        """`again`: we look again for a worker that still waits. Only that it asks tells whether it is connected."""
        return await self._caller.call(
            "open_claim", Opened, session=session, epoch=epoch, now=now_ms, commandsOnly=commands_only or None,
            again=again or None,
        )  # fmt: skip

    async def claim(
        self, session: str, epoch: int, task: str, *, lease_until_ms: int, now_ms: int, handed_off_at: int = 0
    ) -> Claimed:
        """`handed_off_at` names the hand-over that was decided on, as `open_claim` gave it; 0 if nobody wrote it
        down."""
        return await self._caller.call(
            "claim_outbox", Claimed, session=session, epoch=epoch, task=task, leaseUntil=lease_until_ms,
            handedOffAt=handed_off_at or None, now=now_ms,
        )  # fmt: skip

    async def extend(
        self, session: str, epoch: int, task: str, token: int, *, lease_ms: int, longest_ms: int, now_ms: int
    ) -> Extended:
        return await self._caller.call(
            "extend_lease", Extended, session=session, epoch=epoch, task=task, token=token, lease=lease_ms,
            longest=longest_ms, now=now_ms,
        )  # fmt: skip

    async def prove(
        self, task: str, proof: str, *, now_ms: int, stats_day: str | None = None, phone: str | None = None
    ) -> Settled:
        """It went out: `sent`, `delivered` or `read`. `stats_day` is where its number's statistics count it, `phone`
        that number, if it is known."""
        return await self._proofs.prove(Proof(task, proof, now_ms, stats_day, phone))

    async def settle(self, task: str, outcome: str, *, now_ms: int, from_: str | None = None, **facts: Any) -> Settled:
        """See settle_task.lua for what each outcome takes; that it went out is for `prove`."""
        return await self._caller.call(
            "settle_task", Settled, task=task, outcome=outcome, now=now_ms, **{"from": from_}, **facts
        )

    async def overdue(self, *, now_ms: int, limit: int) -> Overdue:
        return await self._caller.call("overdue", Overdue, now=now_ms, limit=limit)

    async def put_aside(self, task: str, error: str, *, retry_ms: int, now_ms: int) -> None:
        """What is stored about it cannot be read; an incident says so, and it is looked at again later."""
        await self._caller.call("put_aside", Answer, task=task, error=error, retry=retry_ms, now=now_ms)

    async def facts(self, task: str) -> MessageFacts:
        names = (
            "attempts", "failures", "crashes", "epoch", "token", "crashToken", "maybeSent", "maybeSentToken",
            "claimedAt", "sentAt", "deliveredAt", "handed", "phone",
        )  # fmt: skip
        row = await self._caller.read_one("HMGET", keys.message(task), *names)
        known = message_of({name: value for name, value in zip(names, row, strict=True) if value is not None})
        attempts, failures, crashes, epoch, token, crash_token = (int(value or 0) for value in row[:6])
        claimed_at, sent_at, delivered_at = (int(value or 0) for value in row[8:11])
        return MessageFacts(
            attempts, failures, crashes, epoch, token, crash_token, known.get("sessionId"), known.get("phone"),
            known.get("maybeSent") == "1" and known.get("maybeSentToken") != known.get("token"), claimed_at,
            int(known.get("sendAfter", 0)), sent_at, delivered_at,
        )  # fmt: skip

    async def waiting(self, sessions: list[str]) -> list[str]:
        """Those of these sessions whose outbox holds something, or whose worker is told to do something."""
        tasks = [("LLEN", keys.outbox(session)) for session in sessions]
        told = [("HLEN", keys.session_commands(session)) for session in sessions]
        lengths = await self._caller.read(*tasks, *told)
        pairs = zip(sessions, lengths[: len(sessions)], lengths[len(sessions) :], strict=True)
        return [session for session, waiting, commands in pairs if waiting or commands]
