"""The forecast: the closed form against a count minute by minute, and what it may never say."""

from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.policy.facts import Rules
from paceline.policy.forecast import Capacity, ahead_of, capacity, done_by, finish_ms
from paceline.policy.trust import DAY_MS

from .builders import DEFAULT, HOUR, MINUTE, NOON, OLD, RULES, ZONE, facts, ms, preset

COLD = Capacity(zone=ZONE, opens=9, closes=21, cap=20, used_today=0, rpm=2.0, from_ms=0)
HOT = Capacity(zone=ZONE, opens=7, closes=23, cap=500, used_today=0, rpm=6.8, from_ms=0)
NO_CAP = Capacity(zone="Europe/London", opens=9, closes=17, cap=None, used_today=0, rpm=5.0, from_ms=0)


def change(kind: Capacity, **changes) -> Capacity:
    return Capacity(**{**{name: getattr(kind, name) for name in Capacity.__struct_fields__}, **changes})


def count(waiting: int, fleet: list[Capacity], now: int, days: int = 60) -> int | None:
    """Minute by minute: each open phone with budget gives rpm a minute, and one at the start of a day's sending."""
    zones = [ZoneInfo(kind.zone) for kind in fleet]
    today = [datetime.fromtimestamp(now / 1000, zone).date() for zone in zones]
    used = [float(kind.used_today) for kind in fleet]
    begun = [False] * len(fleet)
    left = float(waiting)
    for at in range(now, now + days * DAY_MS, MINUTE):
        for i, kind in enumerate(fleet):
            local = datetime.fromtimestamp(at / 1000, zones[i])
            if local.date() != today[i]:
                today[i], used[i], begun[i] = local.date(), 0.0, False
            if at >= kind.from_ms and kind.opens <= local.hour < kind.closes:
                amount = kind.rpm + (0 if begun[i] else 1)
                amount = amount if kind.cap is None else max(0.0, min(amount, kind.cap - used[i]))
                begun[i] = True
                used[i] += amount
                left -= amount
        if left <= 1e-6:
            return at + MINUTE
    return None


@pytest.mark.parametrize(
    ("waiting", "fleet", "now"),
    [
        pytest.param(5, [COLD], NOON, id="a handful now"),
        pytest.param(100, [COLD], NOON, id="caps: twenty a day, five days"),
        pytest.param(100, [COLD], ms("2026-03-10T03:00", ZONE), id="caps, from the night"),
        pytest.param(100, [COLD], ms("2026-03-10T20:55", ZONE), id="caps, five minutes before closing"),
        pytest.param(47, [change(COLD, used_today=13)], NOON, id="caps, some used today"),
        pytest.param(30, [change(COLD, used_today=20)], NOON, id="nothing left today"),
        pytest.param(2_600, [HOT], ms("2026-03-10T15:00", ZONE), id="hot: five and a bit days"),
        pytest.param(7_000, [NO_CAP], ms("2026-03-10T15:00"), id="open minutes alone"),
        pytest.param(9_000, [NO_CAP], ms("2026-03-26T15:00"), id="over London's spring"),
        pytest.param(9_000, [NO_CAP], ms("2026-10-22T15:00"), id="over London's autumn"),
        pytest.param(400, [COLD], ms("2026-03-20T15:00", ZONE), id="over Jerusalem's spring"),
        pytest.param(3_000, [HOT, HOT, COLD], NOON, id="a mixed fleet"),
        pytest.param(4_000, [HOT, change(HOT, zone="America/New_York"), NO_CAP], NOON, id="over three zones"),
        pytest.param(900, [change(HOT, zone="Asia/Kolkata"), COLD], NOON, id="half an hour off"),
        pytest.param(300, [change(HOT, from_ms=NOON + 30 * MINUTE)], NOON, id="cooling down"),
        pytest.param(900, [change(HOT, from_ms=NOON + 30 * HOUR), COLD], NOON, id="cooling down into tomorrow"),
        pytest.param(20_000, [change(NO_CAP, opens=0, closes=24)], NOON, id="round the clock"),
        pytest.param(1_234, [change(NO_CAP, opens=0, closes=24, cap=100)], NOON, id="round the clock, capped"),
        pytest.param(90, [change(COLD, zone="Africa/Cairo", opens=0, closes=24)], ms("2026-04-22T15:00"), id="Cairo"),
    ],
)
def test_closed_form_against_the_count(waiting, fleet, now):
    """The closed form is within two minutes of a plain count over every minute of every phone."""
    assert finish_ms(waiting, fleet, now_ms=now) == pytest.approx(count(waiting, fleet, now), abs=2 * MINUTE)


def test_nothing_waiting_is_done():
    """An empty backlog is done now, with a fleet or without."""
    assert finish_ms(0, [], now_ms=NOON) == NOON
    assert finish_ms(0, [HOT], now_ms=NOON) == NOON


@pytest.mark.parametrize(
    ("waiting", "fleet"),
    [
        pytest.param(1, [], id="no number can send"),
        pytest.param(20 * 500, [COLD], id="more than a year away"),
    ],
)
def test_not_in_sight(waiting, fleet):
    """Where nobody sends, or not within the horizon, the answer is None and not a date."""
    assert finish_ms(waiting, fleet, now_ms=NOON) is None


kinds = st.builds(
    Capacity,
    zone=st.sampled_from([ZONE, "Europe/London", "Asia/Kolkata", "Africa/Cairo"]),
    opens=st.integers(0, 9),
    closes=st.integers(17, 24),
    cap=st.none() | st.integers(1, 500),
    used_today=st.integers(0, 500),
    rpm=st.floats(0.5, 30),
    from_ms=st.just(0) | st.integers(NOON, NOON + 2 * DAY_MS),
)
fleets = st.lists(kinds, min_size=1, max_size=4)


