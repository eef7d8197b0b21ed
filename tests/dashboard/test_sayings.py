"""What pages say of what they did and what they show, where it is more than one word."""

import pytest

from paceline.client.answers_fleet import FleetState, Policy, TrustLevel
from paceline.client.answers_fleet_numbers import QueueCanceled
from paceline.client.answers_fleet_sessions import RejectedLine, Uploaded
from paceline.client.answers_lists import ReplayedMany, ReplayJob, ReplaySkipped
from paceline.dashboard.pages import api_keys, dead_letters, fleet, inventory, session_queue, settings
from paceline.dashboard.pages.job import validity


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2_592_000, "30 days"), (86_400, "1 day"), (7_200, "2 hours"), (5_400, "90 minutes"), (61, "61 seconds")],
)
def test_how_long_a_message_is_good_for(seconds: int, words: str) -> None:
    assert validity(seconds) == words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Uploaded(added=2, duplicates=0, rejected=[], rejected_total=0), "2 added, no bad line"),
        (
            Uploaded(added=0, duplicates=3, rejected=[RejectedLine(line=1, reason="x")], rejected_total=1_200),
            "0 added, 3 there already, 1,200 bad lines",
        ),
    ],
    ids=["all good", "hardly any"],
)
def test_what_became_of_a_file(answer: Uploaded, words: str) -> None:
    assert inventory.summary(answer) == words


def test_what_a_replay_did_and_skipped() -> None:
    skipped = ReplaySkipped(not_replayable=1, already_replayed=2, suppressed=0)
    jobs = [ReplayJob(job_id="b", replay_of="a", accepted=5)]
    assert dead_letters.summary(ReplayedMany(replayed=5, jobs=jobs, skipped=skipped, more=True)) == (
        "5 sent again in 1 job. 1 cannot be sent again. 2 were sent again before. There are more: press again."
    )


def test_levels_follow_each_other_by_age() -> None:
    """A level says from which age to which; one without a cap or hours shows none."""
    young = {"min_delay_ms": 20_000, "max_delay_ms": 40_000, "effective_rpm": 1.9, "daily_cap": 20, "hours": (9, 21)}
    old = {"min_delay_ms": 500, "max_delay_ms": 1_000, "effective_rpm": 60.0, "daily_cap": None, "hours": None}
    policy = Policy(
        name="p",
        levels=[
            TrustLevel(name="cold", max_age_days=2.5, rpm=3, **young),  # type: ignore[arg-type]
            TrustLevel(name="hot", max_age_days=None, rpm=60, **old),  # type: ignore[arg-type]
        ],
        recipient_hours=(7, 23), jitter=0.2, typing_ms=(0, 200), burst_limit=0, burst_cooldown_ms=0, global_rpm=None,
    )  # fmt: skip
    cold, hot = settings.levels(policy)
    assert (cold["age"], cold["delay"], cold["cap"], cold["hours"]) == ("0 to 2.5 days", "20–40 s", 20, "09:00–21:00")
    assert (hot["age"], hot["delay"], hot["cap"], hot["hours"]) == (
        "2.5 days and more", "0.5–1 s", None, "round the clock",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "is_good"),
    [("", True), ("1", True), (" 3650 ", True)]
    + [(words, False) for words in ("0", "3651", "1.5", "-5", "1e2", "²", "soon", "9" * 5_000)],
)
def test_an_expiry_is_whole_days_or_nothing(typed: str, is_good: bool) -> None:
    assert (api_keys.days_fault(typed) == "") == is_good


@pytest.mark.parametrize(
    ("running", "reason", "said"),
    [
        (True, None, []),
        (True, "OPERATOR", ["paused by an operator"]),
        (False, None, ["dispatchers are stopped"]),
        (False, "BREAKER", ["dispatchers are stopped", "breaker paused all sending"]),
    ],
    ids=["it sends", "paused", "stopped", "both"],
)
def test_everything_that_holds_the_fleet_is_said(running: bool, reason: str | None, said: list[str]) -> None:
    """Of a fleet that was stopped and then braked only the stop was told, and resuming lifted both."""
    words = fleet.held_words(
        FleetState(running=running, paused=reason is not None, paused_reason=reason, paused_at=None)
    )
    assert bool(words) == bool(said)
    assert all(part in words for part in said)


def test_a_canceled_queue_tells_what_was_not_canceled() -> None:
    assert session_queue.canceled_words(QueueCanceled(canceled=1, failed=0, open=0)) == "1 message canceled."
    words = session_queue.canceled_words(QueueCanceled(canceled=1_200, failed=2, open=3))
    assert words == (
        "1,200 messages canceled. 2 may have gone out and ended failed. 3 with a worker: those end as they end."
    )
