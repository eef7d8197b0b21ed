"""What the documentation of all three services shares: who may ask, what each parameter in a path is, and what an
error says beyond its code. Neighbours: `kits.openapi` makes the documents, `edge` the guards that are described here;
each service has a `reference` of its routes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import SecurityScheme

from paceline.domain.codes import CODES
from paceline.kits.openapi_errors import Catalogue

KEY = [{"apiKey": list[str]()}, {"bearer": list[str]()}]
"""In the documentation: this route needs a key."""
WORKER_SECRET = [{"workerSecret": list[str]()}]
"""In the documentation: this route is for a worker, which shows the secret of its session."""

SECURITY: dict[str, SecurityScheme] = {
    "apiKey": SecurityScheme(
        type="apiKey",
        name="X-API-KEY",
        security_scheme_in="header",
        description="a key made by `POST /v1/keys` or `paceline keys create`, or the setting `API_KEY`",
    ),
    "bearer": SecurityScheme(type="http", scheme="bearer", description="the same key, as other clients show theirs"),
    "workerSecret": SecurityScheme(
        type="apiKey",
        name="X-Webhook-Secret",
        security_scheme_in="header",
        description="of one session: hex HMAC-SHA256 of its id under `WEBHOOK_SECRET`",
    ),
}

PATH_PARAMETERS = {
    "job_id": "a job's id, from the answer that accepted it",
    "key_id": "an API key's id, not the key itself",
    "letter_id": "a dead letter's id, which is that of its message",
    "message_id": "a message's id: that of its job, a colon and its place",
    "profile_id": "a profile's id: `f` and 16 hex digits",
    "proxy_id": "a proxy's id: `p` and a number",
    "ref": "the `mediaRef` of a task",
    "session_id": "a session's id",
    "to": "a phone number in any notation that sending takes",
    "webhook_id": "a webhook's id",
}

_FIELD: dict[str, str] = {
    "BODY_TOO_LARGE": "", "INTERNAL": "", "METHOD_NOT_ALLOWED": "", "NOT_FOUND": "", "UNAUTHORIZED": "",
    "EMPTY_TEXT": "text", "INVALID_ID": "taskId", "INVALID_METADATA": "metadata", "INVALID_NUMBER": "to",
    "INVALID_REQUEST": "priority", "INVALID_TIME": "sendAt", "INVALID_TIMEZONE": "timezone", "INVALID_URL": "url",
    "IDEMPOTENCY_KEY_REUSED": "Idempotency-Key", "MEDIA_MODE": "mediaRef", "MEDIA_URL": "mediaUrl",
    "MISSING_FIELD": "data.messageId", "NOT_REPLAYABLE": "id", "NOT_RESTORED": "sessionId",
    "NOT_WANTED": "instanceId", "PHONE_MISMATCH": "phone", "STALE_EPOCH": "epoch", "STALE_TOKEN": "raw",
    "SUPPRESSED": "to", "TAKEN": "sessionId", "TASK_GONE": "taskId", "UNKNOWN_DRIVER": "driver",
    "UNKNOWN_EVENT": "event", "UNKNOWN_JOB": "jobId", "UNKNOWN_KEY": "keyId", "UNKNOWN_LETTER": "id",
    "UNKNOWN_MEDIA": "mediaRef", "UNKNOWN_MESSAGE": "messageId", "UNKNOWN_PHONE": "phone",
    "UNKNOWN_PROFILE": "profileId", "UNKNOWN_PROXY": "proxyId", "PROXY_BAD": "proxy", "PROXY_FULL": "proxy",
    "PROXY_STICKY": "proxy",
    "UNKNOWN_SESSION": "sessionId", "UNKNOWN_TASK": "taskId", "UNKNOWN_WEBHOOK": "webhookId",
    "WRONG_WHATSAPP_ID": "whatsappId", "DEMO_POLICY": "driver", "SIMULATED_BESIDE_REAL": "driver",
}  # fmt: skip
"""The field that an error names, as it is most often."""

_BAD_CONTACT = {"index": 3, "to": "12", "code": "INVALID_NUMBER"}
_MORE: dict[str, dict[str, Any]] = {
    "ALREADY_REPLAYED": {"field": "again", "jobId": "01KKBDYTG0Q5RX0B2N0C9F6P3E"},
    "CONTACTS_REJECTED": {"field": "contacts", "rejected": [_BAD_CONTACT], "rejectedCount": 1},
    "DAILY_LIMIT_REACHED": {"phone": "972541234567", "limit": 200, "retryAfterSeconds": 41_400},
    "FORBIDDEN": {"scope": "send"},
    "IDEMPOTENCY_IN_FLIGHT": {"field": "Idempotency-Key", "retryAfterSeconds": 1},
    "INVALID_CSV": {"field": "contacts", "line": 17},
    "INVALID_FILE": {"field": "file", "line": 3},
    "INVALID_RPM": {"field": "rpm", "allowed": [2, 3, 5, 10, 15, 20]},
    "JOB_CLOSED": {"state": "DONE"},
    "JOB_NOT_PAUSED": {"state": "ROUTED"},
    "BODIES_FULL": {"retryAfterSeconds": 1},
    "HEADERS_TOO_LARGE": {"limit": 65_536},
    "KEYS_FULL": {"limit": 1_000},
    "MEDIA_FULL": {"field": "file", "limit": 10_737_418_240, "retryAfterSeconds": 3_600},
    "MEDIA_TOO_LARGE": {"field": "file", "limit": 16_777_216},
    "MEDIA_TYPE": {"field": "file", "allowed": ["image/jpeg", "image/png", "image/webp"]},
    "MESSAGE_CLAIMED": {"state": "claimed"},
    "MESSAGE_ENDED": {"state": "sent"},
    "METADATA_TOO_LARGE": {"field": "metadata", "limit": 8_192},
    "MISSING_VARIABLE": {"field": "message", "variable": "name"},
    "NO_QR": {"connection": "STARTING"},
    "NOTHING_ACCEPTED": {
        "field": "contacts", "rejected": [_BAD_CONTACT], "rejectedCount": 1, "suppressed": 0, "duplicates": 0,
    },
    "PHONE_FULL": {"field": "phone", "limit": 4},
    "PROFILE_IN_USE": {"sessions": ["s1"]},
    "PROXY_IN_USE": {"sessions": ["s1", "s2"]},
    "QUEUE_FULL": {"phone": "972541234567", "retryAfterSeconds": 60},
    "RATE_LIMITED": {"limit": 6_000, "of": "key", "retryAfterSeconds": 3},
    "TASKS_WAITING": {"waiting": 12},
    "TEXT_TOO_LONG": {"field": "text", "limit": 4_096},
    "TOO_MANY_LINES": {"field": "file", "limit": 100_000},
    "TOO_MANY_STREAMS": {"retryAfterSeconds": 10},
    "UNAVAILABLE": {"retryAfterSeconds": 2},
}  # fmt: skip
DETAILS: Mapping[str, Mapping[str, Any]] = {
    **{code: {"field": field} for code, field in _FIELD.items() if field},
    **_MORE,
}


def _common(handler: HTTPRouteHandler) -> Iterator[str]:
    if _scopes(handler):
        yield from ("UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED")
    elif handler.security == WORKER_SECRET:
        yield "UNAUTHORIZED"
    yield "UNAVAILABLE"


def _needs(handler: HTTPRouteHandler) -> str:
    scopes = [f"`{scope}`" for scope in _scopes(handler)]
    if scopes:
        return f"Needs a key with the scope {' or '.join(scopes)}."
    return "For workers: needs the secret of the session." if handler.security == WORKER_SECRET else ""


def _scopes(handler: HTTPRouteHandler) -> tuple[str, ...]:
    for guard in handler.guards or ():
        found: tuple[str, ...] = getattr(guard, "required_scopes", ())
        if found:
            return found
    return ()


CATALOGUE = Catalogue(CODES, DETAILS, PATH_PARAMETERS, _common, _needs)
