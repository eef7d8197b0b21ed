"""Explaining: the answer is the dispatcher's own decision, with its facts, in a sentence a person can read."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.reasons import Reason
from paceline.domain.states import Byte
from paceline.policy import dispatch
from paceline.policy.explain import ENDED, HEADS_SHOWN, NO_KNOWN_END, READY, Explanation, explain, sentence
from paceline.policy.facts import PhoneFacts, sender
from paceline.policy.pacing import PacerFields

from .builders import HOUR, LONDONER, MINUTE, NOON, PHONE, RULES, ZONE, ZONES, facts, head, live, moments, ms, preset

PACE = sender(facts(), RULES, now_ms=NOON).pace
TOMORROW_7 = ms("2026-03-11T07:00", ZONE)
EVENING = ms("2026-03-10T23:30", ZONE)


def explained(now: int = NOON, rules=RULES, **changes) -> Explanation:
    phone = facts(**{"sessions": (live(now_ms=now),), **changes})
    return explain(phone, rules, now_ms=now, rng=Random(1))


def asleep(task: str) -> msgspec.Struct:
    """A task for somebody in New York, where it is six in the morning at noon in Jerusalem."""
    return head(task, to=LONDONER, tz="America/New_York")


@pytest.mark.parametrize("reason", Reason, ids=str)
def test_every_reason_has_its_sentence(reason):
    """Each member has a sentence of its own: a capital, a full stop, no name of a constant, no hole left open."""
    texts = [
        sentence(reason, until_ms=until, zone=ZONE, phone=phone)
        for until in (None, TOMORROW_7)
        for phone in (None, PHONE)
    ]
    for text in texts:
        assert text[0].isupper()
        assert text.endswith(".")
        assert "{" not in text
        assert str(reason) not in text


def test_sentences_differ():
    """No two reasons say the same."""
    assert len({sentence(reason, until_ms=None, zone=ZONE) for reason in Reason}) == len(Reason)


@pytest.mark.parametrize(
    ("reason", "until", "zone", "phone", "text"),
    [
        pytest.param(
            Reason.QUIET_HOURS, ms("2026-03-10T07:00", ZONE), ZONE, None,
            "Outside this number's hours; it goes on at 07:00 on 10 March (Asia/Jerusalem).", id="hours",
        ),
        pytest.param(
            Reason.QUIET_HOURS, ms("2026-03-10T07:00", ZONE), ZONE, PHONE,
            "Outside number 972541234567's hours; it goes on at 07:00 on 10 March (Asia/Jerusalem).", id="named",
        ),
        pytest.param(
            Reason.PACING, NOON + 4_200, ZONE, None,
            "This number rests between two messages; the next may go at 12:00:05 on 10 March (Asia/Jerusalem).",
            id="seconds, rounded up",
        ),
        pytest.param(
            Reason.COOLDOWN, NOON, "Asia/Kolkata", None,
            "This number rests because it was told to slow down; it goes on at 15:30 on 10 March (Asia/Kolkata).",
            id="in the zone of the number",
        ),
        pytest.param(Reason.DAILY_CAP, None, ZONE, None,
            "This number has sent as many messages as it may in a day.", id="no time known"),
        pytest.param(Reason.FLEET_PAUSED, NOON, ZONE, None,
            "All sending is paused until an operator resumes it.", id="when we look again is no promise"),
        pytest.param(Reason.GLOBAL_LIMIT, 9 * 10**15, ZONE, None,
            "The whole fleet sends as fast as its common limit allows.", id="a time that is none"),
        pytest.param(Reason.RETRY, NOON, "Mars/Olympus", None,
            "The last attempt failed and another follows; it is due at 10:00 on 10 March (UTC).", id="no such zone"),
        pytest.param("SOLAR_FLARE", None, ZONE, None, "It waits (SOLAR_FLARE).", id="a reason of a newer version"),
    ],
)  # fmt: skip
def test_sentence(reason, until, zone, phone, text):
    """The time stands in the number's zone, and only where it is a promise."""
    assert sentence(reason, until_ms=until, zone=zone, phone=phone) == text


