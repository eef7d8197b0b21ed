"""Which incidents alert: how grave each is, whom it concerns, what it says and what to do about it. A table.

What is not here (a single failed try, an operator's own change of pace) is for `GET /incidents`. An alert leaves the
house over somebody else's servers: a number is shown by its last four digits, a proxy by its host, and no message text,
recipient or credential comes in. Neighbours: `policy.alert_texts` makes sentences of it, `policy.alerts` decides when.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

Fields = Mapping[str, Any]

VALUE_MAX = 200
"""Characters of one value in a text; reasons are a word or a sentence."""

_CREDENTIALS = re.compile(r"(?<=://)[^/\s]*@")
_LONG_NUMBER = re.compile(r"\d{3,}(?=\d{4}(?!\d))")
_HOST = re.compile(r"^(?:[A-Za-z0-9+.-]+://)?(\[[0-9A-Fa-f:.]+\]|[^:/?#\s]+)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


RANK = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of incident that alerts."""

    severity: Severity
    subject: str = ""
    """The field that says whom it concerns: the same kind and subject is one trouble. Empty: all of it is one."""
    says: Callable[[Fields], str]
    many: str
    """What a digest says happened so often: `37 more messages were given up`."""
    do: str = ""
    """What to do about it."""
    names: str = ""
    """The field a digest names."""
    noun: str = "number"
    """What the named ones are."""
    ends: tuple[str, ...] = ()
    """Kinds of trouble it ends. That something is well again is told only if the trouble was."""
    is_grave: Callable[[Fields], bool] = lambda _: False
    """Whether this one is critical although its kind is not."""


def shown(value: object) -> str:
    """A value as it may stand in an alert: one line, no credentials, numbers masked to their last four digits."""
    text = _CONTROL.sub(" ", str(value))
    return _LONG_NUMBER.sub("…", _CREDENTIALS.sub("", text))[:VALUE_MAX]


def host(value: object) -> str:
    """A proxy by its host."""
    found = _HOST.search(str(value).rpartition("@")[2])
    return shown(found[1]) if found else "?"


def last_four(phone: object) -> str:
    digits = re.sub(r"\D", "", str(phone))
    return f"…{digits[-4:]}" if len(digits) >= 4 else "?"


def _number(fields: Fields) -> str:
    return f"number {last_four(fields.get('phone', ''))}"


def _session(fields: Fields) -> str:
    of = f" ({_number(fields)})" if fields.get("phone") else ""
    return f"session {shown(fields.get('sessionId', '?'))}{of}"


def _proxy(fields: Fields) -> str:
    return f"proxy {host(fields.get('proxy') or fields.get('proxyId') or '?')}"


def _until(fields: Fields) -> str:
    until = fields.get("until")
    if not isinstance(until, int | float) or until <= 0:
        return ""
    return datetime.fromtimestamp(until / 1000, UTC).strftime(" until %d %b %H:%M UTC")


def _why(fields: Fields, name: str = "reason") -> str:
    return "" if fields.get(name) in (None, "") else f": {shown(fields[name])}"


def _breaker(fields: Fields) -> str:
    phones = fields.get("phones")
    count = len(phones) if isinstance(phones, list) and phones else "several"
    return f"all sending is paused: {count} numbers were restricted within an hour"


def _inventory(fields: Fields) -> str:
    what = shown(fields.get("what", "inventory"))
    if fields.get("available") == 0:
        return f"no {what} are left: new sessions wait"
    return f"few {what} are left{_why(fields, 'available')}"


def _task(fields: Fields) -> str:
    task = str(fields.get("taskId", ""))
    return f" (message {task})" if re.fullmatch(r"[0-9A-Za-z]{1,40}:\d{1,6}", task) else ""


