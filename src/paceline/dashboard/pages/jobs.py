"""All jobs, newest first, with how far each is."""

from typing import Any

from nicegui import ui

from paceline.client.answers_jobs import JobItem
from paceline.dashboard.parts import work
from paceline.dashboard.parts.frame import heading
from paceline.dashboard.parts.inputs import Field, link
from paceline.dashboard.parts.page import Page, Visit
from paceline.dashboard.parts.panel import Panel
from paceline.dashboard.parts.table import Column, Table

ROWS = 50
_STATES = {
    "": "All states",
    ",".join(work.OPEN_JOBS): "Open",
    "PAUSED": "Paused",
    "DONE": "Done",
    "DONE_WITH_ERRORS": "Done with errors",
    "CANCELED": "Canceled",
    "FAILED": "Failed",
}
_KINDS = {"false": "Lists", "true": "Single messages", "": "Both"}
_SINGLE = {"false": False, "true": True}
_COLUMNS = [
    Column("job", "Job"),
    Column("state", "State", "state"),
    Column("progress", "Progress", "bar", classes="wide-bar"),
    Column("waiting", "Waiting", "number"),
    Column("accepted", "Accepted", "when"),
    Column("closed", "Ended", "when"),
]


async def build(visit: Visit) -> None:
    with heading("Jobs"):
        if visit.may("send"):
            link("Compose", "/compose", "button button--main")

    async def changed(_: str) -> None:
        table.rewind()
        await visit.live.now()

    with Panel("All jobs", classes="panel--flush") as panel:
        table = Table("Jobs", _COLUMNS, none="No job matches.", on_change=visit.live.now).classes("cards")
    assert panel.head is not None
    with panel.head:
        filters = _filters(changed)

    async def refresh() -> None:
        page = await visit.api.jobs.list(
            state=filters["state"].value,
            single=_SINGLE.get(filters["kind"].value),
            tag=filters["tag"].value.strip(),
            cursor=table.cursor,
            limit=ROWS,
        )
        is_filtered = any(field.value for name, field in filters.items() if name != "kind")
        nothing = not page.items and not table.cursor and not is_filtered
        panel.empty("No jobs yet. What you send from Compose or over the API is listed here." if nothing else "")
        table.show([row(item) for item in page.items], next_cursor=page.next_cursor)

    visit.live.add(refresh, panel)


def _filters(changed: Any) -> dict[str, Field]:
    with ui.element("div").classes("filters"):
        return {
            "kind": Field("Kind", kind="select", value="false", options=_KINDS, on_change=changed).hidden_label(),
            "state": Field("State", kind="select", options=_STATES, on_change=changed).hidden_label(),
            "tag": Field("Tag", kind="search", placeholder="Tag", on_change=changed).hidden_label(),
        }


def row(job: JobItem) -> dict[str, Any]:
    words = ", ".join(job.tags) or ("one message" if job.single else job.job_id)
    return {
        "id": job.job_id,
        "job": {"text": words, "href": f"/jobs/{job.job_id}", "title": job.job_id, "note": _note(job, words)},
        "state": work.job_state(job.state),
        "progress": work.progress_bar(job.progress),
        "waiting": work.waiting(job.progress),
        "accepted": job.accepted_at,
        "closed": job.closed_at,
    }


def _note(job: JobItem, words: str) -> str:
    parts = [] if words == job.job_id else [job.job_id]
    if job.mode != "message":
        parts.append(job.mode)
    if job.priority > 1:
        parts.append(f"priority {job.priority}")
    return " · ".join(parts)


PAGE = Page("/jobs", "Jobs", build, icon="jobs", scope="read")
