"""A crew: a fleet counted once into kinds, with the same answer as number by number."""

from collections import Counter

import msgspec
import pytest

from paceline.policy import audience, kinds
from paceline.policy.crew import NOBODY, Crew, Seat, crew_of, with_more
from paceline.policy.facts import PhoneFacts, SessionFacts
from paceline.policy.forecast import Backlog, Forecast
from paceline.policy.kinds import KEPT_APART, kind_of
from paceline.policy.plan import plan
from paceline.policy.prospect import Ask, prospect
from paceline.policy.suggest import suggestions
from paceline.policy.trust import DAY_MS

from .builders import MINUTE, NOON, RULES, ZONE, facts

AWAY = (SessionFacts("s1", "RECONNECTING", NOON),)


def number(index: int, **changes) -> PhoneFacts:
    return msgspec.structs.replace(facts(**changes), phone=f"97254{index:07d}")


def busy(index: int) -> PhoneFacts:
    """No two have sent at the same time, nor as much."""
    return number(index, sends=(NOON - index * 997,), cap_day="2026-03-10", cap_used=index % 450)


def crew(*seats: Seat) -> Crew:
    return crew_of(seats, RULES, now_ms=NOON)


def ask(size: int, **changes) -> Ask:
    return Ask(**{"size": size, "start_ms": NOON, "zones": {ZONE: size}, **changes})


def test_equal_numbers_are_one_kind():
    """Ten thousand of three sorts are three groups, and everybody has a place in one of them."""
    sorts = [{}, {"created_at": NOON - 1}, {"timezone": "Europe/London"}]
    found = crew(*(Seat(number(index, **sorts[index % 3])) for index in range(9_999)))
    assert [count for _, count in found.groups] == [3_333] * 3
    assert Counter(found.places) == {0: 3_333, 1: 3_333, 2: 3_333}


@pytest.mark.parametrize(
    "changes", [{}, {"created_at": NOON - DAY_MS}, {"unsettled": "J:1"}, {"cooldown_until": NOON + 1}]
)
def test_a_maker_says_what_a_single_look_says(changes):
    """What many numbers share is worked out once; it must not show."""
    maker, one = kinds.Maker(RULES, NOON), number(1, **changes)
    maker.of(number(2))
    assert maker.of(one, load=3) == kind_of(one, RULES, now_ms=NOON, load=3)


def test_the_unit_of_the_message_in_hand_is_not_counted_twice():
    """A cold number with 11 units taken, busy with one and 9 queued, is done today: it was told tomorrow."""
    cold = number(1, created_at=NOON - 1, cap_day="2026-03-10", cap_used=11, unsettled="J:1", sends=(NOON - MINUTE,))
    found = prospect(ask(0, zones={}), crew(Seat(cold, load=10)), RULES)
    assert found.finish_ms < NOON + 15 * MINUTE


def test_more_kinds_than_can_be_told_apart():
    """A thousand busy numbers, no two alike, are taken together by the minute; the end hardly moves."""
    seats = [Seat(busy(index)) for index in range(1_000)]
    merged = crew(*seats)
    assert len(merged.groups) <= KEPT_APART < len(set(merged.kinds))
    assert sum(count for _, count in merged.groups) == 1_000
    alone = Crew(seats, merged.kinds, list(Counter(merged.kinds).items()), (), merged.fails)
    ends = [prospect(ask(50_000), some, RULES).finish_ms for some in (merged, alone)]
    assert ends[0] == pytest.approx(ends[1], abs=5 * MINUTE)


def test_who_does_nothing_has_no_place():
    """Away while others are there, or quarantined: nothing of the job, and no row in the plan."""
    seats = [Seat(number(1)), Seat(number(2, sessions=AWAY)), Seat(number(3, quarantined=True))]
    found = crew(*seats)
    assert (found.places, found.away) == ([0, NOBODY, NOBODY], [1])
    assert [row.phone for row in plan(ask(10), found, RULES).phones] == [seats[0].facts.phone]


def test_nobody_connected_all_are_counted_on():
    found = crew(Seat(number(1, sessions=AWAY)), Seat(number(2, sessions=AWAY)))
    assert (found.waits_for_all, found.places) == (True, [0, 0])
    more = with_more(found, [Seat(number(9))], RULES, now_ms=NOON)
    assert more.places == [NOBODY, NOBODY, 0], "with a new one that is there, the others are away"


