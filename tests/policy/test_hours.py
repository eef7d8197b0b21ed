"""Hours: when a number and a recipient are both awake, against a plain scan minute by minute."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.policy import hours
from paceline.policy.hours import Window

from .builders import DEFAULT, HOUR, LONDONER, MINUTE, NOON, PHONE, ZONES, moments, ms, preset

spans = st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda span: span[0] < span[1] and span != (0, 24))
# Custom policies may open or close in the hours that clocks skip or repeat.
spans |= st.sampled_from([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 5), (20, 24), (23, 24)])
windows = st.builds(lambda zone, span: Window(zone, *span), st.sampled_from(ZONES), spans)
several = st.lists(windows, min_size=1, max_size=3).map(tuple)
cases = several.flatmap(lambda group: st.tuples(st.just(group), moments(group[0].zone)))
single_cases = windows.flatmap(lambda window: st.tuples(st.just((window,)), moments(window.zone)))


def awake(group: tuple[Window, ...], at: int) -> bool:
    """The rule itself, written as plainly as can be."""
    return all(w.opens <= datetime.fromtimestamp(at // 1000, ZoneInfo(w.zone)).hour < w.closes for w in group)


def scan(group: tuple[Window, ...], start: int, step: int, *, until: bool, horizon: int = 8 * 24 * HOUR) -> int | None:
    """The first moment from `start` on, in steps of the clock, at which `awake` is `until`."""
    if awake(group, start) is until:
        return start
    at = start - start % step + step
    while at <= start + horizon:
        if awake(group, at) is until:
            return at
        at += step
    return None


@pytest.mark.parametrize(
    ("zone", "span", "now", "opens"),
    [
        ("Europe/London", (9, 21), "2026-06-01T12:00+01:00", "2026-06-01T12:00+01:00"),
        ("Europe/London", (9, 21), "2026-06-01T08:59:59.999+01:00", "2026-06-01T09:00+01:00"),
        ("Europe/London", (9, 21), "2026-06-01T20:59:59.999+01:00", "2026-06-01T20:59:59.999+01:00"),
        ("Europe/London", (9, 21), "2026-06-01T21:00+01:00", "2026-06-02T09:00+01:00"),
        ("Europe/London", (9, 21), "2026-03-28T22:00+00:00", "2026-03-29T09:00+01:00"),
        ("Europe/London", (9, 21), "2026-10-24T22:00+01:00", "2026-10-25T09:00+00:00"),
        ("America/New_York", (7, 23), "2026-03-07T23:00-05:00", "2026-03-08T07:00-04:00"),
        ("America/New_York", (7, 23), "2026-10-31T23:30-04:00", "2026-11-01T07:00-05:00"),
        ("America/New_York", (2, 5), "2026-03-08T00:30-05:00", "2026-03-08T03:00-04:00"),
        ("America/New_York", (1, 2), "2026-11-01T00:30-04:00", "2026-11-01T01:00-04:00"),
        ("America/New_York", (1, 2), "2026-11-01T01:30-05:00", "2026-11-01T01:30-05:00"),
        ("Asia/Jerusalem", (8, 22), "2026-03-27T00:00+02:00", "2026-03-27T08:00+03:00"),
        ("Asia/Jerusalem", (8, 22), "2026-10-25T00:00+03:00", "2026-10-25T08:00+02:00"),
        ("Asia/Kolkata", (9, 21), "2026-06-01T03:00+00:00", "2026-06-01T03:30+00:00"),
        ("Asia/Kathmandu", (9, 21), "2026-06-01T03:00+00:00", "2026-06-01T03:15+00:00"),
        ("Europe/London", (20, 24), "2026-06-01T23:59:59.999+01:00", "2026-06-01T23:59:59.999+01:00"),
        ("Europe/London", (20, 24), "2026-06-02T00:00+01:00", "2026-06-02T20:00+01:00"),
        ("Africa/Cairo", (0, 5), "2026-04-23T23:30+02:00", "2026-04-24T01:00+03:00"),
    ],
)
def test_next_opening(zone, span, now, opens):
    """The border minutes and the nights the clocks change, zone by zone."""
    assert hours.next_open((Window(zone, *span),), _at(now)) == _at(opens)


@pytest.mark.parametrize(
    ("zone", "span", "now", "closes"),
    [
        ("Europe/London", (9, 21), "2026-06-01T12:00+01:00", "2026-06-01T21:00+01:00"),
        ("Europe/London", (9, 21), "2026-06-01T20:59:59.999+01:00", "2026-06-01T21:00+01:00"),
        ("Europe/London", (0, 2), "2026-10-25T01:30+01:00", "2026-10-25T02:00+00:00"),
        ("Europe/London", (0, 23), "2026-03-29T00:30+00:00", "2026-03-29T23:00+01:00"),
        ("America/New_York", (0, 2), "2026-03-08T00:30-05:00", "2026-03-08T03:00-04:00"),
        ("America/New_York", (0, 1), "2026-11-01T00:30-04:00", "2026-11-01T01:00-04:00"),
        ("Asia/Jerusalem", (0, 22), "2026-03-27T01:00+02:00", "2026-03-27T22:00+03:00"),
        ("Asia/Kolkata", (9, 21), "2026-06-01T12:00+05:30", "2026-06-01T21:00+05:30"),
        ("Europe/London", (20, 24), "2026-06-01T23:00+01:00", "2026-06-02T00:00+01:00"),
        ("Africa/Cairo", (20, 24), "2026-04-23T21:00+02:00", "2026-04-24T01:00+03:00"),
        ("Africa/Cairo", (20, 24), "2026-10-29T23:30+03:00", "2026-10-30T00:00+02:00"),
        ("America/Havana", (20, 24), "2026-10-31T23:30-04:00", "2026-11-01T00:00-04:00"),
    ],
)
def test_closing(zone, span, now, closes):
    """Closing time is the first moment that is closed, also when the clocks skip or repeat it."""
    assert hours.closes_at((Window(zone, *span),), _at(now)) == _at(closes)


def test_the_whole_day_is_never_closed():
    """00-24 is open at every moment; its "closing" is midnight, where the day's budget ends anyway."""
    window = (Window("Europe/London", 0, 24),)
    for at in (ms("2026-03-29T00:59"), ms("2026-10-25T00:30"), ms("2026-06-01T23:59:59")):
        assert hours.next_open(window, at) == at
        assert hours.closes_at(window, at) == hours.day_ends_at("Europe/London", at)