@pytest.mark.parametrize(
    ("now", "changes", "decision", "rule", "until"),
    [
        pytest.param(NOON, {}, "send", READY, NOON, id="free to send"),
        pytest.param(NOON, {"heads": ()}, "idle", READY, None, id="nothing waits"),
        pytest.param(NOON, {"sends": (NOON,), "gap_ms": 9_000, "gap_key": PACE.key}, "wait", "PACING", NOON + 9_000,
            id="until its slot, not until the hand-over before it"),
        pytest.param(NOON, {"global_free_at": NOON + 9_000}, "wait", "GLOBAL_LIMIT", NOON + 9_000, id="the fleet"),
        pytest.param(EVENING, {}, "wait", "QUIET_HOURS", TOMORROW_7, id="its hours"),
        pytest.param(NOON, {"cap_day": "2026-03-10", "cap_used": 500}, "wait", "DAILY_CAP",
            ms("2026-03-11T00:00", ZONE), id="its day"),
        pytest.param(NOON, {"cooldown_until": NOON + 5}, "wait", "COOLDOWN", NOON + 5, id="cool-down"),
        pytest.param(NOON, {"quarantined": True}, "wait", "QUARANTINED", None, id="quarantine has no known end"),
        pytest.param(NOON, {"fleet_paused": True}, "wait", "FLEET_PAUSED", None, id="nor has a pause"),
        pytest.param(NOON, {"sessions": ()}, "wait", "NOT_CONNECTED", None, id="nor a lost connection"),
        pytest.param(NOON, {"unsettled": "J:9"}, "wait", "UNSETTLED", None, id="nor a message under way"),
        pytest.param(NOON, {"heads": (asleep("J:0"),)}, "wait", "IN_TURN", None, id="only sleepers at the head"),
    ],
)  # fmt: skip
def test_what_a_number_does_and_why(now, changes, decision, rule, until):
    """One row for each kind of answer."""
    answer = explained(now, **changes)
    assert (answer.decision, answer.rule, answer.until) == (decision, rule, until)
    assert answer.text.endswith(".")


def heads_of(answer: Explanation) -> list[tuple]:
    return [(told.task, told.action, told.rule, told.until) for told in answer.heads]


def test_what_becomes_of_the_heads():
    """Each task at the head with its own fate, and who comes after the one that goes is in turn."""
    opens = ms("2026-03-10T07:00", "America/New_York")
    queue = (
        head("J:0", state=Byte.CANCELED),
        head("J:1", expires_at=NOON),
        head("J:2", suppressed=True),
        head("J:3", suppressed=True, maybe_sent=True),
        asleep("J:4"),
        head("J:5", pinned="s2"),
        head("J:6"),
        head("J:7"),
    )
    assert heads_of(explained(heads=queue)) == [
        ("J:0", "drop", ENDED, None),
        ("J:1", "expire", "EXPIRED", None),
        ("J:2", "suppress", "SUPPRESSED", None),
        ("J:3", "fail", "UNKNOWN_OUTCOME", None),
        ("J:4", "park", "RECIPIENT_HOURS", opens),
        ("J:5", "park", "NOT_CONNECTED", None),
        ("J:6", "send", READY, NOON),
        ("J:7", "wait", "IN_TURN", None),
    ]


def test_heads_of_a_number_that_waits():
    """The first waits for what its number waits for, the next for the first; what ends, ends all the same."""
    queue = (head("J:0", expires_at=NOON), head("J:1"), head("J:2"))
    assert heads_of(explained(heads=queue, cooldown_until=NOON + 5)) == [
        ("J:0", "expire", "EXPIRED", None),
        ("J:1", "wait", "COOLDOWN", NOON + 5),
        ("J:2", "wait", "IN_TURN", None),
    ]


def test_a_long_queue_is_cut():
    """No answer lists more than the first few."""
    assert len(explained(heads=tuple(head(f"J:{i}") for i in range(50))).heads) == HEADS_SHOWN


