"""Moments as callers write them."""

import pytest

from paceline.domain.times import moment_ms

NOON = 1_773_136_800_000


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        (NOON, NOON),
        ("2026-03-10T12:00:00+02:00", NOON),
        ("2026-03-10T10:00:00Z", NOON),
        ("2026-03-10T10:00:00.250Z", NOON + 250),
        ("2026-03-10 10:00+00:00", NOON),
        pytest.param(NOON // 1000, None, id="seconds"),
        pytest.param(0, None, id="zero"),
        pytest.param(-NOON, None, id="negative"),
        pytest.param(10**30, None, id="no time at all"),
        pytest.param("2026-03-10T10:00:00", None, id="no offset"),
        pytest.param("2026-03-10", None, id="a day"),
        pytest.param("2026-02-30T10:00:00Z", None, id="30 February"),
        pytest.param("0001-01-01T00:00:00+14:00", None, id="before all times"),
        pytest.param("soon", None, id="a word"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_moment_is_milliseconds_or_an_iso_time_with_an_offset(written: int | str, ms: int | None) -> None:
    """What is neither is nothing, rather than a guess in the wrong unit or the wrong zone."""
    assert moment_ms(written) == ms