def test_no_windows_are_always_open():
    """A policy without hours never closes."""
    assert hours.is_open((), NOON)
    assert hours.next_open((), NOON) == NOON
    assert hours.closes_at((), NOON) is None


@given(cases)
def test_open_is_the_plain_rule(case):
    """`is_open` says what the rule says."""
    assert hours.is_open(*case) == awake(*case)


@settings(max_examples=400)
@given(cases | single_cases)
def test_the_next_opening_is_open_and_none_is_earlier(case):
    """`next_open` is the first open moment a scan of every quarter of an hour finds, or None where it finds none."""
    group, now = case
    assert hours.next_open(group, now) == scan(group, now, 15 * MINUTE, until=True)


@settings(max_examples=60)
@given(single_cases)
def test_the_next_opening_minute_by_minute(case):
    """No zone opens between two quarters: the scan by minutes agrees."""
    group, now = case
    assert hours.next_open(group, now) == scan(group, now, MINUTE, until=True)


@settings(max_examples=500)
@given(cases | single_cases)
def test_closing_is_the_first_closed_moment(case):
    """From an open moment on, all is open before `closes_at` and closed at it."""
    group, now = case
    opening = hours.next_open(group, now)
    if opening is not None:
        assert hours.closes_at(group, opening) == scan(group, opening, 15 * MINUTE, until=False)


