"""Pacing: the gap between two sends, the rolling minute, and bursts."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.policy.facts import Rules, sender
from paceline.policy.pacing import (
    ALLOWED_RPM,
    SMARTGUARD,
    Gap,
    Pace,
    PaceDefaults,
    PacerFields,
    burst_count,
    draw_gap,
    effective_rpm,
    next_slot,
    pace_for,
)
from paceline.policy.trust import BURST_MAX

from .builders import DEFAULT, MINUTE, NOON, RULES, facts, preset

DISTRIBUTION, DEMO = preset("distribution"), preset("demo")
LEVELS = [(policy, level) for policy in (DEFAULT, DISTRIBUTION, DEMO) for level in policy.levels]
LEVEL_IDS = [f"{policy.name}-{level.name}" for policy, level in LEVELS]
HOT = DEFAULT.levels[-1]
SETTINGS = PaceDefaults()


def hot(rpm_override: int | None = None, **changes) -> Pace:
    return pace_for(HOT, DEFAULT, PaceDefaults(**changes), rpm_override=rpm_override)


@pytest.mark.parametrize(
    ("level", "window", "rpm"),
    [(0, (20_000, 40_000), 3), (1, (10_000, 15_000), 5), (2, (5_000, 8_000), 10), (3, (2_000, 4_000), 20)],
)
def test_delay_mode(level, window, rpm):
    """Without an override the window and the rate are the level's, with ±20 % jitter and the settings' burst."""
    pace = pace_for(DEFAULT.levels[level], DEFAULT, SETTINGS)
    assert pace == Pace(rpm, *window, jitter=0.2, burst_limit=5, burst_cooldown_ms=30_000)


@pytest.mark.parametrize(
    ("rpm", "window"),
    [
        (2, (24_000, 36_000)),
        (3, (16_000, 24_000)),
        (5, (9_600, 14_400)),
        (10, (4_800, 7_200)),
        (15, (3_200, 4_800)),
        (20, (2_400, 3_600)),
    ],
)
@pytest.mark.parametrize("level", DEFAULT.levels, ids=lambda level: level.name)
def test_rpm_mode(rpm, window, level):
    """With an override the window is 0.8..1.2 of 60,000/rpm on every level."""
    pace = pace_for(level, DEFAULT, SETTINGS, rpm_override=rpm)
    assert (pace.rpm, pace.min_ms, pace.max_ms, pace.jitter) == (rpm, *window, 0.2)


def test_what_the_policy_says_of_bursts_comes_before_the_settings():
    """The demo preset has no bursts whatever BURST_LIMIT says; the others take the setting."""
    assert pace_for(DEMO.levels[0], DEMO, SETTINGS).burst_limit == 0
    assert hot(burst_limit=9, burst_cooldown_ms=5).burst_limit == 9
    assert hot(burst_limit=9, burst_cooldown_ms=5).burst_cooldown_ms == 5


def test_a_level_without_a_window_takes_the_default_delays():
    """DEFAULT_MIN_DELAY_MS and DEFAULT_MAX_DELAY_MS fill the hole."""
    pace = pace_for(replace(HOT, delay_ms=None), DEFAULT, PaceDefaults(min_delay_ms=7, max_delay_ms=9))
    assert (pace.min_ms, pace.max_ms) == (7, 9)


@pytest.mark.parametrize(
    ("override", "source", "fields", "expected"),
    [
        pytest.param(15, SMARTGUARD, {}, (15, 3_200, 4_800), id="automatic: its own window where that is slower"),
        pytest.param(20, SMARTGUARD, {}, (20, 2_400, 4_000), id="automatic: the slower end of each window"),
        pytest.param(30, SMARTGUARD, {}, (20, 2_000, 4_000), id="automatic: never faster than trust"),
        pytest.param(30, "manual", {}, (30, 1_600, 2_400), id="manual: may be faster than trust"),
        pytest.param(30, "", {}, (30, 1_600, 2_400), id="an override of unknown origin is an operator's"),
        pytest.param(None, SMARTGUARD, {}, (20, 2_000, 4_000), id="a source without an override is nothing"),
        pytest.param(None, "", {"rpm": 5}, (5, 9_600, 14_400), id="a rate set for the number is RPM mode"),
        pytest.param(2, "manual", {"rpm": 5}, (5, 9_600, 14_400), id="the field before a manual override"),
        pytest.param(2, SMARTGUARD, {"rpm": 5}, (5, 9_600, 14_400), id="the field before an automatic override"),
        pytest.param(
            None,
            "",
            {"rpm": 5, "min_delay_ms": 1, "max_delay_ms": 9},
            (5, 1, 9),
            id="both delays: the rate only limits",
        ),
        pytest.param(None, "", {"rpm": 5, "max_delay_ms": 20_000}, (5, 9_600, 20_000), id="a rate and one end"),
        pytest.param(None, "", {"min_delay_ms": 3_000}, (20, 3_000, 4_000), id="the lower end alone"),
        pytest.param(None, "", {"max_delay_ms": 9_000}, (20, 2_000, 9_000), id="the upper end alone"),
        pytest.param(None, "", {"min_delay_ms": 9_000}, (20, 9_000, 9_000), id="a lower end above the upper lifts it"),
        pytest.param(None, "", {"max_delay_ms": 1}, (20, 2_000, 2_000), id="an upper end below the lower is lifted"),
        pytest.param(None, "", {"min_delay_ms": 0, "max_delay_ms": 0}, (20, 0, 0), id="zero is a value"),
        pytest.param(10, SMARTGUARD, {"min_delay_ms": 1}, (10, 1, 7_200), id="a field goes before an automatic window"),
        pytest.param(0, "manual", {}, (1, 48_000, 72_000), id="a zero in the key is slow, not a crash"),
    ],
)
def test_precedence(override, source, fields, expected):
    """One row for each rule of SPEC §5: the number's fields, then an override, then trust (here hot: 20, 2-4 s)."""
    pace = pace_for(HOT, DEFAULT, SETTINGS, rpm_override=override, rpm_source=source, fields=PacerFields(**fields))
    assert (pace.rpm, pace.min_ms, pace.max_ms) == expected


