"""Dispatch: the order of the rules, what happens to the heads of a queue, and what a Send may never break."""

from itertools import combinations
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.domain.reasons import Reason
from paceline.domain.states import WAITING, Byte
from paceline.policy import hours
from paceline.policy.dispatch import PAUSED_RECHECK_MS, PINNED_RECHECK_MS, RECHECK_MS, Idle, Send, Step, Wait, decide
from paceline.policy.facts import PhoneFacts, Rules, SessionFacts, sender
from paceline.policy.pacing import ALLOWED_RPM, PaceDefaults
from paceline.policy.trust import DAY_MS

from .builders import (
    DEFAULT,
    HOUR,
    LONDONER,
    MINUTE,
    NOON,
    PHONE,
    RULES,
    ZONE,
    ZONES,
    facts,
    head,
    live,
    moments,
    ms,
    preset,
)

PACE = sender(facts(), RULES, now_ms=NOON).pace
NIGHT = ms("2026-03-10T03:00", ZONE)
LEAD = RULES.lead_ms


def at(now: int, changes: dict) -> PhoneFacts:
    """Facts in which all is well at `now`, but for the changes."""
    base = {
        "sessions": (live(now_ms=now),),
        "heads": (head(expires_at=now + 30 * DAY_MS),),
        "created_at": now - 30 * DAY_MS,
    }
    return facts(**{**base, **changes})


def decided(now: int = NOON, rules: Rules = RULES, seed: int = 1, **changes):
    return decide(at(now, changes), rules, now_ms=now, rng=Random(seed))


def rested(gap_ms: int, since: int = NOON) -> dict:
    """The last send was at `since` and the gap after it was drawn."""
    return {"sends": (since,), "gap_ms": gap_ms, "gap_key": PACE.key}


# The order of the rules: what stands higher is the reason given when several hold at once.
ORDER = [
    (Reason.STOPPED, {"fleet_stopped": True}, NOON + RECHECK_MS),
    (Reason.FLEET_PAUSED, {"fleet_paused": True}, NOON + RECHECK_MS),
    (Reason.QUARANTINED, {"quarantined": True}, NOON + RECHECK_MS),
    (Reason.UNSETTLED, {"unsettled": "J:9"}, NOON + RECHECK_MS),
    (Reason.NOT_CONNECTED, {"sessions": ()}, NOON + RECHECK_MS),
    (Reason.SESSION_PAUSED, {"sessions": (SessionFacts("s1", "CONNECTED", NOON, paused=True),)}, NOON + RECHECK_MS),
    (Reason.COOLDOWN, {"cooldown_until": NOON + 5}, NOON + 5),
    (Reason.QUIET_HOURS, {"timezone": "America/Los_Angeles"}, ms("2026-03-10T07:00", "America/Los_Angeles")),
    (Reason.DAILY_CAP, {"cap_day": "2026-03-10", "cap_used": 500}, ms("2026-03-11T00:00", ZONE)),
    (Reason.GLOBAL_LIMIT, {"global_free_at": NOON + 90_000}, NOON + 90_000 - LEAD),
    (Reason.PACING, rested(60_000), NOON + 60_000 - LEAD),
]


@pytest.mark.parametrize(("reason", "changes", "until"), ORDER, ids=[row[0] for row in ORDER])
def test_one_reason_to_wait(reason, changes, until):
    """Each rule alone makes the phone wait, for its own reason, until its own time, with no step."""
    decision = decided(**changes)
    assert (decision.final.reason, decision.final.until_ms, decision.steps) == (reason, until, ())


@pytest.mark.parametrize(("first", "second"), [*combinations(range(len(ORDER)), 2)])
def test_the_higher_rule_gives_the_reason(first, second):
    """Of any two rules that hold at once the one that stands higher in the table is told."""
    decision = decided(**{**ORDER[second][1], **ORDER[first][1]})
    assert decision.final.reason == ORDER[first][0]


def test_all_well_is_a_send():
    """With nothing in the way the head goes now, on the live session, with today's unit and the gap that follows."""
    send = decided().final
    assert isinstance(send, Send)
    assert (send.head.task, send.session_id, send.send_after_ms, send.day, send.cap) == (
        "J:0",
        "s1",
        NOON,
        "2026-03-10",
        500,
    )
    assert send.gap.key == PACE.key
    assert 1_600 <= send.gap.ms <= 4_800