@pytest.mark.parametrize(
    ("to", "timezone", "expected"),
    [
        pytest.param(LONDONER, "Asia/Kolkata", ["Asia/Kolkata"], id="the contact's own zone comes first"),
        pytest.param("351912345678", None, ["Atlantic/Azores", "Europe/Lisbon"], id="every zone it may be in"),
        pytest.param("80012345678", None, ["Asia/Jerusalem"], id="unknown: the phone's"),
        pytest.param(PHONE, None, ["Asia/Jerusalem"], id="one zone"),
    ],
)
def test_zones_of_a_recipient(to, timezone, expected):
    """A recipient's window is 07-23 in each zone it may be in."""
    found = hours.recipient_windows(DEFAULT, to, timezone, "Asia/Jerusalem")
    assert found == tuple(Window(zone, 7, 23) for zone in expected)


def test_no_recipient_hours_in_the_demo():
    """A policy without recipient hours asks for no zone at all."""
    assert hours.recipient_windows(preset("demo"), LONDONER, "Asia/Kolkata", "UTC") == ()


def test_a_recipient_in_several_zones_is_awake_when_all_are():
    """A Portuguese mobile may be on the Azores: at 07:30 in Lisbon it waits for 07:00 there."""
    group = hours.recipient_windows(DEFAULT, "351912345678", None, "UTC")
    now = ms("2026-06-01T07:30", "Europe/Lisbon")
    assert hours.next_open(group, now) == ms("2026-06-01T07:00", "Atlantic/Azores")
    assert hours.closes_at(group, ms("2026-06-01T12:00", "Europe/Lisbon")) == ms("2026-06-01T23:00", "Europe/Lisbon")


@pytest.mark.parametrize(
    ("group", "common"),
    [
        pytest.param([("UTC", 9, 12), ("UTC", 12, 15)], False, id="one closes when the other opens"),
        pytest.param([("UTC", 9, 13), ("UTC", 12, 15)], True, id="an hour together"),
        pytest.param([("Asia/Kolkata", 9, 12), ("UTC", 6, 9)], True, id="half an hour together"),
        pytest.param([("Asia/Kolkata", 9, 12), ("UTC", 7, 9)], False, id="half an hour apart"),
        pytest.param([("Pacific/Auckland", 9, 17), ("Europe/London", 9, 17)], False, id="far apart"),
        pytest.param([("Pacific/Auckland", 7, 23), ("Europe/London", 7, 23)], True, id="far apart, long days"),
        pytest.param([("UTC", 8, 10), ("UTC", 9, 11), ("UTC", 10, 12)], False, id="each pair, but not all three"),
    ],
)
def test_common_hours(group, common):
    """Windows that never overlap have no opening (NO_COMMON_HOURS), and those that touch for long enough have one."""
    group = tuple(Window(*w) for w in group)
    for day in range(0, 365, 30):
        opening = hours.next_open(group, ms("2026-01-15") + day * 24 * HOUR)
        assert (opening is not None) == common
        assert opening is None or awake(group, opening)


@pytest.mark.parametrize(
    ("phone", "timezone", "zone"),
    [
        pytest.param(PHONE, "Europe/London", "Europe/London", id="set"),
        pytest.param(PHONE, None, "Asia/Jerusalem", id="from its number"),
        pytest.param("80012345678", None, "UTC", id="nobody knows"),
    ],
)
def test_zone_of_a_phone(phone, timezone, zone):
    """The zone that was set, else the number's, else UTC."""
    assert hours.phone_zone(phone, timezone) == zone


@given(st.text(st.characters(), max_size=20))
def test_a_strange_zone_name_is_no_zone_and_no_error(name):
    """A name from outside is answered yes or no; a file path or a NUL byte is a no."""
    assert hours.is_zone(name) in (True, False)


@pytest.mark.parametrize(
    "name",
    [
        "", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe", "Europe/London\x00", "tzdata.zi",
        "localtime", "posixrules", "posix/UTC", "right/UTC",
    ],
)  # fmt: skip
def test_no_zones(name):
    """Paths, folders, files that are no timezones, and those that mean another zone on another host are refused."""
    assert not hours.is_zone(name)


def _at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
