"""What stands in the audit trail: one value for each kind of row, made from what the streams tell.

Only what SPEC §6 asks for. No message text; no recipient, so that erasing a person leaves nothing here; of a proxy
its host.
"""

import msgspec

from paceline.domain.events import Event
from paceline.domain.ids import whatsapp_id
from paceline.store.audit import Fact
from paceline.store.events import Named

VALUE_MAX = 500
"""Characters of a value; ids and reasons are far shorter."""
DETAILS_MAX = 2_000


class Binding(msgspec.Struct, frozen=True):
    entry: str
    session: str
    phone: str
    proxy_ip: str
    profile: str
    status: str
    action: str
    reason: str
    by: str
    details: str
    """What else was said, JSON."""
    at: int


class Action(msgspec.Struct, frozen=True):
    entry: str
    action: str
    session: str
    phone: str
    by: str
    reason: str
    details: str
    at: int


class Sent(msgspec.Struct, frozen=True):
    task: str
    session: str
    phone: str
    whatsapp_id: str
    at: int


Row = Binding | Action | Sent

_ROW = frozenset({"sessionId", "phone", "action", "by", "reason"})
_BINDING = _ROW | {"proxy", "profile", "status"}
"""Fields with a column of their own; the rest are details."""


def row_of(fact: Fact) -> Binding | Action:
    """A kind that came later than this program is kept as an action: a fact is never thrown away."""
    said = {name: _text(value) for name, value in fact.fields.items()}
    session, phone, by, reason = (said.get(name, "") for name in ("sessionId", "phone", "by", "reason"))
    if fact.kind == "BINDING":
        proxy, profile, status, action = (said.get(name, "") for name in ("proxy", "profile", "status", "action"))
        details = _details(fact, _BINDING)
        return Binding(fact.id, session, phone, proxy, profile, status, action, reason, by, details, fact.at)
    action = said.get("action", fact.kind)
    return Action(fact.id, action, session, phone, by, reason, _details(fact, _ROW), fact.at)


def sent_of(event: Event, named: Named) -> Sent:
    """The message may be gone already."""
    task = event.message_id or ""
    known = named.known
    return Sent(task, known.get("sessionId", ""), known.get("phone", ""), whatsapp_id(task), event.at)


def _text(value: object) -> str:
    return "" if value is None else str(value)[:VALUE_MAX]


def _details(fact: Fact, shown: frozenset[str]) -> str:
    rest = {name: value for name, value in fact.fields.items() if name not in shown}
    return msgspec.json.encode(rest).decode()[:DETAILS_MAX] if rest else ""
