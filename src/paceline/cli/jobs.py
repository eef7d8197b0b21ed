"""`paceline jobs`: create, list, look at, watch, cancel, pause and resume jobs."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import sending as fields_of_jobs
from paceline.cli.asking import GatewayApi, asking
from paceline.cli.inputs import JobId, Timeout, Yes, confirm
from paceline.cli.paging import Paging
from paceline.cli.sending import Contacts, IdempotencyKey, JobFields, Words
from paceline.cli.showing import ago, counted, facts, say, table, when_and_ago
from paceline.cli.watching import watch_job

if TYPE_CHECKING:
    from paceline.client.answers_jobs import JobCanceled, JobItem, JobPaused, JobResumed, JobStatus, MessageItem

jobs_app = typer.Typer(name="jobs", no_args_is_help=True, help="Jobs: create, list, watch, cancel, pause, resume.")

WATCH_SECONDS = 7 * 86_400
"""How long `watch` looks if nobody says: a week, so that it ends at some time."""


@jobs_app.command()
@asking
def create(
    contacts: Contacts,
    text: Words,
    *,
    api: GatewayApi,
    fields: JobFields,
    idempotency_key: IdempotencyKey = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until it is done.")] = False,
) -> None:
    """Write to everybody in a CSV file, and print the job's id.

    Example: `paceline jobs create contacts.csv "Hello {{name}}" --watch`
    """
    from paceline.client import requests_sending as sending

    call = sending.create_job(**fields.given(contacts, text), idempotency_key=idempotency_key)
    if not watch:
        api.show(call, fields_of_jobs.accepted)
        return
    job = api.ask(call)
    if not api.as_json:
        fields_of_jobs.accepted(job)
    watch_job(api, job.job_id, WATCH_SECONDS)


@jobs_app.command("list")
@asking
def list_(
    api: GatewayApi,
    page: Paging,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Only of this state, such as ROUTING; repeat for more.")
    ] = None,
    tag: Annotated[str, typer.Option(metavar="TAG", show_default=False, help="Only with this tag.")] = "",
    single: Annotated[
        bool | None, typer.Option("--single/--no-single", help="Only single messages, or none of them.")
    ] = None,
) -> None:
    """Jobs and how far they are, newest first.

    Example: `paceline jobs list --state ROUTING --no-single`
    """
    from paceline.client import requests_sending as sending

    call = sending.list_jobs(state=state or "", tag=tag, single=single, cursor=page.cursor, limit=page.limit)
    page.show(api, call, _rows)


def _rows(jobs: "list[JobItem]") -> None:
    rows = (
        (job.job_id, job.state, f"{job.progress.sent}/{job.total}", job.progress.failed, ago(job.accepted_at), job.tags)
        for job in jobs
    )
    table("ID STATE >SENT >FAILED ACCEPTED TAGS", rows, empty="No jobs. `paceline send` makes the first.")


@jobs_app.command()
@asking
def show(job: JobId, api: GatewayApi) -> None:
    """State, progress, forecast, and why it waits.

    Example: `paceline jobs show 01KKBK4FE0S7MP2BKPJTKCXK0V`
    """
    from paceline.client import requests_sending as sending

    api.show(sending.get_job(job), _job)


def _job(job: "JobStatus") -> None:
    done = job.progress
    counts = {
        "sent": done.sent,
        "delivered": done.delivered,
        "read": done.read,
        "failed": done.failed,
        "expired": done.expired,
        "canceled": done.canceled,
        "suppressed": done.suppressed,
        "waiting": done.queued + done.scheduled + done.parked + done.handed_off + done.unknown + done.retrying,
    }
    facts(
        [
            ("job", job.job_id),
            ("state", job.state),
            ("messages", done.total),
            *((f"  {name}", count or None) for name, count in counts.items()),
            ("waits", job.waiting and job.waiting.text),
            ("last error", job.last_error),
            ("accepted", when_and_ago(job.accepted_at)),
            ("by", job.accepted_by),
            ("done about", None if job.closed_at else when_and_ago(job.estimated_completion)),
            ("ended", when_and_ago(job.closed_at)),
            ("from", job.phone or job.session_id),
            ("tags", job.tags),
            ("replay of", job.replay_of),
        ]
    )


@jobs_app.command()
@asking
def messages(
    job: JobId,
    api: GatewayApi,
    page: Paging,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help="Only of this state, such as failed; repeat for more.")
    ] = None,
) -> None:
    """The messages of a job, in the order of its contacts.

    Example: `paceline jobs messages 01KKBK4FE0S7MP2BKPJTKCXK0V --state failed`
    """
    from paceline.client import requests_sending as sending

    call = sending.job_messages(job, state=state or "", cursor=page.cursor, limit=page.limit)
    page.show(api, call, message_rows)


def message_rows(messages: "list[MessageItem]") -> None:
    rows = (
        (one.message_id, one.to, one.state, one.waiting.text if one.waiting else one.last_error and one.last_error.code)
        for one in messages
    )
    table("ID TO STATE WHY", rows, empty="No messages.")


@jobs_app.command()
@asking
def watch(job: JobId, api: GatewayApi, timeout: Timeout = WATCH_SECONDS) -> None:
    """Follow a job until it ends: a progress bar, or in a pipe a line for each change.

    Exit code 1 if it ended with errors, 5 if it has not ended in time. Ctrl-C ends the watching, not the job.

    Example: `paceline jobs watch 01KKBK4FE0S7MP2BKPJTKCXK0V`
    """
    watch_job(api, job, timeout)


@jobs_app.command()
@asking
def cancel(job: JobId, api: GatewayApi, yes: Yes = False) -> None:
    """Stop what no worker has claimed. It cannot be taken back.

    Example: `paceline jobs cancel 01KKBK4FE0S7MP2BKPJTKCXK0V --yes`
    """
    from paceline.client import requests_sending as sending

    confirm(f"Cancel what is left of job {job}?", yes)
    api.show(sending.cancel_job(job), _canceled)


def _canceled(job: "JobCanceled") -> None:
    held = f"; {job.open} are in a worker's hands and end as they end" if job.open else ""
    say(f"{counted(job.canceled, 'message')} canceled{held}")


@jobs_app.command()
@asking
def pause(job: JobId, api: GatewayApi) -> None:
    """What no worker has claimed waits until it is resumed.

    Example: `paceline jobs pause 01KKBK4FE0S7MP2BKPJTKCXK0V`
    """
    from paceline.client import requests_sending as sending

    api.show(sending.pause_job(job), _paused)


def _paused(job: "JobPaused") -> None:
    held = f"; {job.claimed} are in a worker's hands" if job.claimed else ""
    say(f"paused; waiting: {counted(job.waiting, 'message')}{held}")


@jobs_app.command()
@asking
def resume(job: JobId, api: GatewayApi) -> None:
    """It goes on where it was.

    Example: `paceline jobs resume 01KKBK4FE0S7MP2BKPJTKCXK0V`
    """
    from paceline.client import requests_sending as sending

    api.show(sending.resume_job(job), _resumed)


def _resumed(job: "JobResumed") -> None:
    say(f"{job.state}; released: {counted(job.released, 'message')}")
