"""The promises of SPEC §11 that can be seen from outside, as functions of the ledger and of the API's answers.

`judge` gathers everything once and names every broken promise. The rules are written down again here, from the SPEC:
a checker that borrowed them from the product would share its mistakes.
"""

import hashlib
import hmac
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any

from .api import ENDED, PARTS, Asked, Client
from .platform import CANARIES, WEBHOOK_SECRET, Platform

WENT_OUT = ("sent", "delivered", "read")
FINAL = (*WENT_OUT, "failed", "expired", "canceled", "suppressed")
HONEST = ("UNKNOWN_OUTCOME", "POISON")
"""What a message may be called that went out and of which nobody could tell."""
MINUTE_MS = 60_000


class Evidence:
    def __init__(self, platform: Platform, client: Client, jobs: list[Asked], stopped: Mapping[str, int]) -> None:
        self.platform = platform
        self.jobs = {job.job_id: job for job in jobs}
        self.stopped = stopped
        """Suppressed people, and when that was acknowledged."""
        self.views = {job.job_id: client.job(job) for job in jobs}
        self.messages = {task: view for job in jobs for task, view in client.messages(job).items()}
        self.events = [json.loads(raw) for raw in platform.redis.lrange("jobs:events", 0, -1)]
        self.lines = platform.ledger()
        self.by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.by_session: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in self.lines:
            self.by_task[line["taskId"]].append(line)
            self.by_session[line["sessionId"]].append(line)

    def ours(self) -> Iterator[tuple[str, Asked, dict[str, Any], list[dict[str, Any]]]]:
        """Each message of the judged jobs: its id, its job, what the API says, what the ledger says."""
        for task, view in self.messages.items():
            yield task, self.jobs[view["jobId"]], view, self.by_task.get(task, [])


def judge(
    platform: Platform,
    client: Client,
    *jobs: Asked,
    stopped: Mapping[str, int] | None = None,
    but: Collection[str] = (),
) -> Evidence:
    """`but`: promises that the evidence cannot show here."""
    evidence = Evidence(platform, client, list(jobs), stopped or {})
    broken = broken_promises(evidence, but)
    assert broken == [], "\n".join(broken[:20])
    return evidence


def broken_promises(evidence: Evidence, but: Collection[str] = ()) -> list[str]:
    return [f"{name}: {what}" for name, check in CHECKS if name not in but for what in check(evidence)]


def nothing_is_lost(evidence: Evidence) -> Iterator[str]:
    for job_id, view in evidence.views.items():
        progress = view["progress"]
        if view["state"] not in ENDED or sum(progress[part] for part in PARTS) != progress["total"]:
            yield f"{job_id} is {view['state']} with {progress}"
    for task, _, view, lines in evidence.ours():
        state, code = view["state"], (view["lastError"] or {}).get("code")
        if state not in FINAL:
            yield f"{task} has not ended: {state}"
        elif lines and state not in WENT_OUT and not (state == "failed" and code in HONEST):
            yield f"{task} went out and is called {state} ({code})"
        elif not lines and state in WENT_OUT:
            yield f"{task} is called {state} and never went out"


def one_id_one_number(evidence: Evidence) -> Iterator[str]:
    for task, job, view, lines in evidence.ours():
        wanted = "3EB0" + hashlib.sha256(task.encode()).hexdigest()[:18].upper()
        if {line["whatsappId"] for line in lines} - {wanted}:
            yield f"{task} went out under {[line['whatsappId'] for line in lines]}"
        if len({line["sessionId"] for line in lines}) > 1:
            yield f"{task} went out from {[line['sessionId'] for line in lines]}"
        yield from _repeats(task, job, view, lines)


def _repeats(task: str, job: Asked, view: dict[str, Any], lines: list[dict[str, Any]]) -> Iterator[str]:
    if [bool(line.get("repeat")) for line in lines] != [number > 0 for number in range(len(lines))]:
        yield f"{task}: the ledger's marks of repetition are wrong: {lines}"
    if len(lines) > 1 and job.on_unknown == "hold":
        yield f"{task} must not be repeated and went out {len(lines)} times"
    unknowns = [entry["at"] for entry in view["history"] if entry["what"] == "unknown"]
    for earlier, later in pairwise(lines):
        if not any(earlier["at"] <= at <= later["at"] for at in unknowns):
            yield f"{task} was repeated at {later['at']} with no unknown outcome recorded since {earlier['at']}"