def test_burst_fields_come_before_policy_and_settings():
    """An operator's word on bursts holds also where the policy file has its own, and 0 is a word."""
    pace = pace_for(DEMO.levels[0], DEMO, SETTINGS, fields=PacerFields(burst_limit=3, burst_cooldown_ms=7))
    assert (pace.burst_limit, pace.burst_cooldown_ms) == (3, 7)
    assert pace_for(HOT, DEFAULT, SETTINGS, fields=PacerFields(burst_limit=0)).burst_limit == 0


delays = st.none() | st.integers(0, 100_000)
any_fields = st.builds(
    PacerFields,
    min_delay_ms=delays,
    max_delay_ms=delays,
    burst_limit=st.none() | st.integers(0, BURST_MAX),
    burst_cooldown_ms=delays,
    rpm=st.none() | st.integers(1, 600),
)
any_defaults = st.builds(PaceDefaults, min_delay_ms=st.integers(0, 9_000), max_delay_ms=st.integers(0, 9_000))
any_rpm = st.none() | st.integers(0, 700)
any_level = st.sampled_from(LEVELS) | st.sampled_from(
    [(policy, replace(level, delay_ms=None)) for policy, level in LEVELS]
)


@given(any_level, any_defaults, any_fields, st.integers(0, 700))
def test_an_automatic_override_allows_more_in_no_respect(kind, defaults, fields, rpm):
    """With it the rate is no higher, no end of the window lower, and the burst rule the same, whatever else is set."""
    policy, level = kind
    free = pace_for(level, policy, defaults, fields=fields)
    slowed = pace_for(level, policy, defaults, rpm_override=rpm, rpm_source=SMARTGUARD, fields=fields)
    assert slowed.rpm <= free.rpm
    assert slowed.min_ms >= free.min_ms
    assert slowed.max_ms >= free.max_ms
    assert slowed.shortest_ms >= free.shortest_ms
    assert replace(slowed, rpm=free.rpm, min_ms=free.min_ms, max_ms=free.max_ms) == free
    assert effective_rpm(slowed) <= effective_rpm(free)


