"""Platform limits: which refusals lock a number, and what the forecast makes of it."""

import pytest

from paceline.policy import forecast
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
    assert forecast.capacity(facts(**changes), RULES, now_ms=NOON) is None


def test_a_restricted_number_counts_from_the_end_of_its_restriction():
    """A campaign is mostly new chats; a number that may start none does little of it before that ends."""
    locked = facts(restriction="TIME_LOCKED", restricted_until=NOON + HOUR)
    kind = forecast.capacity(locked, RULES, now_ms=NOON)
    assert kind is not None
    assert kind.from_ms == NOON + HOUR


def test_a_ceiling_for_all_slows_the_forecast():
    """With half of what the fleet could do, a backlog takes about twice as long."""
    kind = forecast.capacity(facts(), RULES, now_ms=NOON)
    assert kind is not None
    fleet = [kind] * 10
    ceiling = int(kind.rpm * 5)
    assert forecast.limited(fleet, 0) == fleet
    assert forecast.limited(fleet, 10_000) == fleet
    free = forecast.finish_ms(1_000, fleet, now_ms=NOON) - NOON
    slowed = forecast.finish_ms(1_000, forecast.limited(fleet, ceiling), now_ms=NOON) - NOON
    assert 1.8 < slowed / free < 2.3