@pytest.mark.parametrize(
    ("session", "connected"),
    [
        pytest.param(SessionFacts("s1", "CONNECTED", NOON - 60_000), True, id="seen a minute ago"),
        pytest.param(SessionFacts("s1", "CONNECTED", NOON - 60_001), False, id="silent for longer"),
        pytest.param(SessionFacts("s1", "RECONNECTING", NOON), False, id="reconnecting"),
        pytest.param(SessionFacts("s1", "STOPPED", NOON), False, id="stopped"),
    ],
)
def test_connected_is_word_and_activity(session, connected):
    """A session counts when it says CONNECTED and was seen within the liveness."""
    assert isinstance(decided(sessions=(session,)).final, Send) == connected


GONE = [
    pytest.param({"state": "X"}, ("drop", ""), id="canceled"),
    pytest.param({"state": "S"}, ("drop", ""), id="sent meanwhile"),
    pytest.param({"state": "u"}, ("drop", ""), id="outcome unknown"),
    pytest.param({"state": ""}, ("drop", ""), id="its job is gone"),
    pytest.param({"suppressed": True}, ("suppress", "SUPPRESSED"), id="suppressed"),
    pytest.param({"suppressed": True, "expires_at": NOON}, ("suppress", "SUPPRESSED"), id="suppressed and expired"),
    pytest.param({"expires_at": NOON}, ("expire", "EXPIRED"), id="expired this millisecond"),
    pytest.param(
        {"expires_at": NOON, "maybe_sent": True}, ("fail", "UNKNOWN_OUTCOME"), id="expired, may have been sent"
    ),
]


@pytest.mark.parametrize(("changes", "step"), GONE)
@pytest.mark.parametrize("row", [None, *ORDER], ids=["free", *[row[0] for row in ORDER]])
def test_what_will_not_go_leaves_first(changes, step, row):
    """A head that will not go is cleared and the one behind it decides, also while the phone itself has to wait."""
    decision = decided(heads=(head(**changes), head("J:1")), **(row[1] if row else {}))
    assert decision.steps == (Step(step[0], "<J:0>", "J:0", step[1]),)
    assert decision.final.reason == row[0] if row else decision.final.head.task == "J:1"


@pytest.mark.parametrize(
    ("more", "final"), [(True, Wait(NOON, Reason.IN_TURN)), (False, Idle())], ids=["more", "empty"]
)
def test_nothing_left(more, final):
    """When all heads are cleared the phone looks again at once, or sleeps if that was the whole queue."""
    decision = decided(heads=(head(state="X"), head("J:1", expires_at=NOON)), more=more)
    assert (decision.final, len(decision.steps)) == (final, 2)


def test_an_empty_queue_sleeps():
    """Nothing queued is nothing to do, whatever else is wrong with the phone."""
    assert decided(heads=(), fleet_paused=True).final == Idle()


@pytest.mark.parametrize("state", list(Byte))
def test_only_what_waits_is_sent(state):
    """A head in any state but the waiting ones is dropped from the queue, never sent."""
    assert isinstance(decided(heads=(head(state=str(state)),)).final, Send) == (state in WAITING)


EARLY = ms("2026-03-10T07:30", ZONE)
LONDON_OPENS = ms("2026-03-10T07:00", "Europe/London")


def test_a_sleeping_recipient_is_parked_and_the_next_goes():
    """It is 07:30 in Jerusalem and 05:30 in London: the Londoner waits for 07:00 there, the others go on."""
    heads = (head(to=LONDONER, expires_at=NOON + DAY_MS), head("J:1", to=LONDONER, tz=ZONE), head("J:2"))
    decision = decided(EARLY, heads=heads)
    assert decision.steps == (Step("park", "<J:0>", "J:0", "RECIPIENT_HOURS", LONDON_OPENS),)
    assert decision.final.head.task == "J:1"


def test_all_heads_asleep():
    """When every head was parked the phone looks at the next ones at once."""
    decision = decided(EARLY, heads=(head(to=LONDONER), head("J:1", to=LONDONER)))
    assert decision.final == Wait(EARLY, Reason.IN_TURN)
    assert [step.kind for step in decision.steps] == ["park", "park"]


LOCKED = {"restriction": "TIME_LOCKED", "restricted_until": NOON + HOUR}


