"""A platform of one event per message, for jobs of thousands: the real policy, without store, worker or protocol.

The World takes some forty steps and a dozen calls to Redis for each message, about 10 ms; twenty fleets with jobs of
thousands of messages over days would take an hour. The forecast is about what the policy does with a fleet, so this
one calls `dispatch.decide` and `routing.Fleet` with the same facts as the dispatcher and keeps queues, parked tasks,
pacing stamps and units as the scripts do. `test_forecast` checks it once against the World.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from paceline.domain.jobs import Contact, Job
from paceline.domain.reasons import Reason
from paceline.policy import dispatch, retry
from paceline.policy.facts import Head, PhoneFacts, Rules, SessionFacts
from paceline.policy.pacing import PacerFields
from paceline.policy.routing import AT_REST_MS, Fleet, NotNow, Sticky, phone_load

TURN_TASKS = 100
UNKNOWN_MS = 85_000
"""Until a worker gives up waiting for an ack and for a receipt."""
RECEIPTS, RECEIPT_MS = 0.8, 2_000
HEADS = 8
HOP_MS = 50
"""From the hand-over to the worker."""
NO_SESSIONS_MS = 10_000
SENDS_KEPT = 64


@dataclass
class Trouble:
    """What the forecast does not know of: how likely each is for an attempt, and when workers are away."""

    ack_ms: tuple[int, int] = (100, 500)
    lost_ack: float = 0.0
    """A receipt proves most of them a moment later; the rest is resent."""
    fails: float = 0.0
    gone: float = 0.0
    """Not on WhatsApp: ends at once."""
    outages: list[tuple[int, int, int]] = field(default_factory=list)
    """(which number, from, until)"""


@dataclass
class Task:
    job: Job
    index: int
    contact: Contact
    failures: int = 0
    pinned: str | None = None


@dataclass
class Number:
    phone: str
    created_at: int | None
    timezone: str | None = None
    sessions: tuple[str, ...] = ("s",)
    rpm_override: int | None = None
    pacer: PacerFields = field(default_factory=PacerFields)
    restricted_until: int = 0
    quarantined: bool = False
    knows: frozenset[str] = frozenset()
    sends: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    gap: tuple[int, str] = (0, "")
    day: str = ""
    used: int = 0
    unsettled: Task | None = None
    queues: tuple[deque[Task], ...] = field(default_factory=lambda: (deque(), deque(), deque()))
    parked: int = 0
    wakes_at: int | None = None
    away: list[tuple[int, int]] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    sent: int = 0

    def facts(self, now_ms: int, heads: tuple[Head, ...] = (), more: bool = False, free_at: int = 0) -> PhoneFacts:
        connection = "RECONNECTING" if any(a <= now_ms < b for a, b in self.away) else "CONNECTED"
        return PhoneFacts(
            phone=self.phone,
            version=1,
            created_at=self.created_at,
            timezone=self.timezone,
            rpm_override=self.rpm_override,
            rpm_source="manual",
            pacer=self.pacer,
            restriction="TIME_LOCKED" if self.restricted_until else "",
            restricted_until=self.restricted_until,
            quarantined=self.quarantined,
            failures=tuple(self.failures),
            unsettled="busy" if self.unsettled else None,
            sends=tuple(self.sends),
            starts=tuple(self.starts),
            gap_ms=self.gap[0],
            gap_key=self.gap[1],
            cap_day=self.day,
            cap_used=self.used,
            sessions=tuple(SessionFacts(name, connection, now_ms) for name in self.sessions),
            heads=heads,
            more=more,
            global_free_at=free_at,
        )

    @property
    def queued(self) -> tuple[int, int, int]:
        one, two, three = map(len, self.queues)
        return one, two, three

    def ahead_of(self, priority: int) -> int:
        return sum(self.queued[priority - 1 :]) + (1 if self.unsettled else 0)


@dataclass
class Running:
    job: Job
    contacts: list[Contact]
    cursor: int = 0
    turn: int = 0
    due_at: int = 0
    left: int = 0
    ended_at: int | None = None


class Fast:
    def __init__(
        self,
        rules: Rules,
        numbers: list[Number],
        *,
        start_ms: int,
        seed: int,
        ahead: int = 200,
        trouble: Trouble,
        sticky: dict[str, str] | None = None,
    ) -> None:
        self.rules = rules
        self.numbers = {number.phone: number for number in numbers}
        self.now = start_ms
        self.jobs: dict[str, Running] = {}
        self.log: list[tuple[int, str]] = []
        """When each message was on the wire, and from which number."""
        self._rng = Random(seed)
        self._ahead = ahead
        self._trouble = trouble
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._turns = 0
        self._room_at = 0
        self._sticky = {to: Sticky(phone, start_ms - 3_600_000) for to, phone in (sticky or {}).items()}
        self._fleet_sends: list[int] = []
        self._fleet_unsettled = 0
        self.decisions = 0
        for index, start, end in trouble.outages:
            number = numbers[index % len(numbers)]
            number.away.append((start, end))
            self._at(end, lambda number=number: self._wake(number, self.now))

    # What the test does

    def accept(self, job: Job, contacts: list[Contact]) -> None:
        running = Running(job, contacts, left=len(contacts), due_at=self.now)
        self.jobs[job.job_id] = running
        self._turns += 1
        running.turn = self._turns
        self._at(self.now, self._route)

    def run(self, until: Callable[[], bool] = lambda: False, *, deadline_ms: int) -> None:
        while self._events and not until() and self.now < deadline_ms:
            at, _, event = heappop(self._events)
            self.now = max(self.now, at)
            event()

    def everything_ended(self) -> bool:
        return all(running.ended_at is not None for running in self.jobs.values())

    # Routing

    def _route(self) -> None:
        while True:
            due = [r for r in self.jobs.values() if r.cursor < len(r.contacts) and r.due_at <= self.now]
            if not due:
                break
            running = min(due, key=lambda r: r.turn)
            self._turns += 1
            if self._turn(running):
                running.turn = self._turns
        waiting = [r.due_at for r in self.jobs.values() if r.cursor < len(r.contacts)]
        if waiting:
            self._at(min(waiting), self._route)

    def _turn(self, running: Running) -> bool:
        job, began = running.job, running.cursor
        loads = [
            phone_load(
                number.facts(self.now), self.rules, waiting=number.ahead_of(job.priority), parked=number.parked,
                ahead=self._ahead, now_ms=self.now,
            )
            for number in self.numbers.values()
        ]  # fmt: skip
        fleet = Fleet(loads, strategy=job.strategy or "sticky", turn=running.cursor)
        while running.cursor < min(began + TURN_TASKS, len(running.contacts)):
            index, contact = running.cursor, running.contacts[running.cursor]
            if job.scheduled_at(index) > self.now:
                running.due_at = job.scheduled_at(index)
                break
            known = [phone for phone in fleet.restricted if contact.to in self.numbers[phone].knows]
            found = fleet.route(self._sticky.get(contact.to), named=job.phone, known=known, now_ms=self.now)
            if isinstance(found, NotNow):
                if running.cursor == began:
                    self._rest(running, found.reason, fleet)
                break
            self._sticky[contact.to] = Sticky(found.phone, self.now)
            number = self.numbers[found.phone]
            number.queues[job.priority - 1].append(Task(job, index, contact))
            running.cursor += 1
            if number.wakes_at is None and number.unsettled is None:
                self._wake(number, self.now)
        return running.cursor > began

    def _rest(self, running: Running, reason: Reason, fleet: Fleet) -> None:
        pause = {
            Reason.WAITING_FOR_ROOM: fleet.room_in_ms(running.job.phone),
            Reason.NO_SESSIONS_AVAILABLE: NO_SESSIONS_MS,
        }.get(reason, AT_REST_MS)
        running.due_at = self.now + pause
        if reason is Reason.WAITING_FOR_ROOM:
            if self._room_at > self.now:
                running.due_at = self._room_at
            self._room_at = running.due_at

    # Pacing

    def _wake(self, number: Number, at: int) -> None:
        number.wakes_at = at
        self._at(at, lambda: self._serve(number, at))

    def _serve(self, number: Number, meant_for: int) -> None:
        if number.wakes_at != meant_for or number.unsettled is not None:
            return
        number.wakes_at = None
        queue = next((queue for queue in reversed(number.queues) if queue), None)
        if queue is None:
            return
        heads = {f"{t.job.job_id}:{t.index}": t for t in list(queue)[:HEADS]}
        facts = number.facts(
            self.now,
            tuple(self._head(number, entry, task) for entry, task in heads.items()),
            sum(number.queued) > len(heads),
            self._free_at(self.now),
        )
        self.decisions += 1
        decision = dispatch.decide(facts, self.rules, now_ms=self.now, rng=self._rng)
        for step in decision.steps:
            queue.remove(heads[step.entry])
            self._step(number, heads[step.entry], step)
        final = decision.final
        if isinstance(final, dispatch.Send):
            self._hand_over(number, queue, heads[final.head.entry], final)
        elif isinstance(final, dispatch.Wait):
            number.gap = (final.gap.ms, final.gap.key) if final.gap else number.gap
            self._wake(number, max(final.until_ms, self.now))

    def _head(self, number: Number, entry: str, task: Task) -> Head:
        known = not number.restricted_until or task.contact.to in number.knows
        return Head(
            entry, entry, task.contact.to, "r", task.job.expires_at(task.index), tz=task.contact.timezone,
            pinned=task.pinned, is_known=known,
        )  # fmt: skip

    def _step(self, number: Number, task: Task, step: dispatch.Step) -> None:
        if step.kind != "park":
            self._ended(task)
            return
        number.parked += 1

        def back() -> None:
            number.parked -= 1
            number.queues[task.job.priority - 1].appendleft(task)
            if number.unsettled is None:
                self._wake(number, self.now)

        self._at(step.until_ms, back)

    def _hand_over(self, number: Number, queue: deque[Task], task: Task, send: dispatch.Send) -> None:
        free_at = self._free_at(send.send_after_ms)
        if free_at > send.send_after_ms:
            self._wake(number, max(self.now + 1_000, free_at - self.rules.lead_ms))
            return
        queue.remove(task)
        number.used = number.used + 1 if number.day == send.day else 1
        number.day, number.gap, number.unsettled = send.day, (send.gap.ms, send.gap.key), task
        self._fleet_unsettled += 1
        # The worker types first, inside the gap if that is long enough.
        typing = self._rng.randint(*self.rules.policy.typing_ms)
        trouble, at = self._trouble, max(send.send_after_ms, self.now + HOP_MS + typing)
        ack_at = at + self._rng.randint(*trouble.ack_ms)
        dice = self._rng.random()
        if dice < trouble.lost_ack * RECEIPTS:
            self._at(ack_at + RECEIPT_MS, lambda: self._settle(number, task, at, "sent"))
        elif dice < trouble.lost_ack:
            self._at(at + UNKNOWN_MS, lambda: self._settle(number, task, at, "lost"))
        elif dice < trouble.lost_ack + trouble.fails:
            self._at(ack_at, lambda: self._settle(number, task, at, "fails"))
        elif dice < trouble.lost_ack + trouble.fails + trouble.gone:
            self._at(ack_at, lambda: self._settle(number, task, at, "gone"))
        else:
            self._at(ack_at, lambda: self._settle(number, task, at, "sent"))

    def _settle(self, number: Number, task: Task, started_at: int, outcome: str) -> None:
        number.unsettled = None
        self._fleet_unsettled -= 1
        if outcome in ("sent", "lost"):
            number.sends = [*number.sends, self.now][-SENDS_KEPT:]
            number.starts = [*number.starts, started_at][-SENDS_KEPT:]
            insort(self._fleet_sends, self.now)
            self.log.append((started_at, number.phone))
        else:
            number.used -= 1
        if outcome == "sent":
            number.sent += 1
            self._ended(task)
        elif outcome == "gone":
            self._ended(task)
        else:
            self._try_again(number, task, lost=outcome == "lost")
        self._wake(number, self.now)

    def _try_again(self, number: Number, task: Task, *, lost: bool) -> None:
        task.failures += 1
        number.failures = [*number.failures, self.now][-32:]
        settings = retry.RetrySettings()
        if task.failures > settings.max_retries:
            self._ended(task)
            return
        task.pinned = number.sessions[0] if lost else None

        def back() -> None:
            number.queues[task.job.priority - 1].appendleft(task)
            if number.wakes_at is None and number.unsettled is None:
                self._wake(number, self.now)

        self._at(self.now + retry.delay_ms(task.failures, settings), back)

    def _ended(self, task: Task) -> None:
        running = self.jobs[task.job.job_id]
        running.left -= 1
        if running.left == 0:
            running.ended_at = self.now

    def _free_at(self, slot: int) -> int:
        limit = self.rules.global_rpm
        if not limit:
            return 0
        if self._fleet_unsettled >= limit:
            return slot + 1_000
        settled = limit - self._fleet_unsettled
        if len(self._fleet_sends) < settled or self._fleet_sends[-settled] < slot - 60_000:
            return 0
        return self._fleet_sends[-settled] + 60_001

    def _at(self, at: int, event: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._events, (at, self._count, event))
