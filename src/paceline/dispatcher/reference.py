"""What the documentation says of the dispatcher's operations beyond what their routes say themselves: the error codes
that each can answer, and an example of what is sent and of what comes back. Neighbour: `kits.openapi`."""

from typing import Any

from paceline.kits.openapi import Entry, Reference
from paceline.telemetry.service import REFERENCE as METRICS

_AT = 1_773_137_280_000
"""Tuesday, 10 March 2026, eight minutes past noon in Jerusalem."""
_JOB = "01KKBK4FE0S7MP2BKPJTKCXK0V"
_PHONE = "972541234567"
_NEXT = _AT + 3_968
_WAITING = {
    "reason": "PACING",
    "until": _NEXT,
    "text": "This number rests between two messages; the next may go at 12:08:04 on 10 March (Asia/Jerusalem).",
}
_PACER: dict[str, Any] = {
    "phone": _PHONE,
    "sessionIds": ["s1"],
    "avgDelayMs": 3_000,
    "minDelayMs": 2_000,
    "maxDelayMs": 4_000,
    "burstCount": 1,
    "burstLimit": 5,
    "burstCooldownMs": 30_000,
    "rpm": 20,
    "effectiveRpm": 6.82,
    "nextSlotAt": _NEXT,
    "queueLen": 1,
    "parked": 0,
    "unsettled": None,
    "waiting": _WAITING,
    "config": {},
}
_TRUST = {"trustLevel": "hot", "rpmDefault": 20, "rpmOverride": None, "rpmSource": None, "effectiveRpm": 6.82}
_METRICS = {
    "sessionId": "s1",
    "phone": _PHONE,
    "queueLen": 1,
    "sentLast60s": 5,
    "routedLast60s": 6,
    "failedLast60s": 0,
    **_TRUST,
    "budgetLeft": 494,
    "restriction": {"kind": "NONE", "until": None},
    "nextSlotAt": _NEXT,
    "waiting": _WAITING,
}
_ROW: dict[str, Any] = {
    "sessionId": "s1",
    "phone": _PHONE,
    "displayName": "Support",
    "driver": "baileys",
    "status": "WORKING",
    "connection": "CONNECTED",
    "tags": ["crm"],
    "proxy": "http://proxy.example.com:8080",
    "direct": False,
    "restriction": {"kind": "NONE", "until": None},
    "rpm": 20,
    **_TRUST,
    "nextSlotAt": _NEXT,
    "queueLen": 1,
    "parked": 0,
    "sentToday": 6,
    "dailyCap": 500,
    "sentLast60s": 5,
    "failedLast60s": 0,
    "unsettled": None,
    "waiting": _WAITING,
}
_OVERVIEW: dict[str, Any] = {
    "sessions": 3,
    "connected": 2,
    "sending": 1,
    "statuses": {"SCAN_QR": 1, "WORKING": 2},
    "totals": {"sent": 812, "delivered": 790, "read": 401, "failed": 2},
    "since": _AT - 43_200_000,
    "minutes": [{"at": _AT - 60_000, "sent": 7, "failed": 0}, {"at": _AT, "sent": 1, "failed": 0}],
}
_PACING: dict[str, Any] = {
    "sessionId": "s1",
    "phone": _PHONE,
    "now": _AT,
    "sends": [_AT - 3_110, _AT - 32],
    "slots": [_NEXT],
    "nextSlotAt": _NEXT,
    "busy": False,
    "burstCount": 2,
    "burstLimit": 5,
    "burstCooldownMs": 30_000,
    "minDelayMs": 2_000,
    "maxDelayMs": 4_000,
    "restriction": {"kind": "NONE", "until": None},
    "open": [{"begin": _AT, "end": _AT + 39_120_000}],
}
_EXPLAINED = {
    "sessionId": "s1",
    "phone": _PHONE,
    "queueLen": 1,
    "parked": 0,
    "decision": "send",
    "rule": "READY",
    "until": _NEXT,
    "text": "Nothing holds this number up; its next message may go at 12:08:04 on 10 March (Asia/Jerusalem).",
    "facts": {
        **_TRUST,
        "window": [2_000, 4_000],
        "burstCount": 1,
        "burstLimit": 5,
        "sentToday": 6,
        "dailyCap": 500,
        "budgetLeft": 494,
        "localTime": "2026-03-10T12:08:00+02:00",
        "hours": [7, 23],
        "nextSlotAt": _NEXT,
        "cooldownUntil": None,
        "restriction": None,
        "restrictedUntil": None,
        "quarantined": False,
        "fleetPaused": False,
        "fleetStopped": False,
        "connectedSessions": 1,
        "unsettled": None,
    },
    "heads": [
        {
            "task": f"{_JOB}:1",
            "action": "send",
            "rule": "READY",
            "until": _NEXT,
            "text": "It may go at 12:08:04 on 10 March (Asia/Jerusalem).",
        }
    ],
}
_QUEUES = {"gateway": 2, "priority": 0, "retry": 0, "sessionRetry": 1, "scheduled": 4, "deadLetter": 2, "parked": 3}
_GUARD = {"enabled": True, "tickMs": 10_000, "lastTick": _AT - 4_000, "lastActionAt": None}
_POLICY: dict[str, Any] = {
    "name": "default",
    "levels": [
        {"name": "cold", "maxAgeDays": 3, "rpm": 3, "minDelayMs": 20_000, "maxDelayMs": 40_000, "effectiveRpm": 1.91,
         "dailyCap": 20, "hours": [9, 21]},
        {"name": "hot", "maxAgeDays": None, "rpm": 20, "minDelayMs": 2_000, "maxDelayMs": 4_000, "effectiveRpm": 6.82,
         "dailyCap": 500, "hours": [7, 23]},
    ],
    "recipientHours": [7, 23],
    "jitter": 0.2,
    "typingMs": [1_000, 3_000],
    "burstLimit": 5,
    "burstCooldownMs": 30_000,
    "globalRpm": None,
}  # fmt: skip
_INCIDENT = {
    "at": _AT,
    "kind": "RPM_OVERRIDE",
    "phone": _PHONE,
    "sessionId": "s1",
    "by": "bootstrap",
    "from": None,
    "to": 10,
    "exceedsTrust": False,
}
_JOB_EVENT = {
    "event": "JOB_DONE",
    "at": _AT,
    "jobId": _JOB,
    "state": "DONE",
    "total": 2,
    "sent": 2,
    "failed": 0,
    "expired": 0,
    "canceled": 0,
    "suppressed": 0,
}