def test_more_numbers_are_a_group_of_their_own():
    """As if they had been counted from the beginning."""
    before = crew(Seat(number(1, created_at=NOON - 1)))
    more = with_more(before, [Seat(number(8)), Seat(number(9))], RULES, now_ms=NOON)
    at_once = crew(Seat(number(1, created_at=NOON - 1)), Seat(number(8)), Seat(number(9)))
    assert (more.groups, more.places) == (at_once.groups, at_once.places)


def test_only_changed_seats_are_made_again(monkeypatch):
    """A suggestion for one number of a large fleet costs that number."""
    made = []
    real = kinds.Maker.of

    def counting(self, seat_facts, **more):
        made.append(seat_facts.phone)
        return real(self, seat_facts, **more)

    seats = [Seat(busy(index)) for index in range(200)]
    before = crew(*seats)
    monkeypatch.setattr(kinds.Maker, "of", counting)
    crew_of([Seat(number(7)), *seats[1:]], RULES, now_ms=NOON, known=before)
    assert made == [number(7).phone]


@pytest.mark.parametrize("phones", [3, 500])
def test_a_plan_adds_up(phones):
    """Rows, others and the job agree; the largest parts are shown, and each phone once."""
    seats = [Seat(busy(index), load=index % 5) for index in range(phones)]
    found = plan(ask(7_777), crew(*seats), RULES)
    assert sum(row.messages for row in found.phones) + found.other_messages == 7_777
    assert sum(day.messages for day in found.days) == 7_777
    assert len({row.phone for row in found.phones}) == len(found.phones) == min(100, phones)
    assert len(found.phones) + found.other_phones <= phones
    assert list(found.phones) == sorted(found.phones, key=lambda row: (-row.messages, row.phone))


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        pytest.param({"sessions": AWAY}, "CONNECT", id="away"),
        pytest.param({"restriction": "CAPPED", "restricted_until": NOON + 9 * DAY_MS}, "UNRESTRICTED", id="restricted"),
        pytest.param({"rpm_override": 2, "rpm_source": "smartguard"}, "NO_OVERRIDE", id="slowed by SmartGuard"),
    ],
)
def test_repairs_are_found_in_the_crew(changes, advice):
    """What one number lacks is advice for a job that takes days without it."""
    found = crew(Seat(number(1, created_at=NOON - 1)), Seat(number(2, **changes)))
    given = suggestions(ask(900), found, RULES, everybody=found, finish_ms=NOON + 60 * DAY_MS)
    assert advice in {item.change for item in given}


def test_a_long_job_takes_numbers_together_that_differ_in_minutes():
    """Twenty cold numbers and months of work: each was walked through every day of them, and every look at the job's
    state took 50 ms, with recipients in three zones 100."""
    found = crew(*(Seat(number(index, **_cold(index)), load=index % 7) for index in range(20)))
    assert len(found.groups) == 20
    backlog = Backlog(100_000, *audience.groups({ZONE: 100_000}, RULES.policy))
    apart = Forecast(backlog, found.groups, rules=RULES, fails=found.fails, now_ms=NOON).outlook()
    long = prospect(ask(100_000), found, RULES)
    assert long.outlook is not None
    assert apart is not None
    assert len(long.outlook.shares) <= 4
    assert abs(long.outlook.finish_ms - apart.finish_ms) < 0.01 * (apart.finish_ms - NOON)
    made = plan(ask(100_000), found, RULES)
    assert len(made.phones) == 20
    assert sum(row.messages for row in made.phones) == sum(day.messages for day in made.days) == 100_000


def test_a_short_job_keeps_them_apart():
    """There the minutes count."""
    found = crew(*(Seat(number(index, **_cold(index))) for index in range(20)))
    outlook = prospect(ask(300), found, RULES).outlook
    assert outlook is not None
    assert len(outlook.shares) == 20


def _cold(index: int) -> dict:
    return {"created_at": None, "sends": (NOON - index * 997,), "cap_day": "2026-03-10", "cap_used": index % 19}
