"""SmartGuard: failures slow a number step by step, quiet minutes give the pace back; it never makes one faster."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.policy.facts import sender
from paceline.policy.pacing import ALLOWED_RPM, SMARTGUARD, PacerFields
from paceline.policy.smartguard import COLD_LADDER, LADDER, Change, GuardFacts, decide, guard_facts

from .builders import MINUTE, NOON, OLD, RULES, facts

NOTHING = "nothing"
REMOVED = None


def failed(count: int, *, ago_ms: int = 1) -> tuple[int, ...]:
    return (NOON - ago_ms,) * count


def guard(level_rpm: int = 20, override: int | None = None, **changes) -> GuardFacts:
    """A number that sends, with a short queue and no failures; an override is automatic unless said."""
    base = {"changed_at": 0, "failures": (), "sent60s": 4, "queue": 0}
    source = SMARTGUARD if override is not None else ""
    return GuardFacts(**{"level_rpm": level_rpm, "override": override, "source": source, **base, **changes})


def outcome(given: GuardFacts, now_ms: int = NOON) -> int | str | None:
    change = decide(given, now_ms=now_ms)
    return NOTHING if change is None else change.rpm


@pytest.mark.parametrize(
    ("level_rpm", "override", "expected"),
    [
        pytest.param(20, None, 15, id="hot: one step"),
        pytest.param(20, 15, 10, id="hot: the next"),
        pytest.param(20, 10, 5, id="hot: the last"),
        pytest.param(20, 5, NOTHING, id="hot: at the bottom"),
        pytest.param(10, None, 5, id="warm"),
        pytest.param(5, None, NOTHING, id="warming: the ladder ends where it is"),
        pytest.param(3, None, 2, id="cold"),
        pytest.param(3, 2, NOTHING, id="cold: at the bottom"),
        pytest.param(2, None, NOTHING, id="a level below both ladders"),
        pytest.param(30, None, 20, id="a level above the ladder"),
        pytest.param(12, None, 10, id="a level between two rungs"),
        pytest.param(20, 12, 10, id="an override between two rungs"),
        pytest.param(3, 15, 2, id="the level fell below the override: steps count from the level"),
        pytest.param(5, 15, REMOVED, id="the level fell and has no rung below: the override goes"),
    ],
)
def test_failures_slow_a_number_by_one_rung(level_rpm, override, expected):
    """Three failed attempts in a minute are one step down the ladder of the number's level."""
    assert outcome(guard(level_rpm, override, failures=failed(3))) == expected


@pytest.mark.parametrize(
    ("level_rpm", "override", "expected"),
    [
        pytest.param(20, 5, 10, id="hot: one step"),
        pytest.param(20, 10, 15, id="hot: the next"),
        pytest.param(20, 15, REMOVED, id="hot: the level's own rate again"),
        pytest.param(10, 5, REMOVED, id="warm"),
        pytest.param(3, 2, REMOVED, id="cold"),
        pytest.param(30, 20, REMOVED, id="no rung above"),
        pytest.param(12, 10, REMOVED, id="the next rung is above the level"),
        pytest.param(10, 2, 5, id="the level rose: the new ladder from here"),
        pytest.param(20, None, NOTHING, id="no override, nothing to give back"),
    ],
)
def test_a_quiet_minute_gives_one_rung_back(level_rpm, override, expected):
    """No failures, a short queue and proof of sending are one step up; reaching the level's rate ends the override."""
    assert outcome(guard(level_rpm, override)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"failures": failed(2)}, NOTHING, id="two failures: neither down nor up"),
        pytest.param({"failures": failed(1)}, NOTHING, id="one failure: not up"),
        pytest.param({"queue": 2}, 15, id="a queue of two"),
        pytest.param({"queue": 3}, NOTHING, id="a queue of three: not up"),
        pytest.param({"sent60s": 0}, NOTHING, id="nothing sent proves nothing"),
        pytest.param({"queue": 500, "failures": failed(3)}, 5, id="down whatever waits"),
        pytest.param({"sent60s": 0, "failures": failed(3)}, 5, id="down though nothing was sent"),
        pytest.param({"failures": failed(3, ago_ms=MINUTE)}, 15, id="failures of a minute ago are past"),
        pytest.param({"failures": failed(3, ago_ms=MINUTE - 1)}, 5, id="failures of nearly a minute ago count"),
        pytest.param({"failures": failed(3), "source": "manual"}, NOTHING, id="a manual override: not down"),
        pytest.param({"source": "manual"}, NOTHING, id="a manual override: not up"),
        pytest.param({"source": ""}, NOTHING, id="an override of unknown origin is somebody's"),
        pytest.param({"failures": failed(3), "changed_at": NOON - MINUTE + 1}, NOTHING, id="changed within the minute"),
        pytest.param({"failures": failed(3), "changed_at": NOON - MINUTE}, 5, id="changed a minute ago"),
        pytest.param({"changed_at": NOON - MINUTE + 1}, NOTHING, id="changed within the minute: not up"),
        pytest.param({"level_rpm": 10, "queue": 9}, REMOVED, id="no longer below the level's rate"),
        pytest.param({"level_rpm": 5, "failures": failed(2), "queue": 9}, REMOVED, id="... whatever else is the case"),
        pytest.param({"level_rpm": 5, "changed_at": NOON - 1}, NOTHING, id="... but once in a minute"),
    ],
)
def test_when(changes, expected):
    """One row for each condition of SPEC §5 SmartGuard, on a hot number slowed to 10."""
    assert outcome(guard(**{"override": 10, **changes})) == expected


