"""What the documentation says of the orchestrator's operations beyond what their routes say themselves: the error codes
that each can answer, and an example of what is sent and of what comes back.

One table in three modules: here what workers ask and say. Neighbour: `kits.openapi` makes the document of it.
"""

from typing import Any

import msgspec

from paceline.domain.ids import whatsapp_id
from paceline.domain.media import TYPES
from paceline.kits.openapi import Entry, Reference
from paceline.orchestrator.reference_inventory import INVENTORY
from paceline.orchestrator.reference_sessions import AT, COMMAND_ID, SESSIONS, TASK, TO
from paceline.telemetry.service import REFERENCE as METRICS

_GIVEN: dict[str, Any] = {
    "taskId": TASK,
    "to": TO,
    "text": "Hello Ada",
    "whatsappId": whatsapp_id(TASK),
    "attempt": 1,
    "resend": False,
    "sendAfterMs": AT,
    "sendBeforeMs": AT + 121_000,
    "leaseUntilMs": AT + 123_000,
    "token": 8,
    "mode": "message",
    "requestId": "crm-2026-03-10-0042",
}
_RAW = msgspec.json.encode(_GIVEN).decode()
_ABOUT_CLAIM = "INVALID_ID STALE_TOKEN"
_COMMAND = {"id": COMMAND_ID, "kind": "logout", "until": AT + 120_000}
_FILE = {"type": "string", "format": "binary"}

REFERENCE: Reference = {
    "GET /health": Entry(answer={"status": "ok"}),
    **METRICS,
    **SESSIONS,
    **INVENTORY,
    "POST /api/worker/sessions/{session_id}/hello": Entry(
        errors="UNKNOWN_SESSION NOT_WANTED",
        body={
            "instanceId": "worker-s1-7f3a",
            "journalId": "j-20260310-01",
            "driver": "simulated",
            "lifeId": "9b1d4c",
        },
        answer={
            "epoch": 2,
            "nowMs": AT,
            "leaseMs": 120_000,
            "typing": {"minMs": 1_000, "maxMs": 3_000},
            "unknownGraceMs": 10_000,
            "pending": [{"taskId": TASK, "token": "8", "whatsappId": whatsapp_id(TASK), "to": TO}],
            "commands": [],
        },
    ),
    "POST /api/worker/sessions/{session_id}/outbox/claim": Entry(
        errors="UNKNOWN_SESSION STALE_EPOCH NOT_WANTED",
        body={"epoch": 2},
        answer={
            "status": "ok",
            "task": _GIVEN,
            "raw": _RAW,
            "pending": [],
            "commands": [_COMMAND],
            "nowMs": AT,
            "waitedMs": 12,
        },
    ),
    "POST /api/worker/sessions/{session_id}/outbox/extend": Entry(
        errors=_ABOUT_CLAIM,
        body={"raw": _RAW, "epoch": 2},
        answer={"status": "ok", "leaseUntilMs": AT + 240_000},
    ),
    "POST /api/worker/sessions/{session_id}/outbox/ack": Entry(
        errors=f"{_ABOUT_CLAIM} UNKNOWN_TASK WRONG_WHATSAPP_ID",
        body={"raw": _RAW, "epoch": 2, "whatsappId": whatsapp_id(TASK)},
        answer={"status": "ok", "state": "sent"},
    ),
    "POST /api/worker/sessions/{session_id}/outbox/nack": Entry(
        errors=f"{_ABOUT_CLAIM} UNKNOWN_TASK",
        body={
            "taskId": TASK,
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
            "timestamp": AT,
            "eventId": "s1-000181",
            "data": {"messageId": TASK, "to": TO, "whatsappId": whatsapp_id(TASK)},
        },
        answer={"status": "ok"},
    ),
}
