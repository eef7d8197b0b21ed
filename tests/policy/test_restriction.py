"""Platform limits: which refusals lock a number, and what the forecast makes of it."""

import pytest
from msgspec.structs import replace

from paceline.policy import forecast, kinds
from paceline.policy.restriction import GUESSED_LOCK_MS, locked_until

from .builders import HOUR, NOON, RULES, facts


@pytest.mark.parametrize(
    ("code", "until"),
    [
        pytest.param("RESTRICTED_463", NOON + GUESSED_LOCK_MS, id="463"),
        pytest.param("463", NOON + GUESSED_LOCK_MS, id="463 as the platform writes it"),
        pytest.param("RATE_LIMIT", None, id="too fast is a cool-down, not a lock"),
        pytest.param("NOT_ON_WHATSAPP", None, id="the recipient's own"),
        pytest.param("SEND_FAILED", None, id="anything else"),
    ],
)
def test_a_refusal_by_the_platform_locks(code, until):
    """Only a refusal by the platform keeps a number from new chats, for a day unless the platform states a time."""
    assert locked_until(code, now_ms=NOON) == until


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"fleet_paused": True}, id="paused"),
        pytest.param({"fleet_stopped": True}, id="stopped"),
        pytest.param({"quarantined": True}, id="quarantined"),
    ],
)
def test_what_waits_for_a_person_has_no_forecast(changes):
    """Nobody knows when an operator will act, so no time is promised."""
    assert kinds.kind_of(facts(**changes), RULES, now_ms=NOON) is None


@pytest.mark.parametrize(("is_known", "from_ms"), [(False, NOON + HOUR), (True, 0)], ids=["new chats", "known ones"])
def test_a_restricted_number_counts_from_the_end_of_its_restriction(is_known, from_ms):
    """It does nothing of new chats before that, and goes on with people it knows."""
    locked = facts(restriction="TIME_LOCKED", restricted_until=NOON + HOUR)
    kind = kinds.kind_of(locked, RULES, now_ms=NOON, is_known=is_known)
    assert kind is not None
    assert kind.takes_from_ms == from_ms


def test_a_ceiling_for_all_slows_the_forecast():
    """With half of what the fleet could do, a backlog takes about twice as long."""
    kind = kinds.kind_of(facts(), RULES, now_ms=NOON)
    assert kind is not None

    def takes(global_rpm: int) -> int:
        rules = replace(RULES, global_rpm=global_rpm)
        found = forecast.finish_ms(forecast.Backlog(1_000), [kind] * 10, rules=rules, now_ms=NOON)
        assert found is not None
        return found - NOON

    rate = 1_000 / (takes(0) / 60_000)
    assert takes(100_000) == takes(0)
    assert 1.6 < takes(round(rate / 2)) / takes(0) < 2.5
