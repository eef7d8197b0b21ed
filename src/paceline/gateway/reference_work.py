"""The reference of accepted work: jobs, messages, queues, a session's day."""

from typing import Any

from paceline.gateway.reference_sending import AT, JOB
from paceline.kits.openapi import Entry, Reference

MESSAGE = f"{JOB}:0"
_PHONE = "972541234567"
_PROGRESS = {
    "total": 2, "queued": 1, "scheduled": 0, "parked": 0, "handedOff": 0, "unknown": 0, "retrying": 0, "sent": 1,
    "delivered": 1, "read": 0, "failed": 0, "expired": 0, "canceled": 0, "suppressed": 0,
}  # fmt: skip
_WAITING = {
    "reason": "PACING",
    "until": AT + 3_968,
    "text": f"Number {_PHONE} rests between two messages; the next may go at 12:02:04 on 10 March (Asia/Jerusalem).",
}
_TIMES = {
    "acceptedAt": AT,
    "handedOffAt": AT + 4_000,
    "claimedAt": AT + 4_020,
    "sentAt": AT + 6_310,
    "deliveredAt": AT + 7_400,
    "readAt": None,
    "endedAt": None,
}
_JOB_ITEM = {
    "jobId": JOB,
    "state": "ROUTED",
    "acceptedAt": AT,
    "acceptedBy": "01KKBKFF00025C8S3HB71J9JC5",
    "closedAt": None,
    "total": 2,
    "progress": _PROGRESS,
    "mode": "message",
    "priority": 1,
    "single": False,
    "tags": ["bookings"],
    "metadata": {"campaign": "march"},
}
_MESSAGE_ITEM: dict[str, Any] = {
    "messageId": MESSAGE,
    "jobId": JOB,
    "index": 0,
    "to": "972529876543",
    "state": "delivered",
    "clientRef": "crm-1",
    "phone": _PHONE,
    "sessionId": "s1",
    "whatsappId": "3EB04B490E12BF3D7A7A1C",
    "attempts": 1,
    "times": _TIMES,
    "lastError": None,
    "waiting": None,
}

WORK: Reference = {
    "GET /v1/jobs": Entry(errors="INVALID_TIME", answer={"items": [_JOB_ITEM], "nextCursor": f"{AT}-{JOB}"}),
    "GET /v1/jobs/{job_id}": Entry(
        errors="UNKNOWN_JOB",
        answer={
            "jobId": JOB,
            "state": "ROUTED",
            "progress": _PROGRESS,
            "acceptedAt": AT,
            "acceptedBy": "01KKBKFF00025C8S3HB71J9JC5",
            "closedAt": None,
            "lastError": None,
            "waiting": _WAITING,
            "estimatedCompletion": AT + 15_750,
            "mode": "message",
            "mediaRef": None,
            "priority": 1,
            "phone": None,
            "sessionId": None,
            "sendAt": None,
            "spreadMinutes": 0,
            "validitySeconds": 2_592_000,
            "onUnknown": "resend",
            "strategy": None,
            "tags": ["bookings"],
            "metadata": {"campaign": "march"},
            "confirmation": False,
            "replayOf": None,
        },
    ),
    "GET /v1/backlog": Entry(
        answer={"waiting": 4_210, "sending": 3, "scheduledUntil": None, "estimatedCompletion": AT + 7_200_000}
    ),
    "GET /v1/jobs/{job_id}/timeline": Entry(
        errors="UNKNOWN_JOB",
        answer={
            "jobId": JOB,
            "planned": [{"at": AT, "sent": 0}, {"at": AT + 15_750, "sent": 2}],
            "actual": [{"at": AT + 6_310, "sent": 1}],
        },
    ),
    "POST /v1/jobs/{job_id}/cancel": Entry(
        errors="UNKNOWN_JOB JOB_CLOSED", answer={"jobId": JOB, "state": "CANCELED", "canceled": 1, "open": 0}
    ),
    "POST /v1/jobs/{job_id}/pause": Entry(
        errors="UNKNOWN_JOB JOB_CLOSED",
        answer={"jobId": JOB, "state": "PAUSED", "pausedAt": AT, "waiting": 2, "claimed": 0},
    ),
    "POST /v1/jobs/{job_id}/resume": Entry(
        errors="UNKNOWN_JOB JOB_CLOSED JOB_NOT_PAUSED", answer={"jobId": JOB, "state": "ROUTED", "released": 2}
    ),
    "GET /v1/jobs/{job_id}/messages": Entry(errors="UNKNOWN_JOB", answer={"items": [_MESSAGE_ITEM], "nextCursor": "1"}),
    "GET /v1/messages": Entry(
        errors="INVALID_NUMBER", answer={"items": [_MESSAGE_ITEM], "nextCursor": f"{AT}-{JOB}-0"}
    ),
    "GET /api/v1/messages/{message_id}/status": Entry(
        errors="UNKNOWN_MESSAGE",
        answer={
            **{name: value for name, value in _MESSAGE_ITEM.items() if name != "index"},
            "history": [{"at": AT + 6_310, "by": "sent", "what": "sent"}],
            "metadata": {"campaign": "march"},
        },
    ),
    "GET /api/v1/queue/{session_id}": Entry(
        errors="UNKNOWN_SESSION",
        answer={
            "sessionId": "s1",
            "phone": _PHONE,
            "items": [
                {
                    "messageId": f"{JOB}:1",
                    "jobId": JOB,
                    "to": "972529876544",
                    "priority": 1,
                    "position": 0,
                    "state": "queued",
                    "expiresAt": AT + 2_592_000_000,
                    "waiting": _WAITING,
                }
            ],
            "total": 1,
            "parked": 0,
            "scheduled": 0,
            "nextCursor": None,
        },
    ),
    "DELETE /api/v1/queue/{session_id}/{message_id}": Entry(
        errors="UNKNOWN_SESSION UNKNOWN_MESSAGE MESSAGE_CLAIMED MESSAGE_ENDED",
        answer={"messageId": MESSAGE, "state": "canceled"},
    ),
    "DELETE /v1/messages/{message_id}": Entry(
        errors="UNKNOWN_MESSAGE MESSAGE_CLAIMED MESSAGE_ENDED",
        answer={"messageId": MESSAGE, "state": "canceled"},
    ),
    "GET /api/v1/stats/{session_id}": Entry(
        errors="UNKNOWN_SESSION INVALID_TIME",
        answer={
            "sessionId": "s1",
            "date": "2026-03-10",
            "sent": 187,
            "failed": 2,
            "delivered": 181,
            "read": 64,
            "avgDeliveryTime": 1_420,
            "queueSize": 12,
        },
    ),
}
