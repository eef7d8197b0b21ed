"""The forecast for one job among others: what goes before it, what is done by a deadline, and large fleets."""

import pytest

from paceline.policy.forecast import KINDS_KEPT_APART, Capacity, ahead_of, done_by, finish_ms
from paceline.policy.trust import DAY_MS

from .builders import HOUR, NOON, ZONE

COLD = {"zone": ZONE, "opens": 9, "closes": 21, "cap": 20, "rpm": 2.0, "from_ms": 0}


def cold(used: int = 0) -> Capacity:
    return Capacity(**COLD, used_today=used)


@pytest.mark.parametrize(
    ("size", "queued", "others", "expected"),
    [
        pytest.param(100, 0, [], 100, id="alone"),
        pytest.param(100, 30, [], 130, id="behind what is queued"),
        pytest.param(10, 0, [100_000], 20, id="a small job takes turns with a big one"),
        pytest.param(100, 0, [10, 1_000], 210, id="each other job counts at most as much as this one"),
        pytest.param(0, 30, [1_000], 30, id="all routed: only the queues are left"),
    ],
)
def test_jobs_take_turns_so_a_small_one_waits_for_no_big_one(
    size: int, queued: int, others: list[int], expected: int
) -> None:
    assert ahead_of(size, queued=queued, others=others) == expected


@pytest.mark.parametrize("waiting", [5, 20, 45, 100])
def test_what_is_done_by_the_finish_is_what_waited(waiting: int) -> None:
    """The two questions (when is it done, how much is done by then) have answers that agree."""
    fleet = [cold(), cold(7)]
    finish = finish_ms(waiting, fleet, now_ms=NOON)
    assert finish is not None
    assert waiting <= done_by(finish, fleet, now_ms=NOON) <= waiting + 2
    assert done_by(finish - 5 * 60_000, fleet, now_ms=NOON) < waiting


def test_a_deadline_in_the_past_or_beyond_the_horizon_is_no_trouble() -> None:
    assert done_by(NOON - 1, [cold()], now_ms=NOON) == 0
    assert done_by(NOON + 10_000 * DAY_MS, [cold()], now_ms=NOON) == done_by(NOON + 400 * DAY_MS, [cold()], now_ms=NOON)


def test_a_large_fleet_is_averaged_and_hardly_off() -> None:
    """Ten thousand numbers that differ in what they sent today are as quick as a few, and the answer stays close."""
    fleet = [Capacity(**{**COLD, "cap": 500, "rpm": 7.0}, used_today=used % 400) for used in range(10_000)]
    assert len(set(fleet)) > KINDS_KEPT_APART
    waiting = 2_000_000
    finish = finish_ms(waiting, fleet, now_ms=NOON)
    exact = sum(min(500 - kind.used_today, 9 * 60 * 7 + 1) for kind in fleet)
    assert exact < waiting * 2
    assert finish is not None
    assert NOON < finish < NOON + 2 * DAY_MS
    alone = [Capacity(**{**COLD, "cap": 500, "rpm": 7.0}, used_today=200)] * 10_000
    reference = finish_ms(waiting, alone, now_ms=NOON)
    assert reference is not None
    assert abs(finish - reference) < HOUR
