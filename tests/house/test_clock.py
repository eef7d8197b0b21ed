"""The sampled clock: follows its reference, and never goes back."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from paceline.kits import clock as clocks
from paceline.kits.clock import SampledClock, SystemClock, monotonic_ms


class Reference:
    """A reference clock and the local monotonic one, both moved by hand; each question takes a round trip."""

    def __init__(self) -> None:
        self.monotonic_ms = 1_000
        self.ahead_ms = 1_700_000_000_000
        self.round_trips_ms: Iterator[int] = iter(())

    def monotonic(self) -> int:
        return self.monotonic_ms

    @property
    def now_ms(self) -> int:
        return self.monotonic_ms + self.ahead_ms

    async def ask(self) -> int:
        trip_ms = next(self.round_trips_ms, 0)
        self.monotonic_ms += trip_ms // 2
        answer = self.now_ms
        self.monotonic_ms += trip_ms - trip_ms // 2
        return answer


@pytest.fixture
def reference() -> Reference:
    return Reference()


@pytest.fixture
def clock(reference: Reference) -> SampledClock:
    return SampledClock(reference.ask, monotonic=reference.monotonic)


async def test_it_tells_the_references_time_between_samples(reference: Reference, clock: SampledClock) -> None:
    await clock.sample()
    reference.monotonic_ms += 4_321
    assert clock.now_ms() == reference.now_ms


async def test_the_way_there_and_back_is_taken_into_account(reference: Reference, clock: SampledClock) -> None:
    reference.round_trips_ms = iter([40, 40, 40])
    await clock.sample()
    assert clock.now_ms() == reference.now_ms


async def test_a_process_stopped_within_a_sample_does_not_believe_it(reference: Reference) -> None:
    """SIGSTOP between the answer and reading it looks like a two-minute trip; the other attempts are better."""
    stops = iter([0, 120_000, 0])

    async def ask() -> int:
        answer = reference.now_ms
        reference.monotonic_ms += next(stops, 0)
        return answer

    clock = SampledClock(ask, monotonic=reference.monotonic)
    await clock.sample()
    assert clock.now_ms() == reference.now_ms


@given(st.lists(st.tuples(st.integers(-100_000, 100_000), st.integers(0, 10_000)), max_size=30))
async def test_it_never_goes_back_whatever_the_reference_does(steps: list[tuple[int, int]]) -> None:
    reference = Reference()
    clock = SampledClock(reference.ask, monotonic=reference.monotonic)
    await clock.sample()
    seen = [clock.now_ms()]
    for jump_ms, passed_ms in steps:
        reference.ahead_ms += jump_ms
        reference.monotonic_ms += passed_ms
        seen.append(clock.now_ms())
        await clock.sample()
        seen.append(clock.now_ms())
    assert seen == sorted(seen)


async def test_a_reference_that_stepped_back_is_waited_for_and_then_followed(
    reference: Reference, clock: SampledClock
) -> None:
    await clock.sample()
    before_ms = clock.now_ms()
    reference.ahead_ms -= 5_000
    await clock.sample()
    assert clock.now_ms() == before_ms
    reference.monotonic_ms += 6_000
    assert clock.now_ms() == reference.now_ms


async def test_a_reference_that_stepped_back_is_told(reference: Reference, clock: SampledClock) -> None:
    """Sending rests until then, and somebody will ask why."""
    await clock.sample()
    with capture_logs() as lines:
        reference.ahead_ms -= 500
        await clock.sample()
        reference.ahead_ms += 10_000
        await clock.sample()
        assert lines == []
        reference.ahead_ms -= 3_600_000
        await clock.sample()
        await clock.sample()
    assert [round(line["by_ms"], -2) for line in lines] == [3_600_000]


async def test_a_good_sample_is_not_given_up_for_a_bad_one(reference: Reference, clock: SampledClock) -> None:
    """On a busy host all three answers were read 350 ms late, and one service's clock ran that much behind the others';
    a difference that no round trip explains is the reference's own and is followed."""
    await clock.sample()

    async def answered_and_read_late() -> int:
        answer = reference.now_ms
        reference.monotonic_ms += 700
        return answer

    clock._reference = answered_and_read_late
    await clock.sample()
    assert clock.now_ms() == reference.now_ms
    reference.ahead_ms += 5_000
    await clock.sample()
    assert abs(clock.now_ms() - reference.now_ms) <= 350


async def test_a_reference_that_is_away_leaves_the_last_offset(reference: Reference) -> None:
    async def away() -> int:
        raise ConnectionError

    clock = SampledClock(reference.ask, monotonic=reference.monotonic)
    await clock.sample()
    clock._reference = away
    with pytest.raises(ConnectionError):
        await clock.sample()
    reference.monotonic_ms += 100
    assert clock.now_ms() == reference.now_ms


def test_it_refuses_to_guess_before_the_first_sample(clock: SampledClock) -> None:
    with pytest.raises(RuntimeError, match="sample"):
        clock.now_ms()


def test_the_system_clock_stands_still_when_it_is_set_back() -> None:
    readings = iter([5_000, 3_000, 6_000])
    clock = SystemClock(lambda: next(readings))
    assert [clock.now_ms() for _ in range(3)] == [5_000, 5_000, 6_000]


def test_the_monotonic_clock_stands_still_where_the_machines_own_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As some virtual machines have it for a process that changes its core."""
    ahead_ns = (monotonic_ms() + 3_600_000) * 1_000_000
    held = clocks.held(clocks._since_boot_ms)
    read = iter([ahead_ns, ahead_ns - 5_000_000, ahead_ns + 1_000_000])
    for name in ("clock_gettime_ns", "monotonic_ns"):
        monkeypatch.setattr(clocks.time, name, lambda *_: next(read))
    assert [held() - ahead_ns // 1_000_000 for _ in range(3)] == [0, 0, 1]
