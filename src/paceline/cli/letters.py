"""`paceline dead-letters`: what failed for good, and sending it again on purpose."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from paceline.cli.asking import GatewayApi, asking
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.inputs import Yes, confirm, moment
from paceline.cli.paging import Paging, pages
from paceline.cli.sending import IdempotencyKey
from paceline.cli.showing import facts, say, table, when, when_and_ago

if TYPE_CHECKING:
    from paceline.client.answers_lists import DeadLetter, Replayed, ReplayedMany
    from paceline.client.calls import Call

letters_app = typer.Typer(name="dead-letters", no_args_is_help=True, help="What failed for good: look, send again.")

LetterId = Annotated[str, typer.Argument(metavar="ID", help="As `paceline dead-letters list` shows it.")]
Code = Annotated[str, typer.Option(metavar="CODE", show_default=False, help="Only with this error code.")]
Class = Annotated[
    Literal["transient", "recipient", "platform"] | None,
    typer.Option("--class", metavar="CLASS", help="Only failures of this class: transient, recipient or platform."),
]
Phone = Annotated[str, typer.Option(metavar="NUMBER", show_default=False, help="Only from this number of yours.")]
Job = Annotated[str, typer.Option(metavar="JOB", show_default=False, help="Only of this job.")]
Since = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Only from then on.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only before then.")]
Again = Annotated[bool, typer.Option("--again", help="Also what was sent again before.")]


@letters_app.command("list")
@asking
def list_(
    *,
    api: GatewayApi,
    page: Paging,
    code: Code = "",
    class_: Class = None,
    phone: Phone = "",
    job: Job = "",
    since: Since = None,
    until: Until = None,
) -> None:
    """What was given up, newest first.

    Example: `paceline dead-letters list --class recipient`
    """
    from paceline.client import requests_lists as lists

    call = lists.list_letters(
        code=code,
        class_=class_,
        phone=phone,
        job_id=job,
        from_=moment(since),
        until=moment(until),
        cursor=page.cursor,
        limit=page.limit,
    )
    page.show(api, call, _rows)


def _rows(found: "list[DeadLetter]") -> None:
    rows = ((one.id, when(one.at), one.to, one.code, one.replayed_as and "replayed") for one in found)
    table("ID AT TO CODE NOTE", rows, empty="No dead letters.")


@letters_app.command()
@asking
def show(letter: LetterId, api: GatewayApi) -> None:
    """One of them with its whole history.

    Example: `paceline dead-letters show 01KKBK4FE0S7MP2BKPJTKCXK0V:0`
    """
    import msgspec

    from paceline.client import requests_lists as lists
    from paceline.client.answers_jobs import Page
    from paceline.client.answers_lists import DeadLetter

    call: Call[Any] = lists.list_letters(job_id=letter.partition(":")[0])
    for page in pages(api, replace(call, answer=Page[msgspec.Raw])):
        for raw in page.items:
            found = msgspec.json.decode(raw, type=DeadLetter)
            if found.id == letter:
                typer.echo(bytes(raw).decode()) if api.as_json else _letter(found)
                return
    fail(f"there is no dead letter {letter}", Exit.REFUSED)


def _letter(letter: "DeadLetter") -> None:
    facts(
        [
            ("dead letter", letter.id),
            ("to", letter.to),
            ("error", f"{letter.code} ({letter.class_}): {letter.message}"),
            ("given up", when_and_ago(letter.at)),
            ("attempts", letter.attempts),
            ("from", letter.phone and f"{letter.phone} ({letter.session_id})"),
            ("state now", letter.state),
            ("may be sent again", letter.replayable),
            ("sent again as", letter.replayed_as),
        ]
    )
    typer.echo("")
    rows = ((when(step.get("at")), step.get("what"), step.get("reason") or step.get("code")) for step in letter.history)
    table("AT WHAT WHY", rows, empty="It has no history.")


@letters_app.command()
@asking
def replay(letter: LetterId, api: GatewayApi, again: Again = False, idempotency_key: IdempotencyKey = None) -> None:
    """Send one again, as a new job whose message id is printed.

    Example: `paceline dead-letters replay 01KKBK4FE0S7MP2BKPJTKCXK0V:0`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.replay(letter, again=again, idempotency_key=idempotency_key), _replayed)


def _replayed(answer: "Replayed") -> None:
    typer.echo(answer.message_id)
    say(f"sent again as job {answer.job_id}")


@letters_app.command("replay-all")
@asking
def replay_all(
    *,
    api: GatewayApi,
    code: Code = "",
    class_: Class = None,
    phone: Phone = "",
    job: Job = "",
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="At most so many.")] = 100,
    again: Again = False,
    idempotency_key: IdempotencyKey = None,
    yes: Yes = False,
) -> None:
    """Send all that match again; a new job for each old one, whose ids are printed.

    Example: `paceline dead-letters replay-all --code WORKER_ERROR --yes`
    """
    from paceline.client import requests_lists as lists

    confirm(f"Send up to {limit} dead letters again?", yes)
    call = lists.replay_all(
        code=code or None,
        class_=class_,
        phone=phone or None,
        job_id=job or None,
        from_=moment(since),
        until=moment(until),
        limit=limit,
        again=again,
        idempotency_key=idempotency_key,
    )
    api.show(call, _replayed_many)


def _replayed_many(answer: "ReplayedMany") -> None:
    for job in answer.jobs:
        typer.echo(job.job_id)
    skipped = answer.skipped
    say(
        f"{answer.replayed} sent again; left out: {skipped.not_replayable} that may not be, "
        f"{skipped.already_replayed} that were before, {skipped.suppressed} suppressed"
        f"{'; there is more' if answer.more else ''}"
    )