@pytest.mark.parametrize(
    ("phone", "changes", "reason", "until"),
    [
        pytest.param({}, {"job_paused": True}, Reason.JOB_PAUSED, NOON + PAUSED_RECHECK_MS, id="its job is paused"),
        pytest.param(LOCKED, {"is_known": False}, Reason.TIME_LOCKED, NOON + HOUR, id="a new chat, time-locked"),
        pytest.param(
            {"restriction": "CAPPED", "restricted_until": NOON + 1},
            {"is_known": False},
            Reason.CAPPED,
            NOON + 1,
            id="a new chat, quota used up",
        ),
        pytest.param({}, {"frequency_free_at": NOON + 7}, Reason.FREQUENCY_CAP, NOON + 7, id="enough for this person"),
    ],
)
def test_what_waits_for_something_of_its_own_is_parked_and_the_next_goes(phone, changes, reason, until):
    """A paused job, a new chat on a restricted number, a person who had enough: parked, and nobody behind waits."""
    decision = decided(**phone, heads=(head("J:0", **changes), head("K:0")))
    assert decision.steps == (Step("park", "<J:0>", "J:0", reason, until),)
    assert decision.final.head.task == "K:0"


@pytest.mark.parametrize(
    ("phone", "changes"),
    [
        pytest.param(LOCKED, {"is_known": True}, id="known to the number"),
        pytest.param({**LOCKED, "restricted_until": NOON}, {"is_known": False}, id="the stated time has come"),
        pytest.param({}, {"frequency_free_at": NOON}, id="a day has passed"),
    ],
)
def test_a_limit_ends_where_it_ends(phone, changes):
    """Known chats go on under a restriction, and every limit ends with its time."""
    assert decided(**phone, heads=(head("J:0", **changes),)).final.head.task == "J:0"


def test_the_fleets_slot_counts_like_the_numbers_own():
    """Within the lead a task is handed over with the later of the two slots as the time before which it must not go."""
    assert decided(global_free_at=NOON + 2_000).final.send_after_ms == NOON + 2_000
    assert decided(global_free_at=NOON + 2_000, **rested(3_000)).final.send_after_ms == NOON + 3_000


def test_a_parked_task_is_looked_at_when_it_expires():
    """Who sleeps longer than the message is valid: it returns to be expired, not hours later."""
    decision = decided(EARLY, heads=(head(to=LONDONER, expires_at=EARLY + 1_000),))
    assert decision.steps[0].until_ms == EARLY + 1_000


def test_no_common_hour_fails():
    """A recipient who is never awake when the number is gets an honest end, and the next goes."""
    awake_late = replace(DEFAULT, recipient_hours=(22, 23))
    decision = decided(rules=Rules(policy=awake_late), created_at=None, heads=(head(), head("J:1")))
    assert [(step.kind, step.reason) for step in decision.steps] == [("fail", "NO_COMMON_HOURS")] * 2


@pytest.mark.parametrize(
    ("sessions", "pinned", "session_id"),
    [
        pytest.param([live("s2"), live("s1")], None, "s1", id="any: the same one every time"),
        pytest.param([live("s1"), live("s2")], "s2", "s2", id="pinned: its own"),
        pytest.param([SessionFacts("s1", "STOPPED", NOON), live("s2")], None, "s2", id="any live one"),
        pytest.param([live("s1", paused=True), live("s2")], None, "s2", id="not the paused one"),
    ],
)
def test_which_session(sessions, pinned, session_id):
    """A task that a session may have sent goes only through that session; others through a live one."""
    assert decided(sessions=tuple(sessions), heads=(head(pinned=pinned, state="t"),)).final.session_id == session_id


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        pytest.param((), Reason.SESSION_PAUSED, id="the only one that is connected"),
        pytest.param((SessionFacts("s2", "STOPPED", NOON),), Reason.SESSION_PAUSED, id="the others are away"),
    ],
)
def test_a_paused_session_sends_nothing(others, reason):
    """It is connected, so the reason is the pause; a session that is away cannot stand in for it."""
    assert decided(sessions=(live("s1", paused=True), *others)).final == Wait(NOON + RECHECK_MS, reason)


def test_a_task_pinned_to_a_paused_session_says_so():
    decision = decided(sessions=(live("s1", paused=True), live("s2")), heads=(head(pinned="s1", state="t"),))
    assert decision.steps == (Step("park", "<J:0>", "J:0", "SESSION_PAUSED", NOON + PINNED_RECHECK_MS),)


