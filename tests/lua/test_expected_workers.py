"""A glance at a session's row: where it says that all is well, the policy has nothing to do."""

from random import Random

import pytest

from paceline.orchestrator.hands import wanted_of
from paceline.policy.reconcile import Rules, Seen, decide
from paceline.store import keys
from paceline.store.fleet import AllocationLimits
from paceline.store.workers import LOOK, NO_WORKER

from .stage import PHONE, SESSION, Stage, value_of

FIELDS: dict[str, tuple[str | None, ...]] = {
    "driver": ("simulated", "baileys"),
    "desired": ("running", "running", "stopped"),
    "removing": (None, None, None, "1"),
    "connection": ("STARTING", "CONNECTED", "CONNECTED", "FAILED", "STOPPED"),
    "authorisation": ("UNLINKED", "LINKED", "LINKED", "LOGGED_OUT", "LINK_BLOCKED"),
    "generation": (None, "1", "2"),
    "restartReason": (None, "OPERATOR", "SILENT", "PROXY_BAD"),
    "wantedInstance": (None, "", "i1", "i1", "i2"),
    "startedGeneration": (None, "1", "2"),
    "endedInstance": (None, None, "i1"),
    "holds": (None, "1"),
    "waitReason": (None, None, "NO_PROXY"),
}


def expected(stage: Stage) -> str:
    [word] = value_of(stage.store.fleet.expected([SESSION], elsewhere=["baileys"], per_proxy=4))
    return word


def some_row(stage: Stage, rng: Random) -> None:
    stage.redis.flushall()
    stage.register()
    row = {name: rng.choice(values) for name, values in FIELDS.items()}
    stage.redis.hset(keys.session(SESSION), mapping={name: value for name, value in row.items() if value is not None})
    for name in (name for name, value in row.items() if value is None):
        stage.redis.hdel(keys.session(SESSION), name)
    if rng.random() < 0.3:
        stage.redis.hset(keys.phone(PHONE), "quarantined", 1)


@pytest.mark.parametrize("seed", range(10))
def test_where_a_glance_is_content_the_policy_has_nothing_to_do(stage: Stage, seed: int) -> None:
    """Any row at all. The one exception is meant: who waits for a proxy would be begun, and refused."""
    rng, content = Random(seed), 0
    for _ in range(100):
        some_row(stage, rng)
        word = expected(stage)
        if word == LOOK:
            continue
        content += 1
        seen = []
        if word != NO_WORKER:
            generation, instance = word.split(" ")
            seen = [Seen(SESSION, instance, int(generation), "running", "h")]
        [row] = value_of(stage.store.fleet.rows([SESSION]))
        actions = decide([wanted_of(row, row.driver == "simulated")], seen, rules=Rules(), now_ms=stage.now)
        waits = stage.redis.hget(keys.session(SESSION), "waitReason") == "NO_PROXY"
        assert actions == [] or (waits and {type(action).__name__ for action in actions} == {"Begin"})
    assert content > 20, "nearly every row had to be looked at"


def test_a_healthy_worker_and_a_stopped_session_need_no_look(stage: Stage) -> None:
    stage.register()
    assert expected(stage) == LOOK
    begun = stage.store.fleet.begin_start(
        SESSION, generation=1, instance="i1", limits=AllocationLimits(), now_ms=stage.now
    )
    assert value_of(begun).code == "OK"
    assert expected(stage) == "1 i1"
    stage.event(connection="CONNECTED")
    assert expected(stage) == "1 i1"
    stage.event(connection="FAILED", failed="REPLACED")
    assert expected(stage) == LOOK


def test_who_waits_for_a_proxy_is_looked_at_when_one_has_room(stage: Stage) -> None:
    stage.register()
    stage.redis.hset(keys.session(SESSION), mapping={"waitReason": "NO_PROXY", "wantedInstance": ""})
    assert expected(stage) == NO_WORKER
    stage.redis.zadd(keys.proxies_load(), {"http://p": 4})
    assert expected(stage) == NO_WORKER
    [roomier] = value_of(stage.store.fleet.expected([SESSION], elsewhere=[], per_proxy=5))
    assert roomier == LOOK
    stage.redis.zadd(keys.proxies_load(), {"http://p": 3})
    assert expected(stage) == LOOK
