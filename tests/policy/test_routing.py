"""Routing: sticky by recipient, else by the strategy; never further ahead than there is room, and no new chats on a
number the platform restricted."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.domain.reasons import Reason
from paceline.policy.retry import DELAY_CEILING_MS
from paceline.policy.routing import (
    AT_REST_MS,
    HEALTH_MS,
    LOOK_AGAIN_MS,
    STICKY_MS,
    STRATEGIES,
    WARM_MS,
    Fleet,
    NotNow,
    PhoneLoad,
    Sticky,
    To,
    phone_load,
)

from .builders import NOON, RULES, facts

ROOM, NOBODY = NotNow(Reason.WAITING_FOR_ROOM), NotNow(Reason.NO_SESSIONS_AVAILABLE)
NO_NEW, NO_MORE = NotNow(Reason.TIME_LOCKED), NotNow(Reason.CAPPED)


def fleet(*changes: dict, strategy: str = "sticky", turn: int = 0) -> Fleet:
    """Phones a, b, c: idle, available, with room, but for what is said."""
    base = {"available": True, "load": 0, "room": 10}
    loads = (PhoneLoad(**{"phone": name, **base, **change}) for name, change in zip("abc", changes, strict=False))
    return Fleet(loads, strategy=strategy, turn=turn)


def sticky(phone: str, age_ms: int = 1, *, warm: bool = False) -> Sticky:
    return Sticky(phone, NOON - age_ms, NOON - 1 if warm else 0)


GONE = {"available": False}
FULL = {"room": 0}
BUSY = {"load": 5}
CROWDED = {"room": 0, "wide_room": 0}
SPENT = {"room": 0, "spent": True}
LOCKED = {"restriction": Reason.TIME_LOCKED}
CAPPED = {"restriction": Reason.CAPPED}
SICK = {"failures": 1}


@pytest.mark.parametrize(
    ("phones", "known", "named", "expected"),
    [
        pytest.param([BUSY, {}], None, None, To("b"), id="least loaded"),
        pytest.param([{}, {}], None, None, To("a"), id="a tie goes by name"),
        pytest.param([GONE, BUSY], None, None, To("b"), id="only what is available"),
        pytest.param([FULL, BUSY], None, None, To("b"), id="only where there is room"),
        pytest.param([FULL, FULL], None, None, ROOM, id="no room anywhere"),
        pytest.param([GONE, FULL], None, None, ROOM, id="available but full is a matter of room"),
        pytest.param([GONE, GONE], None, None, NOBODY, id="nobody available"),
        pytest.param([], None, None, NOBODY, id="no phones"),
        pytest.param([{}, BUSY], sticky("b"), None, To("b"), id="sticky, though more loaded"),
        pytest.param([{}, BUSY], sticky("b", STICKY_MS - 1), None, To("b"), id="sticky to the last millisecond"),
        pytest.param([{}, BUSY], sticky("b", STICKY_MS), None, To("a"), id="after 24 hours no more"),
        pytest.param([{}, GONE], sticky("b"), None, To("a"), id="cold and not available: moves"),
        pytest.param([GONE, GONE], sticky("b"), None, NOBODY, id="cold, nobody available"),
        pytest.param([{}], sticky("z"), None, To("a"), id="cold, its number is no more"),
        pytest.param([{}, FULL], sticky("b"), None, ROOM, id="sticky waits for a queue that is full for the moment"),
        pytest.param([{}, SPENT], sticky("b"), None, To("a"), id="sticky, its day used up: moves"),
        pytest.param([{}, GONE], sticky("b", warm=True), None, To("b"), id="warm waits for its number"),
        pytest.param([{}, FULL], sticky("b", warm=True), None, To("b"), id="warm, without room"),
        pytest.param(
            [{}, BUSY], sticky("b", 90 * STICKY_MS, warm=True), None, To("b"), id="warm, its last send long ago"
        ),
        pytest.param([{}], sticky("z", warm=True), None, To("z"), id="warm, its number not in sight"),
        pytest.param([{}, GONE | {"removed": True}], sticky("b", warm=True), None, To("a"), id="warm, but removed"),
        pytest.param([{}, CROWDED], sticky("b", warm=True), None, ROOM, id="warm, far too many wait already"),
        pytest.param([{}, CROWDED | GONE], sticky("b", warm=True), None, To("b"), id="warm, nothing would make room"),
        pytest.param([{}, BUSY], None, "b", To("b"), id="named"),
        pytest.param([{}, {}], sticky("a", warm=True), "b", To("b"), id="named before warm"),
        pytest.param([{}, GONE], None, "b", To("b"), id="named and not connected: waits in its queue"),
        pytest.param([{}, FULL], None, "b", ROOM, id="named, no room: no other takes it"),
        pytest.param([{}], None, "z", NOBODY, id="named, unknown"),
    ],
)
def test_choice(phones, known, named, expected):
    """One row for each rule of SPEC §5 Routing."""
    assert fleet(*phones).route(known, named=named, now_ms=NOON) == expected


def test_what_is_chosen_is_counted():
    """Nine contacts over three idle phones are three each: the choice itself is load."""
    phones = fleet({}, {}, {})
    chosen = [phones.route(None, now_ms=NOON).phone for _ in range(9)]
    assert sorted(chosen) == list("aaabbbccc")


def test_sticky_and_named_count_as_load():
    """Load that came by stickiness or by name is seen by the next free choice."""
    phones = fleet({}, {})
    phones.route(sticky("a"), now_ms=NOON)
    phones.route(None, named="a", now_ms=NOON)
    assert [phones.route(None, now_ms=NOON).phone for _ in range(3)] == ["b", "b", "a"]


def test_a_phone_that_went_full_by_stickiness_gets_no_more():
    """Stickiness fills a queue like anything else, never further; free choices go elsewhere then."""
    phones = fleet({"room": 1}, {"load": 50})
    assert phones.route(sticky("a"), now_ms=NOON) == To("a")
    assert phones.route(sticky("a"), now_ms=NOON) == ROOM
    assert phones.route(None, now_ms=NOON) == To("b")


@pytest.mark.parametrize(
    ("age_ms", "expected"),
    [
        pytest.param(0, True, id="they wrote just now"),
        pytest.param(WARM_MS - 1, True, id="to the last millisecond"),
        pytest.param(WARM_MS, False, id="90 days later no more"),
        pytest.param(NOON, False, id="they never wrote"),
    ],
)
def test_how_long_a_chat_is_warm(age_ms, expected):
    """A chat is warm for 90 days from the recipient's last word, by its own time and no key's expiry."""
    assert Sticky("a", 0, NOON - age_ms).is_warm(NOON) is expected
    assert Sticky("a", 0).is_warm(1) is False


@pytest.mark.parametrize(
    ("phones", "was", "known", "expected"),
    [
        pytest.param([LOCKED, BUSY], None, "", To("b"), id="a new chat starts elsewhere"),
        pytest.param([LOCKED, BUSY], None, "a", To("a"), id="with somebody it knows it is as good as any"),
        pytest.param([{**LOCKED, "load": 9}, BUSY], None, "a", To("b"), id="... and no better"),
        pytest.param([LOCKED, {}], sticky("a", warm=True), "", To("a"), id="warm stays: they wrote to it"),
        pytest.param([LOCKED, FULL], None, "", ROOM, id="one takes new chats, but is full"),
        pytest.param([LOCKED, FULL], None, "a", To("a"), id="... and the restricted one knows them"),
        pytest.param([{**LOCKED, "load": 2}, CAPPED], None, "", To("b"), id="all restricted: it waits there, parked"),
        pytest.param([{**LOCKED, **GONE}, CAPPED], None, "", To("b"), id="all available ones restricted"),
        pytest.param([{**LOCKED, **FULL}, {**CAPPED, **FULL}], None, "", NO_NEW, id="all restricted and full: why"),
        pytest.param([{**CAPPED, **FULL}, {**LOCKED, **FULL}], None, "", NO_MORE, id="... the other way round"),
        pytest.param([{**LOCKED, **GONE}], None, "", NOBODY, id="restricted and gone is gone"),
        pytest.param([{**LOCKED, **GONE}, {}], None, "a", To("b"), id="known, restricted, gone"),
        pytest.param([LOCKED, CAPPED], None, "b", To("b"), id="all restricted, one knows them"),
        pytest.param([{**LOCKED, **FULL}], None, "a", ROOM, id="it knows them and is full for the moment"),
        pytest.param([LOCKED, BUSY], None, "z", To("b"), id="known by a number that is no more"),
    ],
)
@pytest.mark.parametrize("strategy", ["sticky", "least_loaded", "health_based"])
def test_restricted_numbers_start_no_new_chat(phones, was, known, expected, strategy):
    """A number under a time lock or a cap goes on with people it knows; others go there only if no number is free, to
    wait there without holding up those behind them."""
    assert fleet(*phones, strategy=strategy).route(was, known=set(known), now_ms=NOON) == expected


@pytest.mark.parametrize(
    ("phones", "known", "expected"),
    [
        pytest.param([LOCKED, BUSY], "", To("b"), id="not known: moves"),
        pytest.param([{**LOCKED, "load": 9}, {}], "a", To("a"), id="known: stays"),
        pytest.param([{**LOCKED, **FULL}, {}], "a", ROOM, id="known, full for the moment: waits"),
    ],
)
def test_a_cold_chat_whose_number_is_restricted(phones, known, expected):
    """It stays only if that number has really talked with the contact, for routing alone makes nobody known."""
    assert fleet(*phones).route(sticky("a"), known=set(known), now_ms=NOON) == expected


def test_a_named_number_wins_though_restricted():
    """Who names a number waits for it; its own queue knows until when."""
    assert fleet(LOCKED, {}).route(None, named="a", now_ms=NOON) == To("a")


def test_whom_to_ask_for_acquaintances():
    """Only available restricted numbers are worth a look at whom they know."""
    assert fleet({}, LOCKED, {**CAPPED, **GONE}).restricted == ("b",)


def test_a_restricted_number_makes_no_room():
    """After WAITING_FOR_ROOM the idle restricted number is no reason to look again at once; named, it is."""
    phones = fleet({"load": 100, "rpm": 10.0, "room": 0}, LOCKED)
    assert phones.room_in_ms() == LOOK_AGAIN_MS[1]
    assert phones.room_in_ms("b") == LOOK_AGAIN_MS[0]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("phones", "was", "named", "expected"),
    [
        pytest.param([{}, BUSY], sticky("a", warm=True), "b", To("b"), id="named"),
        pytest.param([{}, FULL], None, "b", ROOM, id="named, no room"),
        pytest.param([{}, BUSY], sticky("b", warm=True), None, To("b"), id="warm"),
        pytest.param([{}, GONE], sticky("b", warm=True), None, To("b"), id="warm, not connected"),
        pytest.param([GONE, FULL], None, None, ROOM, id="no room"),
        pytest.param([GONE], None, None, NOBODY, id="nobody"),
        pytest.param([{**LOCKED, **FULL}], None, None, NO_NEW, id="no new chats"),
    ],
)
def test_what_holds_under_every_strategy(strategy, phones, was, named, expected):
    """A named number wins, a warm chat stays, and what cannot go says why."""
    assert fleet(*phones, strategy=strategy).route(was, named=named, now_ms=NOON) == expected


@pytest.mark.parametrize(
    ("strategy", "phones", "expected"),
    [
        pytest.param("sticky", [{}, BUSY], To("b"), id="sticky: the chat stays"),
        pytest.param("least_loaded", [{}, BUSY], To("a"), id="least_loaded: the idle one"),
        pytest.param("health_based", [SICK, BUSY], To("b"), id="health_based: fewer failures before less load"),
        pytest.param("health_based", [{}, BUSY], To("a"), id="health_based: then load"),
        pytest.param("health_based", [{**SICK, "load": 9}, {"failures": 2}], To("a"), id="health_based: the less sick"),
        pytest.param("health_based", [SICK, FULL], To("a"), id="health_based: the healthy one is full"),
        pytest.param("round_robin", [{"load": 9}, BUSY], To("a"), id="round_robin: in the order of digits"),
    ],
)
def test_strategies(strategy, phones, expected):
    """For a cold chat that began on b each strategy has its own answer."""
    assert fleet(*phones, strategy=strategy).route(sticky("b"), now_ms=NOON) == expected


@pytest.mark.parametrize(
    ("turn", "phones", "expected"),
    [
        pytest.param(0, [{}, {}, {}], "abcab", id="from the start"),
        pytest.param(2, [{}, {}, {}], "cabca", id="goes on after what was routed"),
        pytest.param(7, [{}, {}, {}], "bcabc", id="any number of rounds later"),
        pytest.param(0, [{}, FULL, {}], "acaca", id="the full one is left out"),
        pytest.param(1, [{}, FULL, {}], "cacac", id="its turn goes to the next"),
        pytest.param(0, [{}, {"room": 1}, {}], "abcac", id="one fills up on the way"),
        pytest.param(0, [{}, GONE, LOCKED], "aaaaa", id="only those that take new chats"),
    ],
)
def test_round_robin(turn, phones, expected):
    """Numbers take turns in the order of their digits, from where the job's cursor stands."""
    numbers = fleet(*phones, strategy="round_robin", turn=turn)
    assert "".join(numbers.route(None, now_ms=NOON).phone for _ in range(5)) == expected


