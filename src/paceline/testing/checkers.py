"""The judges of a run: each promise of SPEC §11 as a function of the ledger and of what the API would answer.

None of them trusts a counter of ours: what went out is what the simulated WhatsApp wrote down.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from paceline.domain.ids import parse_task_id, whatsapp_id
from paceline.domain.states import MESSAGE_STATE
from paceline.policy import hours, pacing
from paceline.policy.retry import RetrySettings
from paceline.store.jobs import JobView, MessageView
from paceline.store.store import Store
from paceline.testing.scenario import JobPlan
from paceline.testing.world import World
from paceline.worker.drivers.ledger import LedgerLine
from paceline.worker.drivers.whatsapp import receipts_of

PATIENCE_MS = 15_000
"""By then a task of higher priority is routed, and what was handed over before it has gone out."""


class Violation(msgspec.Struct, frozen=True):
    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


class Evidence:
    """Everything the judges look at, gathered once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lines = sorted((line for book in world.ledgers.values() for line in book.lines), key=lambda line: line.at)
        self.by_task: dict[str, list[LedgerLine]] = defaultdict(list)
        self.by_phone: dict[str, list[LedgerLine]] = defaultdict(list)
        phone_of = {phone.session: phone.phone for phone in world.scenario.phones}
        for line in self.lines:
            self.by_task[line.task_id].append(line)
            self.by_phone[phone_of[line.session_id]].append(line)
        views = world.ask(*[partial(_view, job_id) for job_id in world.jobs])
        self.views: dict[str, JobView] = dict(zip(world.jobs, views, strict=True))
        tasks = [f"{job_id}:{index}" for job_id, view in self.views.items() for index in range(view.job.total)]
        messages = world.ask(*[partial(_message, task) for task in tasks])
        self.messages: dict[str, MessageView] = dict(zip(tasks, messages, strict=True))
        self.events: list[dict[str, Any]] = world.ask(lambda store: store.jobs.events(2_000))[0]

    def plan(self, task: str) -> JobPlan | None:
        parsed = parse_task_id(task)
        return self.world.jobs.get(parsed[0]) if parsed else None

    def state(self, task: str) -> str:
        return MESSAGE_STATE[self.messages[task].byte]

    def history(self, task: str) -> list[dict[str, Any]]:
        known = self.messages[task].known.get("history", "")
        return [msgspec.json.decode(line) for line in known.splitlines()]


async def _view(job_id: str, store: Store) -> JobView | None:
    return await store.jobs.view(job_id)


async def _message(task: str, store: Store) -> MessageView | None:
    return await store.jobs.message(task)


def check(world: World, ended: bool) -> list[Violation]:
    evidence = Evidence(world)
    found = [] if ended else [Violation("I1", f"not everything ended; stuck: {_stuck(evidence)}")]
    for promise, judge in JUDGES:
        found += [Violation(promise, what) for what in judge(evidence)]
    return found


def nothing_is_lost(evidence: Evidence) -> Iterator[str]:
    for job_id, view in evidence.views.items():
        counts = {key: count for key, count in view.progress.items() if key != "total"}
        if sum(counts.values()) != view.progress["total"]:
            yield f"{job_id}: the parts of {view.progress} do not add up"
    for task, lines in evidence.by_task.items():
        if task not in evidence.messages:
            yield f"{task} was sent but never accepted"
        elif evidence.state(task) not in ("sent", "delivered", "read") and not _may_be_honest_about_unknown(
            evidence, task
        ):
            yield f"{task} went out at {lines[0].at} but ended {evidence.state(task)}"
    for task in evidence.messages:
        if evidence.state(task) in ("sent", "delivered", "read") and task not in evidence.by_task:
            yield f"{task} is called {evidence.state(task)} but never went out"


def ends_are_justified(evidence: Evidence) -> Iterator[str]:
    """Whoever was not written to was not for a reason that the outside world knows of too."""
    for task, view in evidence.messages.items():
        reasons: dict[str, Callable[[], bool]] = {
            "expired": lambda: _expired(evidence, view),  # noqa: B023 - asked at once
            "suppressed": lambda: view.contact.to in evidence.world.suppressed_at,  # noqa: B023
            "canceled": lambda: view.job.job_id in evidence.world.canceled_at,  # noqa: B023
            "failed": lambda: _failed(evidence, task, view),  # noqa: B023
        }
        state = evidence.state(task)
        if state in reasons and not reasons[state]():
            yield f"{task} ended {state} ({view.known.get('errorCode')}) without a reason"


def _expired(evidence: Evidence, view: MessageView) -> bool:
    until = _due_at(evidence, view, _index(view.task_id)) + view.job.validity_seconds * 1_000
    return int(view.known.get("endedAt", evidence.world.sim.now_ms)) >= until


