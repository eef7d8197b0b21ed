"""Everything the judges of a run look at, gathered once: the ledger, what the API answers, what people outside know."""

from bisect import bisect_right
from collections import defaultdict
from functools import partial
from typing import Any

import msgspec

from paceline.domain.ids import parse_task_id
from paceline.domain.states import MESSAGE_STATE
from paceline.policy.trust import DAY_MS, Level
from paceline.store.jobs import JobView, MessageView
from paceline.store.store import Store
from paceline.testing.outside import Claim
from paceline.testing.plans import JobPlan
from paceline.testing.world import World
from paceline.worker.drivers.ledger import LedgerLine, Refusal

Wire = LedgerLine | Refusal
"""What reached WhatsApp, taken or not."""


class Evidence:
    def __init__(self, world: World) -> None:
        self.world = world
        self.outside = world.outside
        self.scenario = world.scenario
        self.behind_ms = world.sim.behind_ms
        """What a service called the time may be so much earlier than it was."""
        books = world.ledgers.values()
        self.lines = sorted((line for book in books for line in book.lines), key=lambda line: line.at)
        self.refusals = sorted((no for book in books for no in book.refusals), key=lambda no: no.at)
        everything: list[Wire] = [*self.lines, *self.refusals]
        self.wire: list[Wire] = sorted(everything, key=lambda event: event.at)
        self.by_task: dict[str, list[LedgerLine]] = defaultdict(list)
        self.by_phone: dict[str, list[LedgerLine]] = defaultdict(list)
        self.wire_by_phone: dict[str, list[Wire]] = defaultdict(list)
        self.claims: dict[str, list[Claim]] = defaultdict(list)
        for line in self.lines:
            self.by_task[line.task_id].append(line)
            self.by_phone[self.phone_of(line)].append(line)
        for event in self.wire:
            self.wire_by_phone[self.phone_of(event)].append(event)
        for claim in self.outside.claims:
            self.claims[claim.task].append(claim)
        views = world.ask(*[partial(_view, job_id) for job_id in world.jobs])
        self.views: dict[str, JobView] = dict(zip(world.jobs, views, strict=True))
        tasks = [f"{job_id}:{index}" for job_id, view in self.views.items() for index in range(view.job.total)]
        messages = world.ask(*[partial(_message, task) for task in tasks])
        self.messages: dict[str, MessageView] = dict(zip(tasks, messages, strict=True))
        self.events: list[dict[str, Any]] = world.ask(lambda store: store.jobs.events(2_000))[0]
        self.incidents: list[dict[str, Any]] = world.ask(lambda store: store.operators.incidents())[0]

        self.confirmations = {placed.task for placed in self.outside.confirmations}

    def may_be_suppressed(self, who: str) -> bool:
        """Of a stop word whose answer was lost nobody knows whether it was heard."""
        return who in self.outside.suppressed_at or who in self.outside.said_stop

    def phone_of(self, event: Wire | Claim) -> str:
        session = event.session if isinstance(event, Claim) else event.session_id
        return self.outside.phone_of[session]

    def plan(self, task: str) -> JobPlan | None:
        parsed = parse_task_id(task)
        return self.world.jobs.get(parsed[0]) if parsed else None

    def to(self, task: str) -> str:
        return self.messages[task].contact.to

    def state(self, task: str) -> str:
        return MESSAGE_STATE[self.messages[task].byte]

    def history(self, task: str) -> list[dict[str, Any]]:
        known = self.messages[task].known.get("history", "")
        return [msgspec.json.decode(line) for line in known.splitlines()]

    def claim_of(self, event: Wire) -> Claim | None:
        """The claim under which it went over the wire."""
        claims = self.claims[event.task_id]
        found = bisect_right(claims, event.at, key=lambda claim: claim.at)
        return claims[found - 1] if found else None

    def told_time(self, event: Wire) -> int:
        """What time it was for those who let it go."""
        claim = self.claim_of(event) if self.behind_ms else None
        return event.at - (claim.at - claim.asked if claim else 0)

    def level(self, phone: str, at_ms: int) -> Level:
        """Worked out here, from the number's age and the table."""
        plan = next(plan for plan in self.scenario.phones if plan.phone == phone)
        days = (at_ms - self.scenario.start_ms + plan.age_ms) / DAY_MS
        levels = self.scenario.policy.levels
        return next(level for level in levels if level.max_age_days is None or days < level.max_age_days)

    def due_at(self, task: str) -> int:
        """When it may go at the earliest, from what the caller asked for."""
        view = self.messages[task]
        plan, index = self.world.jobs[view.job.job_id], index_of(task)
        start = max(plan.at_ms + plan.delay_ms, view.job.accepted_at) if plan.delay_ms else view.job.accepted_at
        return start + index * plan.spread_minutes * 60_000 // view.job.total


def index_of(task: str) -> int:
    return int(task.rpartition(":")[2])


async def _view(job_id: str, store: Store) -> JobView | None:
    return await store.jobs.view(job_id)


async def _message(task: str, store: Store) -> MessageView | None:
    return await store.jobs.message(task)
