"""What the whole fleet did, by hours and minutes: what is counted, once, and how any stretch of it is read."""

import pytest

from paceline.store import keys
from paceline.store.tallies import HOUR_MS, MINUTE_MS, Tally

from .stage import T0, Stage, value_of

HOUR_0 = T0 // HOUR_MS * HOUR_MS
MINUTE_0 = T0 // MINUTE_MS * MINUTE_MS


def since(stage: Stage, since_ms: int, now_ms: int) -> Tally:
    return value_of(stage.store.tallies.since(since_ms, now_ms=now_ms))


def minutes(stage: Stage, count: int, now_ms: int) -> list[tuple[int, int, int]]:
    found = value_of(stage.store.tallies.minutes(count, now_ms=now_ms))
    return [((minute.at - MINUTE_0) // MINUTE_MS, minute.sent, minute.failed) for minute in found]


def test_a_message_is_counted_once_in_each_state_it_reaches(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    for proof in ("sent", "sent", "delivered", "delivered", "read", "read"):
        stage.sent(task, proof)
    assert since(stage, T0 - HOUR_MS, stage.now) == Tally(sent=1, delivered=1, read=1)


def test_a_receipt_that_comes_first_tells_of_the_states_before_it(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.sent(task, "read")
    assert since(stage, T0 - HOUR_MS, stage.now) == Tally(sent=1, delivered=1, read=1)


def test_only_what_was_given_up_counts_as_failed(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.retry(task)
    assert since(stage, T0 - HOUR_MS, stage.now) == Tally()
    _, task, _ = stage.claimed(first=1)
    stage.fail(task)
    assert since(stage, T0 - HOUR_MS, stage.now) == Tally(failed=1)


@pytest.mark.parametrize(
    ("since_ms", "sent"),
    [
        pytest.param(HOUR_0 - HOUR_MS, 6, id="all of it"),
        pytest.param(HOUR_0 + HOUR_MS, 3, id="from an hour on"),
        pytest.param(HOUR_0 + HOUR_MS + 30 * MINUTE_MS, 2, id="from the middle of an hour on"),
        pytest.param(HOUR_0 + HOUR_MS + 31 * MINUTE_MS, 1, id="from the minute after it on"),
        pytest.param(HOUR_0 + 3 * HOUR_MS, 0, id="after the last"),
    ],
)
def test_a_total_begins_at_any_minute(stage: Stage, since_ms: int, sent: int) -> None:
    for hours, minute in ((0, 0), (0, 0), (0, 59), (1, 0), (1, 30), (2, 5)):
        key = keys.fleet_hour(HOUR_0 // HOUR_MS + hours)
        stage.redis.hincrby(key, f"sent:{minute}", 1)
    assert since(stage, since_ms, HOUR_0 + 3 * HOUR_MS).sent == sent


def test_the_minutes_run_over_the_hour_and_the_present_one_is_last(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.sent(task)
    assert minutes(stage, 3, T0 + MINUTE_MS) == [(-1, 0, 0), (0, 1, 0), (1, 0, 0)]


def test_an_hour_is_forgotten_by_itself(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.sent(task)
    assert 0 < stage.redis.ttl(keys.fleet_hour(T0 // HOUR_MS)) <= 50 * 3600