def _failed(evidence: Evidence, task: str, view: MessageView) -> bool:
    code, history = view.known.get("errorCode", ""), evidence.history(task)
    behaviour, faults = evidence.world.scenario.behaviour, evidence.world.scenario.faults
    if code in ("NOT_ON_WHATSAPP", "RESTRICTED_463"):
        return behaviour.not_registered > 0
    if code == "NO_COMMON_HOURS":
        return evidence.world.scenario.policy.recipient_hours is not None
    if code in ("UNKNOWN_OUTCOME", "POISON"):
        return faults.crash > 0 or behaviour.lost_ack > 0 or evidence.world.scenario.outage[1] > 0
    return sum(entry["what"] in ("retry", "unknown", "failed") for entry in history) > RetrySettings().max_retries


def _index(task: str) -> int:
    return int(task.rpartition(":")[2])


def _due_at(evidence: Evidence, view: MessageView, index: int) -> int:
    """When it may go at the earliest, from what the caller asked for."""
    plan = evidence.world.jobs[view.job.job_id]
    start = max(plan.at_ms + plan.delay_ms, view.job.accepted_at) if plan.delay_ms else view.job.accepted_at
    return start + index * plan.spread_minutes * 60_000 // view.job.total


def nothing_goes_before_its_time(evidence: Evidence) -> Iterator[str]:
    for task, lines in evidence.by_task.items():
        view = evidence.messages[task]
        due = _due_at(evidence, view, _index(task))
        if lines[0].at < due:
            yield f"{task} went out at {lines[0].at}, {due - lines[0].at} ms before its time"


def what_was_asked_is_what_went_out(evidence: Evidence) -> Iterator[str]:
    for task, lines in evidence.by_task.items():
        view = evidence.messages[task]
        plan = evidence.world.jobs[view.job.job_id]
        for line in lines:
            if line.text != plan.text or line.to != view.contact.to:
                yield f"{task}: {line.text!r} to {line.to} is not what was asked"


def first_things_first(evidence: Evidence) -> Iterator[str]:
    """In a quiet world: nothing of a lower priority is handed over while something higher has long been waiting."""
    scenario = evidence.world.scenario
    if (
        scenario.faults.crash
        or scenario.behaviour.lost_ack
        or scenario.policy.recipient_hours
        or scenario.outage[1] > 5_000
    ):
        return
    for phone, lines in evidence.by_phone.items():
        seen = [(evidence.messages[line.task_id], line) for line in lines]
        for low, line in seen:
            for high, other in seen:
                waited = line.at - _due_at(evidence, high, _index(other.task_id))
                if high.job.priority > low.job.priority and other.at > line.at and waited > PATIENCE_MS:
                    yield f"{phone}: {line.task_id} went before {other.task_id}, which has priority {high.job.priority}"


def one_id_one_number(evidence: Evidence) -> Iterator[str]:
    for task, lines in evidence.by_task.items():
        if {line.whatsapp_id for line in lines} != {whatsapp_id(task)}:
            yield f"{task} went out under {[line.whatsapp_id for line in lines]}"
        if len({line.session_id for line in lines}) > 1:
            yield f"{task} went out from {sorted({line.session_id for line in lines})}"
        if len(lines) > 1:
            yield from _repeated(evidence, task, lines)


def _repeated(evidence: Evidence, task: str, lines: list[LedgerLine]) -> Iterator[str]:
    plan = evidence.plan(task)
    if plan is None or plan.on_unknown == "hold":
        yield f"{task} must not be repeated, but went out {len(lines)} times"
        return
    unknowns = [entry["at"] for entry in evidence.history(task) if entry["what"] == "unknown"]
    for number, (_, later) in enumerate(pairwise(lines), start=1):
        if sum(at <= later.at for at in unknowns) < 1:
            yield f"{task} was repeated at {later.at} (no. {number}) with no unknown outcome recorded before"


def pace_is_kept(evidence: Evidence) -> Iterator[str]:
    for phone, lines in evidence.by_phone.items():
        pace = _pace(evidence, phone)
        times = [line.at for line in lines]
        for earlier, later in pairwise(times):
            if later - earlier < pace.shortest_ms:
                yield f"{phone}: {later - earlier} ms between two sends, at least {pace.shortest_ms} needed"
        for index, at in enumerate(times[pace.rpm :], start=pace.rpm):
            if at - times[index - pace.rpm] <= pacing.MINUTE_MS:
                yield f"{phone}: more than {pace.rpm} sends in the minute before {at}"
        for index in range(pace.burst_limit, len(times)) if pace.burst_limit else ():
            burst = times[index - pace.burst_limit : index + 1]
            if all(later - earlier < pace.burst_cooldown_ms for earlier, later in pairwise(burst)):
                yield f"{phone}: {pace.burst_limit + 1} sends without a rest before {times[index]}"


