"""States: one table, closed, with one way only out of an end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.domain.states import MESSAGE_STATE, NEXT, PROGRESS_KEY, TERMINAL, WAITING, WENT_OUT, Byte, progress

BYTES = [str(byte) for byte in Byte]
NOT_SENT = [byte for byte in TERMINAL if byte not in WENT_OUT]

SPEC_STATES = {
    "queued",
    "scheduled",
    "parked",
    "handed_off",
    "claimed",
    "unknown",
    "sent",
    "delivered",
    "read",
    "failed",
    "expired",
    "canceled",
    "suppressed",
}
SPEC_PROGRESS = [
    "total",
    "queued",
    "scheduled",
    "parked",
    "handedOff",
    "unknown",
    "retrying",
    "sent",
    "delivered",
    "read",
    "failed",
    "expired",
    "canceled",
    "suppressed",
]


def test_the_tables_know_exactly_the_known_bytes():
    """No table forgets a state or knows one that is not named."""
    assert set(NEXT) == set(MESSAGE_STATE) == set(PROGRESS_KEY) == set(BYTES)
    assert set(MESSAGE_STATE.values()) == SPEC_STATES


@pytest.mark.parametrize("byte", BYTES)
def test_moves_lead_to_known_states(byte):
    """Every move ends in a known state, once, and never where it began."""
    assert set(NEXT[byte]) <= set(BYTES)
    assert len(NEXT[byte]) == len(set(NEXT[byte]))
    assert byte not in NEXT[byte]


@pytest.mark.parametrize("byte", NOT_SENT)
def test_an_end_is_left_only_by_proof_that_it_went_out(byte):
    """Failed, expired, canceled and suppressed are final but for the fact that the message was sent."""
    assert set(NEXT[byte]) == set(WENT_OUT)


def test_what_went_out_only_moves_forward():
    """Sent, delivered, read: never backwards, never anything else."""
    assert {byte: set(NEXT[byte]) for byte in WENT_OUT} == {"S": {"D", "R"}, "D": {"R"}, "R": set()}


@pytest.mark.parametrize("byte", [byte for byte in BYTES if byte not in WENT_OUT])
def test_a_proof_of_sending_is_always_accepted(byte):
    """A SENT is a fact whatever we believed, and so is a receipt that overtook it."""
    assert set(WENT_OUT) <= set(NEXT[byte])


@pytest.mark.parametrize("byte", ["c", "u"])
def test_what_may_be_on_the_wire_is_not_called_unsent(byte):
    """A claimed or unknown message cannot be canceled, expire or be suppressed."""
    assert not set("XEO") & set(NEXT[byte])


@pytest.mark.parametrize("byte", [*WAITING, "h"])
def test_what_waits_can_be_stopped(byte):
    """Cancel, validity and suppression reach every message that no worker holds."""
    assert set("XEO") <= set(NEXT[byte])


@pytest.mark.parametrize("byte", BYTES)
def test_every_state_has_an_end_in_reach(byte):
    """From everywhere a message can still end: nothing is stuck (I1)."""
    seen, todo = set(), [byte]
    while todo:
        here = todo.pop()
        if here not in seen:
            seen.add(here)
            todo.extend(NEXT[here])
    assert seen & set(TERMINAL)


@pytest.mark.parametrize("start", ["q", "s", "r", "p", "t"])
def test_nothing_is_claimed_without_a_hand_off(start):
    """The only way to a worker leads through the outbox."""
    assert "c" not in NEXT[start]
    assert "u" not in NEXT[start]
    assert [byte for byte in BYTES if "u" in NEXT[byte]] == ["c"]


@given(st.lists(st.sampled_from(BYTES), max_size=300))
def test_progress_adds_up(states):
    """For any string of states the counts add up to the total, and each message counts where it is."""
    counts = progress("".join(states).encode())
    assert list(counts) == SPEC_PROGRESS
    assert counts["total"] == len(states) == sum(counts.values()) - counts["total"]
    for key, bytes_ in {"queued": "qr", "retrying": "t", "handedOff": "hc", "unknown": "u", "canceled": "X"}.items():
        assert counts[key] == sum(state in bytes_ for state in states)
