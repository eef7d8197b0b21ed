"""The reference of what sends: jobs as JSON or CSV, their plan, single messages, batches, files, older clients."""

from typing import Any, get_args

from paceline.domain.jobs import OnUnknown, Strategy
from paceline.domain.media import Mode
from paceline.gateway.idempotency import HEADER
from paceline.kits.openapi import Entry, Reference

JOB = "01KKBK4FE0S7MP2BKPJTKCXK0V"
AT = 1_773_136_920_000
"""Tuesday, 10 March 2026, two minutes past noon in Jerusalem."""
FILE = "d970902911e0a03cf349be4c4b4cf8aafde669044a4635af755559e8c599abd4"

IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Repeats of a request under the same key get the first answer again, byte for byte, for a day.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "example": "booking-4711",
}
REPEATED = "IDEMPOTENCY_IN_FLIGHT IDEMPOTENCY_KEY_REUSED"
NAMED_NUMBER = "INVALID_NUMBER UNKNOWN_SESSION UNKNOWN_PHONE PHONE_MISMATCH SESSION_REMOVING"
"""Whatever may name the number that sends."""
_OF_A_JOB = (
    "INVALID_CSV MEDIA_MODE EMPTY_TEXT TEXT_TOO_LONG INVALID_METADATA METADATA_TOO_LARGE INVALID_TIME"
    f" NOTHING_ACCEPTED CONTACTS_REJECTED {NAMED_NUMBER}"
)
_OF_A_SEND = (
    "EMPTY_TEXT TEXT_TOO_LONG MISSING_VARIABLE INVALID_TIME SUPPRESSED DAILY_LIMIT_REACHED QUEUE_FULL"
    f" {REPEATED} {NAMED_NUMBER}"
)


def _option(name: str, schema: dict[str, Any], words: str, **more: Any) -> dict[str, Any]:
    about = f"Beside a CSV: {words}"
    return {"name": name, "in": "query", "required": False, "description": about, "schema": schema, **more}


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


