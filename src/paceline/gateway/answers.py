"""How a job or a message is doing, from what the store knows: its state, its times, and why it has not gone yet."""

import msgspec

from paceline.domain.ids import parse_task_id
from paceline.domain.reasons import Reason
from paceline.domain.states import CLOSED_JOB_STATES, MESSAGE_STATE, WAITING, Byte
from paceline.gateway.picture import Picture
from paceline.gateway.schemas import Fault, JobStatus, MessageStatus, Times, Waiting
from paceline.store.jobs import JobView, MessageView

_NO_KNOWN_END = frozenset(
    {
        Reason.NOT_CONNECTED,
        Reason.QUARANTINED,
        Reason.FLEET_PAUSED,
        Reason.UNSETTLED,
        Reason.UNKNOWN_OUTCOME,
        Reason.NO_SESSIONS_AVAILABLE,
        Reason.WAITING_FOR_ROOM,
        Reason.IN_TURN,
    }
)
"""With these the stored time is when we look again, which is no promise to anybody."""


def job_status(view: JobView, picture: Picture, *, now_ms: int) -> JobStatus:
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
        waiting=_waiting(run, now_ms) if is_open else None,
        estimated_completion=_completion(view, picture, now_ms) if is_open else None,
        mode=job.mode,
        priority=job.priority,
        phone=job.phone,
        session_id=job.session_id,
        send_at=job.send_at,
        spread_minutes=job.spread_minutes,
        validity_seconds=job.validity_seconds,
        on_unknown=job.on_unknown,
        tags=job.tags,
        metadata=job.metadata,
    )


def message_status(view: MessageView, *, now_ms: int) -> MessageStatus:
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
        whatsapp_id=known.get("whatsappId"),
        last_error=_fault(known),
        history=[msgspec.json.decode(line) for line in known.get("history", "").splitlines() if line],
        waiting=_why(view, now_ms),
        client_ref=view.contact.client_ref,
        metadata=view.job.metadata,
    )


def _progress(counts: dict[str, int]) -> dict[str, int]:
    """As callers add it up: `sent` is all that went out, `delivered` what arrived, read or not. So
    sent + failed + expired + canceled + suppressed is `total` at the end (SPEC §2)."""
    arrived = counts["delivered"] + counts["read"]
    return {**counts, "sent": counts["sent"] + arrived, "delivered": arrived}


def _completion(view: JobView, picture: Picture, now_ms: int) -> int | None:
    job = view.job
    rest = max(0, job.total - int(view.run.get("cursor", 0)))
    start = max(now_ms, job.scheduled_at(0))
    finish = picture.job(job.job_id, rest, phone=job.phone, start_ms=start, expires_ms=None).finish_ms
    return None if finish is None else max(finish, job.scheduled_at(job.total - 1))


def _why(view: MessageView, now_ms: int) -> Waiting | None:
    """The reason was written with the wait: for this message, for its job while it is not routed, or for its number."""
    if view.byte not in WAITING and view.byte != Byte.UNKNOWN:
        return None
    if waiting := _waiting(view.known, now_ms):
        return waiting
    parsed = parse_task_id(view.task_id)
    scheduled_at = view.job.scheduled_at(parsed[1] if parsed else 0)
    if view.byte in (Byte.QUEUED, Byte.SCHEDULED) and scheduled_at > now_ms:
        return Waiting(reason=Reason.SCHEDULED, until=scheduled_at)
    elsewhere = view.run if view.byte == Byte.QUEUED else view.phone_known
    return _waiting(elsewhere, now_ms) or Waiting(reason=Reason.IN_TURN, until=None)


def _waiting(known: dict[str, str], now_ms: int) -> Waiting | None:
    reason, until = known.get("waitReason"), _int(known.get("waitUntil"))
    if reason is None:
        return None
    is_told = until is not None and until > now_ms and reason not in _NO_KNOWN_END
    return Waiting(reason=reason, until=until if is_told else None)


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
