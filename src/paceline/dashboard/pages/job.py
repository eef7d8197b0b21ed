"""One job: how far it is, what was planned against what happened, what was asked for. Neighbour: `job_messages`."""

from nicegui import ui

from paceline.client import JobStatus, NotFound
from paceline.dashboard.pages.job_messages import JobMessages
from paceline.dashboard.parts import work
from paceline.dashboard.parts.acting import act, confirm, notify
from paceline.dashboard.parts.course import Course
from paceline.dashboard.parts.facts import Fact, Facts
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.inputs import button
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.standing import Standing
from paceline.dashboard.parts.words import count
from paceline.kits.clock import SystemClock

NOT_YOURS = "Your key has no “send” scope."
CLOCK = SystemClock()


async def build(visit: Visit) -> None:
    job_id = visit.params["job_id"]
    tools = heading("Job", lead=job_id)
    with Panel() as top:
        standing = Standing()
    with ui.element("div").classes("stack") as rest:
        with ui.element("div").classes("columns"):
            with Panel("Planned and actual") as charted:
                course = Course()
            with Panel("What was asked for") as asked:
                facts = Facts()
        messages = JobMessages(visit, job_id)
    with tools:
        buttons = _Buttons(visit, job_id)

    async def refresh() -> None:
        try:
            job = await visit.api.jobs.get(job_id)
        except NotFound:
            # Said once, not by every part of the page.
            top.empty("There is no such job, or it ended too long ago to be kept.")
            rest.set_visibility(False)
            return
        standing.show(job)
        buttons.show(job)
        messages.count(job.progress)

    async def refresh_facts() -> None:
        facts.show(_facts(await visit.api.jobs.get(job_id)))

    async def refresh_course() -> None:
        job, timeline = await visit.api.jobs.get(job_id), await visit.api.jobs.timeline(job_id)
        course.show(job, timeline, now_ms=CLOCK.now_ms())

    visit.live.add(refresh, top)
    visit.live.add(refresh_course, charted, every_seconds=5)
    visit.live.add(refresh_facts, asked, every_seconds=30)


class _Buttons:
    """What can be done to it in its present state."""

    def __init__(self, visit: Visit, job_id: str) -> None:
        self._visit = visit
        self._job_id = job_id
        why_not = "" if visit.may("send") else NOT_YOURS
        self._pause = button("Pause", self._do_pause, why_not=why_not)
        self._resume = button("Resume", self._do_resume, kind="main", why_not=why_not)
        self._cancel = button("Cancel job", self._do_cancel, kind="danger", why_not=why_not)
        for one in (self._pause, self._resume, self._cancel):
            one.set_visibility(False)

    def show(self, job: JobStatus) -> None:
        self._pause.set_visibility(not job.ended and job.state not in ("PAUSED", "CANCELED"))
        self._resume.set_visibility(job.state == "PAUSED")
        self._cancel.set_visibility(not job.ended and job.state != "CANCELED")

    async def _do_pause(self) -> None:
        await act(self._visit, self._visit.api.jobs.pause(self._job_id), "Paused. What no worker holds waits.")

    async def _do_resume(self) -> None:
        await act(self._visit, self._visit.api.jobs.resume(self._job_id), "It goes on.")

    async def _do_cancel(self) -> None:
        words = "Every message that no worker holds ends canceled. This cannot be undone."
        if await confirm("Cancel this job?", words, "Cancel the job", danger=True):
            done = await act(self._visit, self._visit.api.jobs.cancel(self._job_id))
            if done is not None:
                rest = f" {done.open:,} are with a worker and end as they end." if done.open else ""
                notify(f"{count(done.canceled, 'message')} canceled.{rest}")


def _facts(job: JobStatus) -> list[Fact]:
    return [
        Fact("Accepted", job.accepted_at, when="exact"),
        Fact("Asked by", job.accepted_by),
        Fact("Tags", ", ".join(job.tags)),
        Fact("Kind", {"message": "text", "image": "image", "document": "document"}.get(job.mode, job.mode)),
        Fact("Priority", job.priority if job.priority > 1 else None),
        Fact("From", work.number(job.phone) if job.phone else "any number"),
        Fact("Not before", job.send_at, when="exact"),
        Fact("Spread over", count(job.spread_minutes, "minute") if job.spread_minutes else None),
        Fact("Good for", validity(job.validity_seconds)),
        Fact("Routing", job.strategy),
        Fact("Unknown outcome", "not sent again" if job.on_unknown == "hold" else None),
        Fact("Sends again", job.replay_of, href=f"/jobs/{(job.replay_of or '').partition(':')[0]}"),
        Fact("For a stop", "answers somebody's “stop”" if job.confirmation else None),
        *(Fact(name, str(value)) for name, value in job.metadata.items() if name != "replayOf"),
    ]


def validity(seconds: int) -> str:
    for size, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds % size == 0:
            return count(seconds // size, word)
    return count(seconds, "second")


PAGE = Page("/jobs/{job_id}", "Job", build, scope="read", under="/jobs")
