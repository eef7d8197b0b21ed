"""Turns: what other jobs give out before one is through, case by case."""

import pytest

from paceline.policy.facts import SessionFacts
from paceline.policy.turns import Mine, Other, ahead, holders, joining

from .builders import HOUR, MINUTE, NOON, facts, live

FLEET = frozenset({"a", "b", "c", "d"})


def mine(size: int, **changes) -> Mine:
    return Mine(**{"size": size, "start_ms": NOON, "last_ms": NOON, **changes})


@pytest.mark.parametrize(
    ("job", "others", "expected"),
    [
        pytest.param(mine(10), [], 0, id="alone"),
        pytest.param(mine(10), [Other(3), Other(100_000)], 13, id="of a big one no more than its own size"),
        pytest.param(mine(10), [Other(500, priority=2)], 500, id="a higher priority goes first, all of it"),
        pytest.param(mine(10, priority=2), [Other(500)], 0, id="a lower one never"),
        pytest.param(mine(10, priority=3), [Other(4, priority=3)], 4, id="the same high priority takes turns"),
        pytest.param(mine(10), [Other(500, is_paused=True)], 0, id="paused"),
        pytest.param(mine(10), [Other(500, priority=3, is_paused=True)], 0, id="paused and urgent"),
        pytest.param(mine(10), [Other(500, next_ms=NOON + 1)], 0, id="for later"),
        pytest.param(mine(10, start_ms=NOON + HOUR), [Other(500, next_ms=NOON + HOUR)], 10, id="both for later"),
        pytest.param(mine(10), [Other(500, next_ms=NOON - 2 * MINUTE, each_ms=MINUTE)], 3, id="spread: what is due"),
        pytest.param(mine(10, phone="a"), [Other(500, phone="b")], 0, id="another number"),
        pytest.param(mine(10, phone="a"), [Other(500, phone="a")], 10, id="the same number"),
        pytest.param(mine(10, phone="a"), [Other(20)], 5, id="at one number a fourth of what all four share"),
        pytest.param(mine(40), [Other(500, phone="a")], 10, id="one number of four is shared"),
        pytest.param(mine(40), [Other(500, phone="z")], 0, id="a number that takes no work"),
    ],
)
def test_what_goes_before_a_job(job, others, expected):
    assert ahead(job, others, FLEET) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(Other(500), 0, id="it was counted already"),
        pytest.param(Other(500, next_ms=NOON + HOUR), 50, id="half way: turns with the half that is left"),
        pytest.param(Other(7, next_ms=NOON + HOUR), 7, id="a small one"),
        pytest.param(Other(500, next_ms=NOON + 3 * HOUR), 0, id="after the end"),
        pytest.param(Other(500, next_ms=NOON + HOUR, is_paused=True), 0, id="paused"),
        pytest.param(Other(500, next_ms=NOON + HOUR, each_ms=20 * MINUTE), 4, id="spread: what is due by the end"),
    ],
)
def test_what_joins_on_the_way(other, expected):
    assert joining(mine(100), [other], FLEET, NOON + 2 * HOUR) == expected


AWAY, RESTING = (SessionFacts("s1", "RECONNECTING", NOON),), (live(paused=True),)


@pytest.mark.parametrize(
    ("fleet", "expected"),
    [
        pytest.param({"a": {}, "b": {"sessions": AWAY}}, {"a"}, id="who is away gets nothing while another is there"),
        pytest.param({"a": {"sessions": AWAY}, "b": {"sessions": AWAY}}, {"a", "b"}, id="all are expected back"),
        pytest.param({"a": {"sessions": RESTING}, "b": {}}, {"b"}, id="paused"),
        pytest.param({"a": {"sessions": RESTING}, "b": {"sessions": AWAY}}, {"b"}, id="paused or away"),
        pytest.param({"a": {"sessions": RESTING}}, set(), id="only paused ones"),
        pytest.param({"a": {"sessions": (*RESTING, live("s2"))}}, {"a"}, id="one of two sessions is paused"),
        pytest.param({"a": {"quarantined": True}, "b": {}}, {"b"}, id="quarantined"),
        pytest.param({"a": {"fleet_paused": True}}, set(), id="the fleet is paused"),
    ],
)
def test_who_takes_work(fleet, expected):
    assert holders([facts(phone=phone, **changes) for phone, changes in fleet.items()]) == expected
