"""The one place where a task's byte changes: every move of the table is possible and counted, every other is not."""

import re
from importlib.resources import files
from itertools import product

import pytest

from paceline.domain.states import NEXT, TERMINAL, WENT_OUT
from paceline.store import keys

from .servers import LiveServer
from .stage import T0, Stage

MOVER = (
    "call('HSET', K.api_keys(), a.id, a.record)\nreturn reply('OK')",
    "return reply(move(a.task, a.to, a.now) and 'MOVED' or 'REFUSED')",
)
"""Planted into the smallest verb: the bare move."""


@pytest.fixture
def mover(server: LiveServer) -> Stage:
    return Stage(server.client, {"save_key.lua": MOVER})


def put(stage: Stage, byte: str) -> str:
    """A job of two whose first task is in that state, with the counters that belong to it."""
    job = stage.accept(2)
    stage.redis.setrange(keys.job_states(job.job_id), 0, byte)
    stage.redis.mset(
        {
            keys.job_open(job.job_id): 2 - (byte in TERMINAL),
            keys.job_sent(job.job_id): int(byte in WENT_OUT),
            keys.job_failed(job.job_id): int(byte == "F"),
        }
    )
    stage.adds_up(job)
    return job.task_id(0)


def test_moves_that_are_in_the_table_happen_and_no_others(mover: Stage) -> None:
    for before, after in product(NEXT, NEXT):
        task = put(mover, before)
        allowed = after in NEXT[before]
        keys_before = mover.dump()
        answer = mover.call("save_key", task=task, to=after, now=T0)
        assert answer == {"code": "MOVED" if allowed else "REFUSED"}, (before, after)
        assert mover.byte(task) == (after if allowed else before)
        if not allowed:
            assert mover.dump() == keys_before, (before, after)
        stats = [mover.redis.get(f"job:stats:{task[:26]}:{name}") for name in ("open", "sent", "failed")]
        seen = mover.byte(task)
        assert stats == [str(2 - (seen in TERMINAL)), str(int(seen in WENT_OUT)), str(int(seen == "F"))]
        mover.redis.flushall()


@pytest.mark.parametrize("byte", NEXT)
def test_a_verb_cannot_make_a_move_that_is_not_in_the_table(stage: Stage, byte: str) -> None:
    """Whatever state a task is in, no outcome of settling takes it where the table has no way."""
    outcomes = [
        "sent",
        "delivered",
        "read",
        "retry",
        "failed",
        "returned",
        "parked",
        "expired",
        "suppressed",
        "unknown",
    ]
    facts = {"whatsappId": "x", "at": T0, "code": "c", "message": "m", "reason": "r", "untilMs": T0 + 1}
    for outcome in outcomes:
        _, task, _ = stage.claimed()
        stage.redis.set(keys.job_states(task.split(":")[0]), byte)
        stage.settle(task, outcome, from_=byte, **facts)
        after = stage.byte(task)
        assert after == byte or after in NEXT[byte], (outcome, after)
        stage.redis.flushall()


def test_only_the_library_writes_states() -> None:
    """A verb may read `job:states`; the writes are in lib/20_task.lua, and in lib/40_job.lua, which creates it."""
    for path in (files("paceline.store") / "lua").iterdir():
        if path.name.endswith(".lua"):
            assert not re.search(r"'(SET|SETRANGE|APPEND)', K\.job_states", path.read_text()), path.name
