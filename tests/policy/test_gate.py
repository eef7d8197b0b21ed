"""The last gate: one row for each refusal, and what a Give promises of every moment in which it may be used."""

from itertools import combinations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.domain.reasons import Reason
from paceline.policy import hours
from paceline.policy.facts import Rules, sender
from paceline.policy.gate import LEASE_MARGIN_MS, Give, OutboxTask, Refuse, decide
from paceline.policy.trust import DAY_MS

from .builders import DEFAULT, HOUR, LONDONER, MINUTE, NOON, PHONE, RULES, ZONE, ZONES, facts, moments, ms

LEASE = 120_000
TODAY = "2026-03-10"
TYPING = DEFAULT.typing_ms[1]


def task(**changes) -> OutboxTask:
    base = {"task": "J:0", "to": PHONE, "state": "h", "expires_at": NOON + DAY_MS, "send_after": NOON, "day": TODAY}
    return OutboxTask(**{**base, **changes})


def gate(now: int = NOON, rules: Rules = RULES, phone: dict | None = None, lease_ms: int = LEASE, **changes):
    who = sender(facts(**(phone or {})), rules, now_ms=now)
    return decide(task(**changes), who, rules, lease_ms=lease_ms, now_ms=now)


NEW_YORK_OPENS = ms("2026-03-10T07:00", "America/New_York")

# In the order in which the gate asks; of several the first is told.
REFUSALS = [
    ("suppressed", {"suppressed": True}, Refuse("suppress", Reason.SUPPRESSED)),
    ("expired", {"expires_at": NOON}, Refuse("expire", Reason.EXPIRED)),
    ("fleet paused", {"phone": {"fleet_paused": True}}, Refuse("return", Reason.FLEET_PAUSED)),
    ("quarantined", {"phone": {"quarantined": True}}, Refuse("return", Reason.QUARANTINED)),
    ("cooling down", {"phone": {"cooldown_until": NOON + 1}}, Refuse("return", Reason.COOLDOWN)),
    ("closed", {"phone": {"timezone": "America/Los_Angeles"}}, Refuse("return", Reason.QUIET_HOURS)),
    ("job paused", {"job_paused": True}, Refuse("return", Reason.JOB_PAUSED)),
    ("session paused", {"session_paused": True}, Refuse("return", Reason.SESSION_PAUSED)),
    (
        "a new chat on a locked number",
        {"is_known": False, "phone": {"restriction": "TIME_LOCKED", "restricted_until": NOON + 9}},
        Refuse("park", Reason.TIME_LOCKED, NOON + 9),
    ),
    ("recipient asleep", {"tz": "America/New_York"}, Refuse("park", Reason.RECIPIENT_HOURS, NEW_YORK_OPENS)),
    ("yesterday's unit", {"day": "2026-03-09"}, Refuse("return", Reason.DAILY_CAP)),
]


@pytest.mark.parametrize(("changes", "refusal"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_one_refusal(changes, refusal):
    """Each rule alone refuses, for its own reason."""
    assert gate(**changes) == refusal


@pytest.mark.parametrize(("first", "second"), [*combinations(range(len(REFUSALS)), 2)])
def test_the_first_refusal_is_told(first, second):
    """Of two rules that hold at once the earlier in the table gives the answer."""
    one, other = REFUSALS[first][1], REFUSALS[second][1]
    both = {**other, **one, "phone": {**other.get("phone", {}), **one.get("phone", {})}}
    assert gate(**both) == REFUSALS[first][2]


def test_expired_but_maybe_sent_is_unknown():
    """What may have gone out is not called expired."""
    assert gate(expires_at=NOON, maybe_sent=True) == Refuse("fail", Reason.UNKNOWN_OUTCOME)


def test_no_common_hours():
    """A recipient who is never awake with the number gets its end here too (the rules may have changed meanwhile)."""
    rules = Rules(policy=replace(DEFAULT, recipient_hours=(22, 23)))
    assert gate(rules=rules, phone={"created_at": None}) == Refuse("fail", Reason.NO_COMMON_HOURS)


def test_all_well_is_given():
    """With nothing in the way the task is given until the lease's end less the margin; the longest typing is not taken
    from the lease."""
    assert gate() == Give(NOON, NOON + TYPING + LEASE - LEASE_MARGIN_MS, NOON + TYPING + LEASE)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"is_known": True, "phone": {"restriction": "CAPPED", "restricted_until": NOON + 9}}, id="known"),
        pytest.param({"is_known": False, "phone": {"restriction": "CAPPED", "restricted_until": NOON}}, id="over"),
        pytest.param({"is_known": False}, id="not restricted"),
    ],
)
def test_a_restriction_stops_new_chats_only_while_it_lasts(changes):
    """People a restricted number talks to already go on, and so does everybody once the stated time has come."""
    assert isinstance(gate(**changes), Give)


def test_rules_that_became_stricter_hold_for_what_was_handed_over_before():
    """An operator slowed the number down after the hand-over: the rest before the message obeys the new pace."""
    slow = gate(phone={"sends": (NOON - 2_000,), "rpm_override": 2, "rpm_source": "manual"})
    assert slow.send_after_ms == NOON - 2_000 + int(24_000 * 0.8)
    assert gate(phone={"sends": (NOON - 2_000,)}).send_after_ms == NOON


