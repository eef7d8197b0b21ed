"""Jobs that keep a platform busy, and probes that show when it is well again."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import redis

from acceptance.api import Asked, Client, people
from acceptance.platform import LOOK_SECONDS, PATIENCE_SECONDS, Platform

JOB_CONTACTS = 150


class Tail:
    """The tasks in the ledger, read on from where the last look ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.tasks: set[str] = set()
        self.lines = 0

    def look(self) -> set[str]:
        for path in self._folder.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                # A line that is being written has no end yet.
                whole, _, rest = file.read().rpartition(b"\n")
                self._read[path] = file.tell() - len(rest)
            new = whole.split(b"\n") if whole else []
            self.tasks.update(json.loads(line)["taskId"] for line in new)
            self.lines += len(new)
        return self.tasks


@dataclass
class Load:
    platform: Platform
    client: Client
    tail: Tail
    rng: Random
    contacts: int
    """Of each job."""
    jobs: list[Asked] = field(default_factory=list)
    stopped: dict[str, int] = field(default_factory=dict)
    """Who said stop, and when that was answered."""
    events: list[str] = field(default_factory=list)
    """All of `jobs:events`, the newest first; the platform itself keeps the last 2,000."""

    def keep_busy(self) -> None:
        """Another job once half of the last is done, now with `resend`, now with `hold`; and somebody says stop."""
        last = next((job for job in reversed(self.jobs) if len(job.contacts) > 1), None)
        if last is None or self.client.job(last)["progress"]["sent"] >= self.contacts // 2:
            on_unknown = self.rng.choice(["resend", "hold"])
            self.jobs.append(self.client.post_job(people(self.contacts), on_unknown=on_unknown))
            last = self.jobs[-1]
        self._hear_a_stop(last)

    def _hear_a_stop(self, job: Asked) -> None:
        """From somebody whose turn has come, is coming or is over: nobody here knows."""
        who = self.rng.choice(job.contacts)
        self.client.suppress(who)
        self.stopped.setdefault(who, self.platform.now_ms())

    def recovery_seconds(self, session: str | None) -> float:
        """Until a message that is asked for now has gone out, from that session if one is named."""
        began = time.monotonic()
        named = {"sessionId": session} if session else {}
        probe = self.client.post_job(people(1), priority=3, **named)
        self.jobs.append(probe)
        while probe.task(0) not in self.tail.look():
            seconds = time.monotonic() - began
            assert seconds < PATIENCE_SECONDS, f"{probe.task(0)} did not go out: {self._why(probe)}"
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - began

    def gather_events(self) -> None:
        try:
            listed: list[str] = self.platform.redis.lrange("jobs:events", 0, -1)
        except redis.RedisError:
            # The next look comes soon enough.
            return
        known = listed.index(self.events[0]) if self.events else len(listed)
        self.events = listed[:known] + self.events

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(raw) for raw in self.events]

    def _why(self, probe: Asked) -> dict[str, Any]:
        return self.client.message(probe.task(0))
