"""The end of a worker, written down once; and which of two may begin the next."""

from typing import Any

import msgspec
import pytest

from paceline.store import keys, workers
from paceline.store.fleet import AllocationLimits

from .stage import PHONE, SESSION, Stage, value_of

AGAIN, OK, STALE, UNKNOWN = "AGAIN", "OK", "STALE", "UNKNOWN_SESSION"


def begin(stage: Stage, instance: str = "i1", generation: int = 1, after: str | None = None) -> str:
    begun = value_of(
        stage.store.fleet.begin_start(
            SESSION, generation=generation, instance=instance, limits=AllocationLimits(), now_ms=stage.now, after=after
        )
    )
    return begun.code


def end(stage: Stage, instance: str = "i1", **fields: Any) -> str:
    given = {"exit_code": -9, "reason": "EXITED", "starts": 2, "not_before_ms": stage.now + 2_000, **fields}
    return value_of(stage.store.fleet.ended(SESSION, instance, now_ms=stage.now, **given))


def fail(stage: Stage, instance: str = "i1") -> str:
    return value_of(stage.store.fleet.failed(SESSION, instance, "CRASH_LOOP", exit_code=None, now_ms=stage.now))


def row(stage: Stage) -> dict[str, str]:
    found: dict[str, str] = stage.redis.hgetall(keys.session(SESSION))
    return found


@pytest.fixture
def begun(stage: Stage) -> Stage:
    stage.register()
    assert begin(stage) == OK
    return stage


def test_an_end_is_written_down_once(begun: Stage) -> None:
    begun.event(connection="CONNECTED")
    assert end(begun) == OK
    known = row(begun)
    assert (known["lastExit"], known["starts"], known["notBefore"]) == ("EXITED -9", "2", str(begun.now + 2_000))
    assert (known["connection"], begun.redis.get(keys.session_status(SESSION))) == ("STARTING", "STARTING")
    assert end(begun, starts=5) == AGAIN
    assert row(begun) == known


def wish(stage: Stage, what: Any) -> None:
    wished = value_of(stage.store.fleet.wish(SESSION, what, reason="OPERATOR", by="k1", now_ms=stage.now))
    assert wished.changed


def test_who_gives_it_up_does_not_overrule_an_operator_who_restarted_it_meanwhile(begun: Stage) -> None:
    """It was FAILED again, and as such no worker was begun for it although one was asked for."""
    wish(begun, "restart")
    assert fail(begun) == OK
    known = row(begun)
    assert (known["connection"], known.get("failedReason"), known["endedInstance"]) == ("STARTING", None, "i1")
    assert begin(begun, "i2", generation=2, after="i1") == OK


def test_the_count_that_an_operator_had_forgotten_does_not_come_back(begun: Stage) -> None:
    wish(begun, "restart")
    assert end(begun, starts=9) == OK
    assert (row(begun).get("starts"), row(begun).get("notBefore")) == (None, None)


def test_who_gives_it_up_does_not_overrule_a_stop(begun: Stage) -> None:
    wish(begun, "stop")
    assert (fail(begun), row(begun)["connection"]) == (OK, "STOPPED")


def test_a_try_to_heal_it_is_no_operators_word(begun: Stage) -> None:
    answer = value_of(begun.store.fleet.wish(SESSION, "restart", reason="DEAF", by="watchdog", now_ms=begun.now))
    assert (answer.changed, fail(begun), row(begun)["connection"]) == (True, OK, "FAILED")


def test_the_end_of_a_worker_that_is_not_the_wanted_one_changes_nothing(begun: Stage) -> None:
    before = row(begun)
    assert (end(begun, "i0"), fail(begun, "i0"), row(begun)) == (STALE, STALE, before)


def test_of_an_unknown_session(stage: Stage) -> None:
    assert (end(stage), row(stage)) == (UNKNOWN, {})


@pytest.mark.parametrize("connection", ["FAILED", "STOPPED"])
def test_what_was_decided_about_it_outlives_its_worker(begun: Stage, connection: str) -> None:
    begun.event(connection=connection)
    assert (end(begun), row(begun)["connection"]) == (OK, connection)


def test_given_up_it_is_failed_with_one_incident(begun: Stage) -> None:
    assert [fail(begun), fail(begun), end(begun)] == [OK, AGAIN, AGAIN]
    known = row(begun)
    assert (known["connection"], known["failedReason"]) == ("FAILED", "CRASH_LOOP")
    told = [msgspec.json.decode(text) for text in begun.redis.lrange(keys.incidents(), 0, -1)]
    assert [(one["kind"], one["sessionId"], one["phone"]) for one in told] == [("SESSION_FAILED", SESSION, PHONE)]
    assert begin(begun, "i2", after="i1") == "NOT_WANTED"


def test_of_two_who_decided_on_the_same_facts_one_begins(stage: Stage) -> None:
    stage.register()
    assert [begin(stage, name, after="") for name in ("i1", "i2", "i1")] == [OK, STALE, AGAIN]
    assert row(stage)["wantedInstance"] == "i1"
    assert [begin(stage, name, after="i1") for name in ("i2", "i3")] == [OK, STALE]
    assert (row(stage)["startedGeneration"], row(stage)["wantedInstance"]) == ("1", "i2")


def test_when_a_worker_was_connected_or_showed_its_code_is_remembered(begun: Stage) -> None:
    begun.event(connection="RECONNECTING")
    assert "healthyAt" not in row(begun)
    begun.event(connection="CONNECTED")
    healthy_at = row(begun)["healthyAt"]
    begun.now += 5_000
    begun.event(connection="RECONNECTING")
    assert row(begun)["healthyAt"] == healthy_at == str(begun.now - 5_000)


def test_rows_are_read_in_pages_and_say_what_the_hash_says(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        stage.register(f"s{number}", f"97250000000{number}")
    stage.redis.hset(keys.phone("972500000003"), "quarantined", 1)
    stage.redis.sadd(keys.sessions(), "s3x")
    monkeypatch.setattr(workers, "PAGE", 2)
    found = value_of(stage.store.fleet.rows(value_of(stage.store.fleet.ids())))
    assert [(known.session_id, known.quarantined) for known in found] == [
        ("s0", False), ("s1", False), ("s2", False), ("s3", True), ("s4", False)
    ]  # fmt: skip
    assert (found[0].wanted_instance, found[0].generation, found[0].started_generation) == (None, 1, 0)
