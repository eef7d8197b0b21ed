"""How events reach webhooks: a feeder fills each webhook's outbox from the stream, posters empty the outboxes.

Nothing is only in memory. The feeder moves a webhook's cursor in the step that fills its outbox; a poster takes one
delivery under a lease and writes down what became of it. So a crash at any point loses nothing, and repeats at most
what was being posted, under the same `webhook-id`. Any number of gateways do this side by side. Order is not promised:
an event that is tried again comes after those that were not, and several are posted at once. Those that fall due
together are taken in the order of their events.

Both are steps (`kits/stepping`), driven by `main`. Neighbours: `telling` makes the body, `policy/webhooks` decides.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog
from standardwebhooks.webhooks import Webhook

from paceline import __version__
from paceline.domain.events import Event
from paceline.gateway.measures import Measures
from paceline.gateway.telling import Telling
from paceline.kits.clock import Clock
from paceline.kits.failpoint import failpoint
from paceline.kits.safe_http import Posted, SafeHttpError
from paceline.policy.webhooks import after_try
from paceline.store.store import Store
from paceline.store.webhooks import OUTBOX_LIMIT, Delivery, WebhookRecord, WebhookState

if TYPE_CHECKING:
    from random import Random

log = structlog.stdlib.get_logger(__name__)

POSTERS = 16
"""Posts at once of one gateway; each waits for its receiver, not for us."""
PARALLEL = 4
"""Posts at once to one webhook, over all gateways: a receiver is not flooded, and cannot take all posters."""
FEED_BATCH = 100
LEASE_MS = 60_000
"""Longer than a post (15 s) and all around it can take."""
ERROR_KEPT = 200


class HttpPort(Protocol):
    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> Posted: ...


class Feeder:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.added = 0
        """Deliveries that the last step put into outboxes."""

    async def step(self, now_ms: int) -> int | None:
        """One stretch for each webhook that is behind and has room."""
        self.added = 0
        newest, more = await self._store.events.newest(), False
        for state in await self._store.webhooks.all():
            if state.disabled_at is None and state.cursor != newest:
                more |= await self._feed(state, now_ms)
        return now_ms if more else None

    async def _feed(self, state: WebhookState, now_ms: int) -> bool:
        room = OUTBOX_LIMIT - state.pending
        if room <= 0:
            return False
        record = state.record
        found = await self._store.events.after(state.cursor, limit=min(room, FEED_BATCH), wants=record.wants)
        if found.place == state.cursor:
            return False
        if found.behind:
            log.warning("a webhook fell behind: events are gone", webhook=record.webhook_id)
        # Another feeder may have been quicker; then it is refused, and the next look sees where it stands.
        fed = await self._store.webhooks.feed(
            record.webhook_id,
            found.events,
            from_=state.cursor,
            cursor=found.place,
            behind=found.behind,
            now_ms=now_ms,
        )
        failpoint("webhook-fed")
        self.added += fed.added
        return found.more


class Poster:
    def __init__(
        self,
        store: Store,
        telling: Telling,
        http: HttpPort,
        clock: Clock,
        rng: "Random",
        *,
        measures: Measures | None = None,
    ) -> None:
        self._store = store
        self._telling = telling
        self._http = http
        self._clock = clock
        self._rng = rng
        self._measures = measures or Measures()

    async def step(self, now_ms: int, on_taken: Callable[[], None] = lambda: None) -> int | None:
        """One delivery, if any is due. `on_taken` is called before it is posted: there may be more to do."""
        taken = await self._store.webhooks.take(now_ms=now_ms, lease_ms=LEASE_MS, parallel=PARALLEL)
        if taken.code == "NONE":
            return taken.next_at
        on_taken()
        record = msgspec.json.decode(taken.record, type=WebhookRecord)
        delivery = msgspec.json.decode(taken.delivery, type=Delivery)
        failpoint("delivery-taken")
        status, error, wait_s = await self._post(record, delivery)
        failpoint("posted-not-recorded")
        ended_ms = self._clock.now_ms()
        verdict = after_try(
            tries=delivery.tries + 1,
            status=status,
            retry_after_s=wait_s,
            failing_since_ms=taken.failing_since,
            now_ms=ended_ms,
            rng=self._rng,
        )
        await self._store.webhooks.settle(
            record.webhook_id, delivery, verdict, status=status, error=error, now_ms=ended_ms
        )
        self._measures.posted(verdict.outcome, took_ms=ended_ms - now_ms)
        if verdict.disable:
            log.warning("a webhook is disabled", webhook=record.webhook_id, reason=verdict.disable)
        return now_ms

    async def _post(self, record: WebhookRecord, delivery: Delivery) -> tuple[int | None, str | None, int | None]:
        """The status, what went wrong in words, and how long the receiver asks us to wait."""
        body = await self._telling.told(msgspec.json.decode(delivery.event, type=Event))
        headers = signed(record.secret, delivery.id, body, now_ms=self._clock.now_ms())
        try:
            posted = await self._http.post(record.url, body, headers)
        except SafeHttpError as failure:
            return None, str(failure), None
        good = 200 <= posted.status < 300
        return posted.status, None if good else posted.excerpt[:ERROR_KEPT], posted.retry_after_s


def signed(secret: str, event_id: str, body: bytes, *, now_ms: int) -> dict[str, str]:
    """The headers of the Standard Webhooks specification. The id is that of the event: the same with every try."""
    at = datetime.fromtimestamp(now_ms // 1000, UTC)
    name = public_id(event_id)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Paceline/{__version__} (webhooks)",
        "webhook-id": name,
        "webhook-timestamp": str(now_ms // 1000),
        "webhook-signature": Webhook(secret).sign(msg_id=name, timestamp=at, data=body.decode()),
    }


def public_id(event_id: str) -> str:
    return f"evt_{event_id}"