def test_an_early_claim_carries_its_slot():
    """Claimed before its slot, the task says so, and the lease counts from the slot."""
    assert gate(send_after=NOON + 3_000).send_after_ms == NOON + 3_000


CLOSES = ms("2026-03-10T23:00", ZONE)
MIDNIGHT = ms("2026-03-11T00:00", ZONE)
ALWAYS = Rules(policy=replace(DEFAULT, levels=(replace(DEFAULT.levels[-1], hours=None),)))
NEVER_ASLEEP = Rules(policy=replace(ALWAYS.policy, recipient_hours=None))


@pytest.mark.parametrize(
    ("now", "rules", "changes", "before"),
    [
        pytest.param(NOON, RULES, {}, NOON + TYPING + LEASE - LEASE_MARGIN_MS, id="end of the lease"),
        pytest.param(NOON, RULES, {"expires_at": NOON + 500}, NOON + 500, id="validity"),
        pytest.param(CLOSES - MINUTE, RULES, {}, CLOSES, id="the number's closing"),
        pytest.param(CLOSES - MINUTE, ALWAYS, {}, CLOSES, id="the recipient's closing"),
        pytest.param(MIDNIGHT - MINUTE, NEVER_ASLEEP, {}, MIDNIGHT, id="midnight of the cap's day"),
        pytest.param(CLOSES - MINUTE, RULES, {"expires_at": CLOSES - 30_000}, CLOSES - 30_000, id="validity first"),
        pytest.param(CLOSES - 5 * MINUTE, RULES, {}, CLOSES - 3 * MINUTE + TYPING - LEASE_MARGIN_MS, id="lease first"),
    ],
)
def test_send_before_is_the_earliest_end(now, rules, changes, before):
    """The worker may write until the first of closing (both), midnight, validity and the lease's end less margin."""
    given_ = gate(now, rules, **{"send_after": now, "expires_at": now + DAY_MS, **changes})
    assert given_.send_before_ms == before


def test_the_recipients_closing_comes_before_the_numbers():
    """In Kolkata it is 22:59 when Jerusalem still has hours: the recipient's night ends the window."""
    closes = ms("2026-03-10T23:00", "Asia/Kolkata")
    given_ = gate(closes - MINUTE, tz="Asia/Kolkata", send_after=closes - MINUTE)
    assert given_.send_before_ms == closes


@pytest.mark.parametrize("early", [0, 1, 1_000])
def test_a_slot_behind_the_end_goes_back(early):
    """A slot at or behind the end of the window is not given: nothing is sent after closing because it was handed over
    before."""
    refused = gate(CLOSES - 2_000, send_after=CLOSES + early)
    assert (refused.kind, refused.reason) == ("return", Reason.QUIET_HOURS)


@pytest.mark.parametrize("lease_ms", [100, 1_000, 2_000, 600_000])
def test_even_a_short_lease_leaves_time_to_send(lease_ms):
    """Whatever LEASE_MS is, what is given can be used, and not beyond its lease."""
    given_ = gate(lease_ms=lease_ms)
    assert NOON < given_.send_before_ms < given_.lease_until_ms == NOON + TYPING + lease_ms


@st.composite
def claims(draw):
    zone = draw(st.sampled_from(ZONES))
    spans = st.sampled_from(
        [None, (0, 24), (7, 23), (9, 21), (0, 1), (0, 2), (0, 3), (1, 3), (2, 4), (20, 24), (23, 24)]
    )
    level = replace(DEFAULT.levels[-1], hours=draw(spans))
    rules = Rules(policy=replace(DEFAULT, levels=(level,), recipient_hours=draw(spans)))
    now = draw(moments(zone))
    outbox = task(
        to=draw(st.sampled_from([PHONE, LONDONER, "351912345678", "80012345678"])),
        tz=draw(st.none() | st.sampled_from(ZONES)),
        expires_at=now + draw(st.sampled_from([1, 60_000, DAY_MS])),
        send_after=now + draw(st.integers(-60_000, 4_000)),
        day=hours.local_day(zone, now + draw(st.sampled_from([0, 0, 0, -DAY_MS]))),
    )
    return (
        outbox,
        sender(facts(timezone=zone), rules, now_ms=now),
        rules,
        now,
        draw(st.sampled_from([120_000, 600_000, 6 * HOUR])),
    )


@settings(max_examples=800)
@given(claims())
def test_a_give_holds_at_every_moment_of_its_window(claim):
    """Whenever the worker writes within the window it was given, both are awake, the day is the one whose unit was
    taken, and the message is valid and leased; days on which the clocks change included."""
    outbox, who, rules, now, lease_ms = claim
    decision = decide(outbox, who, rules, lease_ms=lease_ms, now_ms=now)
    event(type(decision).__name__)
    if isinstance(decision, Refuse):
        assert decision.kind != "park" or decision.until_ms > now
        return
    start, end = max(now, decision.send_after_ms), decision.send_before_ms
    assert now < end
    assert decision.send_after_ms < end <= outbox.expires_at
    assert end < decision.lease_until_ms
    windows = who.windows + hours.recipient_windows(rules.policy, outbox.to, outbox.tz, who.zone)
    for at in [now, start, end - 1, *range(start, end, max(1, (end - start) // 24))]:
        assert hours.is_open(windows, at)
        assert hours.local_day(who.zone, at) == outbox.day
