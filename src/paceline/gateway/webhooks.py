"""Webhooks as their owners handle them: adding, listing, removing, the log of deliveries, trying again.

Neighbours: `routes_webhooks` is their HTTP, `deliveries` fills and empties their outboxes.
"""

import base64
import binascii
import secrets
from collections.abc import Callable
from typing import Annotated, Literal, get_args

from msgspec import Meta, field

from paceline.domain.errors import BadRequest, Conflict, NotFound
from paceline.domain.events import ALL_EVENTS, EVENT_TYPES
from paceline.domain.times import moment_ms
from paceline.gateway.deliveries import public_id
from paceline.gateway.schemas import Moment, Out, _In
from paceline.kits.safe_http import SafeHttp, SafeHttpError
from paceline.store.store import Store
from paceline.store.webhooks import WEBHOOKS_LIMIT, Delivery, WebhookRecord, WebhookState

SECRET_PREFIX = "whsec_"
SECRET_BYTES = (24, 64)
"""What the Standard Webhooks specification asks of a secret."""

DeliveryState = Literal["pending", "delivered", "failed"]
DELIVERY_STATES = get_args(DeliveryState)
EventName = Annotated[str, Meta(max_length=64)]


class WebhookRequest(_In, frozen=True, kw_only=True):
    url: Annotated[str, Meta(max_length=2_048, examples=["https://crm.example.com/paceline"])]
    events: Annotated[list[EventName], Meta(min_length=1, max_length=32, examples=[["message.failed", "job.done"]])]
    """Types of events, or `["*"]` for all of them, also those that come later."""
    description: Annotated[str, Meta(max_length=256)] = ""
    secret: Annotated[str, Meta(max_length=128)] | None = None
    """`whsec_` and 24 to 64 bytes in base64; left out, one is made."""


class RedriveRequest(_In, frozen=True, kw_only=True):
    from_: Moment | None = field(name="from", default=None)
    until: Moment | None = None
    state: Literal["failed"] = "failed"


class WebhookView(Out, frozen=True, kw_only=True):
    webhook_id: str
    url: str
    events: list[str]
    description: str
    state: Literal["enabled", "disabled"]
    created_at: int
    created_by: str
    pending: int
    """Deliveries that wait in its outbox."""
    failing_since: int | None
    """Since when nothing was delivered although it was tried."""
    disabled_at: int | None
    disabled_reason: str | None
    """`GONE`: it answered 410. `FAILING`: it took nothing for five days."""


class WebhookCreated(WebhookView, frozen=True, kw_only=True):
    secret: str
    """Shown this once."""


class WebhookPage(Out, frozen=True, kw_only=True):
    items: list[WebhookView]
    next_cursor: str | None


class DeliveryView(Out, frozen=True, kw_only=True):
    delivery_id: str
    """The `webhook-id` header of every try."""
    type: str
    at: int
    """When it happened."""
    state: DeliveryState
    tries: int
    created_at: int
    last_try_at: int | None
    next_try_at: int | None
    ended_at: int | None
    status: int | None
    """What the receiver answered last; null if nobody did."""
    error: str | None


class DeliveryPage(Out, frozen=True, kw_only=True):
    items: list[DeliveryView]
    next_cursor: str | None


class WebhookRemoved(Out, frozen=True, kw_only=True):
    removed: Literal[True] = True
    webhook_id: str


class RedriveAnswer(Out, frozen=True, kw_only=True):
    redriven: int
    """Failed deliveries that are tried again from the start."""
    pulled: int
    """Waiting deliveries whose next try is now."""


