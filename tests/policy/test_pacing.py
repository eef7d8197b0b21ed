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
    Gap,
    Pace,
    PaceDefaults,
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
