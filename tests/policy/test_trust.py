"""Trust: the tables of SPEC §5, the borders between the levels, and policy files with faults."""

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.errors import ConfigError
from paceline.policy.trust import DAY_MS, parse

from .builders import NOON, preset

SPEC_TABLES = {
    "default": [
        ("cold", 3, 3, (20_000, 40_000), 20, (9, 21)),
        ("warming", 7, 5, (10_000, 15_000), 100, (8, 22)),
        ("warm", 14, 10, (5_000, 8_000), 100, (8, 22)),
        ("hot", None, 20, (2_000, 4_000), 500, (7, 23)),
    ],
    "distribution": [
        ("cold", 3, 5, (5_000, 8_000), 20, (9, 21)),
        ("warm", 14, 15, (3_000, 5_000), 100, (8, 22)),
        ("hot", None, 30, (2_000, 4_000), 500, (7, 23)),
    ],
}


@pytest.mark.parametrize("name", SPEC_TABLES)
def test_presets_are_the_tables_of_the_spec(name):
    """Every figure of the shipped tables is the one the SPEC promises."""
    policy = preset(name)
    assert policy.name == name
    assert policy.recipient_hours == (7, 23)
    assert policy.typing_ms == (1000, 3000)
    assert [(x.name, x.max_age_days, x.rpm, x.delay_ms, x.daily_cap, x.hours) for x in policy.levels] == SPEC_TABLES[
        name
    ]


def test_jitter_of_the_presets():
    """The default adds ±20 %; the windows of `distribution` are final."""
    assert (preset("default").jitter, preset("distribution").jitter) == (0.2, 0.0)


def test_bursts_are_left_to_the_settings():
    """Only `demo` says something of bursts itself, so BURST_LIMIT and BURST_COOLDOWN_MS reach the other two."""
    for name in SPEC_TABLES:
        assert (preset(name).burst_limit, preset(name).burst_cooldown_ms) == (None, None)


def test_demo_has_no_hours_caps_or_bursts():
    """The demo preset runs at 600 a minute at any hour, typing at most 200 ms."""
    policy = preset("demo")
    level = policy.level(None, now_ms=NOON)
    assert (level.rpm, level.hours, level.daily_cap) == (600, None, None)
    assert (policy.recipient_hours, policy.burst_limit, policy.typing_ms) == (None, 0, (0, 200))


@pytest.mark.parametrize(
    ("policy", "age_days", "level"),
    [
        ("default", 0, "cold"),
        ("default", 2.999, "cold"),
        ("default", 3, "warming"),
        ("default", 6.999, "warming"),
        ("default", 7, "warm"),
        ("default", 13.999, "warm"),
        ("default", 14, "hot"),
        ("default", 4000, "hot"),
        ("default", -1, "cold"),
        ("distribution", 2.999, "cold"),
        ("distribution", 3, "warm"),
        ("distribution", 13.999, "warm"),
        ("distribution", 14, "hot"),
    ],
)
def test_level_by_age(policy, age_days, level):
    """A level begins exactly at its age; a number from the future is cold."""
    created_at = NOON - round(age_days * DAY_MS)
    assert preset(policy).level(created_at, now_ms=NOON).name == level


@pytest.mark.parametrize("days", [3, 7, 14])
def test_a_level_changes_in_one_millisecond(days):
    """A millisecond before its age a number is still on the level below."""
    levels = [preset("default").level(NOON - days * DAY_MS + early, now_ms=NOON).name for early in (1, 0)]
    assert levels in (["cold", "warming"], ["warming", "warm"], ["warm", "hot"])


@pytest.mark.parametrize("name", SPEC_TABLES)
def test_unknown_age_is_cold(name):
    """A number nobody knows the age of gets the least."""
    assert preset(name).level(None, now_ms=NOON).name == "cold"


@given(st.integers(0, 40 * DAY_MS), st.integers(0, 40 * DAY_MS))
def test_trust_never_falls_with_age(one, other):
    """An older number never has the lower rate, cap or the shorter day."""
    young, old = (preset("default").level(NOON - age, now_ms=NOON) for age in sorted((one, other)))
    assert young.rpm <= old.rpm
    assert young.daily_cap <= old.daily_cap
    assert old.hours[0] <= young.hours[0] < young.hours[1] <= old.hours[1]


