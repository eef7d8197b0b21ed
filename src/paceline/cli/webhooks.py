"""`paceline webhooks`: where events are posted to, what became of them, and trying again. The secret of a new one is
the only thing `create` writes to stdout."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from paceline.cli import completing
from paceline.cli.asking import GatewayApi, asking
from paceline.cli.inputs import Yes, confirm, moment
from paceline.cli.paging import Paging
from paceline.cli.showing import counted, say, table, when

if TYPE_CHECKING:
    from paceline.client.answers_lists import Delivery, NewWebhook, Redriven, Webhook, WebhookRemoved

webhooks_app = typer.Typer(name="webhooks", no_args_is_help=True, help="Where events are posted to.")

WebhookId = Annotated[
    str,
    typer.Argument(metavar="ID", autocompletion=completing.webhooks, help="webhookId, as `list` shows it."),
]


@webhooks_app.command()
@asking
def create(
    address: Annotated[str, typer.Argument(metavar="URL", help="Where events are posted to.")],
    api: GatewayApi,
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="Only these, such as message.failed; repeat it. Left out: all."),
    ] = None,
    description: Annotated[str, typer.Option(metavar="WORDS", show_default=False, help="For the list.")] = "",
) -> None:
    """Post events there from now on, and print the secret that signs them, this once.

    Example: `paceline webhooks create https://crm.example.com/paceline --event message.failed | store-secret`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.create_webhook(address, event or ("*",), description=description), _made)


def _made(webhook: "NewWebhook") -> None:
    typer.echo(webhook.secret)
    say(f"webhook {webhook.webhook_id}: {', '.join(webhook.events)} to {webhook.url}. The secret is not shown again.")


@webhooks_app.command("list")
@asking
def list_(api: GatewayApi, page: Paging) -> None:
    """All of them, how they are doing and what waits for them; never the secret.

    Example: `paceline webhooks list`
    """
    from paceline.client import requests_lists as lists

    page.show(api, lists.list_webhooks(cursor=page.cursor, limit=page.limit), _rows)


def _rows(found: "list[Webhook]") -> None:
    rows = ((one.webhook_id, one.url, one.events, one.state, one.pending, _trouble(one)) for one in found)
    table("ID URL EVENTS STATE >WAITING NOTE", rows, empty="No webhooks.")


def _trouble(webhook: "Webhook") -> str | None:
    if webhook.disabled_reason:
        return f"disabled {when(webhook.disabled_at)}: {webhook.disabled_reason}"
    return f"failing since {when(webhook.failing_since)}" if webhook.failing_since else None


@webhooks_app.command()
@asking
def deliveries(
    webhook: WebhookId,
    api: GatewayApi,
    page: Paging,
    state: Annotated[
        Literal["pending", "delivered", "failed"] | None,
        typer.Option(metavar="STATE", help="Only these: pending, delivered or failed."),
    ] = None,
) -> None:
    """What was posted there and what waits, newest first.

    Example: `paceline webhooks deliveries 01KKBK4FE0S7MP2BKPJTKCXK0V --state failed`
    """
    from paceline.client import requests_lists as lists

    page.show(api, lists.deliveries(webhook, state=state, cursor=page.cursor, limit=page.limit), _posted)


def _posted(found: "list[Delivery]") -> None:
    rows = (
        (one.delivery_id, one.type, when(one.at), one.state, one.tries, one.error or one.status, when(one.next_try_at))
        for one in found
    )
    table("ID TYPE AT STATE >TRIES ANSWER NEXT-TRY", rows, empty="Nothing was posted there.")


@webhooks_app.command()
@asking
def redrive(
    webhook: WebhookId,
    api: GatewayApi,
    since: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Only from then on.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only before then.")] = None,
) -> None:
    """Failed deliveries start again, waiting ones go now, a disabled webhook is enabled.

    Example: `paceline webhooks redrive 01KKBK4FE0S7MP2BKPJTKCXK0V`
    """
    from paceline.client import requests_lists as lists

    api.show(lists.redrive(webhook, from_=moment(since), until=moment(until)), _redriven)


def _redriven(answer: "Redriven") -> None:
    say(f"{counted(answer.redriven, 'failed event')} again, {answer.pulled} that waited now")


@webhooks_app.command()
@asking
def remove(webhook: WebhookId, api: GatewayApi, yes: Yes = False) -> None:
    """With its log and all that waits for it. It cannot be taken back.

    Example: `paceline webhooks remove 01KKBK4FE0S7MP2BKPJTKCXK0V --yes`
    """
    from paceline.client import requests_lists as lists

    confirm(f"Remove webhook {webhook} and all that waits for it?", yes)
    api.show(lists.remove_webhook(webhook), _removed)


def _removed(answer: "WebhookRemoved") -> None:
    say(f"webhook {answer.webhook_id} is removed")
