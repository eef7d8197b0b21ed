"""The reference of proxies, profiles, the audit trail and alerts."""

from typing import Any

from paceline.kits.openapi import Entry, Reference
from paceline.orchestrator.reference_sessions import AT, AUDIT_PAGE, BORN, PROFILE_ID

_FORM = "multipart/form-data"
_PROXY: dict[str, Any] = {
    "proxyId": "p1",
    "proxy": "http://***@proxy.example:8080",
    "state": "OK",
    "reason": None,
    "by": None,
    "since": None,
    "addedAt": AT - 600_000,
    "load": 1,
    "limit": 4,
    "sessions": ["s1"],
    "checkedAt": AT,
    "latencyMs": 84,
}
_BAD = {**_PROXY, "state": "BAD", "reason": "it is slow", "by": "bootstrap", "since": AT, "load": 0, "sessions": []}
_OF_A_FILE = "INVALID_FILE TOO_MANY_LINES"

INVENTORY: Reference = {
    "GET /status": Entry(
        answer={
            "status": "ok",
            "inventory": {
                "profiles": {"available": 4, "used": 1},
                "proxies": {"available": 9, "total": 10, "bad": 1},
            },
            "rules": {"maxSessionsPerProxy": 4, "maxSessionsPerPhone": 4},
            "sessions": {"SCAN_QR": 1, "WORKING": 12},
        }
    ),
    "POST /upload/proxies": Entry(
        errors=_OF_A_FILE,
        body={_FORM: {"file": "# ours\nhttp://user:password@proxy.example:8080\nsocks5://proxy.example:1080\n"}},
        answer={
            "status": "ok",
            "added": 1,
            "duplicates": 0,
            "rejected": [{"line": 3, "reason": "names would be resolved here; use socks5h://"}],
            "rejectedTotal": 1,
        },
    ),
    "POST /upload/profiles": Entry(
        errors=_OF_A_FILE,
        body={_FORM: {"file": '{"displayName": "Ada", "timezone": "Asia/Jerusalem", "tags": ["il"]}\n'}},
        answer={"status": "ok", "added": 1, "duplicates": 0, "rejected": [], "rejectedTotal": 0},
    ),
    "GET /api/proxies": Entry(answer={"items": [_PROXY], "nextCursor": None}),
    "POST /api/proxies/{proxy_id}/bad": Entry(
        errors="UNKNOWN_PROXY",
        body={"reason": "it is slow"},
        answer={"proxy": _BAD, "changed": True, "moved": ["s1"], "kept": []},
    ),
    "POST /api/proxies/{proxy_id}/ok": Entry(
        errors="UNKNOWN_PROXY",
        body={"reason": "its provider set it right"},
        answer={
            "proxy": {**_BAD, "state": "OK", "reason": "its provider set it right"},
            "changed": True,
            "moved": [],
            "kept": [],
        },
    ),
    "DELETE /api/proxies/{proxy_id}": Entry(errors="UNKNOWN_PROXY PROXY_IN_USE"),
    "GET /api/profiles": Entry(
        answer={
            "items": [
                {
                    "profileId": PROFILE_ID,
                    "kind": "settings",
                    "size": 69,
                    "displayName": "Ada",
                    "timezone": "Asia/Jerusalem",
                    "tags": ["il"],
                    "createdAt": BORN,
                    "sessionId": "s1",
                    "addedAt": AT - 600_000,
                }
            ],
            "nextCursor": None,
        }
    ),
    "DELETE /api/profiles/{profile_id}": Entry(errors="UNKNOWN_PROFILE PROFILE_IN_USE"),
    "GET /api/audit": Entry(answer=AUDIT_PAGE),
    "GET /api/alerts": Entry(answer={"channels": ["telegram", "slack#1"]}),
    "POST /api/alerts/test": Entry(
        errors="NO_ALERT_CHANNEL",
        answer={
            "ok": False,
            "channels": [
                {"channel": "telegram", "ok": True},
                {"channel": "slack#1", "ok": False, "reason": "it answered 404"},
            ],
        },
    ),
}
