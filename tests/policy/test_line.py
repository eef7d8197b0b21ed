"""A line says of each place what a forecast of so many messages says of its end."""

import pytest

from paceline.policy.forecast import Backlog, Forecast
from paceline.policy.kinds import kind_of
from paceline.policy.line import Line
from paceline.policy.trust import DAY_MS

from .builders import HOUR, MINUTE, NOON, RULES, facts, ms
from .test_forecast import closing, hot


def line(kind) -> Line:
    return Line(kind, RULES, now_ms=NOON)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(hot(), id="hot"),
        pytest.param(hot(used_today=450), id="near its cap"),
        pytest.param(hot(sends_from_ms=NOON + HOUR), id="resting"),
        pytest.param(hot(burst=4), id="in a burst"),
        pytest.param(closing(hot(), 9, 13), id="closes in an hour"),
        pytest.param(kind_of(facts(created_at=NOON - 1), RULES, now_ms=NOON), id="cold"),
        pytest.param(kind_of(facts(created_at=NOON - 13 * DAY_MS), RULES, now_ms=NOON), id="a level to come"),
    ],
)
@pytest.mark.parametrize("place", [1, 2, 5, 6, 19, 51, 200, 600, 1_300])
def test_a_place_is_the_end_of_a_backlog(kind, place):
    forecast = Forecast(Backlog(place), [(kind, 1)], rules=RULES, now_ms=NOON).outlook()
    assert line(kind).at(place) == pytest.approx(forecast.finish_ms, abs=2 * MINUTE)


def test_each_place_is_later_than_the_one_before():
    """Also over nights and caps, and in whatever order they are asked for."""
    asked = line(closing(hot(), 9, 17))
    last = asked.at(2_000)
    times = [asked.at(place) for place in range(1, 2_001)]
    assert times == sorted(set(times))
    assert times[-1] == last


def test_nobody_new_before_the_number_takes_them():
    """A lock on new chats keeps them waiting like a rest of the number."""
    locked, resting = (line(hot(**{name: NOON + HOUR})) for name in ("takes_from_ms", "sends_from_ms"))
    assert [locked.at(place) for place in range(1, 600)] == [resting.at(place) for place in range(1, 600)]


def test_the_day_has_a_cap():
    """The 500th goes today, the next tomorrow when it opens."""
    found = line(hot())
    assert found.at(500) < ms("2026-03-10T20:00", "Asia/Jerusalem") < found.at(501)


def test_a_number_that_may_never_send_is_not_in_sight():
    never = closing(hot(), 9, 9)
    assert line(never).at(1) is None
