"""What is made up from a schema rarely names anything that exists, and then only the first check of a route is met. So
every other good case is led further in: its numbers, sessions, jobs, claims become real ones.

Only good cases: what was made bad on purpose stays as it is, or its refusal would prove nothing.
"""

import re
import zlib
from typing import Any

from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase

from contract.platform import SESSION

WORKER_PATHS = "^/api/(worker|webhook)"
LINKING = re.compile("/(qr|pairing-code|simulated/scan)$")
"""What is asked about a session that is not linked yet."""
PUBLIC_URL = "https://93.184.216.34/paceline"
"""An address needs no name to be looked up; nothing is posted there, since nothing posts here."""
EVENTS = (
    "PING",
    "CONNECTED",
    "QR",
    "DISCONNECTED",
    "MESSAGE_SENT",
    "MESSAGE_FAILED",
    "MESSAGE_RECEIVED",
    "RESTRICTION",
    "MESSAGE_DELIVERED",
    "COMMAND_DONE",
    "ERROR",
)

Known = dict[str, Any]
"""What exists, by the name a field or a parameter has; the stage keeps it up to date."""


def is_good(case: Any) -> bool:
    return case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE


def steer(case: Any, known: Known) -> None:
    if not is_good(case):
        return
    # A step of a story names what the step before it made.
    is_step = case.meta.phase.name == TestPhase.STATEFUL
    if LINKING.search(case.path):
        known = {**known, "session_id": known["unlinked"]}
    for name, value in (case.path_parameters or {}).items():
        if name in known and not is_step and _chosen(name, value):
            case.path_parameters[name] = known[name]
    if case.path.endswith("/outbox/claim"):
        case.query = {**(case.query or {}), "timeout": 0}  # Nobody waits for a task.
    if case.path in ("/v1/jobs", "/v1/jobs/plan") and case.method == "POST":
        _steer_job(case)
    if "Idempotency-Key" in (case.headers or {}) and _chosen("key", case.body):
        # The example is one key; most cases must not be another's repeat.
        case.headers["Idempotency-Key"] = f"{zlib.crc32(repr((case.query, case.body)).encode(errors='replace')):x}"
    if isinstance(case.query, dict):
        _steer_fields(case.query, known)
    if isinstance(case.body, dict):
        _steer_body(case, known)


def session_of(case: Any) -> str:
    for part in (case.path_parameters, case.body, case.query):
        for name in ("session_id", "sessionId"):
            if isinstance(part, dict) and isinstance(part.get(name), str):
                return str(part[name])
    return ""


def _chosen(name: str, value: Any) -> bool:
    """By the value itself: the same case is led the same way however often it is sent."""
    return zlib.crc32(f"{name}{value!r}".encode(errors="replace")) % 2 == 0


def _steer_fields(fields: dict[str, Any], known: Known) -> None:
    for name, value in fields.items():
        if name in known and isinstance(value, str | int) and _chosen(name, value):
            fields[name] = known[name]
        elif isinstance(value, dict):
            _steer_fields(value, known)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    _steer_fields(item, known)


def _steer_body(case: Any, known: Known) -> None:
    _steer_fields(case.body, known)
    if case.path.startswith("/upload/"):
        _steer_upload(case)
    if case.path == "/api/sessions":
        _steer_session(case.body)
    if case.path == "/api/webhook":
        _steer_event(case.body, known)
    if re.search("/outbox/(ack|nack|extend)$", case.path) and _chosen("", case.body):
        _steer_claim(case, known)


def _steer_job(case: Any) -> None:
    """The options of a CSV are no options of JSON; and few made-up texts are a CSV."""
    if isinstance(case.body, dict):
        if _chosen("query", case.query):
            case.query = {}
        contacts = case.body.get("contacts")
        if isinstance(contacts, list) and contacts and isinstance(contacts[0], str):
            contacts[0] = "972529870001"
        if _chosen("mode", case.body.get("text")):
            for name in ("mode", "mediaRef", "mediaUrl", "sessionId", "phone", "sendAt", "metadata"):
                case.body.pop(name, None)
    elif isinstance(case.body, str) and _chosen("csv", case.body):
        case.body = f"to,name\n972529870002,{case.body}\n"
        if _chosen("text", case.query):
            case.query = {"text": "Hello {{name}}"}


def _steer_session(body: dict[str, Any]) -> None:
    """Every other one is somebody's new session."""
    if _chosen("new", body):
        number = zlib.crc32(repr(body).encode(errors="replace"))
        body["phone"] = f"97255{number % 10_000_000:07d}"
        body |= {"driver": "simulated", "sessionId": f"made-{number}"}
        for name in ("createdAt", "timezone"):
            body.pop(name, None)


def _steer_upload(case: Any) -> None:
    """Few made-up texts are a list of proxies, or a profile that says anything."""
    if _chosen("file", case.body.get("file")):
        number = zlib.crc32(repr(case.body).encode(errors="replace")) % 100
        proxy = f"http://user:password@m{number}.example:8080\nnonsense\n"
        profile = f'{{"displayName": "m{number}", "tags": ["made-up"]}}\n{{"timezone": "Mars"}}\nany text\n'
        case.body["file"] = (proxy if case.path.endswith("proxies") else profile).encode()


def _steer_event(body: dict[str, Any], known: Known) -> None:
    body["event"] = EVENTS[zlib.crc32(repr(body.get("data")).encode(errors="replace")) % len(EVENTS)]
    data = body.get("data")
    if isinstance(data, dict) and _chosen("data", data):
        real = {"messageId": known["taskId"], "whatsappId": known["whatsappId"], "from": "972529876543"}
        real |= {"commandId": "c-made-up", "ok": _chosen("ok", data), "qr": "2@made-up", "pairingCode": "MADE-UP2"}
        more = {"kind": "NONE", "error": {"code": "NO_ACK"}, "token": known["token"], "epoch": known["epoch"]}
        body["data"] = {**data, **real, **more}


def _steer_claim(case: Any, known: Known) -> None:
    case.path_parameters["session_id"] = SESSION
    case.body["epoch"] = known["epoch"]
    case.body.pop("raw", None)
    case.body |= {"taskId": known["taskId"], "token": known["token"]}
    if "whatsappId" in case.body:
        case.body["whatsappId"] = known["whatsappId"]
