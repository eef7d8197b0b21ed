"""What holds after every step, whatever came before it, read from one snapshot of Redis."""

from collections import Counter
from typing import Any

import msgspec

from paceline.domain import states
from paceline.domain.jobs import Job
from paceline.store import keys
from paceline.store.rows import SEND, message_of, task_of

from .stage import PACER_KEYS, Stage, pacer_of

WORK = ("queue:", "session:outbox", "outbox:", "dispatch:", "gateway:", "jobs:active", "pacer:", "phone", "suppress")
"""Keys that hold waiting work, or what limits it, begin like this."""
QUEUES = (keys.queue, keys.queue_p2, keys.queue_p3)
WHERE = {
    "q": {"cursor"}, "r": {"queue"}, "s": {"scheduled"}, "p": {"parked"}, "t": {"queue", "retry"}, "h": {"outbox"},
    "c": {"processing"}, "u": {"processing"},
}  # fmt: skip
"""Where a task in that state lies, and nowhere else."""
FACTS = (
    "createdAt", "timezone", "rpmChangedAt", "restriction", "restrictedUntil", "cooldownUntil", "quarantined",
    "minDelayMs", "maxDelayMs", "burstLimit", "burstCooldownMs", "rpm",
)  # fmt: skip
SESSION_FACTS = ("connection", "paused", "rpm", "rpmSource")


class Snapshot:
    """All keys at one moment, and the questions the checks ask of them."""

    def __init__(self, stage: Stage, jobs: list[Job], sessions: dict[str, str]) -> None:
        """`sessions` maps each session to its phone."""
        self.dump = stage.dump()
        self.jobs = jobs
        self.sessions = sessions
        self.phones = sorted(set(sessions.values()))
        self.bytes_of = {
            job.task_id(i): byte for job in jobs for i, byte in enumerate(self.get(keys.job_states(job.job_id)))
        }

    def get(self, key: str, default: Any = None) -> Any:
        return self.dump[key][0] if key in self.dump else default

    def tasks(self, key: str, step: int = 1) -> list[str]:
        """The tasks that a list (or with step 2 a ZSET) of entries names."""
        found = map(msgspec.json.decode, self.get(key, [])[::step])
        return [item["task"] if isinstance(item, dict) else item[0] for item in found]

    def places(self) -> dict[str, list[str]]:
        """Where each task is found."""
        found: dict[str, list[str]] = {task: [] for task in self.bytes_of}
        for job in self.jobs:
            for index in range(int(self.get(keys.job_run(job.job_id))["cursor"]), job.total):
                found[job.task_id(index)].append("cursor")
        named = [(queue(phone), 1, "queue") for queue in QUEUES for phone in self.phones]
        named += [(keys.parked(phone), 2, "parked") for phone in self.phones]
        named += [(keys.scheduled(), 2, "scheduled"), (keys.task_retry(), 2, "retry")]
        for key, step, place in named:
            for task in self.tasks(key, step):
                found[task].append(place)
        for session in self.sessions:
            for key, place in ((keys.outbox(session), "outbox"), (keys.processing(session), "processing")):
                for held in self.get(key, []):
                    found[task_of(held) if place == "outbox" else held].append(place)
        return found


def check(seen: Snapshot, cap: int) -> None:
    for job in seen.jobs:
        _counters_add_up(seen, job)
    places = seen.places()
    for task, byte in seen.bytes_of.items():
        if byte not in states.TERMINAL:
            assert len(places[task]) == 1, (task, byte, places[task])
            assert places[task][0] in WHERE[byte], (task, byte, places[task])
    for phone in seen.phones:
        pacer = pacer_of(*[seen.get(key, {}).get(phone, "") for key in PACER_KEYS])
        assert 0 <= int(pacer.get("capUsed", 0)) <= cap
        _one_unsettled(seen, phone, pacer)
        _in_order_and_not_forgotten(seen, phone, pacer)
        _facts_are_as_they_are(seen, phone)
    _nothing_that_waits_has_a_ttl(seen)


