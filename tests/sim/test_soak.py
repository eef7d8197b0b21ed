"""A few days of a small fleet: every evening the books balance, and what is over is freed. `make soak` is the month."""

from paceline.testing.servers import private_redis
from paceline.testing.soak import KEPT_DAYS, soak

NUMBERS, DAYS, MESSAGES = 5, 6, 2_000


def test_every_evening_the_books_balance_and_old_days_are_freed() -> None:
    with private_redis() as redis:
        days = list(soak(redis, NUMBERS, DAYS, MESSAGES))
    assert [fault for day in days for fault in day.faults] == []
    assert sum(day.sent for day in days) > 0.97 * MESSAGES
    first_full, last = days[KEPT_DAYS], days[-1]
    assert last.redis_mb < 1.15 * first_full.redis_mb


def test_a_day_that_is_never_freed_is_seen(monkeypatch) -> None:
    """The same days with everything kept for ever: Redis grows from day to day."""
    monkeypatch.setattr("paceline.testing.soak._take_a_day_off", lambda redis: None)
    monkeypatch.setattr("paceline.dispatcher.scheduler.FORGET_BATCH", 0)
    with private_redis() as redis:
        days = list(soak(redis, NUMBERS, DAYS, MESSAGES))
    assert days[-1].redis_mb > 1.15 * days[KEPT_DAYS].redis_mb


def test_a_soak_can_be_run_again_step_by_step() -> None:
    """Orders are under way while others take their steps; that must not let two runs of a seed differ."""
    traces = []
    for _ in range(2):
        with private_redis() as redis:
            traces.append([day.trace for day in soak(redis, NUMBERS, 2, 200)])
    assert traces[0] == traces[1]
