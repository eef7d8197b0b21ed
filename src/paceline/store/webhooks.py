"""Webhooks in the store: who wants which events, their outbox, their log.

An event reaches an outbox in the same step in which the webhook's cursor moves past it, and leaves it only when its end
is known. A delivery that is being posted is under a lease; if that ends without a word, it is posted again under the
same id. Neighbours: `store/events` reads the stream, `gateway/deliveries` feeds and posts.
"""

from collections.abc import Sequence

import msgspec

from paceline.domain.events import ALL_EVENTS, START, Event
from paceline.policy.webhooks import RECOVERED_AFTER_MS, Verdict
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.jobs import _pairs

WEBHOOKS_LIMIT = 100
"""More places than a customer's systems have; each is looked at whenever something happens."""
OUTBOX_LIMIT = 1_000
"""Deliveries that wait for one webhook; what comes after them waits in the stream."""
LOG_KEPT = 1_000
LOG_BATCH = 200


class WebhookRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What was asked for. Never changed, only removed."""

    webhook_id: str
    url: str
    events: list[str]
    secret: str
    created_at: int
    created_by: str
    description: str = ""

    def wants(self, event_type: str) -> bool:
        return ALL_EVENTS in self.events or event_type in self.events

    def __repr__(self) -> str:
        """Without the secret and the address, which may hold one."""
        return f"WebhookRecord({self.webhook_id!r})"


class WebhookState(msgspec.Struct, frozen=True):
    record: WebhookRecord
    cursor: str
    pending: int
    failing_since: int | None
    disabled_at: int | None
    disabled_reason: str | None


class Delivery(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    """That of the event: a webhook gets an event once."""
    event: str
    """The event as JSON."""
    type: str
    at: int
    number: int
    state: str
    """pending, delivered or failed."""
    tries: int
    created_at: int
    next_at: int | None = None
    last_at: int | None = None
    ended_at: int | None = None
    status: int | None = None
    error: str | None = None


class Fed(Answer, frozen=True):
    added: int = 0


class Taken(Answer, frozen=True):
    webhook: str = ""
    record: str = ""
    delivery: str = ""
    failing_since: int | None = None
    next_at: int | None = None


class Settled(Answer, frozen=True):
    state: str = ""


class Redriven(Answer, frozen=True):
    redriven: int = 0
    pulled: int = 0


class Webhooks:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def save(self, record: WebhookRecord) -> str:
        text = msgspec.json.encode(record).decode()
        answer = await self._caller.call(
            "save_webhook", Answer, id=record.webhook_id, record=text, limit=WEBHOOKS_LIMIT,
            by=record.created_by, now=record.created_at,
        )  # fmt: skip
        return answer.code

    async def remove(self, webhook: str, *, by: str, now_ms: int) -> bool:
        return (await self._caller.call("remove_webhook", Answer, id=webhook, by=by, now=now_ms)).code == "OK"

    async def all(self) -> list[WebhookState]:
        """Every webhook, the oldest first."""
        raw = _pairs(await self._caller.read_one("HGETALL", keys.webhooks()))
        records = [msgspec.json.decode(text, type=WebhookRecord) for _, text in sorted(raw.items())]
        return await self._states(records)

    async def get(self, webhook: str) -> WebhookState | None:
        raw = await self._caller.read_one("HGET", keys.webhooks(), webhook)
        if raw is None:
            return None
        return (await self._states([msgspec.json.decode(raw, type=WebhookRecord)]))[0]

    async def feed(
        self, webhook: str, events: Sequence[Event], *, from_: str, cursor: str, behind: bool, now_ms: int
    ) -> Fed:
        items = [
            {"id": event.id, "event": msgspec.json.encode(event).decode(), "type": event.type, "at": event.at}
            for event in events
        ]
        return await self._caller.call(
            "feed_webhook", Fed, id=webhook, **{"from": from_}, cursor=cursor, items=items or None,
            behind=behind or None, now=now_ms,
        )  # fmt: skip

    async def take(self, *, now_ms: int, lease_ms: int, parallel: int) -> Taken:
        return await self._caller.call("take_delivery", Taken, now=now_ms, lease=lease_ms, parallel=parallel)

    async def settle(
        self,
        webhook: str,
        delivery: Delivery,
        verdict: Verdict,
        *,
        status: int | None,
        error: str | None,
        now_ms: int,
    ) -> Settled:
        return await self._caller.call(
            "settle_delivery", Settled, webhook=webhook, delivery=delivery.id, tries=delivery.tries,
            outcome=verdict.outcome, status=status, error=error, nextAt=verdict.next_at_ms, disable=verdict.disable,
            kept=LOG_KEPT, settled=RECOVERED_AFTER_MS, now=now_ms,
        )  # fmt: skip

    async def redrive(
        self, webhook: str, *, from_ms: int | None, until_ms: int | None, by: str, now_ms: int
    ) -> Redriven:
        return await self._caller.call(
            "redrive_webhook", Redriven, id=webhook, **{"from": from_ms, "until": until_ms}, by=by, now=now_ms
        )

    async def deliveries(self, webhook: str, before: int | None, limit: int, state: str | None) -> list[Delivery]:
        """The newest first, before a given number. The log is bounded, so a filter reads all of it at most."""
        found: list[Delivery] = []
        while len(found) < limit:
            top = f"({before}" if before is not None else "+inf"
            ids = await self._caller.read_one(
                "ZREVRANGEBYSCORE", keys.webhook_log(webhook), top, "-inf", "LIMIT", 0, LOG_BATCH
            )
            if not ids:
                break
            rows = await self._caller.read_one("HMGET", keys.webhook_deliveries(webhook), *ids)
            batch = [msgspec.json.decode(row, type=Delivery) for row in rows if row]
            found += [delivery for delivery in batch if state is None or delivery.state == state]
            if len(ids) < LOG_BATCH or not batch:
                break
            before = batch[-1].number
        return found[:limit]

    async def _states(self, records: Sequence[WebhookRecord]) -> list[WebhookState]:
        fields = ("cursor", "failingSince", "disabledAt", "disabledReason")
        commands: list[tuple[str, ...]] = []
        for record in records:
            commands += [
                ("HMGET", keys.webhook(record.webhook_id), *fields),
                ("ZCARD", keys.webhook_outbox(record.webhook_id)),
            ]
        rows = await self._caller.read(*commands) if commands else []
        return [
            WebhookState(record, row[0] or START, pending, _whole(row[1]), _whole(row[2]), row[3])
            for record, row, pending in zip(records, rows[::2], rows[1::2], strict=True)
        ]


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None else None