@pytest.mark.parametrize(
    ("own", "again_ms"),
    [
        pytest.param((SessionFacts("s1", "RECONNECTING", NOON),), PINNED_RECHECK_MS, id="it comes back by itself"),
        pytest.param((SessionFacts("s1", "FAILED", NOON),), PAUSED_RECHECK_MS, id="it failed"),
        pytest.param((SessionFacts("s1", "STOPPED", NOON),), PAUSED_RECHECK_MS, id="it was stopped"),
        pytest.param((), PAUSED_RECHECK_MS, id="it was removed"),
    ],
)
def test_a_pinned_task_waits_for_its_session(own, again_ms):
    """While its session is away a pinned task is parked, and what stands behind it goes through another session."""
    decision = decided(sessions=(*own, live("s2")), heads=(head(pinned="s1", state="t"), head("J:1")))
    assert decision.steps == (Step("park", "<J:0>", "J:0", "NOT_CONNECTED", NOON + again_ms),)
    assert (decision.final.head.task, decision.final.session_id) == ("J:1", "s2")


@pytest.mark.parametrize(
    ("gap_ms", "expected"),
    [
        pytest.param(LEAD + 1, ("wait", NOON + 1), id="a millisecond before the lead"),
        pytest.param(LEAD, ("send", NOON + LEAD), id="handed over early, sent at the slot"),
        pytest.param(1, ("send", NOON + 1), id="slot nearly there"),
        pytest.param(0, ("send", NOON), id="slot there"),
    ],
)
def test_slot_and_lead(gap_ms, expected):
    """A task is handed over so early that typing fits before its slot, and carries the slot as its earliest time."""
    final = decided(**rested(gap_ms)).final
    assert (
        ("send", final.send_after_ms) == expected if isinstance(final, Send) else ("wait", final.until_ms) == expected
    )


def test_a_late_slot_is_now():
    """A slot of the past gives no right to hurry: the earliest time is now."""
    assert decided(**rested(3_000, since=NOON - 60 * MINUTE)).final.send_after_ms == NOON


def test_lead_is_typing_and_a_margin():
    """The lead covers the longest typing of the policy and a second for the way."""
    assert RULES.lead_ms == 4_000
    assert Rules(policy=preset("demo")).lead_ms == 1_200


def test_a_wait_for_pacing_keeps_the_gap():
    """The gap found or drawn is handed back to be stored, so that looking again does not roll the dice again."""
    assert decided(**rested(60_000)).final.gap.ms == 60_000
    redrawn = decided(sends=(NOON,), gap_ms=1, gap_key="other rules", rpm_override=2).final
    assert redrawn.gap.ms >= 19_200
    assert redrawn.until_ms == NOON + redrawn.gap.ms - LEAD


CLOSING = ms("2026-03-10T23:00", ZONE)


@pytest.mark.parametrize(
    ("changes", "rules", "now"),
    [
        pytest.param({}, RULES, CLOSING - 1_000, id="closing time"),
        pytest.param(
            {},
            Rules(policy=replace(DEFAULT, levels=(replace(DEFAULT.levels[-1], hours=(0, 24)),), recipient_hours=None)),
            ms("2026-03-10T23:59:59", ZONE),
            id="midnight of the cap's day",
        ),
    ],
)
def test_a_slot_behind_the_end_is_not_handed_over(changes, rules, now):
    """A second before the end, with a slot two seconds away, nothing is handed over that the gate would return."""
    decision = decided(now, rules, **rested(3_000, since=now - 1_000))
    assert isinstance(decision.final, Wait)
    assert decision.final.until_ms == now + 2_000
    assert decision.final.gap.ms == 3_000


def test_a_slot_behind_the_recipients_closing_is_parked():
    """A second before 23:00 in Kolkata, the slot two seconds away: that one waits for the morning, the next goes."""
    now = ms("2026-03-10T22:59:59", "Asia/Kolkata")
    decision = decided(now, heads=(head(tz="Asia/Kolkata"), head("J:1")), **rested(3_000, since=now - 1_000))
    morning = ms("2026-03-11T07:00", ZONE)
    assert decision.steps == (Step("park", "<J:0>", "J:0", "RECIPIENT_HOURS", morning),)
    assert (decision.final.head.task, decision.final.send_after_ms) == ("J:1", now + 2_000)


def test_the_message_being_handed_over_counts_in_its_burst():
    """The gap drawn with the fifth of a burst is already the long one."""
    sends = tuple(NOON - 3_000 * i for i in (4, 3, 2, 1))
    send = decided(sends=sends, gap_ms=3_000, gap_key=PACE.key).final
    assert send.send_after_ms == NOON
    assert 31_000 <= send.gap.ms <= 33_000


