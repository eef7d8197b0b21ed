"""The reference of what concerns people: who must not be written to, who is forgotten, what was given up."""

from paceline.gateway.reference_sending import AT, IDEMPOTENCY_KEY, JOB, REPEATED
from paceline.kits.openapi import JSON, Entry, Reference

_OLD = "01KKBK0T80V3RS3DTR98H6BCFN"
_FILTER = "INVALID_ID INVALID_NUMBER INVALID_TIME"
_CSV_LIST = f"to,at,reason,source\r\n972529876999,{AT},asked by phone,01KKBKFF00025C8S3HB71J9JC5\r\n"
_LETTER = {
    "id": f"{_OLD}:0",
    "taskId": f"{_OLD}:0",
    "jobId": _OLD,
    "at": AT,
    "code": "NOT_ON_WHATSAPP",
    "class": "recipient",
    "message": "this number is not on WhatsApp",
    "to": "972529876001",
    "phone": "972541234567",
    "sessionId": "s1",
    "attempts": 1,
    "history": [{"at": AT, "what": "failed", "code": "NOT_ON_WHATSAPP", "message": "this number is not on WhatsApp"}],
    "state": "failed",
    "replayable": True,
    "replayedAs": None,
}

PEOPLE: Reference = {
    "GET /v1/suppressions": Entry(
        errors="INVALID_NUMBER",
        answers={JSON: {"$ref": "#/components/schemas/SuppressionPage"}, "text/csv": {"type": "string"}},
        answer={
            JSON: {
                "items": [
                    {
                        "to": "972529876999",
                        "at": AT,
                        "reason": "asked by phone",
                        "source": "01KKBKFF00025C8S3HB71J9JC5",
                    }
                ],
                "nextCursor": None,
            },
            "text/csv": _CSV_LIST,
        },
    ),
    "POST /v1/suppressions": Entry(
        errors="INVALID_NUMBER INVALID_CSV",
        body={"to": ["+972 52-987-6999"], "reason": "asked by phone"},
        # A CSV is answered with more; what it says of `added` is the same.
        answers={
            JSON: {
                "anyOf": [
                    {"$ref": "#/components/schemas/ImportedSuppressions"},
                    {"$ref": "#/components/schemas/Suppressed"},
                ]
            }
        },
        answer={"added": 1},
    ),
    "DELETE /v1/suppressions/{to}": Entry(
        errors="INVALID_NUMBER NOT_FOUND", answer={"removed": True, "to": "972529876999"}
    ),
    "DELETE /v1/recipients/{to}": Entry(
        errors="INVALID_NUMBER",
        answer={"to": "972529876543", "canceled": 1, "erased": 4, "open": 0, "suppressed": False},
    ),
    "GET /v1/dead-letters": Entry(errors=_FILTER, answer={"items": [_LETTER], "nextCursor": None}),
    "POST /v1/dead-letters/{letter_id}/replay": Entry(
        errors=f"UNKNOWN_LETTER ALREADY_REPLAYED NOT_REPLAYABLE SUPPRESSED UNKNOWN_MEDIA {REPEATED}",
        body={"again": False},
        answer={
            "status": "accepted",
            "jobId": JOB,
            "messageId": f"{JOB}:0",
            "replayOf": f"{_OLD}:0",
            "statusUrl": f"/v1/jobs/{JOB}",
        },
        parameters=(IDEMPOTENCY_KEY,),
    ),
    "POST /v1/dead-letters/replay": Entry(
        errors=f"{_FILTER} {REPEATED}",
        body={"class": "recipient", "from": "2026-03-09T00:00:00+02:00", "limit": 500},
        answer={
            "status": "accepted",
            "replayed": 1,
            "jobs": [{"jobId": JOB, "replayOf": _OLD, "accepted": 1}],
            "skipped": {"notReplayable": 0, "alreadyReplayed": 1, "suppressed": 0},
            "more": False,
        },
        parameters=(IDEMPOTENCY_KEY,),
    ),
}