GOOD = {
    "name": "mine",
    "level": [
        {"name": "young", "max_age_days": 3, "rpm": 3, "delay_ms": [1000, 2000], "daily_cap": 5, "hours": [9, 21]},
        {"name": "old", "rpm": 20},
    ],
}


def broken(*changes: tuple[str, object]) -> dict:
    """A good file with some values replaced, by path: `level.0.rpm`."""
    data = copy.deepcopy(GOOD)
    for path, value in changes:
        *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place = data
        for part in way:
            place = place[part]
        place[last] = value
    return data


def faults_of(data: dict) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(data)
    return caught.value.faults


def test_a_small_file_is_enough():
    """What a file leaves out has no limit, or the default of SPEC §5."""
    policy = parse(GOOD)
    old = policy.levels[1]
    assert (old.delay_ms, old.daily_cap, old.hours, policy.recipient_hours) == (None, None, None, None)
    assert (policy.typing_ms, policy.jitter) == ((1000, 3000), 0.2)


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("level", [], "level"),
        ("level.0.max_age_days", None, "max_age_days"),
        ("level.1.max_age_days", 9, "max_age_days"),
        ("level.0.max_age_days", 0, "max_age_days"),
        ("level.0.max_age_days", -3, "max_age_days"),
        ("level.0.max_age_days", math.nan, "max_age_days"),
        ("level.0.rpm", 0, "level young: rpm"),
        ("level.0.rpm", 601, "level young: rpm"),
        ("level.0.rpm", "3", "rpm"),
        ("level.0.rpm", True, "rpm"),
        ("level.0.rpm", 2.5, "rpm"),
        ("level.0.delay_ms", [2000, 1000], "level young: delay_ms"),
        ("level.0.delay_ms", [-1, 1000], "level young: delay_ms"),
        ("level.0.delay_ms", [1000], "delay_ms"),
        ("level.0.daily_cap", 0, "level young: daily_cap"),
        ("level.0.hours", [21, 9], "level young: hours"),
        ("level.0.hours", [9, 9], "level young: hours"),
        ("level.0.hours", [9, 25], "level young: hours"),
        ("level.0.hours", [-1, 9], "level young: hours"),
        ("level.0.huors", [9, 21], "huors"),
        ("recipient_hours", [23, 7], "recipient_hours"),
        ("typing_ms", [3000, 1000], "typing_ms"),
        ("jitter", 1.0, "jitter"),
        ("jitter", -0.1, "jitter"),
        ("jitter", math.nan, "jitter"),
        ("burst_limit", -1, "burst_limit"),
        ("burst_limit", 33, "burst_limit"),
        ("burst_cooldown_ms", -1, "burst_cooldown_ms"),
        ("brust_limit", 5, "brust_limit"),
        ("name", 5, "name"),
    ],
)
def test_a_fault_is_named(path, value, named):
    """Every single fault is refused, and the message says where it is."""
    faults = faults_of(broken((path, value)))
    assert len(faults) == 1
    assert named in faults[0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param(
            [
                ("level.0.rpm", 0),
                ("level.0.hours", [9, 9]),
                ("level.1.daily_cap", 0),
                ("jitter", 2),
                ("burst_limit", 99),
            ],
            ["young: rpm", "young: hours", "old: daily_cap", "jitter", "burst_limit"],
            id="values",
        ),
        pytest.param(
            [("level.0.rpm", "3"), ("level.1.hours", "9-21"), ("jitter", "a lot"), ("unknown", 1)],
            ["rpm", "hours", "jitter", "unknown"],
            id="types",
        ),
    ],
)
def test_all_faults_at_once(changes, named):
    """Who repairs a policy file sees all of its faults in one go, not one a start."""
    faults = faults_of(broken(*changes))
    assert len(faults) == len(named)
    for name in named:
        assert any(name in fault for fault in faults), name


@pytest.mark.parametrize("missing", ["name", "level"])
def test_what_is_missing_is_named(missing):
    """A file without its name or its levels is refused by the name of what is missing."""
    assert missing in " ".join(faults_of({key: value for key, value in GOOD.items() if key != missing}))
