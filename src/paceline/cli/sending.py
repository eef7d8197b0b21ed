"""`paceline send` and `paceline plan`, and the fields of a job that `plan` and `jobs create` share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from paceline.cli.asking import GatewayApi, asking
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.inputs import STDIN, Timeout, moment, read_file, read_text
from paceline.cli.showing import ago, facts, say, table, when, when_and_ago

if TYPE_CHECKING:
    from paceline.client.answers_jobs import JobAccepted, Rejected, SendAccepted
    from paceline.client.answers_plan import JobPlan

SHOWN_REFUSALS = 10

Session = Annotated[str | None, typer.Option("--session", metavar="SESSION", help="Send from the number of this one.")]
Phone = Annotated[str | None, typer.Option("--phone", metavar="NUMBER", help="Send from this number.")]
Priority = Annotated[int | None, typer.Option(min=1, max=3, metavar="1..3", help="3 goes first; 1 if left out.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Not before: 2026-12-24 09:00, in this timezone.")]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="The same key again sends nothing and gives the first answer again."),
]
Contacts = Annotated[
    str, typer.Argument(metavar="CONTACTS.CSV", help="A column `to`, others are variables; - reads stdin.")
]
Words = Annotated[str, typer.Argument(metavar="TEXT", help="With {{name}} filled from each row; - reads stdin.")]


@dataclass(frozen=True)
class JobFields:
    """Options of a job."""

    session: Session = None
    phone: Phone = None
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Repeat it for several.")] = None
    strategy: Annotated[
        Literal["sticky", "least_loaded", "health_based", "round_robin"] | None,
        typer.Option(metavar="NAME", help="How numbers are chosen: sticky, least_loaded, health_based or round_robin."),
    ] = None
    priority: Priority = None
    spread_minutes: Annotated[int | None, typer.Option(min=1, metavar="N", help="Spread it over N minutes.")] = None
    at: At = None
    validity_seconds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="What has not gone out N seconds after its time expires.")
    ] = None
    on_unknown: Annotated[
        Literal["resend", "hold"] | None,
        typer.Option(metavar="resend|hold", help="After a crash in the moment of sending."),
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="One bad contact refuses the whole job.")] = False

    def given(self, contacts: str, words: str) -> dict[str, Any]:
        """As the client takes it."""
        if contacts == STDIN and words == STDIN:
            fail("only one of contacts and text can come from stdin", Exit.USAGE)
        options = {
            "text": read_text(words),
            "session_id": self.session,
            "phone": self.phone,
            "tags": self.tag or None,
            "strategy": self.strategy,
            "priority": self.priority,
            "spread_minutes": self.spread_minutes,
            "send_at": moment(self.at),
            "validity_seconds": self.validity_seconds,
            "on_unknown": self.on_unknown,
            "strict": self.strict or None,
        }
        return {"csv": read_file(contacts), **{name: value for name, value in options.items() if value is not None}}


@asking
def send(
    to: Annotated[str, typer.Argument(metavar="NUMBER", help="Who gets it: +44 7700 900300.")],
    message: Annotated[str, typer.Argument(metavar="TEXT", help="The words; - reads them from stdin.")],
    *,
    api: GatewayApi,
    session: Session = None,
    phone: Phone = None,
    priority: Priority = None,
    at: At = None,
    idempotency_key: IdempotencyKey = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is sent; exit code 1 if it is not.")] = False,
    timeout: Timeout = 600,
) -> None:
    """Send one message, and print its id.

    Example: `paceline send "+44 7700 900300" "Your table is ready" --wait`
    """
    from paceline.client import requests_sending as sending

    call = sending.send(
        to,
        read_text(message),
        session_id=session,
        phone=phone,
        priority=priority,
        send_at=moment(at),
        idempotency_key=idempotency_key,
    )
    if wait:
        _wait(api, api.ask(call), timeout)
    else:
        api.show(call, _sent)


def _sent(accepted: "SendAccepted") -> None:
    typer.echo(accepted.message_id)
    due = f", expected {ago(accepted.estimated_delivery)}" if accepted.estimated_delivery else ""
    say(f"queued{due}; `paceline messages show {accepted.message_id}` tells how it is doing")


def _wait(api: GatewayApi, accepted: "SendAccepted", timeout: int) -> None:
    from paceline.client import requests_sending as sending

    typer.echo(accepted.message_id, err=api.as_json)
    message = api.patient.messages.wait(accepted.message_id, timeout_seconds=timeout)
    if api.as_json:
        api.show_json(sending.get_message(accepted.message_id))
    why = f": {message.last_error.code}: {message.last_error.message}" if message.last_error else ""
    say(f"{message.state}{why}")
    if message.state not in ("sent", "delivered", "read"):
        raise typer.Exit(Exit.FAILED)


@asking
def plan(contacts: Contacts, text: Words, api: GatewayApi, fields: JobFields) -> None:
    """When would this job be done? A dry run: nothing is stored or sent.

    The same fields as `paceline jobs create`.

    Example: `paceline plan contacts.csv "Hello {{name}}"`
    """
    from paceline.client import requests_sending as sending

    api.show(sending.plan_job(**fields.given(contacts, text)), _plan)


def _plan(plan: "JobPlan") -> None:
    facts(
        [
            ("accepted", plan.accepted),
            ("suppressed", plan.suppressed or None),
            ("duplicates", plan.duplicates or None),
            ("starts", when_and_ago(plan.starts_at)),
            ("finishes", when_and_ago(plan.finishes_at) or "nobody can tell"),
            ("held up by", plan.bottleneck),
            ("would expire", plan.will_expire.count or None),
        ]
    )
    refusals(plan.rejected)
    for refused in plan.refused:
        say(f"refused: {refused.count} × {refused.reason}")
    say("")
    rows = ((one.phone, one.messages, when(one.finishes_at), one.limited_by) for one in plan.phones)
    table("NUMBER >MESSAGES FINISHES LIMITED-BY", rows, empty="No number would send any of it.")
    if plan.other_phones.phones:
        say(f"and {plan.other_phones.phones} more numbers with {plan.other_phones.messages} messages")
    for suggestion in plan.suggestions:
        say(f"\n{suggestion.text}")


def accepted(job: "JobAccepted") -> None:
    """What became of a new job: its id for the script, the rest for people."""
    typer.echo(job.job_id)
    left_out = {"suppressed": job.suppressed, "there twice": job.duplicates}
    also = "".join(f", {count} {word}" for word, count in left_out.items() if count)
    done = f"; done {ago(job.estimated_completion)}" if job.estimated_completion else ""
    say(f"{job.accepted} of {job.total} contacts accepted{also}{done}")
    refusals(job.rejected)
    if job.will_expire:
        say(f"{job.will_expire} will expire before their turn comes")


def refusals(rejected: "list[Rejected]") -> None:
    for one in rejected[:SHOWN_REFUSALS]:
        say(f"contact {one.index + 1} refused: {one.to}: {one.code}{f' ({one.variable})' if one.variable else ''}")
    if len(rejected) > SHOWN_REFUSALS:
        say(f"and {len(rejected) - SHOWN_REFUSALS} more")
