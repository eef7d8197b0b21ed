"""A full Redis: nothing new is accepted, but what is in workers' hands can still be settled."""

from collections.abc import Iterator

import pytest
import redis

from paceline.domain.errors import Unavailable
from paceline.domain.jobs import Contact
from paceline.domain.states import TERMINAL
from paceline.store import keys

from .servers import LiveServer
from .stage import DAY, PHONE, T0, Stage, recipient, value_of


def fill(stage: Stage) -> None:
    stage.redis.config_set("maxmemory-policy", "noeviction")
    # Far below what is used: that figure falls by itself when buffers are freed.
    stage.redis.config_set("maxmemory", int(stage.redis.info("memory")["used_memory"]) // 2)


@pytest.fixture(autouse=True)
def _room_again(server: LiveServer) -> Iterator[None]:
    yield
    server.client.config_set("maxmemory", 0)


def test_nothing_new_is_accepted(stage: Stage) -> None:
    job = stage.new_job(1)
    value_of(stage.store.jobs.stage(job.job_id, [Contact(recipient(1))]))
    fill(stage)
    before = stage.dump()
    for refused in (
        lambda: value_of(stage.store.jobs.stage("J", [Contact(recipient(2))])),
        lambda: value_of(stage.store.jobs.accept(job, 1, now_ms=T0)),
        stage.send,
    ):
        with pytest.raises((redis.RedisError, Unavailable), match=r"used memory|OOM"):
            refused()
    assert value_of(stage.store.guards.memory_is_short())
    assert stage.dump() == before


@pytest.mark.parametrize("outcome", ["sent", "retry", "failed", "returned", "unknown"])
def test_what_a_worker_holds_can_be_settled(stage: Stage, outcome: str) -> None:
    job, task, _ = stage.claimed()
    fill(stage)
    facts = {"at": T0, "code": "c", "message": "m", "reason": "r", "whatsappId": "x", "statsDay": DAY, "onWire": True}
    assert stage.settle(task, outcome, from_="c", **facts).code == "OK"
    assert "unsettled" not in stage.pacer(PHONE)
    stage.adds_up(job)


@pytest.mark.parametrize("proof", ["delivered", "read"])
def test_receipts_are_taken(stage: Stage, proof: str) -> None:
    _, task, _ = stage.claimed()
    stage.sent(task)
    fill(stage)
    assert stage.sent(task, proof).code == "OK"


@pytest.mark.parametrize("outcome", ["returned", "parked", "expired", "suppressed", "cleared"])
def test_what_lies_in_an_outbox_can_be_taken_back(stage: Stage, outcome: str) -> None:
    stage.connect()
    job = stage.routed(1)
    task = stage.hand_off()
    if outcome == "cleared":
        stage.cancel(job)
    fill(stage)
    answer = stage.settle(task, outcome, from_="h" + TERMINAL, reason="r", untilMs=T0 + 1, unitBack=True)
    assert answer.code == "OK"
    assert stage.redis.exists(keys.deadlines()) == 0
    stage.adds_up(job)
