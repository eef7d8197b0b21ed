"""Liveness by what a worker did: every rule, its limit to the millisecond, and what is nobody's fault."""

from typing import Any

import pytest

from paceline.policy.watchdog import Watched, WatchRules, ailment, is_down

RULES = WatchRules(silent_ms=60_000, stuck_ms=120_000, deaf_ms=180_000, start_ms=90_000, down_ms=120_000)
NOW = 1_800_000_000_000
WELL = {
    "started_at": NOW - 3_600_000,
    "seen_at": NOW - 1_000,
    "claimed_at": NOW - 5_000,
    "connected_at": NOW - 3_000_000,
}


AWAY = {"connection": "RECONNECTING"}


def judged(*, since: int = NOW - 3_600_000, **facts: Any) -> str | None:
    return ailment(Watched(session_id="s", **{**WELL, **facts}), RULES, since_ms=since, now_ms=NOW)


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        pytest.param({}, None, id="all is well"),
        pytest.param({"seen_at": NOW - 60_000}, None, id="silent, just not too long"),
        pytest.param({"seen_at": NOW - 60_001}, "SILENT", id="silent"),
        pytest.param({"seen_at": NOW - 60_001, "connection": "RECONNECTING"}, "SILENT", id="silent, not connected"),
        pytest.param({"seen_at": 0, "started_at": NOW - 90_000}, None, id="on its way up"),
        pytest.param({"seen_at": 0, "started_at": NOW - 90_001}, "SILENT", id="never said a word"),
        pytest.param(
            {"seen_at": NOW - 200_000, "started_at": NOW - 70_000}, None, id="the words of its predecessor do not count"
        ),
        pytest.param({"claimed_at": NOW - 120_000}, None, id="asks for no work, just not too long"),
        pytest.param({"claimed_at": NOW - 120_001}, "STUCK", id="pings and asks for no work"),
        pytest.param({"claimed_at": 0, "connected_at": NOW - 120_000}, None, id="connected a moment ago"),
        pytest.param({"claimed_at": NOW - 120_001, "connection": "SCAN_QR"}, None, id="nothing to ask for yet"),
        pytest.param({"heard_at": NOW - 180_000}, None, id="hears nothing, just not too long"),
        pytest.param({"heard_at": NOW - 180_001}, "DEAF", id="deaf"),
        pytest.param({"heard_at": 0, "connected_at": NOW - 1_000}, None, id="heard by connecting"),
        pytest.param({"heard_at": None}, None, id="a driver that cannot say"),
        pytest.param({"heard_at": 0, "connection": "RECONNECTING"}, None, id="knows that it is deaf"),
        pytest.param({"seen_at": 0, "is_ours": False}, None, id="started by somebody else"),
        pytest.param({"seen_at": 0, "is_over": True}, None, id="given up already"),
    ],
)
def test_what_a_worker_ails(facts: dict[str, Any], found: str | None) -> None:
    assert judged(**facts) == found


def test_after_an_outage_of_our_own_everybody_gets_the_whole_time() -> None:
    away = {"seen_at": NOW - 900_000, "claimed_at": NOW - 900_000, "heard_at": NOW - 900_000}
    assert judged(since=NOW - 60_000, **away) is None
    assert judged(since=NOW - 60_001, **away) == "SILENT"


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        pytest.param({}, False, id="connected"),
        pytest.param({"seen_at": NOW - 120_000}, True, id="connected by its own word, and silent"),
        pytest.param({**AWAY, "down_since": NOW - 119_999}, False, id="reconnecting"),
        pytest.param({**AWAY, "down_since": NOW - 120_000}, True, id="down"),
        pytest.param(AWAY, False, id="was never there"),
        pytest.param({**AWAY, "down_since": 1, "is_over": True}, False, id="its end was told otherwise"),
    ],
)
def test_who_is_down(facts: dict[str, Any], found: bool) -> None:
    one = Watched(session_id="s", **{**WELL, **facts})
    assert is_down(one, RULES, since_ms=NOW - 3_600_000, now_ms=NOW) is found


@pytest.mark.parametrize("facts", [{**AWAY, "down_since": 1}, {"seen_at": 1}], ids=["away", "silent"])
def test_nobody_is_down_for_what_could_not_be_told(facts: dict[str, Any]) -> None:
    """After an outage of ours whoever was reconnecting before it was called down at once."""
    one = Watched(session_id="s", **{**WELL, **facts})
    assert [is_down(one, RULES, since_ms=NOW - ms, now_ms=NOW) for ms in (119_999, 120_000)] == [False, True]
