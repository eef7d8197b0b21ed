"""Trouble: what failures cost at the end of a job, and how many the numbers show."""

import msgspec
import pytest

from paceline.policy import trouble
from paceline.policy.facts import PhoneFacts
from paceline.policy.forecast import Backlog, Forecast
from paceline.policy.trouble import LOOKED_BACK_MS, USUAL, Part, later_ms, share_of_failures

from .builders import HOUR, MINUTE, NOON, RULES, facts
from .test_forecast import hot

RETRY_MS = MINUTE


def part(**changes) -> Part:
    """A hot number with forty messages, about six minutes."""
    base = {"phones": 1, "messages": 40.0, "each_ms": 9_000.0, "finish_ms": NOON + 6 * MINUTE}
    return Part(**{**base, **changes})


def seen(sends: int, failures: int, ago_ms: int = MINUTE) -> PhoneFacts:
    at = NOON - ago_ms
    return facts(starts=(at,) * sends, sends=(at,) * sends, failures=(at,) * failures)


@pytest.mark.parametrize(
    ("fleet", "low", "high"),
    [
        pytest.param([facts()], USUAL, USUAL, id="nobody has sent: an ordinary fleet"),
        pytest.param([seen(30, 0)] * 20, 0.0, USUAL / 5, id="600 sent and nothing failed"),
        pytest.param([seen(27, 3)] * 20, 0.08, 0.1, id="one in ten failed"),
        pytest.param([seen(1, 0)], USUAL / 2, USUAL, id="one message says little"),
        pytest.param([seen(0, 9, LOOKED_BACK_MS + 1)] * 20, USUAL, USUAL, id="yesterday's failures say nothing"),
        pytest.param([seen(27, 3)] * 10_000, 0.08, 0.1, id="a large fleet"),
    ],
)
def test_how_many_fail(fleet, low, high):
    """What the numbers show of their last hour, and a guess until they show something."""
    assert low <= share_of_failures(fleet, now_ms=NOON) <= high


def test_failures_are_compared_with_the_sends_of_the_same_time():
    """Only the last sends are kept: failures from before them would look like a number that fails always."""
    recent = facts(starts=(NOON - MINUTE,), sends=(NOON - MINUTE,), failures=(NOON - HOUR // 2,) * 50)
    assert share_of_failures([recent] * 50, now_ms=NOON) < USUAL


def test_a_large_fleet_is_asked_in_part(monkeypatch):
    """The work is bounded however many numbers there are."""
    monkeypatch.setattr(trouble, "NUMBERS_ASKED", 10)
    fleet = [seen(27, 3) if index % 1_000 == 0 else seen(30, 0) for index in range(10_000)]
    assert share_of_failures(fleet, now_ms=NOON) > 0.05, "only every thousandth was asked"


@pytest.mark.parametrize(
    ("parts", "share", "low", "high"),
    [
        pytest.param([part()], 0.0, 0, 0, id="nothing fails"),
        pytest.param([], 0.02, 0, 0, id="nobody sends"),
        pytest.param([part(messages=5.0)], 0.01, 0, 0, id="five messages: more likely none fails"),
        pytest.param([part()], 0.02, 0, 10_000, id="one number: at most one place is lost"),
        pytest.param([part(phones=40)], 0.01, MINUTE, 90_000, id="of forty one is unlucky, and the last comes back"),
        pytest.param([part(phones=40)], 0.0001, 0, 0, id="hardly anything fails"),
        pytest.param(
            [part(), part(phones=40, finish_ms=NOON + MINUTE)], 0.01, 0, 10_000, id="who is done early decides nothing"
        ),
    ],
)
def test_what_it_costs(parts, share, low, high):
    """More numbers, more chances that one of them is late; a retry counts if it outlasts all others."""
    assert low <= later_ms(parts, share, retry_ms=RETRY_MS) <= high


def test_a_retry_is_waited_for_as_long_as_the_setting_says():
    """It was counted with the default, whatever `RETRY_DELAY_MS` was."""

    def end(retry_ms: int) -> int:
        rules = msgspec.structs.replace(RULES, retry_delay_ms=retry_ms)
        return Forecast(Backlog(1_600), [(hot(), 40)], rules=rules, fails=0.2, now_ms=NOON).outlook().finish_ms

    assert end(600_000) - end(60_000) > 300_000


def test_trouble_never_ends_a_job_earlier():
    """More failures, later ends; and never by more than a few places and one retry."""
    ends = [
        Forecast(Backlog(1_600), [(hot(), 40)], rules=RULES, fails=fails, now_ms=NOON).outlook().finish_ms
        for fails in (0.0, 0.005, 0.01, 0.02, 0.05, 0.5)
    ]
    assert ends == sorted(ends)
    assert ends[0] < ends[-1] <= ends[0] + RETRY_MS + 20 * 10_000
