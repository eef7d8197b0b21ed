"""Incidents as sentences. What an incident holds depends on its kind; a newer one is spelled out."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from paceline.dashboard.parts import words
from paceline.dashboard.parts.feed import Item

Fields = Mapping[str, Any]


def _who(fields: Fields) -> str:
    return words.phone(str(fields["phone"])) if fields.get("phone") else str(fields.get("sessionId") or "a number")


def _why(fields: Fields, name: str = "reason") -> str:
    return f": {fields[name]}" if fields.get(name) else ""


def _rpm(value: object) -> str:
    return "its trust" if value is None else f"{value} a minute"


def _rpm_change(fields: Fields) -> str:
    return f"SmartGuard set {_who(fields)} from {_rpm(fields.get('from'))} to {_rpm(fields.get('to'))}"


def _override(fields: Fields) -> str:
    beyond = ", beyond its trust" if fields.get("exceedsTrust") else ""
    return f"{_who(fields)} was set from {_rpm(fields.get('from'))} to {_rpm(fields.get('to'))}{beyond}"


def _breaker(fields: Fields) -> str:
    return f"All sending is paused: {len(fields.get('phones') or [])} numbers were restricted within an hour"


def _guard(fields: Fields) -> str:
    return f"SmartGuard was switched {'on' if fields.get('enabled') else 'off'}"


def _low(fields: Fields) -> str:
    left = fields.get("available")
    return f"No {fields.get('what')} are left" if not left else f"Only {left} {fields.get('what')} are left"


_KINDS: dict[str, tuple[str, Callable[[Fields], str]]] = {
    "SEND_FAILED": ("warn", lambda f: f"A message of {_who(f)} failed{_why(f, 'code')}"),
    "MESSAGE_GIVEN_UP": ("bad", lambda f: f"A message of {_who(f)} was given up{_why(f, 'code')}"),
    "SMART_GUARD_RPM_CHANGE": ("busy", _rpm_change),
    "SMART_GUARD_TOGGLE": ("plain", _guard),
    "RPM_OVERRIDE": ("plain", _override),
    "PACER_CHANGED": ("plain", lambda f: f"The pacing of {_who(f)} was changed"),
    "PHONE_COOLDOWN": ("warn", lambda f: f"{_who(f)} rests, because it was sending too fast"),
    "PHONE_UNREADABLE": ("bad", lambda f: f"{_who(f)} cannot be read and sends nothing{_why(f, 'error')}"),
    "MESSAGE_UNREADABLE": ("bad", lambda f: f"What is stored about a message cannot be read{_why(f, 'error')}"),
    "COOLDOWN_CLEARED": ("plain", lambda f: f"The cool-down of {_who(f)} was ended"),
    "PHONE_RESTRICTED": ("warn", lambda f: f"WhatsApp restricted {_who(f)}{_why(f, 'restriction')}"),
    "FLEET_BREAKER": ("bad", _breaker),
    "FLEET_PAUSED": ("warn", lambda f: "All sending was paused"),
    "FLEET_RESUMED": ("good", lambda f: "Sending goes on"),
    "SESSION_DOWN": ("warn", lambda f: f"{_who(f)} is down{_why(f)}"),
    "SESSION_UP": ("good", lambda f: f"{_who(f)} is up again"),
    "SESSION_FAILED": ("bad", lambda f: f"{_who(f)} has failed{_why(f)}"),
    "SESSION_PAUSED": ("plain", lambda f: f"{_who(f)} was paused"),
    "SESSION_WAITING": ("warn", lambda f: f"{_who(f)} cannot start yet{_why(f)}"),
    "SESSION_QUARANTINED": ("bad", lambda f: f"{_who(f)} is quarantined{_why(f)}"),
    "QUEUE_REQUEUED": ("good", lambda f: f"{_who(f)} sends its queue again"),
    "QUEUE_CANCELED": ("plain", lambda f: f"The queue of {_who(f)} was canceled"),
    "JOB_MALFORMED": ("bad", lambda f: f"A job could not be read{_why(f)}"),
    "PROXY_BAD": ("warn", lambda f: f"Proxy {f.get('proxy') or f.get('proxyId')} is bad{_why(f)}"),
    "PROXY_OK": ("good", lambda f: f"Proxy {f.get('proxy') or f.get('proxyId')} works again"),
    "INVENTORY_LOW": ("warn", _low),
    "INVENTORY_OK": ("good", lambda f: f"There are enough {f.get('what')} again"),
    "STOP_UNRESOLVED": ("bad", lambda f: f"Somebody wrote stop to {_who(f)}, and their number is not known"),
    "WEBHOOK_DISABLED": ("warn", lambda f: f"Webhook {f.get('webhookId')} was switched off{_why(f)}"),
    "WEBHOOK_BEHIND": ("warn", lambda f: f"Webhook {f.get('webhookId')} missed events: it was behind for too long"),
    "AUDIT_BROKEN": ("bad", lambda f: f"The audit trail takes nothing{_why(f)}"),
    "AUDIT_BEHIND": ("bad", lambda f: "The audit trail has a hole: it was behind for too long"),
    "AUDIT_LOST": ("bad", lambda f: "A fact could not be written to the audit trail"),
    "AUDIT_RECOVERED": ("good", lambda f: "The audit trail takes facts again"),
}


def incident(fields: Fields) -> Item:
    kind, at = str(fields.get("kind", "")), int(fields.get("at", 0))
    tone, says = _KINDS.get(kind, ("plain", lambda f: words.spelled(kind) + _why(f)))
    subject = fields.get("taskId") or fields.get("sessionId") or fields.get("proxyId") or ""
    item = Item(id=f"{at}-{kind}-{subject}", at=at, text=says(fields), tone=tone)
    if fields.get("by"):
        item["note"] = f"by key {fields['by']}"
    if job := fields.get("jobId") or str(fields.get("taskId") or "").partition(":")[0]:
        item |= {"href": f"/jobs/{quote(str(job), safe='')}", "link": "its job"}
    elif fields.get("sessionId"):
        item |= {"href": f"/sessions/{quote(str(fields['sessionId']), safe='')}", "link": str(fields["sessionId"])}
    return item
