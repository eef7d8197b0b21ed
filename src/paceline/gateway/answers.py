"""How a job, a message or a queue is doing, from what the store knows. Why something waits, `waiting` tells."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from paceline.domain.ids import whatsapp_id
from paceline.domain.jobs import Job
from paceline.domain.states import CLOSED_JOB_STATES, MESSAGE_STATE, JobState
from paceline.gateway.list_views import JobItem, MessageItem
from paceline.gateway.picture import Picture
from paceline.gateway.views import (
    Backlog,
    Fault,
    JobStatus,
    JobTimeline,
    MessageStatus,
    QueuedMessage,
    QueueView,
    SessionStats,
    TimelinePoint,
    Times,
    Waiting,
)
from paceline.gateway.waiting import Teller
from paceline.store.courses import Course
from paceline.store.jobs import JobView, MessageView
from paceline.store.lists import ListedJob
from paceline.store.queues import DayStats, QueueItem, QueueMark, QueuePage

_CURSOR = re.compile(r"(?P<priority>[1-3])-(?P<seq>\d{1,15})|0-(?P<count>\d{1,15})-(?P<at>\d{1,15})", re.ASCII)
"""A number of one of the three queues, or how many of a time among the parked."""


def job_status(
    view: JobView, held_by: frozenset[str] | None, picture: Picture, teller: Teller, *, now_ms: int
) -> JobStatus:
    """`held_by`: the numbers in whose queues something of it lies."""
    job, run = view.job, view.run
    is_open = run["state"] not in CLOSED_JOB_STATES
    return JobStatus(
        job_id=job.job_id,
        state=run["state"],
        progress=_progress(view.progress),
        accepted_at=job.accepted_at,
        accepted_by=job.accepted_by,
        closed_at=_int(run.get("closedAt")),
        last_error=run.get("lastError"),
        waiting=teller.job(view) if is_open else None,
        # Nobody knows when a paused job will go on.
        estimated_completion=_completion(view, held_by, picture, now_ms)
        if is_open and run["state"] != JobState.PAUSED
        else None,
        mode=job.mode,
        media_ref=job.media.ref if job.media else None,
        priority=job.priority,
        phone=job.phone,
        session_id=job.session_id,
        send_at=job.send_at,
        spread_minutes=job.spread_minutes,
        validity_seconds=job.validity_seconds,
        on_unknown=job.on_unknown,
        strategy=job.strategy,
        tags=job.tags,
        metadata=job.metadata,
        confirmation=job.confirmation,
        replay_of=job.replay_of,
    )


def backlog(picture: Picture, lengths: Mapping[str, int], scheduled_until: int | None, *, now_ms: int) -> Backlog:
    waiting = picture.unrouted + picture.queued + lengths["scheduled"] + lengths["retrying"]
    finish = picture.backlog(now_ms=now_ms).finish_ms if waiting or lengths["sending"] else None
    return Backlog(
        waiting=waiting,
        sending=lengths["sending"],
        scheduled_until=scheduled_until,
        estimated_completion=None if finish is None else max(finish, scheduled_until or 0),
    )


def job_timeline(job: Job, course: Course) -> JobTimeline:
    known = len(course.times)
    return JobTimeline(
        job_id=job.job_id,
        planned=[TimelinePoint(at=at, sent=sent) for at, sent in job.planned],
        actual=[
            TimelinePoint(at=at, sent=course.sent * count // known) for count, at in enumerate(course.times, start=1)
        ],
    )


def message_status(view: MessageView, teller: Teller) -> MessageStatus:
    known = view.known
    return MessageStatus(
        message_id=view.task_id,
        job_id=view.job.job_id,
        to=view.contact.to,
        state=MESSAGE_STATE[view.byte],
        phone=view.phone or view.job.phone,
        session_id=known.get("sessionId") or view.job.session_id,
        times=_times(view),
        attempts=int(known.get("attempts", 0)),
        whatsapp_id=_whatsapp_id(view),
        last_error=_fault(known),
        history=_history(view),
        waiting=teller.message(view),
        client_ref=view.contact.client_ref,
        metadata=view.job.metadata,
    )


def _whatsapp_id(view: MessageView) -> str | None:
    """What it went out under follows from its task."""
    return whatsapp_id(view.task_id) if "sentAt" in view.known else None


def _history(view: MessageView) -> list[dict[str, Any]]:
    """Of one that went out at the first try nothing but its time is written down."""
    known = view.known
    if "history" not in known and "sentAt" in known:
        return [{"at": int(known["sentAt"]), "what": "sent", "by": "sent"}]
    return [msgspec.json.decode(line) for line in known.get("history", "").splitlines() if line]


def job_item(listed: ListedJob) -> JobItem:
    job = listed.job
    return JobItem(
        job_id=job.job_id,
        state=listed.state,
        accepted_at=job.accepted_at,
        accepted_by=job.accepted_by,
        closed_at=listed.closed_at,
        total=job.total,
        progress=_progress(listed.progress),
        mode=job.mode,
        priority=job.priority,
        single=job.single,
        tags=job.tags,
        metadata=job.metadata,
    )


def message_item(view: MessageView, teller: Teller) -> MessageItem:
    known = view.known
    return MessageItem(
        message_id=view.task_id,
        job_id=view.job.job_id,
        index=int(view.task_id.partition(":")[2]),
        to=view.contact.to,
        state=MESSAGE_STATE[view.byte],
        client_ref=view.contact.client_ref,
        phone=view.phone or view.job.phone,
        session_id=known.get("sessionId") or view.job.session_id,
        whatsapp_id=_whatsapp_id(view),
        attempts=int(known.get("attempts", 0)),
        times=_times(view),
        last_error=_fault(known),
        waiting=teller.message(view),
    )


def queue_view(session_id: str, phone: str, page: QueuePage, teller: Teller) -> QueueView:
    return QueueView(
        session_id=session_id,
        phone=phone,
        items=[_queued(item, teller.item(item, page.phone)) for item in page.items],
        total=page.total,
        parked=page.parked,
        scheduled=page.scheduled,
        next_cursor=_cursor(page.next) if page.next else None,
    )


def session_stats(session_id: str, date: str, day: DayStats) -> SessionStats:
    counts = {name: value or 0 for name, value in day.counts.items()}
    delivered, took_ms = counts["delivered"], day.counts["deliveryMs"]
    return SessionStats(
        session_id=session_id,
        date=date,
        sent=counts["sent"],
        failed=counts["failed"],
        delivered=delivered,
        read=counts["read"],
        avg_delivery_time=round(took_ms / delivered) if took_ms is not None and delivered else None,
        queue_size=day.waiting,
    )


def mark_of(cursor: str) -> QueueMark | None:
    """What `_cursor` wrote; None for what it cannot have written."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        return None
    if found["priority"]:
        return QueueMark(int(found["priority"]), int(found["seq"]))
    return QueueMark(0, int(found["count"]), int(found["at"]))