@given(any_level, any_defaults, any_fields, any_rpm, st.sampled_from(["", "manual", SMARTGUARD]))
def test_what_an_operator_set_for_the_number_holds(kind, defaults, fields, rpm, source):
    """Each field that is set is the pace's own, only the upper end is lifted to the lower; the window is never upside
    down."""
    policy, level = kind
    pace = pace_for(level, policy, defaults, rpm_override=rpm, rpm_source=source, fields=fields)
    assert fields.rpm in (None, pace.rpm)
    assert fields.min_delay_ms in (None, pace.min_ms)
    assert fields.max_delay_ms is None or pace.max_ms == max(fields.max_delay_ms, pace.min_ms)
    assert fields.burst_limit in (None, pace.burst_limit)
    assert fields.burst_cooldown_ms in (None, pace.burst_cooldown_ms)
    assert 0 <= pace.min_ms <= pace.max_ms
    assert pace.rpm >= 1


any_pace = st.builds(
    Pace,
    rpm=st.integers(1, 30),
    min_ms=st.integers(0, 30),
    max_ms=st.integers(0, 30),
    jitter=st.floats(0, 1, exclude_max=True),
    burst_limit=st.integers(0, 30),
    burst_cooldown_ms=st.integers(0, 30),
)


@given(any_pace, any_pace, st.sampled_from(Pace.__struct_fields__))
def test_the_key_changes_whenever_the_rules_do(pace, other, field):
    """Two paces have the same key only if they are the same; a gap drawn under other rules is never kept."""
    assert (pace.key == other.key) == (pace == other)
    changed = replace(pace, **{field: getattr(other, field)})
    assert (pace.key == changed.key) == (pace == changed)


paces = st.builds(
    lambda kind, rpm: pace_for(kind[1], kind[0], SETTINGS, rpm_override=rpm),
    st.sampled_from(LEVELS),
    st.none() | st.sampled_from(ALLOWED_RPM),
)


@settings(max_examples=300)
@given(paces, st.integers(0, 2**32))
def test_a_gap_stays_within_window_and_jitter(pace, seed):
    """A gap outside a burst lies in window x (1 ± jitter), and is never under the shortest allowed."""
    gap = draw_gap(pace, [NOON], rng=Random(seed))
    assert pace.min_ms * (1 - pace.jitter) - 1 <= gap.ms <= pace.max_ms * (1 + pace.jitter) + 1
    assert gap.ms >= pace.shortest_ms
    assert gap.key == pace.key


@pytest.mark.parametrize(("policy", "level"), LEVELS, ids=LEVEL_IDS)
def test_the_whole_window_is_used(policy, level):
    """Over many draws the gaps fill the jittered window and their mean is the window's middle."""
    pace = pace_for(level, policy, SETTINGS)
    rng = Random(11)
    drawn = [draw_gap(pace, [NOON], rng=rng).ms for _ in range(4_000)]
    low, high = pace.min_ms * (1 - pace.jitter), pace.max_ms * (1 + pace.jitter)
    assert min(drawn) < low + 0.15 * (high - low)
    assert max(drawn) > high - 0.15 * (high - low)
    assert sum(drawn) / len(drawn) == pytest.approx((pace.min_ms + pace.max_ms) / 2, rel=0.03)


def spaced(*gaps: int, start: int = NOON) -> list[int]:
    sends = [start]
    for gap in gaps:
        sends.append(sends[-1] + gap)
    return sends


@pytest.mark.parametrize(
    ("sends", "count"),
    [
        pytest.param([], 0, id="never sent"),
        pytest.param(spaced(), 1, id="one"),
        pytest.param(spaced(3_000, 3_000), 3, id="three in a row"),
        pytest.param(spaced(3_000, 29_999), 3, id="a millisecond short of the cooldown"),
        pytest.param(spaced(3_000, 30_000), 1, id="exactly the cooldown ends it"),
        pytest.param(spaced(3_000, 30_000, 3_000), 2, id="counts from the last rest"),
    ],
)
def test_burst_count(sends, count):
    """A burst is what went out with no gap of at least the cooldown inside."""
    assert burst_count(hot(), sends) == count


