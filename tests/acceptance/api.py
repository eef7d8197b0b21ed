"""What a client of the platform does: post a job, ask how it is doing, wait for its end.

A client that is worth its name repeats what got no answer. So does this one: every POST carries an Idempotency-Key, and
a connection that breaks or a 503 is met by asking again.
"""

import hashlib
import json
import uuid
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import httpx

from .platform import API_KEY, PATIENCE_SECONDS, TEXT_CANARY, Platform, wait_for

ENDED = ("DONE", "DONE_WITH_ERRORS", "CANCELED", "FAILED")
# Everything a message can be; `delivered` and `read` are parts of `sent`.
PARTS = (
    "queued", "scheduled", "parked", "handedOff", "unknown", "retrying",
    "sent", "failed", "expired", "canceled", "suppressed",
)  # fmt: skip

_people = count(447_701_000_000)


def people(number: int) -> list[str]:
    """Recipients nobody else in this run writes to."""
    return [str(next(_people)) for _ in range(number)]


def whatsapp_id(task: str) -> str:
    """Every worker derives it so."""
    return "3EB0" + hashlib.sha256(task.encode()).hexdigest()[:18].upper()


@dataclass(frozen=True)
class Asked:
    """A job as the client knows it: what it asked for, and the id it was given."""

    job_id: str
    contacts: list[str]
    text: str
    on_unknown: str = "resend"
    accepted: dict[str, Any] = field(default_factory=dict)

    def task(self, index: int) -> str:
        return f"{self.job_id}:{index}"

    def task_to(self, contact: str) -> str:
        return self.task(self.contacts.index(contact))

    def text_for(self, contact: str) -> str:
        return self.text.replace("{{name}}", f"N{contact}")


class Client:
    """One API key's view of one platform."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._http = httpx.Client(headers={"X-API-KEY": API_KEY}, timeout=30, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def request(self, method: str, url: str, **more: Any) -> httpx.Response:
        """Once, as it comes."""
        return self._http.request(method, url if "://" in url else self._platform.gateway + url, **more)

    def ask(self, method: str, url: str, **more: Any) -> Any:
        """Again and again until there is an answer, which must be a good one."""
        body = wait_for(f"an answer to {method} {url}", lambda: self._once(method, url, more))
        assert body.is_success, f"{method} {url}: {body.status_code} {body.text}"
        return body.json()

    def _once(self, method: str, url: str, more: dict[str, Any]) -> httpx.Response | None:
        try:
            response = self.request(method, url, **more)
        except httpx.TransportError:
            return None
        in_flight = response.status_code == 409 and response.json()["error"]["code"] == "IDEMPOTENCY_IN_FLIGHT"
        return None if response.status_code >= 500 or in_flight else response

    # Sending

    def post_job(self, contacts: list[str], *, on_unknown: str = "resend", **fields: Any) -> Asked:
        text = fields.pop("text", f"Hello {{{{name}}}}, {TEXT_CANARY}") + f" {uuid.uuid4().hex[:8]}"
        body = {
            "mode": "message",
            "text": text,
            "contacts": [{"to": contact, "vars": {"name": f"N{contact}"}} for contact in contacts],
            "onUnknown": on_unknown,
            **fields,
        }
        headers = {"Idempotency-Key": uuid.uuid4().hex, "Content-Type": "application/json"}
        answer = self.ask("POST", "/v1/jobs", content=json.dumps(body), headers=headers)
        job = Asked(answer["jobId"], contacts, text, on_unknown, answer)
        tasks = [job.task(index) for index in range(len(contacts))]
        self._platform.tasks |= {whatsapp_id(task): task for task in tasks}
        return job

    def suppress(self, *people: str) -> None:
        self.ask("POST", "/v1/suppressions", json={"to": list(people), "reason": "asked us to stop"})

    def cancel(self, job: Asked) -> dict[str, Any]:
        answer: dict[str, Any] = self.ask("POST", f"/v1/jobs/{job.job_id}/cancel")
        return answer

    def register(self, session: str, phone: str, **fields: Any) -> None:
        url = f"{self._platform.orchestrator}/api/sessions"
        self.ask("POST", url, json={"sessionId": session, "phone": phone, **fields})

    # Asking

    def job(self, job: Asked) -> dict[str, Any]:
        """With the sum checked at every look: it must hold at each moment, not only at the end."""
        view: dict[str, Any] = self.ask("GET", f"/v1/jobs/{job.job_id}")
        progress = view["progress"]
        assert sum(progress[part] for part in PARTS) == progress["total"] == len(job.contacts), progress
        return view

    def message(self, task: str) -> dict[str, Any]:
        view: dict[str, Any] = self.ask("GET", f"/api/v1/messages/{task}/status")
        return view

    def messages(self, job: Asked) -> dict[str, dict[str, Any]]:
        return {job.task(index): self.message(job.task(index)) for index in range(len(job.contacts))}

    def session(self, session: str) -> dict[str, Any]:
        view: dict[str, Any] = self.ask("GET", f"{self._platform.orchestrator}/api/sessions/{session}")
        return view

    def queues(self) -> dict[str, int]:
        lengths: dict[str, int] = self.ask("GET", f"{self._platform.dispatcher}/queue/status")
        return lengths

    # Waiting

    def wait_end(self, *jobs: Asked, patience_seconds: float = PATIENCE_SECONDS) -> list[dict[str, Any]]:
        def ended(job: Asked) -> dict[str, Any] | None:
            view = self.job(job)
            return view if view["state"] in ENDED and view["closedAt"] else None

        return [wait_for(f"job {job.job_id} to end", partial(ended, job), patience_seconds) for job in jobs]

    def wait_sent(self, job: Asked, number: int) -> None:
        """Until so many of the job's messages are in the ledger."""
        wait_for(f"{number} of {job.job_id} in the ledger", lambda: len(self.lines_of(job)) >= number)

    def wait_reason(self, task: str, reason: str) -> dict[str, Any]:
        def waiting() -> dict[str, Any] | None:
            view = self.message(task)
            return view if (view["waiting"] or {}).get("reason") == reason else None

        return wait_for(f"{task} to wait for {reason}", waiting)

    def wait_connected(self, *sessions: str) -> None:
        for name in sessions:
            wait_for(f"{name} to connect", lambda name=name: self.session(name)["connection"] == "CONNECTED")  # type: ignore[misc]

    def lines_of(self, job: Asked) -> list[dict[str, Any]]:
        return [line for line in self._platform.ledger() if line["taskId"].partition(":")[0] == job.job_id]
