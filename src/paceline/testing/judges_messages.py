"""Judges of single messages and jobs: nothing is lost, repeated, out of turn, or ended without a reason (I1, I2, I5,
I6)."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise

from paceline.domain.ids import whatsapp_id
from paceline.policy.retry import RetrySettings
from paceline.store.jobs import MessageView
from paceline.testing.evidence import Evidence, index_of
from paceline.testing.outside import Told
from paceline.worker.drivers.ledger import LedgerLine
from paceline.worker.drivers.whatsapp import RECEIPT_MEMORY_MS, receipts_of

PATIENCE_MS = 1_000
"""A hand-over may have been decided so long before it was made."""
WENT_OUT = ("sent", "delivered", "read")


def nothing_is_lost(evidence: Evidence) -> Iterator[str]:
    for job_id, view in evidence.views.items():
        counts = {key: count for key, count in view.progress.items() if key != "total"}
        if sum(counts.values()) != view.progress["total"]:
            yield f"{job_id}: the parts of {view.progress} do not add up"
    for task, lines in evidence.by_task.items():
        if task not in evidence.messages:
            yield f"{task} was sent but never accepted"
        elif evidence.state(task) not in WENT_OUT and not _may_be_honest_about_unknown(evidence, task):
            yield f"{task} went out at {lines[0].at} but ended {evidence.state(task)}"
    for task in evidence.messages:
        if evidence.state(task) in WENT_OUT and task not in evidence.by_task:
            yield f"{task} is called {evidence.state(task)} but never went out"


def _may_be_honest_about_unknown(evidence: Evidence, task: str) -> bool:
    """Failed as unknown is an honest end for a message that went out unseen: no receipt of it ever came, or the worker
    that could have understood one lost its memory or its account. Nothing else is."""
    scenario, world = evidence.scenario, evidence.world
    lines = evidence.by_task[task]
    banned = any(
        line.session_id in world.workers.ever_banned or world.ledgers[line.session_id].banned for line in lines
    )
    # While the clock was set forward by a day its server forgot what it had for a worker that was away.
    forgotten = world.sim.jumped_ms >= RECEIPT_MEMORY_MS
    unheard = scenario.lost_volumes or banned or forgotten
    if any(receipts_of(line, scenario.behaviour) for line in lines) and not unheard:
        return False
    code = evidence.messages[task].known.get("errorCode")
    return evidence.state(task) == "failed" and code in ("UNKNOWN_OUTCOME", "POISON")


def ends_are_justified(evidence: Evidence) -> Iterator[str]:
    """Whoever was not written to was not for a reason that the outside world knows of too."""
    for task, view in evidence.messages.items():
        reasons: dict[str, Callable[[], bool]] = {
            "expired": lambda: _expired(evidence, view),  # noqa: B023 - asked at once
            "suppressed": lambda: evidence.may_be_suppressed(view.contact.to),  # noqa: B023
            "canceled": lambda: _canceled(evidence, task, view),  # noqa: B023
            "failed": lambda: _failed(evidence, task, view),  # noqa: B023
        }
        state = evidence.state(task)
        if state in reasons and not reasons[state]():
            yield f"{task} ended {state} ({view.known.get('errorCode')}) without a reason"


def _expired(evidence: Evidence, view: MessageView) -> bool:
    until = evidence.due_at(view.task_id) + view.job.validity_seconds * 1_000
    return int(view.known.get("endedAt", evidence.world.sim.now_ms)) >= until


def _canceled(evidence: Evidence, task: str, view: MessageView) -> bool:
    """Its job, itself, or all that waited for the number it had been given to."""
    outside = evidence.outside
    if view.job.job_id in evidence.world.canceled_at or any(outside.presses("cancel_message", which=task)):
        return True
    end = evidence.world.sim.now_ms
    return any(
        placed.at <= (press.ended or end)
        for placed in outside.routed
        if placed.task == task
        for press in outside.presses("cancel_queue", which=placed.phone)
    )


def _failed(evidence: Evidence, task: str, view: MessageView) -> bool:
    code, history = view.known.get("errorCode", ""), evidence.history(task)
    if code in ("NOT_ON_WHATSAPP", "RESTRICTED_463"):
        return any(refusal.task_id == task and refusal.code == code for refusal in evidence.refusals)
    if code == "NO_COMMON_HOURS":
        return evidence.scenario.policy.recipient_hours is not None
    if code in ("UNKNOWN_OUTCOME", "POISON"):
        return bool(evidence.claims[task]) and _may_be_unknown(evidence, task)
    return sum(entry["what"] in ("retry", "unknown", "failed") for entry in history) > RetrySettings().max_retries


def _may_be_unknown(evidence: Evidence, task: str) -> bool:
    """Something happened to a worker that held it, or to what it was told: nobody can know only then."""
    behaviour, world = evidence.scenario.behaviour, evidence.world
    if behaviour.lost_ack or behaviour.disconnect_before or behaviour.disconnect_after or evidence.scenario.outage[1]:
        return True
    workers = [world.workers.of(claim.session) for claim in evidence.claims[task]]
    banned = any(told.kind == "BANNED" for told in evidence.outside.told)
    return banned or world.sim.injected > 0 or any(worker.crashes for worker in workers)


def what_was_asked_is_what_went_out(evidence: Evidence) -> Iterator[str]:
    for task, lines in evidence.by_task.items():
        view = evidence.messages[task]
        plan = evidence.world.jobs[view.job.job_id]
        for line in lines:
            file = hashlib.sha256(plan.file.encode()).hexdigest() if plan.file else None
            if line.media_sha256 != file:
                yield f"{task}: the file that went out at {line.at} is not the one that was asked for"
            if line.text != plan.text or line.to != view.contact.to:
                yield f"{task}: {line.text!r} to {line.to} is not what was asked"
            if plan.phone is not None and evidence.phone_of(line) != plan.phone:
                yield f"{task} went out from {evidence.phone_of(line)}, but its job names {plan.phone}"


def first_things_first(evidence: Evidence) -> Iterator[str]:
    """In a quiet world: nothing of a lower priority is handed over while something higher waits for the same number.
    What has no place in the number's queue yet does not count: it is routed when there is room."""
    if not evidence.scenario.is_quiet:
        return
    since = {placed.task: placed.at for placed in evidence.outside.routed}
    handed = [(placed, evidence.messages[placed.task].job.priority) for placed in evidence.outside.handed]
    for at, (low, priority) in enumerate(handed):
        for high, higher in handed[at + 1 :]:
            is_overtaken = high.phone == low.phone and higher > priority
            if is_overtaken and low.at - max(since[high.task], evidence.due_at(high.task)) > PATIENCE_MS:
                yield f"{low.phone}: {low.task} was handed over before {high.task}, which has priority {higher}"