def each_person_once(evidence: Evidence) -> Iterator[str]:
    """A request that was repeated made one job: nobody got the same text as two messages."""
    known = {job.text_for(contact): job for job in evidence.jobs.values() for contact in job.contacts}
    for line in evidence.lines:
        job = known.get(line["text"])
        if job is not None and line["taskId"].partition(":")[0] != job.job_id:
            yield f"{line['to']} got the text of {job.job_id} as {line['taskId']}"


def text_and_recipient(evidence: Evidence) -> Iterator[str]:
    for task, job, view, lines in evidence.ours():
        contact = job.contacts[int(task.partition(":")[2])]
        if view["to"] != contact:
            yield f"{task} is for {contact}, the API says {view['to']}"
        for line in lines:
            if line["to"] != contact or line["text"] != job.text_for(contact):
                yield f"{task} was to be {job.text_for(contact)!r} to {contact}: {line}"


def pace_is_kept(evidence: Evidence) -> Iterator[str]:
    """For everything the platform ever sent, whatever was killed or frozen meanwhile."""
    for session, lines in evidence.by_session.items():
        pace, times = evidence.platform.pace_of(session), [line["at"] for line in lines]
        for earlier, later in pairwise(times):
            if later - earlier < pace.shortest_ms:
                yield f"{session}: {later - earlier} ms between two sends, at least {pace.shortest_ms} needed"
        for first, last in zip(times, times[pace.rpm :], strict=False):
            if last - first <= MINUTE_MS:
                yield f"{session}: {pace.rpm + 1} sends within the minute up to {last}"


def first_come_first_served(evidence: Evidence) -> Iterator[str]:
    """Within a job and a number, among messages that nothing held up by itself."""
    for session, lines in evidence.by_session.items():
        newest: dict[str, int] = {}
        for line in lines:
            view = evidence.messages.get(line["taskId"])
            if view is None or line.get("repeat") or any(entry["what"] != "sent" for entry in view["history"]):
                continue
            job_id, index = view["jobId"], int(line["taskId"].partition(":")[2])
            if newest.get(job_id, -1) > index:
                yield f"{session}: {line['taskId']} went out after no. {newest[job_id]}"
            newest[job_id] = max(index, newest.get(job_id, -1))


def done_once(evidence: Evidence) -> Iterator[str]:
    for job_id, job in evidence.jobs.items():
        done = [event for event in evidence.events if event["event"] == "JOB_DONE" and event["jobId"] == job_id]
        if len(done) != 1:
            yield f"{job_id}: JOB_DONE {len(done)} times"
        for event in done:
            parts = sum(event[part] for part in ("sent", "failed", "expired", "canceled", "suppressed"))
            if not parts == event["total"] == len(job.contacts):
                yield f"{job_id}: JOB_DONE does not add up: {event}"


def stop_means_stop(evidence: Evidence) -> Iterator[str]:
    for line in evidence.lines:
        stopped_at = evidence.stopped.get(line["to"])
        view = evidence.messages.get(line["taskId"])
        if stopped_at is None or view is None:
            continue
        if line["at"] > stopped_at and view["times"]["claimedAt"] > stopped_at:
            yield f"{line['to']} said stop at {stopped_at} and got {line['taskId']} at {line['at']}"


CHECKS: tuple[tuple[str, Callable[[Evidence], Iterator[str]]], ...] = (
    ("I1", nothing_is_lost),
    ("I2", one_id_one_number),
    ("I2", each_person_once),
    ("I3", pace_is_kept),
    ("I5", first_come_first_served),
    ("I6", done_once),
    ("I9", stop_means_stop),
    ("text", text_and_recipient),
)


def secrets_in_logs(platform: Platform) -> list[str]:
    """I11: which of our canaries stand in which log."""
    derived = _derived_secrets(platform)
    return [
        f"{secret[:16]}… in {name}"
        for name, text in platform.logs().items()
        for secret in (*CANARIES, *derived)
        if secret in text
    ]


def _derived_secrets(platform: Platform) -> list[str]:
    sessions = [path.name for path in (platform.data / "sessions").iterdir()]
    labels = [label for name in sessions for label in (name, f"auth:{name}")]
    return [hmac.new(WEBHOOK_SECRET.encode(), label.encode(), hashlib.sha256).hexdigest() for label in labels]