def test_round_robin_goes_on_evenly_over_chunks_and_routers():
    """Chunks of four, each routed by another router that knows only the cursor: no number gets more than one extra."""
    chosen = Counter()
    for cursor in range(0, 40, 4):
        numbers = fleet({}, {}, {}, strategy="round_robin", turn=cursor)
        chosen.update(numbers.route(None, now_ms=NOON).phone for _ in range(4))
    assert max(chosen.values()) - min(chosen.values()) <= 1


def test_round_robin_serves_the_known_by_a_restricted_number_last():
    """The ring goes first; a restricted number that knows the contact is better than no number."""
    numbers = fleet({"room": 1}, LOCKED, strategy="round_robin")
    chosen = [numbers.route(None, known={"b"}, now_ms=NOON) for _ in range(2)]
    assert chosen == [To("a"), To("b")]
    assert numbers.route(None, now_ms=NOON) == ROOM


@pytest.mark.parametrize(
    ("changes", "failures", "restriction"),
    [
        pytest.param({}, 0, None, id="a number without a past"),
        pytest.param({"failures": (NOON - HEALTH_MS, NOON - HEALTH_MS + 1, NOON)}, 2, None, id="of the last hour"),
        pytest.param(
            {"restriction": "TIME_LOCKED", "restricted_until": NOON + 1}, 0, Reason.TIME_LOCKED, id="time lock"
        ),
        pytest.param({"restriction": "CAPPED", "restricted_until": NOON + 1}, 0, Reason.CAPPED, id="cap"),
        pytest.param({"restriction": "CAPPED", "restricted_until": NOON}, 0, None, id="its time has passed"),
        pytest.param({"restricted_until": NOON + 1}, 0, None, id="a time without a restriction"),
    ],
)
def test_a_number_as_the_router_sees_it(changes, failures, restriction):
    """Failures of the last hour, and what the platform forbids at this moment."""
    load = phone_load(facts(**changes), RULES, waiting=0, parked=0, ahead=10, now_ms=NOON)
    assert (load.failures, load.restriction, load.takes_new) == (failures, restriction, restriction is None)


