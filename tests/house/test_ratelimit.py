"""The token bucket: what it lets through, what it tells, and that no pattern of requests gets more than its rate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.kits.ratelimit import MINUTE_MS, Bucket, Meter, ask

T0 = 1_760_000_000_000
REQUEST = 60_000


@pytest.mark.parametrize(
    ("bucket", "per_minute", "expected"),
    [
        pytest.param(None, 60, (True, 59, 1_000, 0), id="the first of anybody"),
        pytest.param(Bucket(2 * REQUEST, T0), 60, (True, 1, 59_000, 0), id="one of two left"),
        pytest.param(Bucket(REQUEST, T0), 60, (True, 0, 60_000, 0), id="the last one"),
        pytest.param(Bucket(REQUEST - 1, T0), 60, (False, 0, 59_001, 1), id="a part too little"),
        pytest.param(Bucket(0, T0), 60, (False, 0, 60_000, 1_000), id="empty"),
        pytest.param(Bucket(0, T0 - 1_000), 60, (True, 0, 60_000, 0), id="empty a second ago"),
        pytest.param(Bucket(0, T0 - 999), 60, (False, 0, 59_001, 1), id="a millisecond too early"),
        pytest.param(Bucket(0, T0 - 10 * MINUTE_MS), 60, (True, 59, 1_000, 0), id="never more than full"),
        pytest.param(
            Bucket(0, T0 + 5_000), 60, (False, 0, 60_000, 1_000), id="a clock that was set back fills nothing"
        ),
        pytest.param(None, 1, (True, 0, 60_000, 0), id="one a minute"),
        pytest.param(Bucket(0, T0), 7, (False, 0, 60_000, 8_572), id="a rate that does not divide a minute"),
        pytest.param(Bucket(100 * REQUEST, T0), 10, (True, 9, 6_000, 0), id="a rate that was lowered"),
    ],
)
def test_what_it_says(bucket: Bucket | None, per_minute: int, expected: tuple[bool, int, int, int]) -> None:
    verdict = ask(bucket, per_minute, T0)
    assert (verdict.allowed, verdict.remaining, verdict.reset_ms, verdict.retry_ms) == expected
    assert verdict.limit == per_minute


def test_a_clock_that_was_set_back_cannot_fill_it_twice() -> None:
    late = ask(Bucket(0, T0 + 60_000), 60, T0)
    assert late.bucket == Bucket(0, T0 + 60_000)


rates = st.integers(1, 100_000)
gaps = st.lists(st.one_of(st.just(0), st.integers(0, 3_000), st.integers(0, 200_000)), max_size=80)


@given(rates, gaps)
@settings(deadline=None, database=None)
def test_no_window_holds_more_than_a_full_bucket_and_what_flowed_in_meanwhile(rate: int, gaps: list[int]) -> None:
    bucket, now_ms, admitted = None, T0, list[int]()
    for gap in gaps:
        now_ms += gap
        verdict = ask(bucket, rate, now_ms)
        bucket = verdict.bucket
        if verdict.allowed:
            admitted.append(now_ms)
    for first, start in enumerate(admitted):
        for count, end in enumerate(admitted[first:], start=1):
            assert count * REQUEST <= rate * REQUEST + (end - start) * rate


@given(rates, gaps)
@settings(deadline=None, database=None)
def test_what_it_tells_is_true(rate: int, gaps: list[int]) -> None:
    """If `remaining` says so, one more is allowed at once; after `retry_ms` one is, and not before; after `reset_ms` it
    is full."""
    bucket, now_ms = None, T0
    for gap in gaps:
        now_ms += gap
        verdict = ask(bucket, rate, now_ms)
        bucket = verdict.bucket
        assert 0 <= verdict.remaining < rate
        assert verdict.allowed == (verdict.retry_ms == 0)
        if not verdict.allowed:
            assert ask(bucket, rate, now_ms + verdict.retry_ms).allowed
            assert not ask(bucket, rate, now_ms + verdict.retry_ms - 1).allowed
        assert ask(bucket, rate, now_ms + verdict.reset_ms).remaining == rate - 1
        assert ask(bucket, rate, now_ms).allowed == (verdict.remaining > 0)


def test_a_caller_that_keeps_to_the_rate_is_never_refused() -> None:
    bucket = None
    for number in range(1_000):
        verdict = ask(bucket, 60, T0 + number * 1_000)
        bucket = verdict.bucket
        assert verdict.allowed


def test_a_meter_counts_only_what_it_is_told_to_count() -> None:
    meter = Meter(10)
    for _ in range(5):
        assert meter.ask("a", 2, T0).remaining == 1
    meter.count("a", meter.ask("a", 2, T0))
    assert (meter.ask("a", 2, T0).remaining, meter.ask("b", 2, T0).remaining) == (0, 1)


def test_a_meter_forgets_the_one_that_was_quiet_the_longest() -> None:
    meter = Meter(2)
    for name in ("a", "b", "a", "c"):
        meter.count(name, meter.ask(name, 60, T0))
    assert len(meter) == 2
    assert [meter.ask(name, 60, T0).remaining for name in ("a", "b", "c")] == [57, 59, 58]
