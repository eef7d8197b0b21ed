"""Retry: how often, how soon, and what is never tried again; and the honest end of an unknown outcome."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.policy.retry import (
    GiveUp,
    Retry,
    RetrySettings,
    after_failure,
    after_return,
    after_unknown,
    cooldown_until,
    delay_ms,
)

from .builders import NOON

SETTINGS = RetrySettings()


@pytest.mark.parametrize(
    ("failures", "retry_delay_ms", "expected"),
    [
        pytest.param(1, 60_000, 60_000, id="first"),
        pytest.param(2, 60_000, 120_000, id="doubles"),
        pytest.param(3, 60_000, 240_000, id="doubles again"),
        pytest.param(4, 60_000, 480_000, id="fourth"),
        pytest.param(5, 60_000, 600_000, id="ten minutes at most"),
        pytest.param(10**6, 60_000, 600_000, id="no number too large"),
        pytest.param(1, 0, 1_000, id="a second at least"),
        pytest.param(3, 0, 1_000, id="nothing doubled is a second"),
        pytest.param(1, 999, 1_000, id="just below the floor"),
        pytest.param(2, 999, 1_998, id="doubled above the floor"),
        pytest.param(1, 10**9, 600_000, id="a long setting is cut"),
        pytest.param(0, 60_000, 60_000, id="none counted yet"),
    ],
)
def test_delay_table(failures, retry_delay_ms, expected):
    """min(RETRY_DELAY x 2^(n-1), 10 min), never under a second."""
    assert delay_ms(failures, RetrySettings(retry_delay_ms=retry_delay_ms)) == expected


@given(st.integers(1, 100), st.integers(0, 10**7))
def test_delays_stay_within_bounds_and_never_shrink(failures, retry_delay_ms):
    """Every wait lies in 1 s..10 min and the next is not shorter."""
    settings = RetrySettings(retry_delay_ms=retry_delay_ms)
    assert 1_000 <= delay_ms(failures, settings) <= delay_ms(failures + 1, settings) <= 600_000


@pytest.mark.parametrize(
    ("code", "failures", "expected"),
    [
        pytest.param("SEND_FAILED", 1, Retry(NOON + 60_000, pinned=False), id="first failure"),
        pytest.param("SEND_FAILED", 2, Retry(NOON + 120_000, pinned=False), id="second"),
        pytest.param("SEND_FAILED", 3, Retry(NOON + 240_000, pinned=False), id="third: the last retry"),
        pytest.param("SEND_FAILED", 4, GiveUp("SEND_FAILED", "retries"), id="fourth: three retries were made"),
        pytest.param("NO_ACK", 1, Retry(NOON + 60_000, pinned=False), id="no ack"),
        pytest.param("CONNECTION_LOST", 1, Retry(NOON + 60_000, pinned=False), id="connection lost"),
        pytest.param("RATE_LIMIT", 1, Retry(NOON + 60_000, pinned=False), id="rate limit is transient"),
        pytest.param("NEVER_HEARD_OF", 4, GiveUp("NEVER_HEARD_OF", "retries"), id="an unknown code is capped too"),
        pytest.param("NOT_ON_WHATSAPP", 1, GiveUp("NOT_ON_WHATSAPP", "permanent"), id="not on WhatsApp"),
        pytest.param("INVALID_RECIPIENT", 1, GiveUp("INVALID_RECIPIENT", "permanent"), id="invalid"),
        pytest.param("RESTRICTED_463", 1, GiveUp("RESTRICTED_463", "permanent"), id="463"),
        pytest.param("463", 1, GiveUp("463", "permanent"), id="463 as the platform spells it"),
    ],
)
def test_after_a_failure(code, failures, expected):
    """Three retries for what may pass, none for what will not."""
    assert after_failure(code, failures=failures, settings=SETTINGS, now_ms=NOON) == expected


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 10**7))
def test_463_is_never_tried_again(failures, max_retries, delay):
    """No setting makes a platform's refusal a retry (I10)."""
    settings = RetrySettings(max_retries, delay)
    for code in ("RESTRICTED_463", "463"):
        assert isinstance(after_failure(code, failures=failures, settings=settings, now_ms=NOON), GiveUp)


@given(st.integers(0, 20))
def test_exactly_max_retries_are_made(max_retries):
    """A message that fails every time is sent 1 + MAX_RETRIES times."""
    settings, sends = RetrySettings(max_retries=max_retries), 1
    while isinstance(after_failure("SEND_FAILED", failures=sends, settings=settings, now_ms=NOON), Retry):
        sends += 1
    assert sends == 1 + max_retries


def unknown(**changes):
    base = {"on_unknown": "resend", "journal_lost": False, "crashes": 0, "failures": 1, "closed": False}
    return after_unknown(**{**base, **changes}, settings=SETTINGS, now_ms=NOON)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, Retry(NOON + 60_000, pinned=True), id="resend: the same id from the same session"),
        pytest.param({"failures": 3}, Retry(NOON + 240_000, pinned=True), id="resend: the last"),
        pytest.param({"failures": 4}, GiveUp("UNKNOWN_OUTCOME", "retries"), id="resend: enough"),
        pytest.param({"on_unknown": "hold"}, GiveUp("UNKNOWN_OUTCOME", "hold"), id="hold"),
        pytest.param({"journal_lost": True}, GiveUp("UNKNOWN_OUTCOME", "journal_lost"), id="journal lost"),
        pytest.param({"closed": True}, GiveUp("UNKNOWN_OUTCOME", "closed"), id="the job was canceled meanwhile"),
        pytest.param({"crashes": 2}, Retry(NOON + 60_000, pinned=True), id="two crashes"),
        pytest.param({"crashes": 3}, GiveUp("POISON", "poison"), id="three crashes"),
        pytest.param({"journal_lost": True, "crashes": 3}, GiveUp("UNKNOWN_OUTCOME", "journal_lost"), id="lost first"),
        pytest.param({"on_unknown": "hold", "crashes": 3}, GiveUp("UNKNOWN_OUTCOME", "hold"), id="hold before poison"),
    ],
)
def test_after_an_unknown_outcome(changes, expected):
    """One row for each end of a message nobody knows the fate of."""
    assert unknown(**changes) == expected


@given(st.sampled_from(["resend", "hold"]), st.booleans(), st.integers(0, 5), st.integers(0, 6), st.booleans())
def test_a_resend_is_always_pinned_and_never_forbidden(on_unknown, journal_lost, crashes, failures, closed):
    """With `hold`, a lost journal or a closed job nothing is repeated; what is repeated stays on its session (I2)."""
    decision = unknown(
        on_unknown=on_unknown, journal_lost=journal_lost, crashes=crashes, failures=failures, closed=closed
    )
    if isinstance(decision, Retry):
        assert decision.pinned
        assert on_unknown == "resend"
        assert not journal_lost
        assert not closed
        assert crashes < 3


@pytest.mark.parametrize(("crashes", "poison"), [(0, False), (2, False), (3, True), (4, True)])
def test_a_task_that_kills_its_worker_is_put_aside(crashes, poison):
    """The third worker it takes down is the last."""
    assert after_return(crashes=crashes) == (GiveUp("POISON", "poison") if poison else None)


@pytest.mark.parametrize(
    ("code", "until"), [("RATE_LIMIT", NOON + 1_800_000), ("SEND_FAILED", None), ("RESTRICTED_463", None)]
)
def test_cooldown(code, until):
    """Only a rate limit rests the number, for half an hour."""
    assert cooldown_until(code, now_ms=NOON) == until
