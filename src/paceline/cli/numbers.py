"""`paceline sessions explain`, `queue`, `rpm`, `change`, and an operator's decisions on a number that waits."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import FleetApi, asking
from paceline.cli.ending import fail
from paceline.cli.exits import Exit
from paceline.cli.inputs import SessionId, Yes, confirm, moment
from paceline.cli.paging import Paging
from paceline.cli.showing import counted, facts, say, table, when_and_ago

if TYPE_CHECKING:
    from paceline.client.answers_fleet_numbers import CooldownCleared, Explained, QueueCanceled, Requeued, RpmSet
    from paceline.client.answers_lists import QueuedMessage

NO_OVERRIDE = "none"


@asking
def explain(session: SessionId, api: FleetApi) -> None:
    """What its number does at this moment, and which rule says so.

    Example: `paceline sessions explain sim-1`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.explain(session), _explained)


def _explained(answer: "Explained") -> None:
    known = answer.facts
    typer.echo(answer.text)
    typer.echo("")
    cap = "no cap" if known.daily_cap is None else f"{known.sent_today} of {known.daily_cap}"
    facts(
        [
            ("decision", f"{answer.decision} ({answer.rule})"),
            ("waiting here", f"{answer.queue_len} queued, {answer.parked} parked"),
            ("trust", f"{known.trust_level}: {known.rpm_default} a minute"),
            ("override", known.rpm_override and f"{known.rpm_override} a minute ({known.rpm_source})"),
            ("comes to", f"{known.effective_rpm:g} a minute, rests after bursts included"),
            ("gap", f"{known.window[0] / 1000:g} to {known.window[1] / 1000:g} s"),
            ("burst", f"{known.burst_count} of {known.burst_limit}" if known.burst_limit else None),
            ("sent today", cap),
            ("hours", f"{known.hours[0]:02} to {known.hours[1]:02}" if known.hours else "any"),
            ("its time", known.local_time),
            ("next slot", when_and_ago(known.next_slot_at)),
            ("cool-down until", when_and_ago(known.cooldown_until)),
            ("restriction", known.restriction),
            ("restricted until", when_and_ago(known.restricted_until)),
            ("quarantined", known.quarantined or None),
            ("fleet", "stopped" if known.fleet_stopped else "paused" if known.fleet_paused else None),
            ("connected sessions", str(known.connected_sessions)),
            ("busy with", known.unsettled),
        ]
    )
    if answer.heads:
        typer.echo("")
        table("TASK ACTION WHY", ((head.task, head.action, head.text) for head in answer.heads), empty="")


@asking
def queue(session: SessionId, api: FleetApi, page: Paging) -> None:
    """What waits for its number, in the order it will go; then what is parked.

    Example: `paceline sessions queue sim-1`
    """
    from paceline.client import requests_lists as lists

    page.show(api, lists.queue(session, cursor=page.cursor, limit=page.limit), _queue)


def _queue(found: "list[QueuedMessage]") -> None:
    rows = ((one.position, one.message_id, one.to, one.priority, one.waiting.text) for one in found)
    table(">PLACE ID TO >PRIORITY WHY", rows, empty="Nothing waits for this number.")


@asking
def rpm(
    session: SessionId,
    rate: Annotated[str, typer.Argument(metavar="RATE", help="2, 3, 5, 10, 15, 20, or none to remove the override.")],
    api: FleetApi,
) -> None:
    """Override its number's messages a minute.

    Example: `paceline sessions rpm sim-1 5`
    """
    from paceline.client import requests_fleet as fleet

    if rate != NO_OVERRIDE and not (rate.isascii() and rate.isdigit()):
        fail(f"a rate is a number, or {NO_OVERRIDE}; not {rate!r}", Exit.USAGE)
    api.show(fleet.set_rpm(session, None if rate == NO_OVERRIDE else int(rate)), _rpm)


def _rpm(answer: "RpmSet") -> None:
    override = f"override {answer.rpm} a minute" if answer.rpm else "no override"
    say(f"{answer.phone}: {override}; comes to {answer.effective_rpm:g} a minute")


@asking
def change(
    session: SessionId,
    *,
    api: FleetApi,
    created_at: Annotated[str | None, typer.Option(metavar="TIME", help="When its number began.")] = None,
    timezone: Annotated[str | None, typer.Option(metavar="ZONE", help="Of its number, such as Asia/Jerusalem.")] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="TAG", help="Instead of its tags; repeat it.")] = None,
) -> None:
    """Change what is known of it: its number's age and timezone, its tags. What is left out stays.

    Example: `paceline sessions change sim-1 --timezone Europe/Athens`
    """
    from paceline.client import requests_fleet_sessions as sessions

    call = sessions.change_session(session, created_at=moment(created_at), timezone=timezone, tags=tag or None)
    api.show(call, lambda known: say(f"{known.session_id} is changed"))


@asking
def clear_cooldown(session: SessionId, api: FleetApi) -> None:
    """End its number's cool-down early.

    Example: `paceline sessions clear-cooldown sim-1`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.clear_cooldown(session), _cleared)


def _cleared(answer: "CooldownCleared") -> None:
    say("the cool-down is over" if answer.cleared else "there was no cool-down")


@asking
def requeue(session: SessionId, api: FleetApi) -> None:
    """Its quarantined number is restored: the queue goes on, on the same number.

    Example: `paceline sessions requeue sim-1`
    """
    from paceline.client import requests_fleet as fleet

    api.show(fleet.requeue(session), _requeued)


def _requeued(answer: "Requeued") -> None:
    say(f"restored; waiting for this number: {counted(answer.requeued, 'message')}")


@asking
def cancel_queue(session: SessionId, api: FleetApi, yes: Yes = False) -> None:
    """Cancel all that waits for its number.

    Example: `paceline sessions cancel-queue sim-1 --yes`
    """
    from paceline.client import requests_fleet as fleet

    confirm(f"Cancel everything that waits for the number of {session}?", yes)
    api.show(fleet.cancel_queue(session), _canceled)


def _canceled(answer: "QueueCanceled") -> None:
    say(f"{answer.canceled} canceled, {answer.failed} ended failed (may have gone out), {answer.open} still open")
