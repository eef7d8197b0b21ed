"""The reference of what admins do (API keys, webhooks), and of the stream of events."""

from typing import Any

from paceline.gateway.reference_sending import AT, JOB
from paceline.kits.openapi import Entry, Reference

_KEY: dict[str, Any] = {
    "keyId": "01KKBKFF00025C8S3HB71J9JC5",
    "name": "CRM production",
    "scopes": ["send", "read"],
    "state": "live",
    "createdAt": AT,
    "createdBy": "bootstrap",
    "expiresAt": AT + 31_536_000_000,
    "ratePerMinute": None,
    "revokedAt": None,
    "revokedBy": None,
}
_WEBHOOK: dict[str, Any] = {
    "webhookId": "wh_01KKBKFF00G4Z0R3V1C6F1Y2TB",
    "url": "https://crm.example.com/paceline",
    "events": ["message.failed", "job.done"],
    "description": "CRM",
    "state": "enabled",
    "createdAt": AT,
    "createdBy": "bootstrap",
    "pending": 0,
    "failingSince": None,
    "disabledAt": None,
    "disabledReason": None,
}
LAST_EVENT_ID: dict[str, Any] = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "The `id` of the last event that was seen: what comes after it is told. Browsers send it.",
    "schema": {"type": "string", "pattern": "^([0-9]{1,16}-[0-9]{1,16}(_[0-9]{1,16})?)?$"},
    "example": f"{AT}-0",
}
_STREAM = (
    f"id: {AT}-0\nevent: message.sent\n"
    f'data: {{"type":"message.sent","timestamp":"2026-03-10T10:02:00.000Z","data":{{"messageId":"{JOB}:0"}}}}\n\n'
    f": still here\nid: {AT}-0\n\n"
)

ADMIN: Reference = {
    "GET /v1/keys/self": Entry(answer=_KEY),
    "GET /v1/keys": Entry(answer={"items": [_KEY], "nextCursor": None}),
    "POST /v1/keys": Entry(
        errors="KEYS_FULL",
        body={"name": "CRM production", "scopes": ["send", "read"], "expiresInDays": 365},
        answer={**_KEY, "key": "pk_kPIWxle1vzrmqVHU9sUDv4PftUd8HJ_7pAhev76ho1s"},
    ),
    "DELETE /v1/keys/{key_id}": Entry(
        errors="BOOTSTRAP_KEY UNKNOWN_KEY",
        answer={**_KEY, "state": "revoked", "revokedAt": AT + 3_600_000, "revokedBy": "bootstrap"},
    ),
    "GET /v1/webhooks": Entry(answer={"items": [_WEBHOOK], "nextCursor": None}),
    "POST /v1/webhooks": Entry(
        errors="INVALID_URL TOO_MANY_WEBHOOKS",
        body={
            "url": "https://crm.example.com/paceline",
            "events": ["message.failed", "job.done"],
            "description": "CRM",
        },
        answer={**_WEBHOOK, "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDcfkMyAlhXYA="},
    ),
    "DELETE /v1/webhooks/{webhook_id}": Entry(
        errors="UNKNOWN_WEBHOOK", answer={"removed": True, "webhookId": _WEBHOOK["webhookId"]}
    ),
    "GET /v1/webhooks/{webhook_id}/deliveries": Entry(
        errors="UNKNOWN_WEBHOOK",
        answer={
            "items": [
                {
                    "deliveryId": f"evt_{AT}-0",
                    "type": "job.done",
                    "at": AT,
                    "state": "failed",
                    "tries": 12,
                    "createdAt": AT,
                    "lastTryAt": AT + 259_200_000,
                    "nextTryAt": None,
                    "endedAt": AT + 259_200_000,
                    "status": 502,
                    "error": None,
                }
            ],
            "nextCursor": None,
        },
    ),
    "POST /v1/webhooks/{webhook_id}/redrive": Entry(
        errors="UNKNOWN_WEBHOOK INVALID_TIME",
        body={"from": "2026-03-10T00:00:00+02:00", "until": AT + 86_400_000},
        answer={"redriven": 1, "pulled": 0},
    ),
    "GET /v1/events": Entry(
        errors="TOO_MANY_STREAMS",
        parameters=(LAST_EVENT_ID,),
        answers={"text/event-stream": {"type": "string"}},
        answer={"text/event-stream": _STREAM},
    ),
}