REFERENCE: Reference = {
    **METRICS,
    "GET /health": Entry(
        answer={"status": "ok", "running": True, "processed": 812, "routed": 4_096, "failed": 0, "activePacers": 3}
    ),
    "GET /queue/status": Entry(answer={**_QUEUES, "total": 12}),
    "GET /fleet": Entry(answer={"running": True, "paused": False, "pausedReason": None, "pausedAt": None}),
    "GET /policy": Entry(answer=_POLICY),
    "POST /start": Entry(answer={"running": True}),
    "POST /stop": Entry(answer={"running": False}),
    "POST /fleet/pause": Entry(answer={"paused": True, "reason": "OPERATOR", "since": _AT}),
    "POST /fleet/resume": Entry(answer={"paused": False, "reason": None, "since": None}),
    "GET /smartguard/status": Entry(answer=_GUARD),
    "POST /smartguard/enable": Entry(body={"enabled": True}, answer=_GUARD),
    "GET /incidents": Entry(answer={"items": [_INCIDENT], "nextCursor": None}),
    "GET /jobs/events": Entry(answer={"items": [_JOB_EVENT], "nextCursor": None}),
    "GET /overview": Entry(answer=_OVERVIEW),
    "GET /sessions": Entry(answer={"items": [_ROW], "nextCursor": None, "total": 1}),
    "GET /pacers": Entry(answer={"items": [_PACER], "nextCursor": None}),
    "GET /sessions/metrics": Entry(answer={"items": [_METRICS], "nextCursor": None}),
    "GET /sessions/{session_id}/pacing": Entry(errors="UNKNOWN_SESSION", answer=_PACING),
    "GET /sessions/{session_id}/explain": Entry(errors="UNKNOWN_SESSION", answer=_EXPLAINED),
    "POST /pacers/{session_id}": Entry(
        errors="UNKNOWN_SESSION INVALID_RPM",
        body={"minDelayMs": 4_000, "maxDelayMs": 9_000, "rpm": None},
        answer={
            **_PACER,
            "avgDelayMs": 6_500,
            "minDelayMs": 4_000,
            "maxDelayMs": 9_000,
            "effectiveRpm": 5.17,
            "config": {"minDelayMs": 4_000, "maxDelayMs": 9_000},
        },
    ),
    "POST /sessions/{session_id}/rpm": Entry(
        errors="UNKNOWN_SESSION INVALID_RPM",
        body={"rpm": 10},
        answer={"sessionId": "s1", "phone": _PHONE, "rpm": 10, "source": "manual", "effectiveRpm": 5.17},
    ),
    "POST /sessions/{session_id}/cooldown/clear": Entry(errors="UNKNOWN_SESSION", answer={"cleared": True}),
    "POST /sessions/{session_id}/queue/requeue": Entry(
        errors="UNKNOWN_SESSION NOT_RESTORED", answer={"requeued": 12, "quarantined": False}
    ),
    "POST /sessions/{session_id}/queue/cancel": Entry(
        errors="UNKNOWN_SESSION", answer={"canceled": 12, "failed": 0, "open": 1}
    ),
}