@pytest.mark.parametrize(
    ("used", "waiting", "failed", "room", "spent"),
    [
        pytest.param(0, 0, (), 19, False, id="a new day is not given away to the last unit"),
        pytest.param(0, 19, (), 0, True, id="the last waits while anything is queued"),
        pytest.param(19, 0, (), 1, False, id="and is given when nothing is"),
        pytest.param(18, 1, (), 0, True, id="not before"),
        pytest.param(10, 4, (NOON - 1, NOON - 60_000), 3, False, id="what failed comes back and wants its unit"),
        pytest.param(19, 0, (NOON - 1,), 0, True, id="also the last one"),
        pytest.param(19, 0, (NOON - DELAY_CEILING_MS,), 1, False, id="by now it has come back, or never will"),
        pytest.param(20, 0, (), -1, True, id="used up"),
    ],
)
def test_units_are_kept_for_retries(used, waiting, failed, room, spent):
    """A cold number's 20 a day: without a unit a retry would wait for tomorrow, and its job with it."""
    cold = facts(created_at=NOON - 1, cap_day="2026-03-10", cap_used=used, failures=failed)
    load = phone_load(cold, RULES, waiting=waiting, parked=0, ahead=200, now_ms=NOON)
    assert (load.room, load.spent) == (room, spent)


