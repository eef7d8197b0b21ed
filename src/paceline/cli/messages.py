"""`paceline messages`: how one message is doing and why it has not gone yet; a person's messages."""

from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.asking import GatewayApi, asking
from paceline.cli.inputs import MessageId, Yes, confirm
from paceline.cli.jobs import message_rows
from paceline.cli.paging import Paging
from paceline.cli.showing import facts, say, when, when_and_ago

if TYPE_CHECKING:
    from paceline.client.answers_jobs import MessageStatus
    from paceline.client.answers_lists import MessageCanceled

messages_app = typer.Typer(name="messages", no_args_is_help=True, help="Single messages: why has it not gone yet?")


@messages_app.command()
@asking
def show(message: MessageId, api: GatewayApi) -> None:
    """State, times, attempts, and why it waits.

    Example: `paceline messages show 01KKBK4FE0S7MP2BKPJTKCXK0V:0`
    """
    from paceline.client import requests_sending as sending

    api.show(sending.get_message(message), _message)


def _message(message: "MessageStatus") -> None:
    times = message.times
    facts(
        [
            ("message", message.message_id),
            ("to", message.to),
            ("state", message.state),
            ("waits", message.waiting and message.waiting.text),
            ("until", when_and_ago(message.waiting.until) if message.waiting else None),
            ("last error", message.last_error and f"{message.last_error.code}: {message.last_error.message}"),
            ("attempts", message.attempts or None),
            ("from", message.phone and f"{message.phone} ({message.session_id})"),
            ("accepted", when_and_ago(times.accepted_at)),
            ("handed over", when(times.handed_off_at)),
            ("claimed", when(times.claimed_at)),
            ("sent", when(times.sent_at)),
            ("delivered", when(times.delivered_at)),
            ("read", when(times.read_at)),
            ("WhatsApp id", message.whatsapp_id),
            ("client ref", message.client_ref),
        ]
    )


@messages_app.command()
@asking
def find(
    to: Annotated[str, typer.Argument(metavar="NUMBER", help="Whose messages.")], api: GatewayApi, page: Paging
) -> None:
    """What was sent to a person, newest first.

    Example: `paceline messages find "+44 7700 900300"`
    """
    from paceline.client import requests_sending as sending

    page.show(api, sending.find_messages(to, cursor=page.cursor, limit=page.limit), message_rows)


@messages_app.command()
@asking
def cancel(message: MessageId, api: GatewayApi, yes: Yes = False) -> None:
    """Stop one message, wherever it waits. It cannot be taken back. Refused once a worker holds it.

    Example: `paceline messages cancel 01KKBK4FE0S7MP2BKPJTKCXK0V:0 --yes`
    """
    from paceline.client import requests_sending as sending

    confirm(f"Cancel message {message}?", yes)
    api.show(sending.cancel_message(message), _canceled)


def _canceled(message: "MessageCanceled") -> None:
    say(f"message {message.message_id} is {message.state}")
