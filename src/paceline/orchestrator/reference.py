"""What the documentation says of the orchestrator's operations beyond what their routes say themselves: the error codes
that each can answer, and an example of what is sent and of what comes back. Neighbour: `kits.openapi`."""

from typing import Any

import msgspec

from paceline.domain.ids import whatsapp_id
from paceline.domain.media import TYPES
from paceline.kits.openapi import Entry, Reference

_AT = 1_773_137_280_000
"""Tuesday, 10 March 2026, eight minutes past noon in Jerusalem."""
_TASK = "01KKBK4FE0TQTE9C3CWR3M3HX8:0"
_TO = "972529876543"
_SESSION: dict[str, Any] = {
    "sessionId": "s1",
    "phone": "972541234567",
    "driver": "simulated",
    "connection": "CONNECTED",
    "authorisation": "LINKED",
    "desired": "running",
    "epoch": 1,
    "createdAt": 1_770_534_000_000,
    "lastSeen": _AT,
    "timezone": "Asia/Jerusalem",
    "restriction": "NONE",
    "restrictedUntil": None,
    "tags": ["il"],
}
_GIVEN: dict[str, Any] = {
    "taskId": _TASK,
    "to": _TO,
    "text": "Hello Ada",
    "whatsappId": whatsapp_id(_TASK),
    "attempt": 1,
    "resend": False,
    "sendAfterMs": _AT,
    "sendBeforeMs": _AT + 121_000,
    "leaseUntilMs": _AT + 123_000,
    "token": 8,
    "mode": "message",
}
_RAW = msgspec.json.encode(_GIVEN).decode()
_ABOUT_CLAIM = "INVALID_ID STALE_TOKEN"
_FILE = {"type": "string", "format": "binary"}

REFERENCE: Reference = {
    "GET /health": Entry(answer={"status": "ok"}),
    "GET /api/sessions": Entry(answer={"items": [_SESSION], "nextCursor": None}),
    "POST /api/sessions": Entry(
        errors="INVALID_NUMBER INVALID_ID UNKNOWN_DRIVER INVALID_TIMEZONE INVALID_TIME TAKEN PHONE_FULL",
        body={
            "phone": "+972 54-123-4567",
            "sessionId": "s1",
            "timezone": "Asia/Jerusalem",
            "createdAt": "2026-02-08T09:00:00+02:00",
            "tags": ["il"],
        },
        answer={**_SESSION, "connection": "STARTING", "authorisation": "UNLINKED", "epoch": 0, "lastSeen": 0},
    ),
    "GET /api/sessions/{session_id}": Entry(errors="UNKNOWN_SESSION", answer=_SESSION),
    "POST /api/sessions/{session_id}/outbox/enqueue": Entry(
        errors="TASK_GONE UNKNOWN_TASK UNKNOWN_SESSION INVALID_ID INVALID_NUMBER SUPPRESSED QUEUE_FULL UNKNOWN_MEDIA"
        " MEDIA_MODE MEDIA_TYPE EMPTY_TEXT TEXT_TOO_LONG MISSING_VARIABLE",
        body={"to": "+972 52-987-6543", "jobId": "crm-job-7", "taskId": "crm-7", "text": "Hello Ada"},
        answer={
            "status": "ok",
            "taskId": "crm-7",
            "messageId": "3GFSEBGFW865NKTNG42VBPJXZ0:0",
            "state": "queued",
        },
    ),
    "POST /api/worker/sessions/{session_id}/hello": Entry(
        errors="UNKNOWN_SESSION NOT_WANTED",
        body={"instanceId": "worker-s1-7f3a", "journalId": "j-20260310-01", "driver": "simulated"},
        answer={
            "epoch": 2,
            "nowMs": _AT,
            "leaseMs": 120_000,
            "typing": {"minMs": 1_000, "maxMs": 3_000},
            "unknownGraceMs": 10_000,
            "pending": [{"taskId": _TASK, "token": "8", "whatsappId": whatsapp_id(_TASK), "to": _TO}],
        },
    ),
    "POST /api/worker/sessions/{session_id}/outbox/claim": Entry(
        errors="UNKNOWN_SESSION STALE_EPOCH",
        body={"epoch": 2},
        answer={"status": "ok", "task": _GIVEN, "raw": _RAW, "pending": [], "nowMs": _AT},
    ),
    "POST /api/worker/sessions/{session_id}/outbox/extend": Entry(
        errors=_ABOUT_CLAIM,
        body={"raw": _RAW, "epoch": 2},
        answer={"status": "ok", "leaseUntilMs": _AT + 240_000},
    ),
    "POST /api/worker/sessions/{session_id}/outbox/ack": Entry(
        errors=f"{_ABOUT_CLAIM} UNKNOWN_TASK WRONG_WHATSAPP_ID",
        body={"raw": _RAW, "epoch": 2, "whatsappId": whatsapp_id(_TASK)},
        answer={"status": "ok", "state": "sent"},
    ),
    "POST /api/worker/sessions/{session_id}/outbox/nack": Entry(
        errors=f"{_ABOUT_CLAIM} UNKNOWN_TASK",
        body={
            "taskId": _TASK,
            "token": "8",
            "epoch": 2,
            "notSent": True,
            "error": {"code": "NOT_ON_WHATSAPP", "message": "this number is not on WhatsApp"},
        },
        answer={"status": "ok", "state": "failed"},
    ),
    "GET /api/worker/media/{ref}": Entry(errors="UNKNOWN_MEDIA", answers=dict.fromkeys(TYPES, _FILE)),
    "POST /api/webhook": Entry(
        errors="UNKNOWN_EVENT UNKNOWN_SESSION UNKNOWN_TASK MISSING_FIELD INVALID_TIME WRONG_WHATSAPP_ID STALE_TOKEN",
        body={
            "sessionId": "s1",
            "event": "MESSAGE_DELIVERED",
            "timestamp": _AT,
            "eventId": "s1-000181",
            "data": {"messageId": _TASK, "to": _TO, "whatsappId": whatsapp_id(_TASK)},
        },
        answer={"status": "ok"},
    ),
}