@given(st.integers(0, 2**32), st.lists(st.integers(1_600, 29_999), min_size=4, max_size=10))
def test_after_five_the_next_waits_the_cooldown_and_a_little(seed, gaps):
    """After five without a rest the next gap is 30 s + 1..3 s."""
    sends = spaced(*gaps)
    gap = draw_gap(hot(), sends, rng=Random(seed))
    assert 31_000 <= gap.ms <= 33_000
    assert next_slot(hot(), sends, gap.ms) >= sends[-1] + 31_000


@given(st.integers(0, 2**32), st.lists(st.integers(1_600, 29_999), max_size=3))
def test_four_are_no_burst(seed, gaps):
    """Up to the limit the gap is the window's own."""
    assert draw_gap(hot(), spaced(*gaps), rng=Random(seed)).ms <= 4_800


def test_a_gap_drawn_too_short_does_not_break_the_burst_rule():
    """A gap stored before the burst filled up (a return, a late settle) cannot shorten the rest."""
    sends = spaced(3_000, 3_000, 3_000, 3_000)
    assert next_slot(hot(), sends, 2_000) == sends[-1] + 31_000


@pytest.mark.parametrize("off", [{"burst_limit": 0}, {"burst_cooldown_ms": 0}], ids=["no limit", "no cooldown"])
@pytest.mark.parametrize("limit", [1, 5])
def test_zero_switches_bursts_off(off, limit):
    """With a limit or a cooldown of 0 only the window counts, in the gap, the slot and the forecast."""
    pace = replace(hot(**{"burst_limit": limit, **off}), min_ms=200, max_ms=400, rpm=600)
    sends = spaced(200, 200, 200, 200, 200, 200)
    assert all(draw_gap(pace, sends, rng=Random(seed)).ms <= 480 for seed in range(200))
    assert next_slot(pace, sends, 160) == sends[-1] + 160
    assert effective_rpm(pace) == pytest.approx(200)


def test_a_number_that_never_sent_may_send_now():
    """Without a past there is nothing to rest from."""
    assert next_slot(hot(), [], 4_000) == 0


def test_the_rolling_minute_is_closed_at_both_ends():
    """The message after rpm others comes more than 60 s after the first of them."""
    pace = hot(rpm_override=3, burst_limit=0)
    sends = spaced(1_000, 1_000)
    assert next_slot(pace, sends, 1_000) == sends[0] + MINUTE + 1
    assert next_slot(pace, sends[1:], 1_000) == sends[-1] + 1_000


overrides = st.none() | st.sampled_from(ALLOWED_RPM)


@settings(max_examples=200)
@given(
    kind=st.sampled_from(LEVELS),
    bursts=st.sampled_from([0, 1, 5]),
    changes=st.lists(st.tuples(st.integers(1, 40), overrides), min_size=1, max_size=8),
    delays=st.sampled_from([(0, 0), (0, 50), (0, 4_000), (0, 70_000)]),
    seed=st.integers(0, 2**32),
)
def test_on_the_wire_nothing_is_ever_too_fast(kind, bursts, changes, delays, seed):
    """Hundreds of sends with settles of any delay and overrides changing in between: no gap under the shortest, no
    rolling 60 s with more than rpm, no burst without its rest; also with only the past the store keeps."""
    policy, level = kind
    rng, wire, now = Random(seed), [], NOON
    gap = Gap(0, "")
    for count, override in changes:
        pace = pace_for(level, policy, PaceDefaults(burst_limit=bursts), rpm_override=override)
        for _ in range(count):
            kept = [at for i, at in enumerate(wire) if at >= now - MINUTE or i >= len(wire) - BURST_MAX]
            if gap.key != pace.key:
                gap = draw_gap(pace, kept, rng=rng)
            send_after = max(now, next_slot(pace, kept, gap.ms))
            gap = draw_gap(pace, (*kept, send_after), rng=rng)
            now = send_after + rng.randint(*delays)
            _check_send(pace, wire, now)
            wire.append(now)