@pytest.mark.parametrize(
    ("given", "change"),
    [
        (guard(failures=failed(3)), Change(15, "FAILURES: 3 failed attempts in 60 s")),
        (guard(override=15), Change(None, "RECOVERED: 4 sent in 60 s, none failed")),
        (
            guard(3, 5),
            Change(None, "OBSOLETE: the number's own 3 a minute is no more than the override"),
        ),
    ],
    ids=["down", "up", "obsolete"],
)
def test_a_change_says_why(given, change):
    """The reason is written for the operator who reads the incident."""
    assert decide(given, now_ms=NOON) == change


def test_facts_come_from_the_phone():
    """The level from the number's age, its sends of the last minute, the override with its source."""
    phone = facts(
        rpm_override=10, rpm_source=SMARTGUARD, rpm_changed_at=7, failures=(1, 2),
        sends=(NOON - MINUTE, NOON - MINUTE + 1, NOON - 5), last_sent_at=NOON - 5,
    )  # fmt: skip
    assert guard_facts(phone, RULES, queue=3, now_ms=NOON) == GuardFacts(20, 10, SMARTGUARD, 7, (1, 2), 2, 3)
    assert guard_facts(facts(created_at=NOON), RULES, queue=0, now_ms=NOON).level_rpm == 3


def test_a_refused_attempt_is_no_recovery():
    """It was on the wire, so it counts for the pace; but nothing was sent, so there is nothing to trust again."""
    refused = facts(rpm_override=5, rpm_source=SMARTGUARD, sends=(NOON - 5,), last_sent_at=NOON - MINUTE)
    assert outcome(guard_facts(refused, RULES, queue=0, now_ms=NOON)) == NOTHING


def test_a_rate_in_the_fields_is_left_alone():
    """The fields go before every override, so a step there would change nothing but the incident log."""
    phone = facts(pacer=PacerFields(rpm=15), rpm_override=5, rpm_source=SMARTGUARD, failures=failed(9))
    assert outcome(guard_facts(phone, RULES, queue=0, now_ms=NOON)) == NOTHING
    slowed = replace(phone, pacer=PacerFields(min_delay_ms=1), rpm_override=10)
    assert outcome(guard_facts(slowed, RULES, queue=0, now_ms=NOON)) == 5


level_rpms = st.integers(1, 40) | st.sampled_from([3, 5, 10, 20, 600])
guards = st.builds(
    GuardFacts,
    level_rpm=level_rpms,
    override=st.none() | st.integers(1, 40) | st.sampled_from(ALLOWED_RPM),
    source=st.sampled_from(["", "manual", SMARTGUARD]),
    changed_at=st.just(0) | st.integers(NOON - 2 * MINUTE, NOON),
    failures=st.lists(st.integers(NOON - 2 * MINUTE, NOON), max_size=6).map(tuple),
    sent60s=st.integers(0, 5),
    queue=st.integers(0, 5),
)


@given(guards)
def test_it_sets_only_what_slows(given):
    """Whatever the facts: a rate it sets is a rung below the level's own, and an operator's override stays."""
    change = decide(given, now_ms=NOON)
    if change is None:
        return
    assert given.override is None or given.source == SMARTGUARD
    assert NOON - given.changed_at >= MINUTE
    if change.rpm is None:
        assert given.override is not None
    else:
        assert change.rpm in LADDER + COLD_LADDER
        assert change.rpm < given.level_rpm


def walk(start: GuardFacts, *, minutes: int, bad: bool) -> list[int | None]:
    """The overrides of a number that is looked at every ten seconds and always fails, or never does."""
    seen, now, state = [start.override], NOON, start
    for _ in range(minutes * 6):
        now += MINUTE // 6
        state = replace(state, failures=(now - 1,) * 3 if bad else ())
        if (change := decide(state, now_ms=now)) is not None:
            override, source = change.rpm, SMARTGUARD if change.rpm is not None else ""
            state = replace(state, override=override, source=source, changed_at=now)
            seen.append(override)
    return seen


@given(level_rpms)
def test_failures_without_end_reach_the_bottom_and_stay(level_rpm):
    """A number that keeps failing falls rung by rung to the lowest one below its level, and no further."""
    ladder = COLD_LADDER if level_rpm <= 3 else LADDER
    assert walk(guard(level_rpm), minutes=10, bad=True) == [None, *(rung for rung in ladder if rung < level_rpm)]


@given(level_rpms, st.integers(1, 40))
def test_recovery_ends_without_an_override(level_rpm, override):
    """From any automatic override quiet minutes lead up, never down, to the level's own rate."""
    seen = walk(guard(level_rpm, override), minutes=10, bad=False)
    assert seen[-1] is None
    steps = seen[:-1]
    assert steps == sorted(set(steps))
    assert all(step < level_rpm for step in steps[1:])


@given(guards)
def test_failures_before_the_last_change_have_had_their_answer(given):
    """Only what failed since the last change counts: without the rest the answer is the same."""
    since = replace(given, failures=tuple(at for at in given.failures if at > given.changed_at))
    assert decide(given, now_ms=NOON) == decide(since, now_ms=NOON)


def test_a_change_is_one_change_a_minute():
    """Six looks a minute at a failing number are one step a minute."""
    assert walk(guard(), minutes=2, bad=True) == [None, 15, 10]


@given(guards)
def test_what_it_sets_slows_the_pace(given):
    """Carried through to the pace, a change never lets a number do more than its trust does."""
    change = decide(given, now_ms=NOON)
    if change is None:
        return
    free = sender(facts(created_at=OLD), RULES, now_ms=NOON).pace
    slowed = sender(facts(rpm_override=change.rpm, rpm_source=SMARTGUARD), RULES, now_ms=NOON).pace
    assert (slowed.rpm <= free.rpm, slowed.min_ms >= free.min_ms, slowed.max_ms >= free.max_ms) == (True, True, True)
