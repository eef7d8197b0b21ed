"""What a worker asks for tells whether it is connected, should its own word have been lost."""

from typing import Any

import pytest

from paceline.store import keys

from .stage import PHONE, SESSION, Stage, value_of

LATER = 10_000


@pytest.fixture
def away(stage: Stage) -> Stage:
    """A worker that lost its connection and said so."""
    stage.register()
    stage.hello()
    stage.event(connection="CONNECTED", authorisation="LINKED", epoch=1)
    stage.now += 60_000
    stage.event(connection="RECONNECTING", epoch=1)
    return stage


def ask(stage: Stage, *, epoch: int = 1, **fields: Any) -> Any:
    return value_of(stage.store.outbox.open_claim(SESSION, epoch, now_ms=stage.now, **fields))


def connection(stage: Stage) -> str | None:
    found: str | None = stage.redis.hget(keys.session(SESSION), "connection")
    return found


def test_a_connected_that_was_lost_is_mended_by_a_claim(away: Stage) -> None:
    """The session stayed RECONNECTING for ever, although its worker asked for work all the time."""
    away.redis.zrem(keys.due(), PHONE)
    away.now += LATER
    assert ask(away).code == "OK"
    assert (connection(away), away.redis.get(keys.session_status(SESSION))) == ("CONNECTED", "CONNECTED")
    row = away.redis.hgetall(keys.session(SESSION))
    assert (row["connectedSince"], row["healthyAt"], row["authorisation"]) == (str(away.now), str(away.now), "LINKED")
    assert "downSince" not in row
    assert away.redis.zscore(keys.due(), PHONE) == away.now
    told = [fields for _, fields in away.redis.xrange(keys.events()) if fields["t"] == "session.status"]
    assert told[-1]["connection"] == "CONNECTED"


@pytest.mark.parametrize("state", ["STARTING", "SCAN_QR"])
def test_also_the_first_one(stage: Stage, state: str) -> None:
    stage.register()
    stage.hello()
    stage.event(connection=state, authorisation="UNLINKED", epoch=1)
    stage.now += LATER
    ask(stage)
    assert stage.redis.hmget(keys.session(SESSION), "connection", "authorisation") == ["CONNECTED", "LINKED"]


def test_a_word_of_a_moment_ago_counts_more(away: Stage) -> None:
    away.now += LATER - 1
    ask(away)
    assert connection(away) == "RECONNECTING"


def test_a_look_again_within_one_poll_says_nothing_new(away: Stage) -> None:
    """The worker asked before it lost its connection; that somebody rang the bell since is not its word."""
    away.now += LATER
    ask(away, again=True)
    assert connection(away) == "RECONNECTING"


def test_what_failed_stays_so(away: Stage) -> None:
    away.event(connection="FAILED", failed="REPLACED", epoch=1)
    away.now += LATER
    ask(away)
    assert connection(away) == "FAILED"


def test_one_that_another_is_to_replace_is_not_believed(away: Stage) -> None:
    away.redis.hset(keys.session(SESSION), "wantedInstance", "i2")
    away.now += LATER
    ask(away)
    assert connection(away) == "RECONNECTING"


def test_a_disconnect_that_was_lost_is_mended_by_who_asks_for_orders_alone(away: Stage) -> None:
    """Its number was handed messages that nobody could send."""
    away.event(connection="CONNECTED", authorisation="LINKED", epoch=1)
    away.now += LATER
    ask(away, commands_only=True)
    assert away.redis.hmget(keys.session(SESSION), "connection", "authorisation") == ["RECONNECTING", "LINKED"]
    assert away.redis.hget(keys.session(SESSION), "downSince") == str(away.now)


def test_after_a_step_back_of_the_clock_it_is_believed(away: Stage) -> None:
    away.now -= 3_600_000
    ask(away)
    assert connection(away) == "CONNECTED"


def test_the_workers_own_word_still_counts_afterwards(away: Stage) -> None:
    """Its clock is behind ours: what it says next is newer all the same."""
    said = away.now
    away.now += LATER
    ask(away)
    away.event(connection="RECONNECTING", epoch=1, at=said + 1)
    assert connection(away) == "RECONNECTING"
