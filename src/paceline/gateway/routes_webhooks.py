"""Routes of webhooks, for admins. What they do is in `webhooks`."""

from typing import Annotated, Any

from litestar import Response, delete, get, post
from litestar.params import FromPath, QueryParameter

from paceline.edge import Keys, holder
from paceline.gateway.routes_common import KEY, Cursor, Limit
from paceline.gateway.webhooks import (
    DeliveryPage,
    RedriveAnswer,
    RedriveRequest,
    WebhookCreated,
    WebhookDesk,
    WebhookPage,
    WebhookRemoved,
    WebhookRequest,
)
from paceline.kits.clock import Clock
from paceline.kits.web import AnyRequest, Handler, read_body

State = Annotated[
    str, QueryParameter(name="state", max_length=64, description="only `pending`, `delivered` or `failed` ones")
]


def webhook_routes(desk: WebhookDesk, keys: Keys, clock: Clock) -> list[Handler]:
    admin: dict[str, Any] = {"tags": ["Webhooks"], "guards": [keys.requires("admin")], "security": KEY}

    @get("/v1/webhooks", summary="Where events are posted to", **admin)
    async def list_webhooks(cursor: Cursor = "", limit: Limit = 100) -> WebhookPage:
        """Never the secrets."""
        return await desk.page(cursor, limit)

    @post("/v1/webhooks", status_code=201, summary="Have events posted", opt={"body": WebhookRequest}, **admin)
    async def create_webhook(request: AnyRequest) -> Response[WebhookCreated]:
        """Events from now on are posted there, signed after the Standard Webhooks specification. `secret` is shown in
        this answer and never again. Answer with 2xx within 15 s; anything else is tried again for about three days.
        410 ends it. Drop what you have seen by its `webhook-id`; order is not promised."""
        asked = await read_body(request, WebhookRequest)
        created = await desk.create(asked, by=holder(request), now_ms=clock.now_ms())
        return Response(created, status_code=201, headers={"Cache-Control": "no-store"})

    @delete("/v1/webhooks/{webhook_id:str}", status_code=200, summary="Stop posting events there", **admin)
    async def remove_webhook(request: AnyRequest, webhook_id: FromPath[str]) -> WebhookRemoved:
        """With its log and all that waits for it."""
        return await desk.remove(webhook_id, by=holder(request), now_ms=clock.now_ms())

    @get("/v1/webhooks/{webhook_id:str}/deliveries", summary="What was posted there, the newest first", **admin)
    async def list_deliveries(
        webhook_id: FromPath[str], cursor: Cursor = "", limit: Limit = 100, in_state: State = ""
    ) -> DeliveryPage:
        """All that waits, and the newest 1,000 that ended."""
        return await desk.deliveries(webhook_id, cursor, limit, in_state)

    @post(
        "/v1/webhooks/{webhook_id:str}/redrive",
        status_code=200,
        summary="Try again what failed",
        opt={"body": RedriveRequest},
        **admin,
    )
    async def redrive(request: AnyRequest, webhook_id: FromPath[str]) -> RedriveAnswer:
        """Failed deliveries of events between `from` and `until` start again, under their old `webhook-id`; waiting
        ones go now. A disabled webhook is enabled."""
        asked = await read_body(request, RedriveRequest)
        return await desk.redrive(webhook_id, asked, by=holder(request), now_ms=clock.now_ms())

    return [list_webhooks, create_webhook, remove_webhook, list_deliveries, redrive]