def test_what_is_kept_is_asked_for_again_today():
    """A job that waits for the last unit looks again when the queue is empty; only one for a used-up day rests."""
    cold = {"created_at": NOON - 1, "cap_day": "2026-03-10"}
    kept = phone_load(facts(**cold, cap_used=10), RULES, waiting=9, parked=0, ahead=200, now_ms=NOON)
    assert (kept.room, kept.room_in_ms) == (0, LOOK_AGAIN_MS[1])
    used_up = phone_load(facts(**cold, cap_used=20), RULES, waiting=0, parked=0, ahead=200, now_ms=NOON)
    assert used_up.room_in_ms == AT_REST_MS


loads = st.builds(
    PhoneLoad,
    phone=st.sampled_from("abcdef"),
    available=st.booleans(),
    load=st.integers(0, 5),
    room=st.integers(-1, 4),
    failures=st.integers(0, 2),
    restriction=st.none() | st.none() | st.sampled_from([Reason.TIME_LOCKED, Reason.CAPPED]),
)
fleets = st.lists(loads, max_size=6, unique_by=lambda load: load.phone)
contacts = st.lists(
    st.tuples(
        st.none()
        | st.builds(Sticky, st.sampled_from("abcdefz"), st.sampled_from([NOON, 0]), st.sampled_from([0, 0, NOON])),
        st.none() | st.none() | st.sampled_from("abcdefz"),
        st.frozensets(st.sampled_from("abcdefz"), max_size=2),
    ),
    max_size=30,
)
strategies = st.sampled_from(STRATEGIES)