class WebhookDesk:
    def __init__(
        self,
        store: Store,
        http: SafeHttp,
        *,
        new_id: Callable[[int], str],
        new_secret: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._store = store
        self._http = http
        self._new_id = new_id
        self._new_secret = new_secret

    async def create(self, asked: WebhookRequest, *, by: str, now_ms: int) -> WebhookCreated:
        await self._check_url(asked.url)
        for index, name in enumerate(asked.events):
            if name not in EVENT_TYPES and name != ALL_EVENTS:
                message = f"{name!r} is no event type; they are {', '.join(EVENT_TYPES)} or *"
                raise BadRequest("INVALID_REQUEST", message, field=f"events[{index}]")
        record = WebhookRecord(
            webhook_id=f"wh_{self._new_id(now_ms)}",
            url=asked.url,
            events=list(dict.fromkeys(asked.events)),
            secret=self._new() if asked.secret is None else _checked(asked.secret),
            created_at=now_ms,
            created_by=by,
            description=asked.description,
        )
        if await self._store.webhooks.save(record) == "FULL":
            raise Conflict("TOO_MANY_WEBHOOKS", f"there are {WEBHOOKS_LIMIT} webhooks already; remove one first")
        view = _view(WebhookState(record, "", 0, None, None, None))
        return WebhookCreated(**{name: getattr(view, name) for name in view.__struct_fields__}, secret=record.secret)

    async def page(self, cursor: str, limit: int) -> WebhookPage:
        found = [state for state in await self._store.webhooks.all() if state.record.webhook_id > cursor]
        items = [_view(state) for state in found[:limit]]
        return WebhookPage(items=items, next_cursor=items[-1].webhook_id if len(found) > limit else None)

    async def remove(self, webhook: str, *, by: str, now_ms: int) -> WebhookRemoved:
        if not await self._store.webhooks.remove(webhook, by=by, now_ms=now_ms):
            raise _unknown()
        return WebhookRemoved(webhook_id=webhook)

    async def deliveries(self, webhook: str, cursor: str, limit: int, state: str) -> DeliveryPage:
        if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 15):
            raise BadRequest("INVALID_REQUEST", "not a cursor of ours", field="cursor")
        if state and state not in DELIVERY_STATES:
            raise BadRequest("INVALID_REQUEST", f"one of {', '.join(DELIVERY_STATES)}", field="state")
        if await self._store.webhooks.get(webhook) is None:
            raise _unknown()
        found = await self._store.webhooks.deliveries(webhook, int(cursor) if cursor else None, limit, state or None)
        following = str(found[-1].number) if len(found) == limit else None
        return DeliveryPage(items=[_delivery(delivery) for delivery in found], next_cursor=following)

    async def redrive(self, webhook: str, asked: RedriveRequest, *, by: str, now_ms: int) -> RedriveAnswer:
        first, last = _moment(asked.from_, "from"), _moment(asked.until, "until")
        answer = await self._store.webhooks.redrive(webhook, from_ms=first, until_ms=last, by=by, now_ms=now_ms)
        if answer.code == "GONE":
            raise _unknown()
        return RedriveAnswer(redriven=answer.redriven, pulled=answer.pulled)

    async def _check_url(self, url: str) -> None:
        """As it will be at every post; told now, while somebody is there to read it."""
        try:
            await self._http.vet(url)
        except SafeHttpError as error:
            raise BadRequest("INVALID_URL", str(error), field="url") from error

    def _new(self) -> str:
        return SECRET_PREFIX + base64.b64encode(self._new_secret(32)).decode()


def _checked(secret: str) -> str:
    try:
        size = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if not secret.startswith(SECRET_PREFIX) or not SECRET_BYTES[0] <= size <= SECRET_BYTES[1]:
        raise BadRequest("INVALID_REQUEST", "must be whsec_ and 24 to 64 bytes in base64", field="secret")
    return secret


def _moment(value: int | str | None, name: str) -> int | None:
    if value is None:
        return None
    at = moment_ms(value)
    if at is None:
        raise BadRequest("INVALID_TIME", "must be Unix milliseconds, or ISO 8601 with an offset", field=name)
    return at


def _unknown() -> NotFound:
    return NotFound("UNKNOWN_WEBHOOK", "there is no such webhook", field="webhookId")


def _view(state: WebhookState) -> WebhookView:
    record = state.record
    return WebhookView(
        webhook_id=record.webhook_id,
        url=record.url,
        events=record.events,
        description=record.description,
        state="enabled" if state.disabled_at is None else "disabled",
        created_at=record.created_at,
        created_by=record.created_by,
        pending=state.pending,
        failing_since=state.failing_since,
        disabled_at=state.disabled_at,
        disabled_reason=state.disabled_reason,
    )


def _delivery(delivery: Delivery) -> DeliveryView:
    return DeliveryView(
        delivery_id=public_id(delivery.id),
        type=delivery.type,
        at=delivery.at,
        state=delivery.state,  # type: ignore[arg-type]  # the script writes these three
        tries=delivery.tries,
        created_at=delivery.created_at,
        last_try_at=delivery.last_at,
        next_try_at=delivery.next_at,
        ended_at=delivery.ended_at,
        status=delivery.status,
        error=delivery.error,
    )