def first_come_first_served(evidence: Evidence) -> Iterator[str]:
    """Among messages of one number that nothing held up by itself: those of one job in its order, those of one priority
    in the order in which they got to the number."""
    turns = {placed.task: turn for turn, placed in enumerate(evidence.outside.routed)}
    for phone, lines in evidence.by_phone.items():
        newest: dict[str | int, int] = {}
        for line in _went_straight(evidence, lines):
            job = evidence.messages[line.task_id].job
            places: dict[str | int, int] = {job.job_id: index_of(line.task_id)}
            if _waits_only_its_turn(evidence, job.job_id):
                places[job.priority] = turns[line.task_id]
            for among, place in places.items():
                if newest.get(among, -1) > place:
                    yield f"{phone}: {line.task_id} went out after no. {newest[among]} of {among}, being no. {place}"
                newest[among] = max(place, newest.get(among, -1))


def _went_straight(evidence: Evidence, lines: list[LedgerLine]) -> Iterator[LedgerLine]:
    parked = {placed.task for placed in evidence.outside.parked}
    for line in lines:
        tried = any(entry["what"] != "sent" for entry in evidence.history(line.task_id))
        if not (line.repeat or tried or line.task_id in parked):
            yield line


def _waits_only_its_turn(evidence: Evidence, job_id: str) -> bool:
    """Nobody paused the job, and none of it is for later."""
    plan = evidence.world.jobs[job_id]
    is_paused = any(evidence.outside.presses("pause_job", which=job_id))
    return not (is_paused or plan.delay_ms or plan.spread_minutes)


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
    for earlier, later in pairwise(lines):
        if not any(earlier.at - evidence.behind_ms <= at <= later.at for at in unknowns):
            yield f"{task} went out at {earlier.at} and {later.at} with no unknown outcome recorded in between"


def a_warm_chat_stays(evidence: Evidence) -> Iterator[str]:
    """Who wrote to a number gets what is routed afterwards from that number, unless the job names another."""
    words: dict[str, list[Told]] = {}
    for told in evidence.outside.told:
        if told.kind == "RECEIVED":
            words.setdefault(told.who, []).append(told)
    for placed in evidence.outside.routed:
        plan = evidence.plan(placed.task)
        if plan is None or plan.phone is not None or evidence.to(placed.task) not in words:
            continue
        # A single send gets its number when it is asked for, not when it is written down.
        asked = evidence.world.posted_at[plan.name] if plan.single else placed.at
        heard = words[evidence.to(placed.task)]
        last = max((told for told in heard if told.ended < asked), key=lambda told: told.stated, default=None)
        if last is None:
            continue
        also = {told.phone for told in heard if told.began <= placed.at and told.stated >= last.stated}
        if placed.phone not in also:
            yield f"{placed.task} was routed to {placed.phone}, but {last.who} had written to {last.phone}"


def done_once(evidence: Evidence) -> Iterator[str]:
    for job_id, view in evidence.views.items():
        done = [event for event in evidence.events if event["event"] == "JOB_DONE" and event["jobId"] == job_id]
        if "closedAt" in view.run and len(done) != 1:
            yield f"{job_id}: JOB_DONE {len(done)} times"
        for event in done:
            parts = sum(event[key] for key in ("sent", "failed", "expired", "canceled", "suppressed"))
            if parts != event["total"] or event["total"] != view.job.total:
                yield f"{job_id}: JOB_DONE does not add up: {event}"