def copies(fleet: list[PhoneLoad]) -> list[PhoneLoad]:
    return [replace(load) for load in fleet]


def scan(phones: list[PhoneLoad], known: frozenset[str], strategy: str) -> To | NotNow:
    """The rule without a heap: the best of those that take this contact and have room."""
    able = [x for x in phones if x.available and (x.takes_new or x.phone in known)]
    sick = strategy == "health_based"
    best = min((x for x in able if x.room > 0), key=lambda x: (sick * x.failures, x.load, x.phone), default=None)
    if best or able:
        return To(best.phone) if best else ROOM
    some = [x for x in phones if x.available]
    if any(x.takes_new for x in some):
        return ROOM
    locked = min((x for x in some if x.room > 0), key=lambda x: (sick * x.failures, x.load, x.phone), default=None)
    if locked:
        return To(locked.phone)
    return NotNow(min(some, key=lambda x: x.phone).restriction) if some else NOBODY


def is_held(was: Sticky | None, plain: dict[str, PhoneLoad], known: frozenset[str], strategy: str) -> bool:
    if was is None or was.is_warm(NOON):
        return was is not None
    mine = plain.get(was.phone)
    cold = strategy == "sticky" and was.at_ms == NOON
    return cold and mine is not None and mine.available and (mine.takes_new or mine.phone in known)