_SHORT = {"type": "string", "minLength": 1, "maxLength": 256}
CSV_OPTIONS: tuple[dict[str, Any], ...] = (
    _option("text", {"type": "string", "maxLength": 65_536}, "the text, with {{variables}} named after columns"),
    _option("mode", {"enum": list(get_args(Mode))}, "what is sent"),
    _option("mediaRef", {"type": "string", "maxLength": 128}, "the file, of an upload to /v1/media"),
    _option("mediaUrl", {"type": "string", "maxLength": 2_048}, "where the file is fetched from, once"),
    _option("sessionId", _SHORT, "all go from this session's number"),
    _option("phone", {"type": "string", "maxLength": 64}, "all go from this number"),
    _option("tags", {"type": "array", "items": _SHORT, "maxItems": 32}, "tags, with commas between", explode=False),
    _option("strategy", {"enum": list(get_args(Strategy))}, "how each contact gets its number"),
    _option("priority", _whole(1, 3), "3 goes before 2 before 1"),
    _option("spreadMinutes", _whole(0, 43_200), "minutes over which they are spread evenly"),
    _option("sendAt", {"type": ["string", "integer"]}, "Unix milliseconds, or ISO 8601 with an offset"),
    _option("validitySeconds", _whole(60, 31_536_000), "seconds after which what has not gone expires"),
    _option("onUnknown", {"enum": list(get_args(OnUnknown))}, "what to do if nobody knows whether one went out"),
    _option("strict", {"type": "boolean"}, "refuse all if one contact is bad"),
    {
        "name": "metadata",
        "in": "query",
        "required": False,
        "description": "Beside a CSV: kept with the job, as a JSON object",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
)

_JOB_BODY = {
    "contacts": [
        {"to": "+972 52-987-6543", "vars": {"name": "Ada"}, "clientRef": "crm-1"},
        {"to": "972529876544", "vars": {"name": "Grace"}},
        {"to": "12", "vars": {"name": "Nobody"}},
    ],
    "text": "Hello {{name}}, your table is booked for tonight.",
    "tags": ["bookings"],
    "metadata": {"campaign": "march"},
}
_REJECTED = [{"index": 2, "to": "12", "code": "INVALID_NUMBER"}]
_JOB_ACCEPTED = {
    "status": "accepted",
    "jobId": JOB,
    "total": 3,
    "accepted": 2,
    "suppressed": 0,
    "duplicates": 0,
    "rejected": _REJECTED,
    "willExpire": 0,
    "statusUrl": f"/v1/jobs/{JOB}",
    "estimatedCompletion": AT + 15_750,
}
_PLAN = {
    "accepted": 2,
    "suppressed": 0,
    "duplicates": 0,
    "rejected": _REJECTED,
    "startsAt": AT + 5_000,
    "finishesAt": AT + 15_750,
    "days": [{"date": "2026-03-10", "messages": 2, "phones": 1}],
    "phones": [
        {"phone": "972541234567", "sessionId": "s1", "messages": 2, "finishesAt": AT + 15_750, "limitedBy": "PACE"}
    ],
    "otherPhones": {"phones": 0, "messages": 0},
    "willExpire": {"count": 0, "why": None},
    "refused": [],
    "bottleneck": "PACE",
    "suggestions": [
        {"change": "MORE_NUMBERS", "finishesAt": AT + 9_000, "text": "two more hot numbers: done today 12:02"},
    ],
}
_SENT = {"queued": True, "messageId": f"{JOB}:0", "position": 0, "estimatedDelivery": AT + 5_400}

SENDING: Reference = {
    "POST /v1/jobs": Entry(
        errors=f"{_OF_A_JOB} {REPEATED} MEDIA_URL MEDIA_TYPE MEDIA_FULL UNKNOWN_MEDIA",
        body=_JOB_BODY,
        answer=_JOB_ACCEPTED,
        parameters=(IDEMPOTENCY_KEY, *CSV_OPTIONS),
    ),
    "POST /v1/jobs/plan": Entry(
        errors=f"{_OF_A_JOB} MEDIA_TYPE UNKNOWN_MEDIA", body=_JOB_BODY, answer=_PLAN, parameters=CSV_OPTIONS
    ),
    "POST /api/v1/send": Entry(
        errors=_OF_A_SEND,
        body={"to": "+972 52-987-6543", "message": "Your code is 1234.", "priority": 3},
        answer=_SENT,
        parameters=(IDEMPOTENCY_KEY,),
    ),
    "POST /api/v1/send/batch": Entry(
        errors=f"EMPTY_TEXT TEXT_TOO_LONG NOTHING_ACCEPTED {REPEATED} {NAMED_NUMBER}",
        body={
            "messages": [
                {"to": "972529876543", "text": "Hello Ada"},
                {"to": "972529876544", "text": "Hello Grace"},
            ],
            "spreadMinutes": 60,
        },
        answer={"queued": 2, "jobId": JOB, "suppressed": 0, "estimatedCompletion": AT + 1_802_400},
        parameters=(IDEMPOTENCY_KEY,),
    ),
    "POST /v1/media": Entry(
        errors="MEDIA_TYPE MEDIA_TOO_LARGE MEDIA_FULL",
        never="UNSUPPORTED_MEDIA_TYPE",
        body={"text/csv": "name,when\nAda,10 March\n"},
        answer={
            "mediaRef": f"{FILE}-png",
            "type": "image/png",
            "size": 48_216,
            "sha256": FILE,
            "expiresAt": AT + 30 * 86_400_000,
        },
    ),
    "POST /api/messages": Entry(
        errors="EMPTY_TEXT TEXT_TOO_LONG NOTHING_ACCEPTED MEDIA_TYPE MEDIA_TOO_LARGE MEDIA_FULL UNKNOWN_MEDIA"
        f" INVALID_JSON {REPEATED} {NAMED_NUMBER}",
        body={
            "multipart/form-data": {"contacts": "972529876543\n972529876544\n12", "message": "We open at nine today."}
        },
        answer=_JOB_ACCEPTED,
        parameters=(IDEMPOTENCY_KEY,),
    ),
    "POST /api/send": Entry(
        errors=_OF_A_SEND,
        body={"to": "+972 52-987-6543", "text": "Your code is 1234."},
        answer=_SENT,
        parameters=(IDEMPOTENCY_KEY,),
    ),
}
