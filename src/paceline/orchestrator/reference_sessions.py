"""The reference of the sessions' operations for operators: the registry, their life cycle, linking, and their past."""

from typing import Any

from paceline.domain.ids import whatsapp_id
from paceline.kits.openapi import JSON, Entry, Reference

AT = 1_773_137_280_000
"""Tuesday, 10 March 2026, eight minutes past noon in Jerusalem."""
TASK = "01KKBK4FE0TQTE9C3CWR3M3HX8:0"
TO = "972529876543"
PHONE = "972541234567"
BORN = 1_770_534_000_000
"""30 days before: a number that is warm."""
PROFILE_ID = "f3c0a7d51e9b2846f"
COMMAND_ID = "c-5d1f0e6b8a9c2374"

SESSION: dict[str, Any] = {
    "sessionId": "s1",
    "phone": PHONE,
    "driver": "simulated",
    "status": "WORKING",
    "connection": "CONNECTED",
    "authorisation": "LINKED",
    "desired": "running",
    "epoch": 1,
    "createdAt": BORN,
    "lastSeen": AT,
    "timezone": "Asia/Jerusalem",
    "restriction": "NONE",
    "restrictedUntil": None,
    "tags": ["il"],
    "paused": False,
    "removing": False,
    "generation": 1,
    "restartReason": None,
    "failedReason": None,
    "lastExit": None,
    "starts": 0,
    "waitReason": None,
    "proxy": "http://***@proxy.example:8080",
    "proxyId": "p1",
    "direct": False,
    "profile": PROFILE_ID,
    "displayName": "Ada",
    "lastCommand": {"id": COMMAND_ID, "kind": "scan", "ok": True, "at": AT - 60_000, "error": None},
    "heardAt": AT,
    "memoryBytes": 48_234_496,
    "cpuMs": 2_140,
}
_NEW = {
    **SESSION,
    "status": "STARTING",
    "connection": "STARTING",
    "authorisation": "UNLINKED",
    "epoch": 0,
    "lastSeen": 0,
    "proxy": None,
    "proxyId": None,
    "lastCommand": None,
    "heardAt": None,
    "memoryBytes": None,
    "cpuMs": None,
}
AUDIT_PAGE: dict[str, Any] = {
    "items": [
        {
            "id": 41,
            "kind": "SENT",
            "at": AT,
            "sessionId": "s1",
            "phone": PHONE,
            "messageId": TASK,
            "whatsappId": whatsapp_id(TASK),
        },
        {
            "id": 12,
            "kind": "BINDING",
            "at": AT - 120_000,
            "sessionId": "s1",
            "phone": PHONE,
            "proxyIp": "proxy.example",
            "status": "BOUND",
            "action": "PROXY_TAKEN",
            "reason": "STICKY",
            "details": {"proxyId": "p1"},
        },
        {
            "id": 11,
            "kind": "OPERATOR",
            "at": AT - 121_000,
            "sessionId": "s1",
            "phone": PHONE,
            "action": "create",
            "by": "bootstrap",
            "details": {"driver": "simulated", "direct": False},
        },
    ],
    "nextCursor": None,
}
_WISH = "UNKNOWN_SESSION SESSION_REMOVING"
_TELL = f"{_WISH} NOT_RUNNING"
_FILE = {"type": "string", "format": "binary"}


def _acted(**fields: Any) -> Entry:
    return Entry(errors=_WISH, answer={"status": "ok", "changed": True, "session": {**SESSION, **fields}})


def _told(kind: str) -> dict[str, Any]:
    return {"status": "ok", "commandId": COMMAND_ID, "kind": kind, "expiresAt": AT + 120_000}


_PATH = "/api/sessions/{session_id}"

SESSIONS: Reference = {
    "GET /api/sessions": Entry(answer={"items": [SESSION], "nextCursor": None}),
    "POST /api/sessions": Entry(
        errors="INVALID_NUMBER INVALID_ID UNKNOWN_DRIVER INVALID_TIMEZONE INVALID_TIME INVALID_URL TAKEN PHONE_FULL"
        " SESSION_REMOVING UNKNOWN_PROXY PROXY_BAD PROXY_FULL PROXY_STICKY UNKNOWN_PROFILE PROFILE_IN_USE"
        " SIMULATED_BESIDE_REAL DEMO_POLICY",
        body={
            "phone": "+972 54-123-4567",
            "sessionId": "s1",
            "timezone": "Asia/Jerusalem",
            "createdAt": "2026-02-08T09:00:00+02:00",
            "tags": ["il"],
        },
        answer={**_NEW, "direct": True, "profile": None, "displayName": None},
    ),
    f"GET {_PATH}": Entry(errors="UNKNOWN_SESSION", answer=SESSION),
    f"PATCH {_PATH}": Entry(
        errors=f"{_WISH} INVALID_TIMEZONE INVALID_TIME",
        body={"timezone": "Europe/Athens", "tags": ["gr", "support"]},
        answer={**SESSION, "timezone": "Europe/Athens", "tags": ["gr", "support"]},
    ),
    f"DELETE {_PATH}": Entry(errors="UNKNOWN_SESSION TASKS_WAITING", answer={"status": "ok", "removing": True}),
    f"POST {_PATH}/start": _acted(**{**_NEW, "generation": 2}),
    f"POST {_PATH}/stop": _acted(desired="stopped"),
    f"POST {_PATH}/restart": _acted(generation=2, restartReason="OPERATOR"),
    f"POST {_PATH}/pause": _acted(paused=True, status="PAUSED"),
    f"POST {_PATH}/resume": _acted(),
    "POST /session/restart/{session_id}": Entry(errors=_WISH, answer={"status": "ok", "restarted": "s1"}),
    f"POST {_PATH}/logout": Entry(errors=f"{_TELL} NOT_LINKED", answer=_told("logout")),
    f"GET {_PATH}/qr": Entry(
        errors="UNKNOWN_SESSION NO_QR ALREADY_LINKED NOT_RUNNING",
        answers={
            JSON: {"$ref": "#/components/schemas/QrAnswer"},
            "image/png": _FILE,
            "image/svg+xml": {"type": "string"},
        },
        answer={JSON: {"status": "ok", "qr": "2@h5Yk0dQ3vRz8TqWn,mB7xLc2pEoU=,f9Gs", "expiresAt": AT + 20_000}},
    ),
    f"POST {_PATH}/pairing-code": Entry(
        errors=f"{_TELL} ALREADY_LINKED NO_PAIRING_CODE",
        answer={"status": "ok", "code": "K7QF-2MZX", "expiresAt": AT + 160_000},
    ),
    f"POST {_PATH}/simulated/scan": Entry(errors=f"{_TELL} ALREADY_LINKED NOT_SIMULATED", answer=_told("scan")),
    f"GET {_PATH}/events": Entry(
        errors="UNKNOWN_SESSION",
        answer={
            "items": [
                {"event": "CONNECTED", "at": AT, "receivedAt": AT + 12, "eventId": "s1-000002", "data": {"epoch": 1}},
                {"event": "QR", "at": AT - 9_000, "receivedAt": AT - 8_990, "eventId": "s1-000001", "data": {}},
            ],
            "nextCursor": None,
        },
    ),
    f"GET {_PATH}/history": Entry(errors="UNKNOWN_SESSION", answer=AUDIT_PAGE),
    f"GET {_PATH}/logs": Entry(
        errors="UNKNOWN_SESSION",
        answer={"sessionId": "s1", "lines": ['{"event": "connected", "level": "info", "service": "worker"}']},
    ),
    f"POST {_PATH}/outbox/enqueue": Entry(
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
}
