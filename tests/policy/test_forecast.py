"""The forecast: plain cases worked out by hand, and what it may never say."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.policy.audience import groups, zones_of
from paceline.policy.facts import Rules
from paceline.policy.forecast import Backlog, Forecast, finish_ms
from paceline.policy.hours import Window
from paceline.policy.kinds import kind_of
from paceline.policy.tempo import tempo
from paceline.policy.trust import DAY_MS
from paceline.policy.workday import Kind, Shift

from .builders import DEFAULT, HOUR, MINUTE, NOON, OLD, RULES, ZONE, facts, ms, preset

SLACK = MINUTE
"""Within a burst messages are counted one by one, in the long run as a rate; between the two lies at most one rest."""
LONDON, NEW_YORK = "Europe/London", "America/New_York"


def hot(**changes) -> Kind:
    found = kind_of(facts(), RULES, now_ms=NOON)
    assert found is not None
    return msgspec.structs.replace(found, **changes)


def closing(kind: Kind, opens: int, closes: int) -> Kind:
    shift = msgspec.structs.replace(kind.shifts[0], windows=(Window(kind.zone, opens, closes),))
    return msgspec.structs.replace(kind, shifts=(shift, *kind.shifts[1:]))


def done(size: int, kinds: list[Kind], now: int = NOON, zones: dict[str, int] | None = None) -> int | None:
    return finish_ms(Backlog(size, *groups(zones or {}, DEFAULT)), kinds, rules=RULES, now_ms=now)


def later(at: str) -> int:
    return ms(at, ZONE)


@pytest.mark.parametrize(
    ("size", "kinds", "zones", "low", "high"),
    [
        pytest.param(5, [hot()], {}, NOON + 10_000, NOON + 25_000, id="a burst is quick"),
        pytest.param(
            300, [hot()], {}, NOON + 43 * MINUTE, NOON + 50 * MINUTE, id="bursts hold it to about 6.5 a minute"
        ),
        pytest.param(600, [hot(), hot()], {}, NOON + 43 * MINUTE, NOON + 50 * MINUTE, id="two share it"),
        pytest.param(
            600, [hot()], {}, later("2026-03-11T07:10"), later("2026-03-11T07:25"), id="the cap: the rest tomorrow"
        ),
        pytest.param(
            100, [hot(used_today=450)], {}, later("2026-03-11T07:05"), later("2026-03-11T07:15"), id="some used today"
        ),
        pytest.param(
            200,
            [closing(hot(), 9, 12)],
            {},
            later("2026-03-11T09:25"),
            later("2026-03-11T09:40"),
            id="closed since noon",
        ),
        pytest.param(
            10, [hot(sends_from_ms=NOON + HOUR)], {}, NOON + HOUR, NOON + HOUR + 2 * MINUTE, id="cooling down"
        ),
        pytest.param(
            300,
            [hot(takes_from_ms=NOON + 20 * HOUR), hot()],
            {},
            NOON + 40 * MINUTE,
            NOON + 50 * MINUTE,
            id="one locked",
        ),
        pytest.param(
            10,
            [hot()],
            {NEW_YORK: 10},
            later("2026-03-10T13:00"),
            later("2026-03-10T13:02"),
            id="New York wakes at one",
        ),
        pytest.param(
            100,
            [hot()],
            {ZONE: 50, NEW_YORK: 50},
            later("2026-03-10T13:05"),
            later("2026-03-10T13:12"),
            id="half asleep",
        ),
    ],
)
def test_worked_out_by_hand(size, kinds, zones, low, high):
    """Pace, cap, hours, locks and sleeping recipients each move the end to where arithmetic says."""
    assert low <= done(size, kinds, zones=zones) <= high


def test_levels_that_rise_on_the_way():
    """A number that turns hot tomorrow gives 100 today and 500 from tomorrow on."""
    young = kind_of(facts(created_at=NOON - 13 * DAY_MS - DAY_MS // 2), RULES, now_ms=NOON)
    assert [shift.cap for shift in young.shifts] == [100, 500]
    assert done(500, [young]) < later("2026-03-11T23:00")


def test_the_slowest_says_when():
    """The router deals out by count, so a slow number with its part ends a small job."""
    slow = kind_of(facts(rpm_override=2, rpm_source="manual"), RULES, now_ms=NOON)
    assert done(100, [hot(), slow]) == pytest.approx(NOON + 25 * MINUTE, abs=2 * MINUTE)


def test_a_ceiling_for_the_fleet():
    """However many numbers there are, GLOBAL_RPM lets so many through."""
    rules = Rules(DEFAULT, global_rpm=10)
    assert finish_ms(Backlog(600), [hot()] * 10, rules=rules, now_ms=NOON) == pytest.approx(NOON + HOUR, abs=MINUTE)


@pytest.mark.parametrize(
    ("size", "kinds"), [pytest.param(1, [], id="no number"), pytest.param(500 * 500, [hot()], id="a year away")]
)
def test_not_in_sight(size, kinds):
    """Where nobody sends, or not within the horizon, the answer is None and not a date."""
    assert done(size, kinds) is None


def test_nothing_waiting_is_done():
    assert done(0, []) == done(0, [hot()]) == NOON


@pytest.mark.parametrize("changes", [{"quarantined": True}, {"sessions": ()}, {"fleet_paused": True}])
def test_who_does_nothing(changes):
    """A number that waits for somebody to act is no number."""
    assert kind_of(facts(**changes), RULES, now_ms=NOON) is None


def test_a_number_that_rests_promises_nothing_before_its_slot():
    """A cold number that has just sent cannot send two more at once."""
    cold = {"created_at": NOON - 1, "sends": (NOON - 1_000,)}
    resting = kind_of(facts(**cold), RULES, now_ms=NOON)
    assert resting.sends_from_ms >= NOON + 20_000
    assert kind_of(facts(**cold, unsettled="J:1"), RULES, now_ms=NOON).sends_from_ms >= NOON + 30_000
    assert done(2, [resting]) >= NOON + 40_000


def test_the_demo_is_done_within_a_minute():
    rules = Rules(policy=preset("demo"))
    heard = {"starts": (NOON - 300_000,), "sends": (NOON - 300_000 + 100,)}
    kinds = [kind_of(facts(created_at=OLD, **heard), rules, now_ms=NOON)] * 3
    assert finish_ms(Backlog(200), kinds, rules=rules, now_ms=NOON) <= NOON + MINUTE


def test_ten_thousand_phones_are_few_kinds():
    """A big fleet costs its kinds: the same figures are counted together, and the answer is that of the shares."""
    fleet = [hot(used_today=i % 3) for i in range(9_999)]
    assert done(3_333 * 900, fleet) == done(900, [hot(used_today=i) for i in range(3)])


def test_a_number_that_gets_nothing_of_it_does_not_hold_it_up():
    """Ten messages go to the idle number; what waits for the other one is not theirs."""
    full = hot(load=400)
    assert done(10, [hot(), full]) == pytest.approx(done(10, [hot()]), abs=SLACK)
    outlook = Forecast(Backlog(10), [(hot(), 1), (full, 1)], rules=RULES, now_ms=NOON).outlook()
    assert [share.is_part for share in outlook.shares] == [True, False]
    assert outlook.shares[0].fresh == pytest.approx(10, abs=0.01)


def test_a_number_that_holds_some_of_it_counts():
    """Though it gets nothing more."""
    forecast = Forecast(Backlog(10), [(hot(), 1), (hot(load=300), 1)], rules=RULES, now_ms=NOON)
    assert forecast.outlook(holding={1}).finish_ms > NOON + 40 * MINUTE > forecast.outlook().finish_ms


def test_zones_are_told_by_the_first_digits():
    """As the library would say number by number."""
    people = ["972521234567", "447911123456", "12125550123", "18085550123"]
    assert zones_of(people * 3) == {
        ZONE: 3,
        "Europe/Guernsey,Europe/Isle_of_Man,Europe/London": 3,
        NEW_YORK: 3,
        "Pacific/Honolulu": 3,
    }


def test_the_tempo_is_that_of_the_burst_rule():
    """Five quick ones, a long rest, and in the long run what `effective_rpm` says, but for typing and hearing of it."""
    pace = hot().shifts[0].pace
    found = tempo(pace, (0, 0), 0)
    gaps = [b - a for a, b in pairwise(found.offsets)]
    assert gaps[:6] == [3_000] * 4 + [32_000] + [3_000]
    assert 60_000 / found.each_ms == pytest.approx(6.8, abs=0.1)
    assert [found.sent_in(found.time_for(n) + 1) for n in (1, 5, 6, 400)] == [1, 5, 6, 400]


kinds = st.builds(
    lambda zone, opens, closes, cap, used, after, override: Kind(
        zone=zone,
        shifts=(
            Shift(
                0,
                kind_of(facts(rpm_override=override, rpm_source="manual"), RULES, now_ms=NOON).shifts[0].pace,
                cap,
                (Window(zone, opens, closes),),
            ),
        ),
        used_today=used,
        sends_from_ms=after,
    ),
    st.sampled_from([ZONE, LONDON, "Asia/Kolkata", "Africa/Cairo"]),
    st.integers(0, 9),
    st.integers(17, 24),
    st.none() | st.integers(20, 500),
    st.integers(0, 500),
    st.just(0) | st.integers(NOON, NOON + 2 * DAY_MS),
    st.sampled_from([None, 2, 5, 20]),
)
fleets = st.lists(kinds, min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(fleets, st.lists(st.integers(1, 3_000), min_size=2, max_size=4), st.integers(0, DAY_MS))
def test_more_waiting_is_never_done_earlier(fleet, backlogs, after):
    """The forecast rises with the backlog (None counts as never), but for a rest between bursts."""
    ends = [done(n, fleet, NOON + after) or 2**60 for n in sorted(backlogs)]
    assert all(one <= other + SLACK for one, other in pairwise(ends))
    assert ends[0] >= NOON + after


@settings(max_examples=40, deadline=None)
@given(kinds, st.integers(1, 2_000), st.integers(1, 4))
def test_more_of_the_same_numbers_never_delay(kind, size, more):
    """One more like the others cannot make a job later. (A slower one can: the router deals out by count.)"""
    assert (done(size, [kind] * (more + 1)) or 2**60) <= (done(size, [kind] * more) or 2**60) + SLACK


@settings(max_examples=40, deadline=None)
@given(kinds, st.integers(1, 2_000))
def test_longer_hours_never_delay(kind, size):
    """A number that is open all day is done no later."""
    assert (done(size, [closing(kind, 0, 24)]) or 2**60) <= (done(size, [kind]) or 2**60) + SLACK


@settings(max_examples=30, deadline=None)
@given(fleets, st.integers(1, 1_500))
def test_sent_by_is_the_other_side_of_finish(fleet, size):
    """By the moment the forecast names all has gone out, and now nothing has."""
    forecast = Forecast(Backlog(size), [(kind, 1) for kind in fleet], rules=RULES, now_ms=NOON)
    outlook = forecast.outlook()
    if outlook is not None:
        assert forecast.sent_by(outlook.finish_ms + 2_000) == pytest.approx(size, abs=1.5)
    assert forecast.sent_by(NOON) == 0