def test_the_facts():
    """Everything the decision rested on, under the names the API uses."""
    answer = explained(
        sends=(NOON - 3_000,), gap_ms=5_000, gap_key="", rpm_override=10, rpm_source="smartguard",
        pacer=PacerFields(burst_limit=7), cap_day="2026-03-10", cap_used=41, restriction="CAPPED",
        restricted_until=NOON + HOUR, cooldown_until=NOON - 1, sessions=(live(), live("s2", NOON - 5 * MINUTE)),
    )  # fmt: skip
    shown = msgspec.to_builtins(answer)["facts"]
    assert NOON <= shown.pop("nextSlotAt") <= NOON + 7_200 * 1.2
    assert shown == {
        "trustLevel": "hot",
        "rpmDefault": 20,
        "rpmOverride": 10,
        "rpmSource": "smartguard",
        "effectiveRpm": 6.18,
        "window": (4_800, 7_200),
        "burstCount": 1,
        "burstLimit": 7,
        "sentToday": 41,
        "dailyCap": 500,
        "budgetLeft": 459,
        "localTime": "2026-03-10T12:00:00+02:00",
        "hours": (7, 23),
        "cooldownUntil": None,
        "restriction": "CAPPED",
        "restrictedUntil": NOON + HOUR,
        "quarantined": False,
        "fleetPaused": False,
        "fleetStopped": False,
        "connectedSessions": 1,
        "unsettled": None,
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_gap_drawn_for_the_look_is_drawn_once(seed):
    """When the rules changed since the last send, the slot among the facts is the one the answer rests on."""
    phone = facts(sends=(NOON,), gap_ms=1, gap_key="other rules", rpm_override=5, rpm_source="manual")
    answer = explain(phone, RULES, now_ms=NOON, rng=Random(seed))
    drawn = sender(phone, RULES, now_ms=NOON).slot(rng=Random(seed))[0]
    assert (answer.rule, answer.until, answer.facts.next_slot_at) == ("PACING", drawn, drawn)


@pytest.mark.parametrize("seed", range(20))
def test_a_look_on_the_edge_of_the_lead_agrees_with_itself(seed):
    """Sent a while ago under other rules: it says send exactly when the slot it shows is near enough."""
    phone = facts(sends=(NOON - 8_000,), gap_ms=1, gap_key="other rules", rpm_override=5, rpm_source="manual")
    answer = explain(phone, RULES, now_ms=NOON, rng=Random(seed))
    is_near = answer.facts.next_slot_at - RULES.lead_ms <= NOON
    assert answer.decision == ("send" if is_near else "wait")


def test_a_level_without_limits():
    """What has no limit says null, not a number that looks like one."""
    shown = explained(rules=msgspec.structs.replace(RULES, policy=preset("demo"))).facts
    assert (shown.daily_cap, shown.budget_left, shown.hours, shown.rpm_source) == (None, None, None, None)


phones = st.builds(
    lambda now, zone, seed, **rest: (now, seed, {"timezone": zone, **rest}),
    st.sampled_from(ZONES).flatmap(moments),
    st.sampled_from(ZONES),
    st.integers(0, 999),
    cooldown_until=st.sampled_from([0, 2**42]),
    quarantined=st.booleans(),
    unsettled=st.none() | st.just("J:9"),
    heads=st.lists(
        st.sampled_from([head("J:1"), asleep("J:2"), head("J:3", pinned="s9")]), max_size=3, unique=True
    ).map(tuple),
)


@given(phones)
def test_it_says_what_the_dispatcher_does(case):
    """Whatever the facts: kind and rule are those of `decide`, each head is told once, and a time is in the future."""
    now, seed, changes = case
    phone: PhoneFacts = facts(**{"created_at": None, "sessions": (live(now_ms=now),), **changes})
    answer = explain(phone, RULES, now_ms=now, rng=Random(seed))
    final = dispatch.decide(phone, RULES, now_ms=now, rng=Random(seed)).final
    assert answer.decision == type(final).__name__.lower()
    assert answer.rule == (final.reason if isinstance(final, dispatch.Wait) else READY)
    assert [told.task for told in answer.heads] == [each.task for each in phone.heads]
    assert answer.until is None or answer.until >= now
    assert answer.rule not in NO_KNOWN_END or answer.until is None