def _check_send(pace: Pace, wire: list[int], at: int) -> None:
    assert sum(at - MINUTE <= earlier for earlier in wire) + 1 <= pace.rpm
    if wire:
        assert at - wire[-1] >= pace.shortest_ms
    burst = wire[-pace.burst_limit :] if pace.burst_limit else []
    rested = any(later - earlier >= pace.burst_cooldown_ms for earlier, later in pairwise(burst))
    if burst and len(burst) == pace.burst_limit and not rested:
        assert at - wire[-1] >= pace.burst_cooldown_ms + 1_000


def test_a_gap_drawn_under_the_same_rules_is_kept():
    """A second look, a restart or another dispatcher finds the same slot."""
    pace = sender(facts(), RULES, now_ms=NOON).pace
    who = sender(facts(sends=(NOON,), gap_ms=2_345, gap_key=pace.key), RULES, now_ms=NOON)
    assert who.slot(rng=Random(1)) == (NOON + 2_345, Gap(2_345, pace.key))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"rpm_override": 2}, id="an override"),
        pytest.param({"created_at": NOON}, id="another level"),
        pytest.param({"rules": Rules(policy=DISTRIBUTION)}, id="another policy"),
        pytest.param({"rules": Rules(policy=DEFAULT, pace_defaults=PaceDefaults(burst_limit=2))}, id="another burst"),
    ],
)
def test_a_gap_drawn_under_other_rules_is_drawn_again(changes):
    """When the rules change between two sends the new ones hold at once."""
    before = sender(facts(), RULES, now_ms=NOON).pace
    rules = changes.pop("rules", RULES)
    who = sender(facts(sends=(NOON,), gap_ms=1, gap_key=before.key, **changes), rules, now_ms=NOON)
    slot, gap = who.slot(rng=Random(1))
    assert gap.key == who.pace.key != before.key
    assert slot >= NOON + who.pace.shortest_ms


def test_a_hot_number_does_about_seven_a_minute():
    """With the default burst rule `effectiveRpm` says what SPEC §5 says."""
    assert 6.5 <= effective_rpm(hot()) <= 8


@given(paces, st.integers(0, 32), st.integers(0, 120_000))
def test_effective_rpm_is_never_above_rpm(pace, limit, cooldown):
    """The figure on the dashboard never promises more than the limit, nor nothing."""
    assert 0 < effective_rpm(replace(pace, burst_limit=limit, burst_cooldown_ms=cooldown)) <= pace.rpm


@pytest.mark.parametrize("override", [None, 2, 3, 5, 10, 15, 20])
@pytest.mark.parametrize(("policy", "level"), LEVELS[:-1], ids=LEVEL_IDS[:-1])
def test_effective_rpm_is_what_a_number_does(policy, level, override):
    """Two thousand simulated sends take as long as the figure says, within a tenth."""
    pace = pace_for(level, policy, SETTINGS, rpm_override=override)
    rng, sends = Random(5), [NOON]
    for _ in range(2_000):
        kept = sends[-40:]
        sends.append(next_slot(pace, kept, draw_gap(pace, kept, rng=rng).ms))
    real = (len(sends) - 1) * MINUTE / (sends[-1] - sends[0])
    assert effective_rpm(pace) == pytest.approx(real, rel=0.1)


def test_a_late_confirmation_is_no_rest() -> None:
    """Found by the World: heard of 38 s after the message before, but perhaps written 19 s after it, ends no burst."""
    pace = hot()
    starts = (0, 4_000, 8_000, 12_000, 31_000)
    sends = (0, 4_000, 8_000, 12_000, 50_000)
    assert burst_count(pace, sends) == 1, "by the confirmations alone it looks like a rest"
    assert burst_count(pace, sends, starts) == 5
    assert next_slot(pace, sends, 2_000, starts) == 50_000 + 30_000 + 1_000
