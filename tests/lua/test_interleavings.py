"""Random interleavings of all verbs, as several dispatchers, orchestrators and workers would make them, each late or twice."""

from typing import Any

import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from paceline.domain.jobs import Job
from paceline.domain.reasons import Reason
from paceline.domain.states import TERMINAL, WAITING, WENT_OUT, Byte
from paceline.policy.dispatch import Idle, Send, Step, Wait
from paceline.policy.facts import PhoneFacts
from paceline.store.jobs import TaskRoute

from .invariants import Snapshot, check
from .servers import LiveServer
from .stage import T0, Stage, recipient, value_of

SESSIONS = {"s1": "972500000001", "s2": "972500000002"}
PHONES = sorted(SESSIONS.values())
CAP = 4
DAYS = ("2025-10-09", "2025-10-10")
PEOPLE = 12

phones = st.sampled_from(PHONES)
sessions = st.sampled_from(sorted(SESSIONS))
pick = st.integers(0, 1_000)
words = st.sampled_from(["", "sent", "sent", "delivered", "read", "retry", "pinned", "failed", "returned", "extend"])
SKIPS = ([], [], [], ["park"], ["park", "park"], ["expire"], ["suppress", "park"], ["fail"])
"""What happens to the first heads before the rest is handed over."""


class Fleet(RuleBasedStateMachine):
    client: redis.Redis
    mutate: dict[str, tuple[str, str]] = {}

    @initialize(routed=st.integers(2, 6))
    def start(self, routed: int) -> None:
        self.client.flushall()
        self.stage = Stage(self.client, self.mutate)
        self.jobs: list[Job] = []
        self.looks: list[PhoneFacts] = []
        self.turns: list[Any] = []
        self.claims: list[tuple[str, str, int, int]] = []
        """Every claim ever made: session, task, token, epoch. Words about them may come at any time."""
        self.ends: dict[str, str] = {}
        for session, phone in SESSIONS.items():
            self.stage.connect(session, phone)
            self.stage.hello("i0", session)
            self.jobs.append(self.stage.routed(routed, first=len(self.jobs) * routed, phone=phone))

    # Time and outside events

    @rule(ms=st.sampled_from([1, 1_000, 70_000, 200_000, 13 * 3_600_000]))
    def time_passes(self, ms: int) -> None:
        self.stage.now += ms

    @rule(session=sessions, again=st.booleans())
    def worker_starts(self, session: str, again: bool) -> None:
        if not again:
            self.stage.hello(f"i{self.stage.now}-{len(self.claims)}", session)
        self.stage.event(session, connection="CONNECTED")

    @rule(number=st.integers(0, PEOPLE - 1), add=st.booleans())
    def suppression(self, number: int, add: bool) -> None:
        if add:
            self.stage.suppress(recipient(number))
        else:
            self.stage.call("suppress", remove=recipient(number))

    # Intake and routing

    @rule(total=st.integers(1, 4), first=st.integers(0, PEOPLE - 4), priority=st.integers(1, 3), hours=st.sampled_from([1, 24]))
    def accept(self, total: int, first: int, priority: int, hours: int) -> None:
        self.jobs.append(self.stage.accept(total, first=first, priority=priority, validity_seconds=hours * 3_600))

    @rule(number=st.integers(0, PEOPLE - 1), phone=phones, later=st.sampled_from([None, 5_000, 100_000]))
    def send(self, number: int, phone: str, later: int | None) -> None:
        send_at = None if later is None else self.stage.now + later
        self.jobs.append(self.stage.send(recipient(number), phone, send_at=send_at)[0])

    @rule(late=pick, count=st.integers(1, 4), phone=phones, end=st.sampled_from(["", "", "", *"EO", "wait", "none"]))
    def route(self, late: int, count: int, phone: str, end: str) -> None:
        """A turn is used at once, or much later, when another router has had it."""
        turn = self.stage.turn()
        if turn.code == "OK":
            self.turns.append(turn)
        if not self.turns:
            return
        turn, now = self.turns[-1 - late % 3 % len(self.turns)], self.stage.now
        reason = {"wait": "WAITING_FOR_ROOM", "none": "NO_SESSIONS_AVAILABLE"}.get(end)
        if reason:
            value_of(self.stage.store.jobs.yield_turn(turn.job, turn.cursor, reason=reason, next_at_ms=now, now_ms=now))
            return
        job = next(job for job in self.jobs if job.job_id == turn.job)
        tasks = self.stage.routes(job, turn.cursor, turn.cursor + count, phone)
        known = value_of(self.stage.store.jobs.stickies([task.to or "" for task in tasks]))
        routed = [
            TaskRoute(task.index, ends=Byte(end)) if end else _seeing(task, sticky.phone if sticky else None)
            for task, sticky in zip(tasks, known, strict=True)
        ]
        value_of(self.stage.store.jobs.route(job, turn.cursor, routed, now_ms=now))

    @rule(number=pick, how=st.sampled_from(["cancel", "cancel", "fail"]))
    def end_job(self, number: int, how: str) -> None:
        job = self.jobs[number % len(self.jobs)]
        if how == "cancel":
            self.stage.cancel(job)
        else:
            value_of(self.stage.store.jobs.fail(job.job_id, "malformed", now_ms=self.stage.now))

    @rule(wait=st.booleans())
    def release(self, wait: bool) -> None:
        next_at = self.stage.release().next_at
        if wait and next_at:
            self.stage.now = max(self.stage.now, next_at)
            self.stage.release()

    # Dispatchers

    @rule(late=st.sampled_from([0, 0, 0, 1, 2]), skip=st.sampled_from(SKIPS), final=st.sampled_from(["send", "send", "send", "wait"]))
    def dispatch(self, late: int, skip: list[str], final: str) -> None:
        """Waits for the next phone, looks, and applies a decision to this look or to an older one."""
        next_at = min((score for _, score in self.client.zrange("dispatch:due", 0, 0, withscores=True)), default=0)
        self.stage.now = max(self.stage.now, int(next_at))
        self.looks += self.stage.look(1)
        if not self.looks:
            return
        facts = self.looks[-1 - late % len(self.looks)]
        steps = [Step("drop", head.entry, head.task) for head in facts.heads if head.state not in WAITING]
        heads = [head for head in facts.heads if head.state in WAITING]
        for kind, head in zip(skip, heads, strict=False):
            steps.append(Step(kind, head.entry, head.task, Reason.EXPIRED, self.stage.now + 20_000))  # type: ignore[arg-type]
        left = heads[len(skip) :]
        decision: Send | Wait | Idle
        if left and final == "send":
            session = left[0].pinned or next(s for s, phone in SESSIONS.items() if phone == facts.phone)
            day = DAYS[self.stage.now > T0 + 12 * 3_600_000]
            decision = self.stage.to_send(left[0], session, cap=CAP, day=day)
        else:
            decision = Wait(self.stage.now + 5_000, Reason.PACING) if left or facts.more else Idle()
        self.stage.apply(facts, decision, *steps)

    # Workers and orchestrators

    @rule(session=sessions, how=st.sampled_from(["claim"] * 5 + ["returned", "parked", "expired", "suppressed"]), word=words)
    def work(self, session: str, how: str, word: str) -> None:
        """Opens the outbox, claims or is refused at the gate, and says something about what it got, or nothing yet."""
        epoch = int(self.client.hget(f"session:{session}", "epoch"))
        opened = self.stage.open(epoch, session)
        task = opened.task
        if task is None:
            return
        if task.state in TERMINAL:
            for _ in range(2):  # Two calls found it at once.
                self.stage.settle(task.task, "cleared", from_=TERMINAL)
        elif how != "claim":
            facts = {"reason": "r", "untilMs": self.stage.now + 30_000}
            self.stage.settle(task.task, how, from_="h", unitBack=True, **facts)
        else:
            claimed = self.stage.claim(task.task, epoch, session)
            if claimed.code == "OK":
                self.claims.append((session, task.task, claimed.token, epoch))
                self._say(self.claims[-1], word)

    @rule(number=pick, word=words, newest=st.booleans())
    def late_word(self, number: int, word: str, newest: bool) -> None:
        if self.claims:
            session, task, token, epoch = self.claims[-1 - number % len(self.claims)]
            newest_epoch = int(self.client.hget(f"session:{session}", "epoch"))
            self._say((session, task, token, newest_epoch if newest else epoch), word)

    def _say(self, claim: tuple[str, str, int, int], word: str) -> None:
        session, task, token, epoch = claim
        about = {"from_": "cu", "token": token, "epoch": epoch}
        if word == "extend":
            given = {"lease_ms": 60_000, "longest_ms": 600_000, "now_ms": self.stage.now}
            value_of(self.stage.store.outbox.extend(session, epoch, task, token, **given))
        elif word == "failed":
            self.stage.fail(task, **about)
        elif word == "returned":
            self.stage.settle(task, "returned", unitBack=True, reason="r", **about)
        elif word in ("retry", "pinned"):
            self.stage.retry(task, pinned=word == "pinned", unitBack=word != "pinned", **about)
        elif word:
            self.stage.sent(task, word)

    @rule(wait=st.booleans())
    def sweep(self, wait: bool) -> None:
        next_at = self.stage.overdue().next_at
        if wait and next_at:
            self.stage.now = max(self.stage.now, next_at)
        for found in self.stage.overdue().tasks:
            outcome = {"h": "returned", "c": "unknown", "u": "failed"}.get(found.state, "cleared")
            self.stage.settle(
                found.task, outcome, from_=found.state, overdue=True, unitBack=found.state == "h" or None, reason="r",
                code="UNKNOWN_OUTCOME", message="m",
            )  # fmt: skip

    # What always holds

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "stage"):
            return
        seen = Snapshot(self.stage, self.jobs, SESSIONS)
        check(seen, CAP)
        for task, byte in seen.bytes_of.items():
            before = self.ends.get(task)
            assert before in (None, byte) or byte in WENT_OUT, f"{task} ended {before} and is {byte}"
            if byte in TERMINAL:
                self.ends[task] = byte


def _seeing(task: TaskRoute, phone: str | None) -> TaskRoute:
    return TaskRoute(task.index, to=task.to, phone=task.phone, expires_at=task.expires_at, seen=phone)


def explore(client: redis.Redis, examples: int, mutate: dict[str, tuple[str, str]] | None = None) -> None:
    machine = type("Machine", (Fleet,), {"client": client, "mutate": mutate or {}})
    limits = settings(
        max_examples=examples, stateful_step_count=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=limits)


def test_whatever_the_order_nothing_is_lost_doubled_or_miscounted(server: LiveServer) -> None:
    explore(server.client, 300)
