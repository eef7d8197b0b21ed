"""Routing: sticky by recipient, least loaded else, never further ahead than there is room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.reasons import Reason
from paceline.policy.routing import STICKY_MS, Fleet, NotNow, PhoneLoad, Sticky, To

from .builders import NOON

ROOM, NOBODY = NotNow(Reason.WAITING_FOR_ROOM), NotNow(Reason.NO_SESSIONS_AVAILABLE)


def fleet(*changes: dict) -> Fleet:
    """Phones a, b, c: idle, available, with room, but for what is said."""
    base = {"available": True, "load": 0, "room": 10}
    return Fleet(PhoneLoad(**{"phone": name, **base, **change}) for name, change in zip("abc", changes, strict=False))


def sticky(phone: str, age_ms: int = 1, *, warm: bool = False) -> Sticky:
    return Sticky(phone, NOON - age_ms, warm)


GONE = {"available": False}
FULL = {"room": 0}
BUSY = {"load": 5}
SPENT = {"room": 0, "spent": True}


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
        pytest.param([{}, BUSY], sticky("b", 90 * STICKY_MS, warm=True), None, To("b"), id="warm does not age"),
        pytest.param([{}], sticky("z", warm=True), None, To("z"), id="warm, its number not in sight"),
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


loads = st.builds(
    PhoneLoad,
    phone=st.sampled_from("abcdef"),
    available=st.booleans(),
    load=st.integers(0, 5),
    room=st.integers(-1, 4),
)
fleets = st.lists(loads, max_size=6, unique_by=lambda load: load.phone)
contacts = st.lists(
    st.tuples(
        st.none() | st.builds(Sticky, st.sampled_from("abcdefz"), st.sampled_from([NOON, 0]), st.booleans()),
        st.none() | st.none() | st.sampled_from("abcdefz"),
    ),
    max_size=30,
)


def copies(fleet: list[PhoneLoad]) -> list[PhoneLoad]:
    return [PhoneLoad(x.phone, x.available, x.load, x.room) for x in fleet]


@given(fleets, contacts)
def test_against_a_plain_scan(phones, contacts):
    """The heap chooses what a scan of all phones would: the least loaded available one with room, by name in a tie."""
    fleet, plain = Fleet(copies(phones)), {x.phone: x for x in copies(phones)}
    for known, named in contacts:
        decision = fleet.route(known, named=named, now_ms=NOON)
        mine = plain.get(known.phone) if known else None
        held = known is not None and (known.warm or (known.at_ms == NOON and mine is not None and mine.available))
        if named is None and not held:
            able = [x for x in plain.values() if x.available and x.room > 0]
            some = any(x.available for x in plain.values())
            best = min(able, key=lambda x: (x.load, x.phone), default=None)
            assert decision == (To(best.phone) if best else ROOM if some else NOBODY)
        if isinstance(decision, To) and decision.phone in plain:
            plain[decision.phone].load += 1
            plain[decision.phone].room -= 1
    assert {x.phone: (x.load, x.room) for x in fleet.loads.values()} == {
        name: (x.load, x.room) for name, x in plain.items()
    }


@given(fleets, contacts)
def test_room_is_exceeded_only_by_stickiness(phones, contacts):
    """A queue grows past its room only by contacts whose conversation is there."""
    room = {x.phone: max(0, x.room) for x in phones}
    fleet, free = Fleet(copies(phones)), dict.fromkeys(room, 0)
    for known, named in contacts:
        decision = fleet.route(known, named=named, now_ms=NOON)
        by_stickiness = named is None and known is not None and decision == To(known.phone)
        if isinstance(decision, To) and not by_stickiness:
            free[decision.phone] += 1
    assert all(free[name] <= room[name] for name in room)


@given(fleets, contacts, st.randoms())
def test_the_same_facts_give_the_same_choice(phones, contacts, rng):
    """The order in which the store lists the phones has no say."""
    shuffled = copies(phones)
    rng.shuffle(shuffled)
    one, other = Fleet(copies(phones)), Fleet(shuffled)
    for known, named in contacts:
        assert one.route(known, named=named, now_ms=NOON) == other.route(known, named=named, now_ms=NOON)
