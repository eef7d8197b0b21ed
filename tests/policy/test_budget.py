"""The daily cap, and the calendar day it counts in."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.policy import budget, hours

from .builders import DEFAULT, HOUR, NOON, ZONES, moments, preset

COLD = DEFAULT.levels[0]
zone_moments = st.sampled_from(ZONES).flatmap(lambda zone: st.tuples(st.just(zone), moments(zone)))


@pytest.mark.parametrize(("used", "left"), [(0, 20), (19, 1), (20, 0), (25, 0)])
def test_what_is_left(used, left):
    """The cap less what is used, and never less than nothing (a cap may be lowered below what went out)."""
    assert budget.left(COLD, used) == left


def test_no_cap_is_no_limit():
    """A level without a cap has no figure to run out."""
    assert budget.left(preset("demo").level(None, now_ms=NOON), 10**9) is None


@pytest.mark.parametrize(
    ("day", "counted_day", "used"),
    [
        pytest.param("2026-03-10", "2026-03-10", 7, id="the same day"),
        pytest.param("2026-03-11", "2026-03-10", 0, id="a new day"),
        pytest.param("2026-03-09", "2026-03-10", 7, id="back over midnight by a change of zone"),
        pytest.param("2027-01-01", "2026-12-31", 0, id="new year"),
        pytest.param("2026-12-31", "2027-01-01", 7, id="back over new year"),
        pytest.param("2026-10-01", "2026-09-30", 0, id="two-digit month"),
        pytest.param("2026-03-10", "", 0, id="never counted"),
    ],
)
def test_used_on_a_day(day, counted_day, used):
    """A newer day starts afresh; a change of zone never gives the same day's budget twice."""
    assert budget.used_on(day, counted_day=counted_day, counted=7) == used


@given(zone_moments, st.lists(st.sampled_from(ZONES), min_size=1, max_size=4))
def test_changing_the_zone_back_and_forth_earns_nothing(moment, zones):
    """However often the zone is changed at one moment, no more goes out than one cap for each newer day."""
    _, now = moment
    counted_day, counted, sent = "", 0, {}
    for zone in zones * 2:
        day = hours.local_day(zone, now)
        used = budget.used_on(day, counted_day=counted_day, counted=counted)
        if used < COLD.daily_cap:
            counted_day, counted = max(day, counted_day), COLD.daily_cap
            sent[counted_day] = sent.get(counted_day, 0) + COLD.daily_cap - used
    assert all(count <= COLD.daily_cap for count in sent.values())
    assert len(sent) <= 2


@pytest.mark.parametrize(
    ("zone", "now", "ends"),
    [
        pytest.param("Europe/London", "2026-03-28T12:00+00:00", "2026-03-29T00:00+00:00", id="London before spring"),
        pytest.param("Europe/London", "2026-03-29T00:30+00:00", "2026-03-29T23:00+00:00", id="London, 23 hours"),
        pytest.param("Europe/London", "2026-10-25T00:30+01:00", "2026-10-26T00:00+00:00", id="London, 25 hours"),
        pytest.param("America/New_York", "2026-03-08T01:00-05:00", "2026-03-09T00:00-04:00", id="New York, spring"),
        pytest.param("America/New_York", "2026-11-01T01:30-04:00", "2026-11-02T00:00-05:00", id="New York, autumn"),
        pytest.param("Asia/Jerusalem", "2026-03-27T01:00+02:00", "2026-03-28T00:00+03:00", id="Jerusalem, spring"),
        pytest.param("Asia/Jerusalem", "2026-10-25T01:30+03:00", "2026-10-26T00:00+02:00", id="Jerusalem, autumn"),
        pytest.param("Asia/Kolkata", "2026-05-05T23:59:59.999+05:30", "2026-05-06T00:00+05:30", id="half hour"),
        pytest.param("Africa/Cairo", "2026-04-23T12:00+02:00", "2026-04-24T01:00+03:00", id="Cairo has no midnight"),
        pytest.param("Africa/Cairo", "2026-04-23T23:00+02:00", "2026-04-24T01:00+03:00", id="Cairo, an hour before"),
        pytest.param("Africa/Cairo", "2026-10-29T23:30+03:00", "2026-10-30T00:00+02:00", id="Cairo repeats 23:00"),
        pytest.param("America/Havana", "2026-10-31T12:00-04:00", "2026-11-01T00:00-04:00", id="Havana, 00:00 twice"),
        pytest.param("America/Havana", "2026-11-01T00:30-04:00", "2026-11-02T00:00-05:00", id="Havana, first 00:30"),
        pytest.param("UTC", "2026-05-05T00:00+00:00", "2026-05-06T00:00+00:00", id="at midnight: the next one"),
    ],
)
def test_end_of_the_day(zone, now, ends):
    """The day ends at the first moment whose local date is another, on the days of 23 and 25 hours too."""
    assert hours.day_ends_at(zone, _at(now)) == _at(ends)


@settings(max_examples=400)
@given(zone_moments)
def test_a_day_is_what_lies_before_its_end(moment):
    """Until the end it is the same day, at the end a newer one, and the end always lies ahead."""
    zone, now = moment
    ends = hours.day_ends_at(zone, now)
    day = hours.local_day(zone, now)
    assert hours.day_starts_at(zone, now) == hours.day_ends_at(zone, hours.day_starts_at(zone, now) - 1)
    assert hours.day_starts_at(zone, now) <= now < ends <= now + 25 * HOUR
    assert hours.local_day(zone, ends - 1) == day < hours.local_day(zone, ends)
    assert day == datetime.fromtimestamp(now / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d")


@given(zone_moments, st.integers(0, 48 * HOUR))
def test_the_day_never_goes_back(moment, later):
    """Time passing never returns to an older day, whatever the clocks do."""
    zone, now = moment
    assert hours.local_day(zone, now) <= hours.local_day(zone, now + later)


def _at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
