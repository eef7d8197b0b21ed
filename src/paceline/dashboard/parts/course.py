"""A job over time as a chart: planned when it was accepted, sent so far, expected from now on."""

from itertools import pairwise
from typing import Any

from nicegui.element import Element

from paceline.client import JobStatus
from paceline.client.answers_jobs import JobTimeline

Point = tuple[int, int]


class Course(Element, component="course.js"):
    def show(self, job: JobStatus, timeline: JobTimeline, *, now_ms: int) -> None:
        self.props.update(course(job, timeline, now_ms=now_ms))
        self.update()


def course(job: JobStatus, timeline: JobTimeline, *, now_ms: int) -> dict[str, Any]:
    """What the chart is given. Expected is a line from where the job is now to where its forecast ends."""
    planned = [(point.at, point.sent) for point in timeline.planned]
    actual = [(point.at, point.sent) for point in timeline.actual]
    sent = job.progress.sent
    reaches = job.progress.total - job.progress.failed - job.progress.expired - job.progress.canceled
    reaches -= job.progress.suppressed
    expected: list[Point] = []
    if not job.ended and job.estimated_completion is not None and job.estimated_completion > now_ms and reaches > sent:
        expected = [(now_ms, sent), (job.estimated_completion, reaches)]
    return {
        "planned": planned,
        "actual": actual,
        "expected": expected,
        "total": job.progress.total,
        "start": min([job.accepted_at, *(at for at, _ in (*planned[:1], *actual[:1]))]),
        "now": now_ms,
        "open": not job.ended,
        "label": _label(job, planned, now_ms),
    }


def planned_by(planned: list[Point], at: int) -> int | None:
    """How many should have gone out by then; None without a plan."""
    if not planned:
        return None
    if at <= planned[0][0]:
        return 0
    for (low_at, low), (high_at, high) in pairwise(planned):
        if at <= high_at:
            return round(low + (high - low) * (at - low_at) / max(1, high_at - low_at))
    return planned[-1][1]


def _label(job: JobStatus, planned: list[Point], now_ms: int) -> str:
    """The same for whoever cannot see it."""
    words = f"{job.progress.sent:,} of {job.progress.total:,} messages sent"
    by_now = planned_by(planned, now_ms)
    return words if by_now is None else f"{words}; {by_now:,} were planned by now"