@st.composite
def situations(draw):
    zone = draw(st.sampled_from(ZONES))
    policy = draw(st.sampled_from([DEFAULT, preset("distribution"), replace(DEFAULT, recipient_hours=(0, 24))]))
    now = draw(moments(zone) | st.builds(_before_closing, st.just(zone), moments(zone), st.integers(-6_000, 6_000)))
    ages = draw(st.lists(st.integers(-1_000, 90_000), max_size=25) | st.lists(st.integers(0, 9_000), max_size=3))
    sends = sorted(now - age for age in ages)
    override = draw(st.none() | st.sampled_from(ALLOWED_RPM))
    created_at = now - draw(st.sampled_from([0, 4, 10, 20, 20, 20])) * DAY_MS
    heads = tuple(
        head(
            f"J:{i}",
            to=draw(st.sampled_from([PHONE, LONDONER, "12125550100", "351912345678", "80012345678"])),
            state=draw(st.sampled_from("rrrrrrtpXS")),
            expires_at=now + draw(st.sampled_from([DAY_MS] * 6 + [-1, 0, 1, 2_500])),
            tz=draw(st.just(zone) | st.none() | st.sampled_from(ZONES)),
            suppressed=draw(st.sampled_from([False] * 7 + [True])),
            pinned=draw(st.sampled_from([None, None, "s1", "s2"])),
        )
        for i in range(draw(st.integers(2, 5)))
    )
    found = facts(
        created_at=created_at,
        timezone=zone,
        rpm_override=override,
        sends=tuple(sends),
        gap_ms=draw(st.integers(1_600, 6_000)),
        cap_day=hours.local_day(zone, now),
        cap_used=draw(st.sampled_from([0, 0, 0, 0, 19, 20, 99, 100, 499, 500])),
        sessions=(live("s1", now), live("s2", now - draw(st.sampled_from([0, 61_000])))),
        heads=heads,
    )
    rules = Rules(policy=policy, pace_defaults=PaceDefaults(burst_limit=draw(st.sampled_from([0, 5]))))
    keep = draw(st.booleans())
    return replace(found, gap_key=sender(found, rules, now_ms=now).pace.key if keep else ""), rules, now


def _before_closing(zone: str, around: int, off: int) -> int:
    window = (hours.Window(zone, 7, 23),)
    return (hours.closes_at(window, hours.next_open(window, around)) or around) + off


@settings(max_examples=1000)
@given(situations(), st.integers(0, 2**32))
def test_a_send_breaks_nothing(situation, seed):
    """Whatever the facts: at its earliest time a Send is inside both hours, its day, its cap, its slot and its
    validity, on a live session; and every head before it was stepped over for a reason (first in, first out)."""
    found, rules, now = situation
    decision = decide(found, rules, now_ms=now, rng=Random(seed))
    who = sender(found, rules, now_ms=now)
    event(type(decision.final).__name__)
    stepped = [step.task for step in decision.steps]
    assert len(stepped) == len(set(stepped))
    for step in decision.steps:
        assert step.kind != "park" or step.until_ms > now
    if not isinstance(decision.final, Send):
        assert isinstance(decision.final, Idle) or decision.final.until_ms >= now
        assert not isinstance(decision.final, Wait) or decision.final.until_ms > now or stepped
        return
    send, task = decision.final, decision.final.head
    wire = send.send_after_ms
    windows = who.windows + hours.recipient_windows(rules.policy, task.to, task.tz, who.zone)
    assert all(hours.is_open(windows, moment) for moment in (now, (now + wire) // 2, wire))
    assert hours.local_day(who.zone, wire) == hours.local_day(who.zone, now) == send.day
    assert found.cap_used < who.level.daily_cap == send.cap
    assert now <= wire <= now + rules.lead_ms
    assert wire < task.expires_at
    assert not task.suppressed
    assert task.state in WAITING
    assert sum(wire - MINUTE <= earlier for earlier in found.sends) < who.pace.rpm
    assert not found.sends or wire >= found.sends[-1] + min(who.pace.shortest_ms, found.gap_ms)
    assert task.pinned in (None, send.session_id)
    assert send.session_id in [s.id for s in found.sessions if now - s.last_seen_ms <= rules.liveness_ms]
    before = [one.task for one in found.heads[: found.heads.index(task)]]
    assert set(before) <= set(stepped)


@given(situations(), st.integers(0, 2**32))
def test_the_same_facts_and_seed_give_the_same_decision(situation, seed):
    """A decision is a function of what it is given."""
    found, rules, now = situation
    one, other = (decide(found, rules, now_ms=now, rng=Random(seed)) for _ in range(2))
    assert one == other