@given(fleets, contacts, st.sampled_from([name for name in STRATEGIES if name != "round_robin"]))
def test_against_a_plain_scan(phones, contacts, strategy):
    """The heap chooses what a scan of all phones would: the best available one with room, by name in a tie."""
    fleet, plain = Fleet(copies(phones), strategy=strategy), {x.phone: x for x in copies(phones)}
    for was, named, known in contacts:
        decision = fleet.route(was, named=named, known=known, now_ms=NOON)
        if named is None and not is_held(was, plain, known, strategy):
            assert decision == scan(list(plain.values()), known, strategy)
        if isinstance(decision, To) and decision.phone in plain:
            plain[decision.phone].load += 1
            plain[decision.phone].room -= 1
    assert {x.phone: (x.load, x.room) for x in fleet.loads.values()} == {
        name: (x.load, x.room) for name, x in plain.items()
    }


@given(fleets, contacts, strategies, st.integers(0, 20))
def test_room_is_exceeded_only_by_stickiness(phones, contacts, strategy, turn):
    """A queue grows past its room only by contacts whose conversation is there."""
    room = {x.phone: max(0, x.room) for x in phones}
    fleet, free = Fleet(copies(phones), strategy=strategy, turn=turn), dict.fromkeys(room, 0)
    for was, named, known in contacts:
        decision = fleet.route(was, named=named, known=known, now_ms=NOON)
        by_stickiness = named is None and was is not None and decision == To(was.phone)
        if isinstance(decision, To) and not by_stickiness:
            free[decision.phone] += 1
    assert all(free[name] <= room[name] for name in room)


@given(fleets, contacts, strategies, st.integers(0, 20))
def test_nobody_new_on_a_restricted_number(phones, contacts, strategy, turn):
    """Whatever the strategy: a restricted number gets a contact only by name, warm or known, unless none is free."""
    fleet = Fleet(copies(phones), strategy=strategy, turn=turn)
    for was, named, known in contacts:
        decision = fleet.route(was, named=named, known=known, now_ms=NOON)
        if isinstance(decision, To) and named is None and not (was and was.is_warm(NOON)):
            load = fleet.loads[decision.phone]
            assert load.available
            none_is_free = not any(other.available and other.takes_new for other in phones)
            assert load.takes_new or load.phone in known or none_is_free


@given(fleets, contacts, strategies, st.integers(0, 20), st.randoms())
def test_the_same_facts_give_the_same_choice(phones, contacts, strategy, turn, rng):
    """The order in which the store lists the phones has no say."""
    shuffled = copies(phones)
    rng.shuffle(shuffled)
    one, other = (Fleet(loads, strategy=strategy, turn=turn) for loads in (copies(phones), shuffled))
    for was, named, known in contacts:
        first = one.route(was, named=named, known=known, now_ms=NOON)
        assert first == other.route(was, named=named, known=known, now_ms=NOON)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_choice_that_is_taken_back_counts_for_nobody(strategy: str) -> None:
    chosen = fleet({}, {}, {}, strategy=strategy)
    first = chosen.route(None, now_ms=NOON)
    assert isinstance(first, To)
    chosen.uncount(first.phone)
    assert {load.phone: (load.load, load.room) for load in chosen.loads.values()} == dict.fromkeys("abc", (0, 10))
    # And each may be chosen as before, by whoever comes.
    assert Counter(chosen.route(None, now_ms=NOON).phone for _ in range(30)) == dict.fromkeys("abc", 10)  # type: ignore[union-attr]
    assert chosen.route(None, now_ms=NOON) == ROOM
