"""A store on a live server, driven by hand: a call is one script, `now` is a number, all keys can be compared."""

from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import takewhile
from random import Random
from typing import Any, TypeVar

import msgspec
import redis

from paceline.domain.ids import new_ulid
from paceline.domain.jobs import Contact, Job
from paceline.domain.states import TERMINAL
from paceline.policy.dispatch import Decision, Idle, Send, Step, Wait
from paceline.policy.facts import Head, PhoneFacts
from paceline.policy.pacing import Gap
from paceline.store import keys
from paceline.store.caller import Caller
from paceline.store.client import Command
from paceline.store.jobs import TaskRoute
from paceline.store.rows import SEND, Pace, message_of, task_of
from paceline.store.scripts import Script, ScriptConfig
from paceline.store.store import Store

T0 = 1_760_000_000_000
DAY = "2025-10-09"
PHONE, SESSION = "972500000001", "s1"
HOUR = 3_600_000
GAP = Gap(5_000, "pace")
PROOFS = ("sent", "delivered", "read")
T = TypeVar("T")

SNAPSHOT = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, nil
  if kind == 'string' then value = redis.call('GET', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then
    value = {}
    -- Without the ids, which are the server's time.
    for i, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do value[i] = entry[2] end
  elseif kind == 'set' then value = redis.call('SMEMBERS', key) table.sort(value)
  else
    value = {}
    local flat = redis.call('HGETALL', key)
    for i = 1, #flat, 2 do value[flat[i]] = flat[i + 1] end
  end
  found[#found + 1] = {key, redis.call('TTL', key) >= 0, value}
end
return #found == 0 and '[]' or cjson.encode(found)
"""


class DirectLink:
    """The store's port over the synchronous client. It never suspends, so no event loop is needed."""

    is_shared = False

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    async def run(self, script: Script, argument: bytes) -> Any:
        try:
            return self._client.evalsha(script.sha, 0, argument)
        except redis.exceptions.NoScriptError:
            return self._client.eval(script.source, 0, argument)

    async def read(self, *commands: Command) -> list[Any]:
        return [self._client.execute_command(*command) for command in commands]


def value_of(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("the store waited for something")


def heard(client: redis.Redis, act: Callable[[], Any]) -> list[str]:
    """What is published while something happens."""
    with client.pubsub(ignore_subscribe_messages=True) as line:
        line.subscribe(keys.WAKE_CHANNEL)
        act()
        client.publish(keys.WAKE_CHANNEL, "end")
        words = (message["data"] for message in line.listen())
        return list(takewhile(lambda word: word != "end", words))


class Stage:
    """One moment (`now`), one store, and the shortest way to each verb. Defaults are one phone with one session."""

    def __init__(self, client: redis.Redis, mutate: dict[str, tuple[str, str]] | None = None) -> None:
        self.redis = client
        self.config = ScriptConfig()
        self.store = Store(DirectLink(client), self.config, mutate=mutate)
        self.caller = Caller(DirectLink(client), self.config, mutate=mutate)
        self.now = T0
        self._rng = Random(7)
        self.contacts: dict[str, list[str]] = {}

    # Intake

    def new_job(self, total: int = 1, **fields: Any) -> Job:
        fields = {"text": "hello", "accepted_at": self.now, "accepted_by": "k", "validity_seconds": 86_400, **fields}
        return Job(job_id=new_ulid(self.now, self._rng), total=total, **fields)

    def accept(self, total: int = 1, *, first: int = 0, **fields: Any) -> Job:
        job = self.new_job(total, **fields)
        contacts = [Contact(recipient(first + i)) for i in range(total)]
        self.contacts[job.job_id] = [contact.to for contact in contacts]
        chunks = value_of(self.store.jobs.stage(job.job_id, contacts))
        assert value_of(self.store.jobs.accept(job, chunks, now_ms=self.now)) == "OK"
        return job

    def send(self, to: str = "972540000001", phone: str = PHONE, **fields: Any) -> tuple[Job, Any]:
        job = self.new_job(1, single=True, phone=phone, **fields)
        self.contacts[job.job_id] = [to]
        return job, value_of(self.store.jobs.accept_send(job, Contact(to), phone, now_ms=self.now))

    def turn(self) -> Any:
        return value_of(self.store.jobs.next_turn(now_ms=self.now, lease_ms=5_000))

    def routes(self, job: Job, start: int, stop: int, phone: str = PHONE) -> list[TaskRoute]:
        recipients = self.contacts[job.job_id]
        return [
            TaskRoute(i, to=recipients[i], phone=phone, expires_at=job.expires_at(i))
            for i in range(start, min(stop, job.total))
        ]

    def route(self, job: Job, start: int = 0, stop: int = 100_000, phone: str = PHONE) -> Any:
        tasks = self.routes(job, start, stop, phone)
        return value_of(self.store.jobs.route(job, start, tasks, now_ms=self.now))

    def routed(self, total: int = 1, *, phone: str = PHONE, **fields: Any) -> Job:
        """A job whose tasks all lie in one phone's queue."""
        job = self.accept(total, **fields)
        self.turn()
        assert self.route(job, phone=phone).code == "OK"
        return job

    def cancel(self, job: Job) -> Any:
        return value_of(self.store.jobs.cancel(job.job_id, now_ms=self.now))

    def suppress(self, *recipients: str) -> Any:
        rows = [{"to": to, "info": "{}"} for to in recipients]
        return self.call("suppress", add=rows, by="k", now=self.now)

    # Phones

    def connect(self, session: str = SESSION, phone: str = PHONE) -> None:
        self.register(session, phone)
        self.event(session, connection="CONNECTED")

    def register(self, session: str = SESSION, phone: str = PHONE, **fields: Any) -> str:
        given = {"driver": "simulated", "created_at_ms": T0, "timezone": None, "tags": [], "limit": 4, **fields}
        return value_of(self.store.sessions.register(session, phone, now_ms=self.now, **given))

    def event(self, session: str = SESSION, *, at: int | None = None, **changes: Any) -> Any:
        at_ms = self.now if at is None else at
        return value_of(self.store.sessions.event(session, now_ms=self.now, at_ms=at_ms, **changes))

    def look(self, limit: int = 100) -> list[PhoneFacts]:
        return value_of(self.store.pacers.claim_due(now_ms=self.now, lease_ms=5_000, limit=limit)).phones

    def brief_look(self, limit: int = 100) -> list[PhoneFacts]:
        """As the pacer looks."""
        return value_of(self.store.pacers.claim_due(now_ms=self.now, lease_ms=5_000, limit=limit, brief=True)).phones

    def apply(self, facts: PhoneFacts, final: Send | Wait | Idle, *steps: Step, ttl: int = 60_000) -> str:
        decision = Decision(final, steps)
        return value_of(self.store.pacers.hand_off([(facts, decision)], now_ms=self.now, handoff_ttl_ms=ttl))[0]

    def to_send(self, head: Head, session: str = SESSION, *, cap: int | None = 500, day: str = DAY) -> Send:
        return Send(head=head, session_id=session, send_after_ms=self.now, gap=GAP, day=day, cap=cap)

    def hand_off(self, session: str = SESSION, *, cap: int | None = 500) -> str:
        """Looks at the one due phone and hands its first task over; returns the task."""
        (facts,) = self.look()
        assert self.apply(facts, self.to_send(facts.heads[0], session, cap=cap)) == "OK"
        return facts.heads[0].task

    # Workers

    def hello(
        self,
        instance: str = "i1",
        session: str = SESSION,
        journal: str = "j1",
        *,
        life: str = "",
        any_instance: bool = False,
    ) -> Any:
        return value_of(
            self.store.outbox.hello(session, instance, journal, life=life, now_ms=self.now, any_instance=any_instance)
        )

    def open(self, epoch: int = 1, session: str = SESSION) -> Any:
        return value_of(self.store.outbox.open_claim(session, epoch, now_ms=self.now))

    def claim(
        self, task: str, epoch: int = 1, session: str = SESSION, *, lease: int = 120_000, handed_off_at: int = 0
    ) -> Any:
        lease_until = self.now + lease
        return value_of(
            self.store.outbox.claim(
                session, epoch, task, lease_until_ms=lease_until, handed_off_at=handed_off_at, now_ms=self.now
            )
        )

    def claimed(self, **fields: Any) -> tuple[Job, str, int]:
        """A job of one in a worker's hands: the job, the task, its token."""
        self.connect()
        job = self.routed(1, **fields)
        self.hello()
        task = self.hand_off()
        return job, task, self.claim(task).token

    def settle(self, task: str, outcome: str, **facts: Any) -> Any:
        if outcome in PROOFS:
            return self.prove(task, outcome, stats_day=facts.get("statsDay"))
        return value_of(self.store.outbox.settle(task, outcome, now_ms=self.now, **facts))

    def sent(self, task: str, proof: str = "sent", *, is_long: bool = False) -> Any:
        """As the orchestrator tells it; or without its number, which is the long way."""
        phone = None if is_long or self.redis.type(keys.message(task)) != "hash" else self.message(task).get("phone")
        return self.prove(task, proof, stats_day=DAY, phone=phone)

    def prove(self, task: str, proof: str, **facts: Any) -> Any:
        return value_of(self.store.outbox.prove(task, proof, now_ms=self.now, **facts))

    def retry(self, task: str, *, at: int | None = None, **facts: Any) -> Any:
        given = {"from_": "cu", "code": "SEND_FAILED", "message": "no", "onWire": True, "unitBack": True, **facts}
        return self.settle(task, "retry", at=self.now + 60_000 if at is None else at, **given)

    def fail(self, task: str, **facts: Any) -> Any:
        given = {"from_": "cu", "code": "NOT_ON_WHATSAPP", "message": "no", "onWire": True, "statsDay": DAY, **facts}
        return self.settle(task, "failed", **given)

    def release(self, limit: int = 100) -> Any:
        return value_of(self.store.pacers.release_due(now_ms=self.now, limit=limit))

    def overdue(self) -> Any:
        return value_of(self.store.outbox.overdue(now_ms=self.now, limit=100))

    # Looking

    def call(self, verb: str, **arguments: Any) -> Any:
        return value_of(self.caller.call(verb, dict, **arguments))

    def byte(self, task: str) -> str:
        job, index = task.split(":")
        return str(self.redis.getrange(keys.job_states(job), int(index), int(index)))

    def states(self, job: Job) -> str:
        return str(self.redis.get(keys.job_states(job.job_id)))

    def run(self, job: Job) -> dict[str, str]:
        return self.redis.hgetall(keys.job_run(job.job_id))  # type: ignore[return-value]

    def message(self, task: str) -> dict[str, str]:
        return message_of(self.redis.hgetall(keys.message(task)))  # type: ignore[arg-type]

    def pacer(self, phone: str = PHONE) -> dict[str, str]:
        """What it says; a field that was cleared is empty and says nothing."""
        return pacer_of(*[self.redis.hget(key, phone) or "" for key in PACER_KEYS])  # type: ignore[misc]

    def set_pacer(self, phone: str = PHONE, **fields: Any) -> None:
        """Writes some of it by hand."""
        known = {**dict.fromkeys((*PACE, *MARKS, "sends"), ""), "version": "0", **self.pacer(phone)}
        known |= {name: str(value) for name, value in fields.items()}
        for key, names in ((keys.pace(), PACE), (keys.marks(), MARKS)):
            self.redis.hset(key, phone, msgspec.json.encode([known[name] for name in names]).decode())
        self.redis.hset(keys.sends(), phone, known["sends"])

    def set_facts(self, key: str, **fields: Any) -> None:
        """Writes what is known of a phone or a session by hand, as if a verb had done it."""
        self.redis.hset(key, mapping=fields)
        self.redis.delete(keys.phone_facts())

    def sticky(self, to: str) -> list[str]:
        """Which phone writes to this person, since when, and when they last wrote to it if they did."""
        return str(self.redis.get(keys.sticky(to)) or "").split()

    def sends(self, phone: str = PHONE) -> list[tuple[int, int]]:
        """Between which times each of the last messages was on the wire."""
        wire = self.pacer(phone).get("sends", "")
        return [(int(wire[at : at + 13]), int(wire[at + 13 : at + 26])) for at in range(0, len(wire), SEND)]

    def outbox(self, session: str = SESSION) -> list[str]:
        """The tasks in an outbox, the next one last."""
        return [task_of(str(entry)) for entry in self.redis.lrange(keys.outbox(session), 0, -1)]

    def due_at(self, phone: str = PHONE) -> float | None:
        return self.redis.zscore(keys.due(), phone)  # type: ignore[return-value]

    def queue(self, phone: str = PHONE, key: keys.Key = keys.queue) -> list[str]:
        """The tasks of a queue, the next one first."""
        return [task_of(entry) for entry in reversed(self.redis.lrange(key(phone), 0, -1))]

    def events(self, kind: str, job: Job | None = None) -> list[dict[str, Any]]:
        lines = [msgspec.json.decode(line) for line in self.redis.lrange(keys.job_events(), 0, -1)]
        return [e for e in lines if e["event"] == kind and (job is None or e["jobId"] == job.job_id)]

    def stats(self, job: Job) -> dict[str, int]:
        names = ("total", "open", "sent", "failed")
        return {name: int(self.redis.get(f"job:stats:{job.job_id}:{name}") or 0) for name in names}

    def adds_up(self, job: Job) -> None:
        """The counters, the bytes and JOB_DONE tell the same story."""
        seen = Counter(self.states(job))
        went_out, ended = sum(seen[b] for b in "SDR"), sum(seen[b] for b in TERMINAL)
        expected = {"total": job.total, "open": job.total - ended, "sent": went_out, "failed": seen["F"]}
        assert self.stats(job) == expected, (self.states(job), self.stats(job))
        closed = self.redis.exists(keys.job_done_emitted(job.job_id)) == 1
        assert closed == (ended == job.total)
        assert len(self.events("JOB_DONE", job)) == int(closed)

    def dump(self, *, ignore: tuple[str, ...] = ()) -> dict[str, Any]:
        """Every key with its value and whether it has a TTL, but the named hash fields."""
        return {
            key: (_without(value, ignore), ttl)
            for key, ttl, value in msgspec.json.decode(self.redis.eval(SNAPSHOT, 0))
            if key != keys.sessions_seen() or "lastSeen" not in ignore
        }

    def with_ttl(self) -> set[str]:
        return {key for key, ttl, _ in msgspec.json.decode(self.redis.eval(SNAPSHOT, 0)) if ttl}


PACE = [
    field.encode_name
    for field in msgspec.structs.fields(
        msgspec.defstruct("_", [(name, str) for name in msgspec.structs.asdict(Pace())], rename="camel")
    )
]
MARKS = ["seq", "urgent", "minExpiry", "parkedAt", "failures"]


PACER_KEYS = (keys.pace(), keys.marks(), keys.sends())


def pacer_of(line: str, marks: str, sends: str) -> dict[str, str]:
    """What is kept of a phone's pacing, without what is empty."""
    known = dict(zip(PACE, msgspec.json.decode(line or "[]"), strict=False))
    known |= dict(zip(MARKS, msgspec.json.decode(marks or "[]"), strict=False))
    return {name: value for name, value in {**known, "sends": sends}.items() if value}


def recipient(number: int) -> str:
    return f"9725{number:08d}"


def _without(value: Any, ignore: tuple[str, ...]) -> Any:
    return {name: text for name, text in value.items() if name not in ignore} if isinstance(value, dict) else value
