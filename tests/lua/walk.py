"""Everybody who calls the store, each step chosen at random: routers, dispatchers, workers, clients; late or twice."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import redis

from paceline.domain.jobs import Job
from paceline.domain.reasons import Reason
from paceline.domain.states import TERMINAL, WAITING, WENT_OUT, Byte
from paceline.policy.dispatch import Idle, Send, Step, Wait
from paceline.policy.facts import PhoneFacts
from paceline.store import keys
from paceline.store.jobs import TaskRoute

from .invariants import Snapshot, check
from .stage import PACER_KEYS, T0, Stage, pacer_of, recipient, value_of

SESSIONS = {"s1": "972500000001", "s2": "972500000002"}
PHONES = sorted(SESSIONS.values())
CAP = 4
PEOPLE = 30
WORDS = ("", "", "sent", "sent", "sent", "delivered", "read", "retry", "pinned", "failed", "returned", "extend")
SKIPS = (*[()] * 8, ("park",), ("park", "park"), ("expire",), ("suppress", "park"), ("fail",))
"""What happens to the first heads before the rest is handed over."""
Claim = tuple[str, str, int, int]


class Walk:
    def __init__(self, client: redis.Redis, mutate: dict[str, tuple[str, str]] | None = None) -> None:
        client.flushall()
        self.stage = Stage(client, mutate)
        self.jobs: list[Job] = []
        self.looks: list[PhoneFacts] = []
        self.turns: list[Any] = []
        self.claims: list[Claim] = []
        """Every claim ever made: session, task, token, epoch. Words about them may come at any time."""
        self.ends: dict[str, str] = {}
        self.used: Counter[tuple[str, str]] = Counter()
        """Messages that went out, by the phone and the day whose unit they took."""
        for session, phone in SESSIONS.items():
            self.stage.connect(session, phone)
            self.stage.hello("i0", session)
            self.jobs.append(self.stage.routed(4, first=4 * len(self.jobs), phone=phone))

    def step(self, rng: Random) -> None:
        (action,) = rng.choices(ACTIONS, [WEIGHTS[action] for action in ACTIONS])
        action(self, rng)
        self.check()

    def check(self) -> None:
        seen = Snapshot(self.stage, self.jobs, SESSIONS)
        check(seen, CAP)
        for task, byte in seen.bytes_of.items():
            before = self.ends.get(task)
            assert before in (None, byte) or byte in WENT_OUT, f"{task} ended {before} and is {byte}"
            if byte in TERMINAL:
                self.ends[task] = byte
        for phone in PHONES:
            pacer = pacer_of(*[seen.get(key, {}).get(phone, "") for key in PACER_KEYS])
            used = self.used[phone, pacer.get("capDay", "")]
            assert int(pacer.get("capUsed", 0)) >= used, "a unit came back although its message went out"

    def time_passes(self, rng: Random) -> None:
        self.stage.now += rng.choice([1, 1_000, 10_000, 70_000, 200_000])

    def a_day_passes(self, rng: Random) -> None:
        self.stage.now += rng.choice([1, 1, 13]) * 3_600_000

    def worker_starts(self, rng: Random) -> None:
        session = rng.choice(sorted(SESSIONS))
        if rng.random() < 0.7:
            self.stage.hello(f"i{rng.random()}", session)
        self.stage.event(session, connection="CONNECTED")

    def terms_change(self, rng: Random) -> None:
        """What a look goes by, beside its own: another pace, another rate, a connection that comes and goes."""
        session, said = rng.choice(sorted(SESSIONS)), {"by": "k", "now_ms": self.stage.now}
        operators = self.stage.store.operators
        match rng.randrange(3):
            case 0:
                delay = {"maxDelayMs": rng.randrange(60_000)}
                value_of(operators.set_pacer(session, set_=delay, remove=[], **said))  # type: ignore[arg-type]
            case 1:
                rpm = rng.choice([None, 2, 5])
                value_of(operators.set_rpm(session, rpm, exceeds_trust=False, **said))  # type: ignore[arg-type]
            case _:
                self.stage.event(session, connection="RECONNECTING")
                self.stage.event(session, connection="CONNECTED")

    def suppression(self, rng: Random) -> None:
        to = recipient(rng.randrange(PEOPLE))
        if rng.random() < 0.3:
            self.stage.suppress(to)
        else:
            self.stage.call("suppress", remove=[to], by="k", now=self.stage.now)

    def accept(self, rng: Random) -> None:
        fields = {"priority": rng.randint(1, 3), "validity_seconds": rng.choice([1, 24, 240]) * 3_600}
        self.jobs.append(self.stage.accept(rng.randint(1, 5), first=rng.randrange(PEOPLE - 5), **fields))

    def send(self, rng: Random) -> None:
        later = rng.choice([None, 5_000, 100_000])
        send_at = None if later is None else self.stage.now + later
        self.jobs.append(self.stage.send(recipient(rng.randrange(PEOPLE)), rng.choice(PHONES), send_at=send_at)[0])

    def route(self, rng: Random) -> None:
        """A turn is used at once, or much later, when another router has had it."""
        turn = self.stage.turn()
        if turn.code == "OK":
            self.turns.append(turn)
        if not self.turns:
            return
        turn, now = self.turns[-1 - rng.choice([0, 0, 0, 1, 2]) % len(self.turns)], self.stage.now
        end = rng.choice([""] * 12 + [*"EO", "WAITING_FOR_ROOM", "NO_SESSIONS_AVAILABLE"])
        if len(end) > 1:
            value_of(self.stage.store.jobs.yield_turn(turn.job, turn.cursor, reason=end, next_at_ms=now, now_ms=now))
            return
        job = next(job for job in self.jobs if job.job_id == turn.job)
        tasks = self.stage.routes(job, turn.cursor, turn.cursor + rng.randint(1, 4), rng.choice(PHONES))
        known = value_of(self.stage.store.jobs.stickies([task.to or "" for task in tasks]))
        routed = [
            TaskRoute(task.index, ends=Byte(end)) if end else _seeing(task, sticky.phone if sticky else None)
            for task, sticky in zip(tasks, known, strict=True)
        ]
        value_of(self.stage.store.jobs.route(job, turn.cursor, routed, now_ms=now))

    def end_job(self, rng: Random) -> None:
        held = [job for job in self.jobs if set(self.stage.states(job)) & {"c", "u"}]
        job = rng.choice(held if held and rng.random() < 0.5 else self.jobs)
        before = self.stage.states(job)
        if rng.random() < 0.8:
            self.stage.cancel(job)
        else:
            value_of(self.stage.store.jobs.fail(job.job_id, "malformed", now_ms=self.stage.now))
        after = self.stage.states(job)
        assert all(old == new for old, new in zip(before, after, strict=True) if old in "cu" + TERMINAL)

    def release(self, rng: Random) -> None:
        next_at = self.stage.release().next_at
        if rng.random() < 0.5 and next_at:
            self.stage.now = max(self.stage.now, next_at)
            self.stage.release()

    def dispatch(self, rng: Random) -> None:
        """Waits for the next phone, looks, and applies a decision to this look or to an older one."""
        first = self.stage.redis.zrange(keys.due(), 0, 0, withscores=True)
        self.stage.now = max(self.stage.now, int(first[0][1]) if first else 0)
        self.looks += self.stage.brief_look(1) if rng.random() < 0.5 else self.stage.look(1)
        if not self.looks:
            return
        facts = self.looks[-1 - rng.choice([0] * 8 + [1, 2]) % len(self.looks)]
        if rng.random() < 0.1:
            return  # It dies here, or goes on later.
        skip = rng.choice(SKIPS)
        steps = [Step("drop", head.entry, head.task) for head in facts.heads if head.state not in WAITING]
        heads = [head for head in facts.heads if head.state in WAITING]
        for kind, head in zip(skip, heads, strict=False):
            steps.append(Step(kind, head.entry, head.task, Reason.EXPIRED, self.stage.now + 20_000))  # type: ignore[arg-type]
        left = heads[len(skip) :]
        decision: Send | Wait | Idle
        if left and rng.random() < 0.85:
            session = left[0].pinned or next(s for s, phone in SESSIONS.items() if phone == facts.phone)
            decision = self.stage.to_send(left[0], session, cap=CAP, day=self._day())
        else:
            decision = Wait(self.stage.now + 5_000, Reason.PACING) if left or facts.more else Idle()
        self.stage.apply(facts, decision, *steps)

    def work(self, rng: Random) -> None:
        """Opens an outbox, claims or is refused at the gate, and says something about what it got, or nothing yet."""
        busy = [s for s in SESSIONS if self.stage.redis.exists(keys.outbox(s), keys.processing(s))]
        session = rng.choice(busy or sorted(SESSIONS))
        epoch = self._epoch(session)
        opened = self.stage.open(epoch, session)
        for held in opened.pending:
            self._say((session, held.task, held.token, epoch), rng.choice(WORDS))
        task = opened.task
        if task is None:
            return
        how = rng.choice(["claim"] * 12 + ["returned", "parked", "expired", "suppressed"])
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
                self._say(self.claims[-1], rng.choice(WORDS))

    def late_word(self, rng: Random) -> None:
        in_hands = [claim for claim in self.claims if self.stage.byte(claim[1]) in "cu"]
        if self.claims:
            session, task, token, epoch = rng.choice(in_hands if in_hands and rng.random() < 0.5 else self.claims[-6:])
            epoch = self._epoch(session) if rng.random() < 0.6 else epoch
            self._say((session, task, token, epoch), rng.choice(WORDS))

    def _say(self, claim: Claim, word: str) -> None:
        session, task, token, epoch = claim
        about = {"from_": "cu", "token": token, "epoch": epoch}
        if word == "extend":
            given = {"lease_ms": 60_000, "longest_ms": 600_000, "now_ms": self.stage.now}
            value_of(self.stage.store.outbox.extend(session, epoch, task, token, **given))
        elif word == "failed":
            self._word_counts_for_its_claim(self.stage.fail(task, **about), token)
        elif word == "returned":
            self._word_counts_for_its_claim(
                self.stage.settle(task, "returned", unitBack=True, reason="r", **about), token
            )
        elif word in ("retry", "pinned"):
            given = {"at": self.stage.now + 1_000, "pinned": word == "pinned", "unitBack": word != "pinned"}
            settled = self.stage.retry(task, **given, **about)
            self._word_counts_for_its_claim(settled, token)
        elif word:
            if self.stage.byte(task) in "cu":
                known = self.stage.message(task)
                self.used[known["phone"], known["unitDay"]] += 1
            self.stage.sent(task, word, is_long=token % 2 == 0)

    def _word_counts_for_its_claim(self, settled: Any, token: int) -> None:
        newest = max(claim[2] for claim in self.claims if claim[1] == self._task_of(token))
        assert settled.code != "OK" or token == newest, "a word about an old claim settled a newer one"

    def _task_of(self, token: int) -> str:
        return next(task for _, task, given, _ in self.claims if given == token)

    def sweep(self, rng: Random) -> None:
        next_at = self.stage.overdue().next_at
        if rng.random() < 0.5 and next_at:
            self.stage.now = max(self.stage.now, next_at)
        for found in self.stage.overdue().tasks:
            outcome = {"h": "returned", "c": "unknown", "u": "failed"}.get(found.state, "cleared")
            self.stage.settle(
                found.task, outcome, from_=found.state, overdue=True, unitBack=found.state == "h" or None, reason="r",
                code="UNKNOWN_OUTCOME", message="m",
            )  # fmt: skip

    def _day(self) -> str:
        return f"day-{(self.stage.now - T0) // 3_600_000:04d}"

    def _epoch(self, session: str) -> int:
        return int(self.stage.redis.hget(keys.session(session), "epoch") or 0)


def _seeing(task: TaskRoute, phone: str | None) -> TaskRoute:
    return TaskRoute(task.index, to=task.to, phone=task.phone, expires_at=task.expires_at, seen=phone)


WEIGHTS: dict[Callable[[Walk, Random], None], int] = {
    Walk.dispatch: 14, Walk.work: 14, Walk.late_word: 5, Walk.route: 7, Walk.sweep: 2, Walk.release: 4,
    Walk.time_passes: 2, Walk.accept: 3, Walk.send: 2,
    Walk.end_job: 1, Walk.worker_starts: 1, Walk.suppression: 1, Walk.a_day_passes: 1,
    Walk.terms_change: 1,
}  # fmt: skip
ACTIONS = list(WEIGHTS)
