"""Spread jobs over nights: how many end before the numbers open again, worked out by hand."""

import sys

import msgspec
import pytest

from paceline.policy import hands, overnight
from paceline.policy import prospect as prospect_module
from paceline.policy.audience import groups
from paceline.policy.crew import Seat, crew_of
from paceline.policy.facts import Rules
from paceline.policy.kinds import kind_of
from paceline.policy.overnight import Spread, expired
from paceline.policy.prospect import Ask
from paceline.policy.workday import Kind

from .builders import DEFAULT, HOUR, NOON, RULES, ZONE, ZONES, facts
from .test_forecast import NEW_YORK, closing, hot

DAY = 24 * HOUR
OPEN = closing(hot(), 8, 20)
"""Noon is four hours after it opened; it is closed for twelve."""


def lost(size: int, hours: float, validity_hours: float, kinds=(OPEN,), rules=RULES, **changes):
    job = Spread(size, NOON, NOON + round(hours * HOUR), round(validity_hours * HOUR))
    return expired(msgspec.structs.replace(job, **changes), [(kind, 1) for kind in kinds], rules)


@pytest.mark.parametrize(
    ("size", "hours", "validity", "expected"),
    [
        pytest.param(80, 8, 1, 0, id="all of it by day"),
        pytest.param(240, 24, 1, 110, id="a day, an hour's validity: eleven of the twelve closed hours"),
        pytest.param(240, 24, 6, 60, id="six hours: those of the first half of the night"),
        pytest.param(240, 24, 12, 0, id="as long as the night"),
        pytest.param(480, 48, 1, 220, id="two nights"),
        pytest.param(140, 14, 1, 60, id="ends in the night"),
    ],
)
def test_what_ends_in_the_night(size, hours, validity, expected):
    count, why = lost(size, hours, validity)
    assert count == pytest.approx(expected, abs=2)
    assert why == ("HOURS" if expected else None)


def test_a_number_that_is_open_takes_it_over():
    """Nobody waits for the morning where another number works at night."""
    night = closing(hot(), 0, 24)
    assert lost(240, 24, 1, kinds=(OPEN, night)) == (0, None)


def test_people_who_sleep():
    """The number is open all day, those in New York are written to from one in the afternoon."""
    people, shares = groups({NEW_YORK: 240}, DEFAULT)
    count, why = lost(240, 24, 1, kinds=(closing(hot(), 0, 24),), people=people, shares=shares)
    awake = next(windows for windows in people)[0]
    closed = 24 - (awake.closes - awake.opens)
    assert count == pytest.approx(10 * (closed - 1), abs=2)
    assert why == "RECIPIENT_HOURS"


def test_more_than_a_number_can_do():
    """A thousand in eight hours, and five hundred a day: the rest waits for tomorrow, and ends."""
    count, why = lost(1_000, 8, 1)
    assert count == pytest.approx(500, abs=5)
    assert why in {"PACE", "HOURS"}


def test_what_waits_already_goes_first():
    """Four hundred before it leave a hundred of the day's five hundred."""
    busy = msgspec.structs.replace(OPEN, load=400)
    assert lost(200, 7, 1, kinds=(busy,))[0] == pytest.approx(100, abs=5)
    assert lost(200, 7, 1, before=400)[0] == pytest.approx(100, abs=5)


def test_a_ceiling_for_the_fleet():
    """One a minute for all of them: of a hundred and twenty an hour half ends."""
    rules = Rules(DEFAULT, global_rpm=1)
    count, why = lost(480, 4, 0.5, kinds=(OPEN, OPEN), rules=rules)
    assert count == pytest.approx(210, abs=10)
    assert why == "PACE"


def test_what_waits_already_uses_the_ceiling_up():
    """Two a minute for all, and a hundred and twenty before it on the first number: for an hour nothing else goes, so
    the first half hour's ends."""
    rules = Rules(DEFAULT, global_rpm=2)
    busy, free = msgspec.structs.replace(OPEN, load=120), msgspec.structs.replace(OPEN, heard_ms=401)
    count, why = lost(240, 4, 0.5, kinds=(busy, free), rules=rules)
    assert count == pytest.approx(30, abs=5)
    assert why == "PACE"


def test_none_are_lost_of_whom_nobody_could_ever_write_to():
    """They are refused, and told as such."""
    people, shares = groups({ZONE: 120, "Pacific/Honolulu": 120}, DEFAULT)
    morning = closing(hot(), 9, 12)
    assert lost(240, 24, 24, kinds=(morning,), people=people, shares=shares) == (0, None)


SIX_ZONES = {ZONE: 40, "Europe/London": 20, NEW_YORK: 20, "Asia/Kolkata": 10, "Australia/Sydney": 6, "UTC": 4}


def fleet(size: int, zones=(ZONE,)) -> list[tuple[Kind, int]]:
    """No two of an age, and none with the same slot."""
    born = [NOON - index * 9 * DAY // size - index * 997 for index in range(size)]
    made = [
        kind_of(
            facts(created_at=at, timezone=zones[index % len(zones)], sends=(NOON - index * 101,)), RULES, now_ms=NOON
        )
        for index, at in enumerate(born)
    ]
    return [(kind, 1) for kind in made if kind is not None]


def month(size: int, validity_hours: float) -> Spread:
    people, shares = groups(SIX_ZONES, DEFAULT)
    return Spread(size, NOON, NOON + 30 * DAY, round(validity_hours * HOUR), people, shares)


def calls(job: Spread, kinds: list[tuple[Kind, int]]) -> int:
    """How much work it is, by whatever clock."""
    count = 0

    def counting(_frame, event, _arg):
        nonlocal count
        count += event in {"call", "c_call"}

    expired(job, kinds, RULES)
    sys.setprofile(counting)
    try:
        expired(job, kinds, RULES)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("zones", [(ZONE,), tuple(SIX_ZONES), tuple(ZONES)], ids=["one zone", "six", "thirteen"])
def test_the_work_is_bounded_whatever_the_fleet(zones):
    """A job over a month and two hundred numbers of all ages kept every other request waiting for half a second."""
    assert calls(month(50_000, 1), fleet(200, zones)) < 150_000


@pytest.mark.parametrize("zones", [(ZONE,), tuple(SIX_ZONES)], ids=["one zone", "six"])
@pytest.mark.parametrize("size", [5_000, 50_000, 400_000])
@pytest.mark.parametrize("hours", [1, 12, 30])
def test_numbers_taken_together_lose_as_many(monkeypatch, zones, size, hours):
    """As if each were walked alone, through every change."""
    kinds = fleet(40, zones)
    together = expired(month(size, hours), kinds, RULES)
    monkeypatch.setattr(hands, "HANDS", 1_000)
    monkeypatch.setattr(overnight, "STRETCHES", 100_000)
    apart = expired(month(size, hours), kinds, RULES)
    assert together[0] == pytest.approx(apart[0], abs=0.01 * size)
    assert together[1] == apart[1]


def test_a_validity_longer_than_the_work_needs_no_walk(monkeypatch):
    """Half an hour's work and a night between: of a job over a month none that is valid for two days ends."""
    monkeypatch.setattr(prospect_module, "expired", lambda *_: pytest.fail("walked"))
    crew = crew_of([Seat(facts())], RULES, now_ms=NOON)
    last = NOON + 30 * DAY
    ask = Ask(size=100, start_ms=NOON, last_ms=last, expires_ms=last + 2 * DAY, zones={ZONE: 100})
    assert prospect_module.prospect(ask, crew, RULES).will_expire == 0
