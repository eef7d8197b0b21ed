"""One follower on one file, with a clock in the test's hand, and what the file holds."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lua.stage import T0, Stage, value_of
from paceline.orchestrator.audit import RETRY_MS, AuditFollower
from paceline.orchestrator.audit_db import AuditDb, Connect
from paceline.store import keys

T = TypeVar("T")


async def at_once(call: Callable[[], T]) -> T:
    return call()


class Trail:
    def __init__(self, stage: Stage, path: Path, *, connect: Connect = sqlite3.connect) -> None:
        self.stage = stage
        self.path = path
        self.now = T0
        self.db = AuditDb(path, connect=connect)
        self.follower = AuditFollower(stage.store, self.db, kept_days=30, in_thread=at_once)

    def step(self) -> int | None:
        return value_of(self.follower.step(self.now))

    def follow(self) -> None:
        """Until nothing is left, as the loop does it; a file that takes nothing is left alone."""
        while (due := self.step()) is not None and due <= self.now:
            pass

    def later(self, ms: int = RETRY_MS) -> None:
        self.now += ms
        self.follow()

    # What is to be told

    def act(self, number: int, *, kind: str = "OPERATOR", **fields: Any) -> None:
        said = {"action": f"a{number}", "sessionId": "s1", "phone": "972500000001", "by": "k1", **fields}
        stream = {"k": kind, "at": str(T0 + number), "d": msgspec.json.encode(said).decode()}
        self.stage.redis.xadd(keys.audit(), stream)  # type: ignore[arg-type]

    def send(self, number: int) -> str:
        """A message that went out, as prove_sent leaves it."""
        task = f"01JAUDIT00000000000000000{number % 10}:{number}"
        entry = f'["{task}","972541112233",{T0},1,1,{T0}]'
        about = {"entry": entry, "handed": f"972500000001 s1 {T0} {T0} 2025-10-09", "sentAt": str(T0 + number)}
        self.stage.redis.hset(keys.message(task), mapping=about)
        self.stage.redis.xadd(keys.events(), {"t": "message.sent", "at": str(T0 + number), "m": task})
        return task

    # What the file holds

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            return db.execute(query).fetchall()

    def actions(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT action FROM operator_actions ORDER BY seq")]

    def sends(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT task_id FROM confirmed_sends ORDER BY seq")]

    def waiting(self) -> int:
        """Facts that were not copied, or not freed."""
        return int(self.stage.redis.xlen(keys.audit()))

    def incidents(self) -> list[str]:
        return [
            msgspec.json.decode(line)["kind"] for line in reversed(self.stage.redis.lrange(keys.incidents(), 0, -1))
        ]