def caps_and_hours_are_kept(evidence: Evidence) -> Iterator[str]:
    policy = evidence.world.scenario.policy
    for plan in {plan.phone: plan for plan in evidence.world.scenario.phones}.values():
        lines = evidence.by_phone[plan.phone]
        days = Counter(
            (hours.local_day(plan.timezone, line.at), _level(evidence, plan.phone, line.at)) for line in lines
        )
        for (day, level), count in days.items():
            if level.daily_cap is not None and count > level.daily_cap:
                yield f"{plan.phone}: {count} sends on {day}, the cap is {level.daily_cap}"
        for line in lines:
            level = _level(evidence, plan.phone, line.at)
            if not hours.is_open(hours.phone_windows(level, plan.timezone), line.at):
                yield f"{plan.phone} sent at {line.at}, outside its hours"
            if not hours.is_open(hours.recipient_windows(policy, line.to, None, plan.timezone), line.at):
                yield f"{line.to} was written to at {line.at}, outside their hours"


def first_come_first_served(evidence: Evidence) -> Iterator[str]:
    """Among messages of one job and one number that nothing held up by itself."""
    for phone, lines in evidence.by_phone.items():
        newest: dict[str, int] = {}
        for line in lines:
            job_id, index = parse_task_id(line.task_id) or ("", 0)
            if line.repeat or any(entry["what"] != "sent" for entry in evidence.history(line.task_id)):
                continue
            if "waitReason" in evidence.messages[line.task_id].known or _was_parked(evidence):
                continue
            if newest.get(job_id, -1) > index:
                yield f"{phone}: {line.task_id} went out after no. {newest[job_id]} of the same job"
            newest[job_id] = max(index, newest.get(job_id, -1))


def done_once(evidence: Evidence) -> Iterator[str]:
    for job_id, view in evidence.views.items():
        done = [event for event in evidence.events if event["event"] == "JOB_DONE" and event["jobId"] == job_id]
        if "closedAt" in view.run and len(done) != 1:
            yield f"{job_id}: JOB_DONE {len(done)} times"
        for event in done:
            parts = sum(event[key] for key in ("sent", "failed", "expired", "canceled", "suppressed"))
            if parts != event["total"] or event["total"] != view.job.total:
                yield f"{job_id}: JOB_DONE does not add up: {event}"


def stop_means_stop(evidence: Evidence) -> Iterator[str]:
    """What no worker had claimed by then is not sent: neither to people who said stop nor of a canceled job."""
    for line in evidence.lines:
        job_id = line.task_id.partition(":")[0]
        claimed_at = int(evidence.messages[line.task_id].known.get("claimedAt", line.at))
        for stopped_at, why in (
            (evidence.world.suppressed_at.get(line.to), f"{line.to} had said stop"),
            (evidence.world.canceled_at.get(job_id), "its job was canceled"),
        ):
            if stopped_at is not None and line.at > stopped_at and min(claimed_at, line.at) > stopped_at:
                yield f"{line.task_id} went out at {line.at}, claimed {claimed_at}, but {why} at {stopped_at}"


JUDGES: list[tuple[str, Callable[[Evidence], Iterator[str]]]] = [
    ("I1", nothing_is_lost),
    ("I1", ends_are_justified),
    ("I2", what_was_asked_is_what_went_out),
    ("I2", one_id_one_number),
    ("I3", pace_is_kept),
    ("I4", caps_and_hours_are_kept),
    ("I4", nothing_goes_before_its_time),
    ("I5", first_things_first),
    ("I5", first_come_first_served),
    ("I6", done_once),
    ("I9", stop_means_stop),
]


def _may_be_honest_about_unknown(evidence: Evidence, task: str) -> bool:
    """Failed as unknown is an honest end for a message that went out unseen: no receipt of it ever came, or the worker
    that could have understood one lost its memory. Nothing else is."""
    scenario = evidence.world.scenario
    if any(receipts_of(line, scenario.behaviour) for line in evidence.by_task[task]) and not scenario.lost_volumes:
        return False
    code = evidence.messages[task].known.get("errorCode")
    return evidence.state(task) == "failed" and code in ("UNKNOWN_OUTCOME", "POISON")


def _was_parked(evidence: Evidence) -> bool:
    return evidence.world.scenario.policy.recipient_hours is not None


def _level(evidence: Evidence, phone: str, at_ms: int) -> Any:
    plan = next(plan for plan in evidence.world.scenario.phones if plan.phone == phone)
    created_ms = evidence.world.scenario.start_ms - plan.age_ms
    return evidence.world.scenario.policy.level(created_ms, now_ms=at_ms)


def _pace(evidence: Evidence, phone: str) -> pacing.Pace:
    rules, scenario = evidence.world.rules, evidence.world.scenario
    paces = [pacing.pace_for(level, scenario.policy, rules.pace_defaults) for level in scenario.policy.levels]
    if len({_level(evidence, phone, line.at).name for line in evidence.by_phone[phone]}) == 1:
        name = _level(evidence, phone, evidence.by_phone[phone][0].at).name
        return next(pace for pace, level in zip(paces, scenario.policy.levels, strict=True) if level.name == name)
    # It grew up during the run: the loosest of its rules is what must hold throughout.
    return min(paces, key=lambda pace: pace.shortest_ms)


def _stuck(evidence: Evidence) -> list[str]:
    return [f"{task}={evidence.state(task)}" for task, view in evidence.messages.items() if view.byte in "qrspthcu"][:5]