def _cursor(mark: QueueMark) -> str:
    return "-".join(str(part) for part in (mark.priority, mark.seq, mark.at) if part is not None)


def _queued(item: QueueItem, waiting: Waiting) -> QueuedMessage:
    return QueuedMessage(
        message_id=item.task,
        job_id=item.task.partition(":")[0],
        to=item.to,
        priority=item.priority,
        position=item.position,
        state=MESSAGE_STATE[item.state],
        expires_at=item.expires_at,
        waiting=waiting,
    )


def _progress(counts: dict[str, int]) -> dict[str, int]:
    """As callers add it up: `sent` is all that went out, `delivered` what arrived, read or not. So
    sent + failed + expired + canceled + suppressed is `total` at the end (SPEC §2)."""
    arrived = counts["delivered"] + counts["read"]
    return {**counts, "sent": counts["sent"] + arrived, "delivered": arrived}


def _completion(view: JobView, held_by: frozenset[str] | None, picture: Picture, now_ms: int) -> int | None:
    rest = max(0, view.job.total - int(view.run.get("cursor", 0)))
    busy = sum(view.progress[name] for name in ("handedOff", "unknown", "retrying"))
    return picture.job(view.job, rest, now_ms=now_ms, held_by=held_by, busy=busy).finish_ms


def _times(view: MessageView) -> Times:
    known = view.known
    return Times(
        accepted_at=view.job.accepted_at,
        handed_off_at=_int(known.get("handedOffAt")),
        claimed_at=_int(known.get("claimedAt")),
        sent_at=_int(known.get("sentAt")),
        delivered_at=_int(known.get("deliveredAt")),
        read_at=_int(known.get("readAt")),
        ended_at=_int(known.get("endedAt")),
    )


def _fault(known: dict[str, str]) -> Fault | None:
    code = known.get("errorCode")
    return Fault(code=code, message=known.get("errorMessage", "")) if code else None


def _int(value: str | None) -> int | None:
    # Lua may have written a whole number with an exponent.
    return None if value is None else int(float(value))