@settings(max_examples=40)
@given(fleets, st.lists(st.integers(1, 3_000), min_size=2, max_size=4), st.integers(0, DAY_MS))
def test_more_waiting_is_never_done_earlier(fleet, backlogs, later):
    """The forecast rises with the backlog (None counts as never)."""
    ends = [finish_ms(n, fleet, now_ms=NOON + later) or 2**60 for n in sorted(backlogs)]
    assert all(one <= other for one, other in pairwise(ends))
    assert ends[0] > NOON + later


@settings(max_examples=40)
@given(fleets, kinds, st.integers(1, 3_000))
def test_another_number_never_delays(fleet, more, waiting):
    """One more phone cannot make a job later."""
    assert (finish_ms(waiting, [*fleet, more], now_ms=NOON) or 2**60) <= (
        finish_ms(waiting, fleet, now_ms=NOON) or 2**60
    )


@settings(max_examples=40)
@given(kinds.filter(lambda kind: kind.cap is not None), st.integers(1, 2_000), st.integers(0, DAY_MS))
def test_no_day_gives_more_than_its_cap(kind, waiting, later):
    """By the forecast's end there are enough calendar days for the backlog under the cap."""
    now = NOON + later
    end = finish_ms(waiting, [kind], now_ms=now)
    if end is not None:
        days = (_day(kind, end) - _day(kind, now)).days
        assert waiting <= max(0, kind.cap - kind.used_today) + days * kind.cap


def _day(kind: Capacity, at: int):
    return datetime.fromtimestamp(at / 1000, ZoneInfo(kind.zone)).date()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"quarantined": True}, None, id="quarantined"),
        pytest.param({"sessions": ()}, None, id="no session"),
        pytest.param({"created_at": None}, (9, 21, 20, 0), id="cold"),
        pytest.param({}, (7, 23, 500, 0), id="hot"),
        pytest.param({"cap_day": "2026-03-10", "cap_used": 40}, (7, 23, 500, 40), id="used today"),
        pytest.param({"cap_day": "2026-03-09", "cap_used": 40}, (7, 23, 500, 0), id="used yesterday"),
    ],
)
def test_capacity_of_a_phone(changes, expected):
    """What a number can do is read from the same facts and tables as the dispatching."""
    found = capacity(facts(**changes), RULES, now_ms=NOON)
    assert (found and (found.opens, found.closes, found.cap, found.used_today)) == expected


def test_capacity_knows_burst_override_and_cooldown():
    """The rate is the effective one, an override counts, and a cool-down moves the start."""
    assert capacity(facts(), RULES, now_ms=NOON).rpm == pytest.approx(6.8, abs=0.1)
    assert capacity(facts(rpm_override=2), RULES, now_ms=NOON).rpm <= 2
    assert capacity(facts(cooldown_until=NOON + 5), RULES, now_ms=NOON).from_ms == NOON + 5


def test_the_demo_is_done_within_a_minute():
    """Three demo numbers promise two hundred messages in well under a minute."""
    rules = Rules(policy=preset("demo"))
    fleet = [capacity(facts(created_at=OLD), rules, now_ms=NOON) for _ in range(3)]
    assert finish_ms(200, fleet, now_ms=NOON) <= NOON + MINUTE


def test_ten_thousand_phones_are_few_kinds():
    """A big fleet costs its kinds: the same figures are counted together, and the answer is that of the shares."""
    fleet = [change(HOT, used_today=i % 3) for i in range(9_999)]
    three = [change(HOT, used_today=i) for i in range(3)]
    assert finish_ms(3_333 * 900, fleet, now_ms=NOON) == finish_ms(900, three, now_ms=NOON)
    assert DEFAULT.levels[-1].daily_cap == HOT.cap


@settings(max_examples=40)
@given(fleets, st.integers(1, 2_000), st.integers(0, DAY_MS))
def test_done_by_is_the_other_side_of_finish(fleet, waiting, later):
    """By the moment the forecast names, that many can have gone out, and two seconds before it no more than that."""
    now = NOON + later
    end = finish_ms(waiting, fleet, now_ms=now)
    if end is not None:
        assert done_by(end, fleet, now_ms=now) >= waiting - 1
        assert done_by(max(now, end - 2_000), fleet, now_ms=now) <= waiting
    assert done_by(now, fleet, now_ms=now) == done_by(now - 1, fleet, now_ms=now) == 0


@pytest.mark.parametrize(
    ("size", "queued", "others", "expected"),
    [
        pytest.param(10, 0, [], 10, id="alone"),
        pytest.param(10, 5, [], 15, id="behind what is queued"),
        pytest.param(10, 0, [3, 100_000], 23, id="jobs take turns: a big one costs no more than its own size"),
    ],
)
def test_what_goes_before_a_job(size, queued, others, expected):
    """A small job waits for its turns, not for the end of a big one."""
    assert ahead_of(size, queued=queued, others=others) == expected


def test_a_number_that_rests_promises_nothing_before_its_slot():
    """A cold number that has just sent cannot send two more at once, so the forecast does not say so."""
    cold = {"created_at": NOON - 1, "sends": (NOON - 1_000,)}
    resting = capacity(facts(**cold), RULES, now_ms=NOON)
    busy = capacity(facts(**cold, unsettled="J:1"), RULES, now_ms=NOON)
    assert resting.from_ms >= NOON + 20_000
    assert busy.from_ms >= NOON + 30_000
    assert finish_ms(2, [resting], now_ms=NOON) >= NOON + 40_000
