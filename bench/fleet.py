"""A fleet for the benchmarks: numbers with connected sessions and work in their queues, made by the product's own
scripts."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from paceline.domain.ids import new_ulid
from paceline.domain.jobs import MAX_CONTACTS, Job, encode_job
from paceline.kits.rng import new_rng
from paceline.policy.facts import Rules
from paceline.policy.trust import parse
from paceline.settings import read_policy
from paceline.store import keys
from paceline.store.blocking import BlockingRedis
from paceline.store.scripts import CHUNK, ScriptConfig, load

POLICY = str(Path(__file__).with_name(os.environ.get("BENCH_POLICY", "policy.toml")))
"""Of the dispatcher and of whoever judges it."""
RULES = Rules(parse(read_policy(POLICY)))
AT_ONCE = 500
"""Commands sent together while a fleet is made."""
YEAR_MS = 365 * 86_400_000
JOB_DAY_MS = 86_400_000
MIXED = 7_654_321
"""People come in no order, each once: numbers that count up with their place in the job would be a case of its own."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def phone_of(number: int) -> str:
    return f"97254{number:07d}"


class Fleet:
    def __init__(self, redis: BlockingRedis) -> None:
        self.redis = redis
        self.scripts = load(ScriptConfig(lead_ms=RULES.lead_ms))
        self._rng = new_rng(1)
        for script in self.scripts.values():
            redis.read(("SCRIPT", "LOAD", script.source))

    def call(self, verb: str, /, *orders: dict[str, Any]) -> list[dict[str, Any]]:
        """The verb once for each order, all sent together."""
        sha = self.scripts[verb].sha
        return [
            json.loads(a)
            for a in self.redis.read(*[("EVALSHA", sha, 0, msgspec.msgpack.encode(order)) for order in orders])
        ]

    def connect(self, phones: int) -> None:
        """So many numbers, each with one session that was heard of just now and stays so for the run."""
        now = now_ms()
        for some in _parts(range(phones), AT_ONCE):
            self.call("register_session", *[{
                "session": f"s{n}", "phone": phone_of(n), "driver": "simulated", "createdAt": now - YEAR_MS,
                "timezone": "UTC", "tags": "[]", "limit": 4, "now": now,
            } for n in some])  # fmt: skip
            seen = now + JOB_DAY_MS
            self.redis.read(
                *[("HSET", keys.session(f"s{n}"), "connection", "CONNECTED", "lastSeen", seen) for n in some],
                ("HSET", keys.sessions_seen(), *[word for n in some for word in (f"s{n}", seen)]),
            )

    def fill(self, phones: int, each: int) -> None:
        """Gives each number so many tasks, first one to all, then the next."""
        left = phones * each
        place = 0
        while left:
            total = min(left, MAX_CONTACTS)
            self._job(total, place, phones)
            left, place = left - total, place + total

    def _job(self, total: int, place: int, phones: int) -> None:
        now = now_ms()
        job = Job(job_id=new_ulid(now, self._rng), total=total, text="hello", accepted_at=now, accepted_by="bench",
                  validity_seconds=86_400)  # fmt: skip
        people = [f"97252{n * MIXED % 10_000_000:07d}" for n in range(place, place + total)]
        for number, chunk in enumerate(_parts(people, CHUNK)):
            self.call("stage_chunk", {"job": job.job_id, "chunk": number, "contacts": chunk})
        self.call("accept_job", {
            "job": job.job_id, "json": encode_job(job), "total": total, "chunks": -(-total // CHUNK), "priority": 1,
            "now": now,
        })  # fmt: skip
        tasks = [
            {"index": n, "to": to, "phone": phone_of((place + n) % phones), "expiresAt": job.expires_at(n)}
            for n, to in enumerate(people)
        ]
        # The routers rest while the fleet is stopped, but the job is theirs to find: it leaves their lists here.
        self.redis.read(("DEL", keys.gateway_jobs()))
        for some in _parts(tasks, AT_ONCE):
            order = {"job": job.job_id, "cursor": some[0]["index"], "tasks": some, "priority": 1, "total": total}
            (answer,) = self.call("route_chunk", order | {"now": now})
            if answer.get("cursor") != some[-1]["index"] + 1:
                raise SystemExit(f"routing stopped: {answer}")

    def look(self) -> None:
        """One look at everybody, as after any longer while: what a look leaves behind for the next one is there."""
        self.redis.read(("HDEL", keys.fleet(), "stopped"))
        now, sha = now_ms(), self.scripts["look_due"].sha
        due = self.redis.read(("ZRANGE", keys.due(), 0, -1))[0]
        for some in _parts(due, AT_ONCE):
            order = {"now": now, "due": [word for phone in some for word in (phone, now)], "heads": 8, "brief": True}
            self.redis.read(("EVALSHA", sha, 0, msgspec.msgpack.encode(order)))
            self.redis.read(("ZADD", keys.due(), *[word for phone in some for word in (now, phone)]))
        self.hold()

    def spread(self, within_ms: int) -> None:
        """All are due in the time from now, evenly: as they are once they have sent for a while."""
        now, due = now_ms(), self.redis.read(("ZRANGE", keys.due(), 0, -1))[0]
        for some in _parts(enumerate(due), AT_ONCE):
            scores = [word for place, phone in some for word in (now + place * within_ms // len(due), phone)]
            self.redis.read(("ZADD", keys.due(), *scores))

    def hold(self) -> None:
        """The dispatchers rest until `go`."""
        self.redis.read(("HSET", keys.fleet(), "stopped", 1))

    def go(self) -> None:
        self.redis.read(("HDEL", keys.fleet(), "stopped"), ("PUBLISH", keys.WAKE_CHANNEL, "due"))


def _parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    source = iter(items)
    while part := list(islice(source, size)):
        yield part