KINDS: dict[str, Kind] = {
    "SESSION_DOWN": Kind(
        severity=Severity.WARNING,
        subject="sessionId",
        says=lambda f: f"{_session(f)} is down{_why(f)}",
        many="times a session went down",
        names="sessionId",
        noun="session",
        do="It is restarted by itself. If it does not come back, look at its events and at its worker's log.",
    ),
    "SESSION_FAILED": Kind(
        severity=Severity.CRITICAL,
        subject="sessionId",
        says=lambda f: f"{_session(f)} has failed and is not started again{_why(f)}",
        many="sessions failed",
        names="sessionId",
        noun="session",
        do="Look at its worker's log, mend the cause, then start the session.",
    ),
    "SESSION_WAITING": Kind(
        severity=Severity.WARNING,
        subject="sessionId",
        says=lambda f: f"{_session(f)} cannot start yet{_why(f)}",
        many="times a session had to wait",
        names="sessionId",
        noun="session",
        do="NO_PROXY: upload proxies, or mark those ok that work again. PHONE_FULL: stop another of its number.",
    ),
    "SESSION_PAUSED": Kind(
        severity=Severity.INFO,
        subject="sessionId",
        says=lambda f: f"{_session(f)} was paused by an operator",
        many="sessions were paused",
        names="sessionId",
        noun="session",
        do="It sends nothing until somebody resumes it.",
    ),
    "SESSION_QUARANTINED": Kind(
        severity=Severity.CRITICAL,
        subject="phone",
        says=lambda f: f"{_number(f)} is quarantined, because WhatsApp banned it or logged it out{_why(f)}",
        many="numbers were quarantined",
        names="phone",
        do="Its queue waits. Link it again and requeue, or cancel its queue. Another proxy does not help.",
    ),
    "PHONE_RESTRICTED": Kind(
        severity=Severity.WARNING,
        subject="phone",
        says=lambda f: f"WhatsApp restricted {_number(f)}{_until(f)}{_why(f, 'restriction')}",
        many="restrictions",
        names="phone",
        do="It still writes to people it knows and starts no new chat. Think about its pace and whom it writes to.",
    ),
    "PHONE_COOLDOWN": Kind(
        severity=Severity.WARNING,
        subject="phone",
        says=lambda f: f"{_number(f)} is paused{_until(f)}, because it was sending too fast{_why(f, 'code')}",
        many="pauses for sending too fast",
        names="phone",
        do="It goes on by itself. If this happens often, set a lower rate for it.",
    ),
    "PHONE_UNREADABLE": Kind(
        severity=Severity.CRITICAL,
        subject="phone",
        says=lambda f: f"{_number(f)} sends nothing: what is stored about it cannot be read{_why(f, 'error')}",
        many="looks at numbers that cannot be read",
        names="phone",
        do="Something else wrote to this Redis, or it is damaged. The other numbers go on; report it with the error.",
    ),
    "MESSAGE_UNREADABLE": Kind(
        severity=Severity.CRITICAL,
        says=lambda f: f"what is stored about a message cannot be read{_why(f, 'error')}{_task(f)}",
        many="looks at messages that cannot be read",
        do="Its number may wait for it, the others go on. Report it with the error.",
    ),
    "FLEET_BREAKER": Kind(
        severity=Severity.CRITICAL,
        says=_breaker,
        many="times the breaker tripped",
        do="Find out why before you go on; then resume the fleet.",
    ),
    "PROXY_BAD": Kind(
        severity=Severity.WARNING,
        subject="proxyId",
        says=lambda f: f"{_proxy(f)} is bad{_why(f)}",
        many="proxies went bad",
        names="proxy",
        noun="proxy",
        do="Its sessions move to another one. Replace it, or mark it ok once it works.",
    ),
    "INVENTORY_LOW": Kind(
        severity=Severity.WARNING,
        subject="what",
        says=_inventory,
        many="times the inventory was low",
        names="what",
        noun="kind",
        do="Upload more.",
        is_grave=lambda f: f.get("available") == 0,
    ),
    "MESSAGE_GIVEN_UP": Kind(
        severity=Severity.WARNING,
        says=lambda f: f"a message of {_number(f)} was given up{_why(f, 'code')}{_task(f)}",
        many="messages were given up",
        names="phone",
        do="Look at the dead letters; what can be mended there can be sent again.",
    ),
    "STOP_UNRESOLVED": Kind(
        severity=Severity.CRITICAL,
        subject="phone",
        says=lambda f: f"somebody wrote stop to {_number(f)}, and WhatsApp does not tell whose number that was",
        many="stops of people whose number is not known",
        names="phone",
        do="Find the chat on that phone, and put the person's number on the suppression list.",
    ),
    "WEBHOOK_DISABLED": Kind(
        severity=Severity.WARNING,
        subject="webhookId",
        says=lambda f: f"webhook {shown(f.get('webhookId', '?'))} was switched off{_why(f)}",
        many="webhooks were switched off",
        names="webhookId",
        noun="webhook",
        do="Mend the receiver, then redrive it.",
    ),
    "AUDIT_BROKEN": Kind(
        severity=Severity.CRITICAL,
        says=lambda f: f"the audit trail takes nothing{_why(f)}",
        many="times the audit trail took nothing",
        do="Facts wait in Redis. Make room on the disk, or mend the file at DB_PATH.",
    ),
    "AUDIT_BEHIND": Kind(
        severity=Severity.CRITICAL,
        says=lambda f: "the audit trail has a hole, because it was behind for too long",
        many="holes in the audit trail",
        do="The orchestrator's log says since when.",
    ),
    "AUDIT_LOST": Kind(
        severity=Severity.CRITICAL,
        says=lambda f: "a fact could not be written to the audit trail",
        many="facts were lost",
        do="Look at the key `audit` in Redis: it is not the stream it should be.",
    ),
    "INCIDENTS_MISSED": Kind(
        severity=Severity.WARNING,
        says=lambda f: "so much happened while nobody could alert that the oldest incidents are gone",
        many="times incidents were gone before they could be told",
        do="GET /incidents has the newest 200, the logs have the rest.",
    ),
    "SESSION_UP": Kind(
        severity=Severity.INFO,
        subject="sessionId",
        says=lambda f: f"{_session(f)} is up again",
        many="sessions are up again",
        names="sessionId",
        noun="session",
        ends=("SESSION_DOWN", "SESSION_FAILED", "SESSION_WAITING"),
    ),
    "PROXY_OK": Kind(
        severity=Severity.INFO,
        subject="proxyId",
        says=lambda f: f"{_proxy(f)} works again",
        many="proxies work again",
        names="proxy",
        noun="proxy",
        ends=("PROXY_BAD",),
    ),
    "INVENTORY_OK": Kind(
        severity=Severity.INFO,
        subject="what",
        says=lambda f: f"there are enough {shown(f.get('what', ''))} again",
        many="stocks are well again",
        names="what",
        noun="kind",
        ends=("INVENTORY_LOW",),
    ),
    "QUEUE_REQUEUED": Kind(
        severity=Severity.INFO,
        subject="phone",
        says=lambda f: f"{_number(f)} is restored and sends again",
        many="numbers are restored",
        names="phone",
        ends=("SESSION_QUARANTINED",),
    ),
    "FLEET_RESUMED": Kind(
        severity=Severity.INFO,
        says=lambda f: "sending goes on",
        many="times sending went on",
        ends=("FLEET_BREAKER",),
    ),
    "AUDIT_RECOVERED": Kind(
        severity=Severity.INFO,
        says=lambda f: "the audit trail takes facts again",
        many="times the audit trail recovered",
        ends=("AUDIT_BROKEN",),
    ),
}
