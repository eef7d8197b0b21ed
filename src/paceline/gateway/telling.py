"""An event as customers get it, the same in a webhook and in the live stream.

The stream holds ids and states; here the rest is added: who it was for, the caller's own references, the error. That is
read when it is told, so a person who was erased meanwhile is not told of. Neighbours: `deliveries` posts it,
`live` streams it.
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from paceline.domain.events import Event
from paceline.domain.ids import whatsapp_id
from paceline.domain.jobs import Job
from paceline.domain.states import MESSAGE_STATE
from paceline.store.events import Named
from paceline.store.store import Store

JOBS_KEPT = 200
"""Jobs remembered by one gateway: a few kilobytes each, and asked for again with every message. Only those for many,
which are immutable: one for a single person forgets what it said when that person is erased."""

_encode = msgspec.json.Encoder().encode
_STATES = frozenset(MESSAGE_STATE.values())


class Telling:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    async def told(self, event: Event) -> bytes:
        return (await self.all_told([event]))[0]

    async def all_told(self, events: Sequence[Event]) -> list[bytes]:
        """Each as JSON: `{type, timestamp, data}`, as the Standard Webhooks specification has it."""
        tasks = [task for event in events if (task := event.message_id)]
        named = dict(zip(tasks, await self._store.events.named(tasks), strict=True))
        told = []
        for event in events:
            job = await self._job(event.job_id) if event.job_id else None
            data = _data(event, job, named.get(event.message_id or ""))
            told.append(_encode({"type": event.type, "timestamp": _iso(event.at), "data": data}))
        return told

    async def _job(self, job_id: str) -> Job | None:
        if job_id not in self._jobs:
            job = await self._store.jobs.get(job_id)
            if job is None or job.total == 1:
                return job
            self._jobs[job_id] = job
            if len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(job_id)
        return self._jobs[job_id]


def _data(event: Event, job: Job | None, named: Named | None) -> dict[str, Any]:
    data: dict[str, Any] = {"at": event.at}
    if event.type == "message.received":
        data |= _session(event) | {
            "from": event.fields.get("from"),
            "whatsappId": event.fields.get("wa"),
            "sentAt": _whole(event.fields.get("sentAt")),
        }
        return data | ({"text": event.fields["text"]} if "text" in event.fields else {})
    if event.type.startswith("session."):
        return data | _session(event) | _session_facts(event)
    if event.message_id:
        data |= {"messageId": event.message_id} | _message(event, named or Named())
    data |= {"jobId": event.job_id, "tags": job.tags if job else [], "metadata": job.metadata if job else {}}
    if event.type == "job.done":
        counts = ("total", "sent", "failed", "expired", "canceled", "suppressed")
        data |= {"state": event.fields.get("state")} | {name: _whole(event.fields.get(name)) for name in counts}
    if event.type == "job.corrected":
        data |= {name: MESSAGE_STATE.get(event.fields.get(name, "")) for name in ("from", "to")}
        # `to` is the person everywhere else.
        data["messageWas"], data["messageIs"] = data.pop("from"), data.pop("to")
        data["to"] = _recipient(named or Named())
    return data


def _message(event: Event, named: Named) -> dict[str, Any]:
    known = named.known
    state = event.type.removeprefix("message.")
    facts: dict[str, Any] = {
        "to": _recipient(named),
        "clientRef": named.contact.client_ref if named.contact else None,
        "phone": known.get("phone"),
        "sessionId": known.get("sessionId"),
    }
    if state in _STATES:
        facts["state"] = state
    if state in ("sent", "delivered", "read"):
        facts["whatsappId"] = whatsapp_id(event.message_id or "")
    if state == "failed":
        facts["error"] = {"code": known.get("errorCode"), "message": known.get("errorMessage", "")}
    return facts


def _recipient(named: Named) -> str | None:
    """None if the job is gone or the person was erased."""
    return named.contact.to if named.contact and named.contact.to.isdigit() else None


def _session(event: Event) -> dict[str, Any]:
    return {"sessionId": event.fields.get("s"), "phone": event.fields.get("phone")}


def _session_facts(event: Event) -> dict[str, Any]:
    fields = event.fields
    if event.type == "session.status":
        return {"connection": fields.get("connection"), "authorisation": fields.get("authorisation")}
    return {"restriction": fields.get("kind"), "until": _whole(fields.get("until")), "reason": fields.get("reason")}


def _whole(text: str | None) -> int | None:
    return int(text) if text else None


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