def _counters_add_up(seen: Snapshot, job: Job) -> None:
    bytes_ = seen.get(keys.job_states(job.job_id))
    counts = states.progress(bytes_.encode())
    assert counts.pop("total") == sum(counts.values()) == job.total
    open_ = sum(byte not in states.TERMINAL for byte in bytes_)
    expected = {"open": open_, "sent": sum(byte in states.WENT_OUT for byte in bytes_), "failed": bytes_.count("F")}
    assert {name: int(seen.get(f"job:stats:{job.job_id}:{name}", 0)) for name in expected} == expected, bytes_
    events = [msgspec.json.decode(line) for line in seen.get(keys.job_events(), [])]
    done = [event for event in events if event["event"] == "JOB_DONE" and event["jobId"] == job.job_id]
    assert len(done) == (keys.job_done_emitted(job.job_id) in seen.dump) == (open_ == 0)


def _one_unsettled(seen: Snapshot, phone: str, pacer: dict[str, str]) -> None:
    held = [task for task, byte in seen.bytes_of.items() if byte in "hc"]
    busy = [task for task in held if message_of(seen.get(keys.message(task)))["phone"] == phone]
    assert len(busy) <= 1
    if busy:
        assert pacer.get("unsettled") == busy[0]
    elif "unsettled" in pacer:
        # Canceled in the outbox: it holds the phone until it is cleared, and its deadline sees to that.
        assert seen.bytes_of[pacer["unsettled"]] in states.TERMINAL
        assert pacer["unsettled"] in seen.get(keys.deadlines(), [])
    for session in seen.sessions:
        held = seen.get(keys.outbox(session), []) + seen.get(keys.processing(session), [])
        assert all(count == 1 for count in Counter(held).values())


def _in_order_and_not_forgotten(seen: Snapshot, phone: str, pacer: dict[str, str]) -> None:
    waiting = len(seen.get(keys.parked(phone), []))
    for queue in QUEUES:
        numbers = [msgspec.json.decode(entry)[4] for entry in seen.get(queue(phone), [])]
        assert numbers == sorted(numbers, reverse=True), "first come, first served"
        waiting += len(numbers)
    if waiting and "unsettled" not in pacer:
        assert phone in seen.get(keys.due(), []), "work that nobody will look at"
    _marked(seen, phone, pacer)
    wire = pacer.get("sends", "")
    sends = [int(wire[at + 13 : at + 26]) for at in range(0, len(wire), SEND)]
    assert sends == sorted(sends)


def _facts_are_as_they_are(seen: Snapshot, phone: str) -> None:
    """The text a look goes by is what a new one would be, or gone."""
    text = seen.get(keys.phone_facts(), {}).get(phone)
    if text is None:
        return
    ids, stored, digits = text.split("\n")
    about, told = seen.get(keys.phone(phone), {}), msgspec.json.decode(stored)
    sessions = told.pop("sessions", [])
    assert (digits, ids.split(" ")[0]) == (phone, about.get("sessions", ""))
    assert told == {name: about[name] for name in FACTS if name in about}
    for session in sessions:
        known = seen.get(keys.session(session.pop("id")))
        assert session == {name: known[name] for name in SESSION_FACTS if name in known}


def _marked(seen: Snapshot, phone: str, pacer: dict[str, str]) -> None:
    """A look goes by these marks: what they do not tell of would wait behind everything else."""
    parked = seen.get(keys.parked(phone), [])
    assert not parked or float(pacer.get("parkedAt", "inf")) <= float(parked[1])
    assert "urgent" in pacer or not any(seen.get(queue(phone)) for queue in QUEUES[1:])


def _nothing_that_waits_has_a_ttl(seen: Snapshot) -> None:
    for key, (_, ttl) in seen.dump.items():
        if ttl:
            assert not key.startswith(WORK), key
            if key.startswith("message:"):
                assert seen.bytes_of[key.removeprefix("message:")] in states.TERMINAL
