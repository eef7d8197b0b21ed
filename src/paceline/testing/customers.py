"""A customer who is told what happens: their webhook, the gateway's feeder and posters, and the receiver, who may be
away for days, fail, or take an event and not say so."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from paceline.domain.errors import Unavailable
from paceline.gateway.deliveries import Feeder, Poster
from paceline.gateway.telling import Telling
from paceline.kits.safe_http import Posted, SafeHttpError
from paceline.policy.trust import DAY_MS
from paceline.store import keys
from paceline.store.webhooks import WebhookRecord
from paceline.testing.plans import HOUR_MS, Receiver
from paceline.testing.sim import VirtualClock
from paceline.testing.steps import Pause, Point, Process, Request

if TYPE_CHECKING:
    from paceline.testing.world import World

POSTERS = 2
GATHER_MS = 10_000
"""The feeder is woken by every order to Redis; then it waits for more, as it costs a look at the whole stream."""
PATIENCE_MS = 5 * DAY_MS
"""All tries of a delivery are over by then."""
WEBHOOK = WebhookRecord(
    webhook_id="wh_world", url="https://customer.example/events", events=["*"], secret="whsec_" + "d29ybGQ=" * 4,
    created_at=0, created_by="world",
)  # fmt: skip


class Customer:
    def __init__(self, world: "World", plan: Receiver) -> None:
        self._world = world
        self._sim = world.sim
        self._plan = plan
        self.got: dict[str, list[dict[str, Any]]] = defaultdict(list)
        """By the id of the event, each time it came."""

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> Posted:
        await Point(self._world.gateway)
        since, ms = self._plan.down
        if since <= self._sim.now_ms < since + ms:
            raise SafeHttpError("nobody answers")
        if self._sim.rng.random() < self._plan.fails:
            return Posted(500, "out of order")
        self.got[headers["webhook-id"]].append(msgspec.json.decode(content))
        if self._sim.rng.random() < self._plan.forgets:
            raise SafeHttpError("no answer in time")
        return Posted(204, "")

    @property
    def _now_ms(self) -> int:
        return self._sim.time_of(self._world.gateway)

    async def subscribe(self) -> None:
        await self._world.gateway_store.webhooks.save(WEBHOOK)

    def loops(self, gateway: Process) -> list[Coroutine[Request, Any, Any]]:
        store = self._world.store(gateway)
        rng = Random(self._sim.rng.getrandbits(64))
        poster = Poster(store, Telling(store), self, VirtualClock(self._sim, gateway), rng)
        return [self._feed(Feeder(store)), *[self._step(poster.step, "deliveries") for _ in range(POSTERS)]]

    async def _feed(self, feeder: Feeder) -> None:
        while True:
            try:
                again = await feeder.step(self._now_ms)
            except Unavailable:
                again = self._sim.now_ms
            if feeder.added:
                self._sim.notify("deliveries")
            if again is None:
                await Pause(self._sim.now_ms + HOUR_MS, "events")
            await Pause(self._sim.now_ms + GATHER_MS)

    async def _step(self, step: Callable[[int], Awaitable[int | None]], key: str) -> None:
        while True:
            try:
                again = await step(self._now_ms)
            except Unavailable:
                again = self._now_ms + 500
            wait_ms = HOUR_MS if again is None else again - self._now_ms
            await Pause(self._sim.now_ms + wait_ms, key)

    def has_all(self) -> bool:
        """Nothing is on its way any more."""
        waiting, posting, cursor, newest = self._world.redis.read(
            ("ZCARD", keys.webhook_outbox(WEBHOOK.webhook_id)),
            ("ZCARD", keys.webhook_busy(WEBHOOK.webhook_id)),
            ("HGET", keys.webhook(WEBHOOK.webhook_id), "cursor"),
            ("XREVRANGE", keys.events(), "+", "-", "COUNT", 1),
        )
        return not waiting and not posting and (not newest or cursor == newest[0][0])
