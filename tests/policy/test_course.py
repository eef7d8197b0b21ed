"""The course of a job: from nothing to all of it, never back, and flat where the numbers sleep."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.policy.course import STEPS, Point, course
from paceline.policy.crew import Seat, crew_of
from paceline.policy.facts import Rules
from paceline.policy.prospect import Ask, prospect

from .builders import HOUR, MINUTE, NOON, RULES, facts


def planned(size: int, *, phones: int = 1, queued: int = 0, rules: Rules = RULES, **asked: object) -> list[Point]:
    seats = [Seat(facts(), queued, 0) for _ in range(phones)]
    ask = Ask(size=size, start_ms=NOON, **asked)  # type: ignore[arg-type]
    return course(ask, prospect(ask, crew_of(seats, rules, now_ms=NOON), rules))


def sent_by(points: list[Point], at: int) -> float:
    (low_at, low), (high_at, high) = next((a, b) for a, b in pairwise(points) if a[0] <= at <= b[0])
    return low + (high - low) * (at - low_at) / (high_at - low_at)


def test_a_steady_job_is_a_line() -> None:
    """Bursts aside, one number sends evenly: a few points say it all."""
    points = planned(300)
    assert points[0] == (NOON, 0)
    assert points[-1][1] == 300
    assert len(points) < 10
    assert sent_by(points, (NOON + points[-1][0]) // 2) == pytest.approx(150, abs=10)


def test_nothing_goes_out_in_the_night() -> None:
    """The cap of 500 is reached before the evening; from then until seven in the morning the course is flat."""
    points = planned(700)
    assert sent_by(points, NOON + 4 * HOUR) == pytest.approx(500, abs=1)
    assert sent_by(points, NOON + 17 * HOUR) == pytest.approx(500, abs=1)
    assert points[-1][1] == 700


def test_what_is_queued_goes_first() -> None:
    points = planned(100, queued=100)
    assert sent_by(points, NOON + 10 * MINUTE) == pytest.approx(0, abs=1)


def test_a_spread_job_goes_out_as_it_is_spread() -> None:
    points = planned(60, last_ms=NOON + 5 * HOUR)
    assert sent_by(points, NOON + 150 * MINUTE) == pytest.approx(30, abs=2)


def test_under_a_ceiling_for_all_it_follows_the_ceiling() -> None:
    points = planned(600, phones=10, rules=Rules(RULES.policy, global_rpm=10))
    assert sent_by(points, NOON + 30 * MINUTE) == pytest.approx(300, abs=10)


def test_without_an_end_in_sight_there_is_no_course() -> None:
    assert planned(10, phones=0) == []


@given(size=st.integers(1, 5_000), phones=st.integers(1, 5), queued=st.integers(0, 200), spread=st.integers(0, 2_000))
@settings(max_examples=60, deadline=None)
def test_it_only_ever_rises_to_all_of_it(size: int, phones: int, queued: int, spread: int) -> None:
    points = planned(size, phones=phones, queued=queued, last_ms=NOON + spread * MINUTE if spread else 0)
    assert len(points) <= STEPS + 1
    assert (points[0], points[-1][1]) == ((NOON, 0), size)
    assert all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(points))
