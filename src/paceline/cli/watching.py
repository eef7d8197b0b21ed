"""A job that is watched until it ends: a bar on a terminal, a line for each change in a pipe; with --json only
how it ended."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from paceline.cli.exits import Exit
from paceline.cli.showing import ago, console, is_terminal, say

if TYPE_CHECKING:
    from paceline.cli.asking import GatewayApi
    from paceline.client.answers_jobs import JobStatus, Progress


def watch_job(api: "GatewayApi", job_id: str, timeout_seconds: float) -> None:
    from paceline.client.requests_sending import get_job

    if api.as_json:
        job = api.patient.jobs.wait(job_id, timeout_seconds=timeout_seconds)
        api.show_json(get_job(job_id))
    else:
        looks = api.patient.jobs.watch(job_id, timeout_seconds=timeout_seconds)
        job = _bar(looks) if is_terminal() else _lines(looks)
    why = f" ({job.last_error})" if job.last_error else ""
    say(f"{job.state}{why}: {_counts(job.progress)}")
    if job.state != "DONE":
        raise typer.Exit(Exit.FAILED)


def _bar(looks: "Iterator[JobStatus]") -> "JobStatus":
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.fields[state]}"),
        bars.BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[more]}"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task("", total=None, state="", more="")
        for job in looks:
            done = job.progress
            bar.update(task, total=done.total, completed=_ended(done), state=job.state, more=_more(job))
    return job


def _lines(looks: "Iterator[JobStatus]") -> "JobStatus":
    for job in looks:
        typer.echo(f"{job.state} {_ended(job.progress)}/{job.progress.total} {_counts(job.progress)}")
    return job


def _more(job: "JobStatus") -> str:
    failed = f"{job.progress.failed} failed " if job.progress.failed else ""
    return f"{failed}done {ago(job.estimated_completion)}" if job.estimated_completion else failed


def _ended(done: "Progress") -> int:
    return done.sent + done.failed + done.expired + done.canceled + done.suppressed


def _counts(done: "Progress") -> str:
    parts = ("sent", "delivered", "read", "failed", "expired", "canceled", "suppressed")
    return ", ".join(f"{name} {getattr(done, name)}" for name in parts if name == "sent" or getattr(done, name))
