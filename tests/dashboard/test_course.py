"""What a job's chart is given: planned, sent, and expected from now on."""

import pytest

from paceline.client import JobStatus
from paceline.client.answers_jobs import JobTimeline, TimelinePoint
from paceline.dashboard.parts.course import course, planned_by

from .test_work import progress

START, NOW, END = 1_000_000, 1_060_000, 1_120_000
PLANNED = [(START, 0), (END, 100)]


def job(state: str = "ROUTING", **fields: object) -> JobStatus:
    known: dict[str, object] = {
        "job_id": "j", "state": state, "progress": progress(total=100, sent=40), "accepted_at": START,
        "accepted_by": "k", "closed_at": None, "last_error": None, "waiting": None, "estimated_completion": END,
        "mode": "message", "priority": 1, "phone": None, "session_id": None, "send_at": None, "spread_minutes": 0,
        "validity_seconds": 60, "on_unknown": "resend", "strategy": None, "tags": [], "metadata": {},
        "confirmation": False, "replay_of": None,
    }  # fmt: skip
    return JobStatus(**{**known, **fields})  # type: ignore[arg-type]


def timeline(planned: list[tuple[int, int]] = PLANNED) -> JobTimeline:
    return JobTimeline(
        job_id="j",
        planned=[TimelinePoint(at=at, sent=sent) for at, sent in planned],
        actual=[TimelinePoint(at=START + 5_000, sent=20), TimelinePoint(at=START + 30_000, sent=40)],
    )


def test_an_open_job_goes_on_from_where_it_is() -> None:
    found = course(job(), timeline(), now_ms=NOW)
    assert found["expected"] == [(NOW, 40), (END, 100)]
    assert (found["start"], found["total"], found["open"]) == (START, 100, True)
    assert found["label"] == "40 of 100 messages sent; 50 were planned by now"


def test_what_will_not_go_out_is_not_expected() -> None:
    found = course(job(progress=progress(total=100, sent=40, failed=5, canceled=10)), timeline(), now_ms=NOW)
    assert found["expected"][-1] == (END, 85)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(job("PAUSED", estimated_completion=None), id="nobody knows when"),
        pytest.param(job("DONE", closed_at=NOW), id="it has ended"),
        pytest.param(job(estimated_completion=NOW - 1), id="its forecast is behind us"),
        pytest.param(job(progress=progress(total=40, sent=40)), id="all is sent"),
    ],
)
def test_nothing_is_expected(given: JobStatus) -> None:
    assert course(given, timeline(), now_ms=NOW)["expected"] == []


def test_without_a_plan_the_chart_begins_with_the_job() -> None:
    found = course(job(), timeline([]), now_ms=NOW)
    assert (found["planned"], found["start"], found["label"]) == ([], START, "40 of 100 messages sent")


@pytest.mark.parametrize(
    ("at", "sent"),
    [(START - 1, 0), (START, 0), (NOW, 50), (END, 100), (END + 1, 100)],
    ids=["before", "at its start", "half way", "at its end", "after"],
)
def test_what_was_planned_by_a_time(at: int, sent: int) -> None:
    assert planned_by(PLANNED, at) == sent
    assert planned_by([], at) is None
