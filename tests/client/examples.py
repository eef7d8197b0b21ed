"""Answers as a gateway gives them, for stand-ins."""

PROGRESS = dict.fromkeys(
    [
        *("total", "queued", "scheduled", "parked", "handedOff", "unknown", "retrying", "sent", "delivered", "read"),
        *("failed", "expired", "canceled", "suppressed"),
    ],
    0,
)
JOB = {
    **dict.fromkeys(("closedAt", "lastError", "waiting", "estimatedCompletion", "phone", "sessionId", "sendAt")),
    **dict.fromkeys(("strategy", "replayOf")),
    **{"jobId": "01K", "state": "ROUTING", "progress": PROGRESS, "acceptedAt": 1, "acceptedBy": "bootstrap"},
    **{"mode": "message", "priority": 1, "spreadMinutes": 0, "validitySeconds": 60, "onUnknown": "resend"},
    **{"tags": [], "metadata": {}, "confirmation": False},
}
