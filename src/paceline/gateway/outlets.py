"""The ways events leave the gateway, put together: webhooks with their feeder and posters, and live streams."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from paceline.domain.errors import Unavailable
from paceline.gateway.deliveries import POSTERS, Feeder, Poster
from paceline.gateway.live import Live, Tide
from paceline.gateway.measures import Measures
from paceline.gateway.telling import Telling
from paceline.gateway.webhooks import WebhookDesk
from paceline.kits.clock import Clock
from paceline.kits.safe_http import SafeHttp
from paceline.kits.stepping import Bell, Step, keep_stepping
from paceline.kits.tasks import Loop, Supervisor
from paceline.store.store import Store

if TYPE_CHECKING:
    from random import Random

SPARE_IDLE_MS = 60_000
"""Posters that are only needed when there is much to do are woken for it."""


@dataclass(frozen=True)
class Outlets:
    desk: WebhookDesk
    live: Live
    feeder: Feeder
    poster: Poster
    tide: Tide
    bell: Bell = field(default_factory=Bell)

    @classmethod
    def of(
        cls,
        store: Store,
        clock: Clock,
        rng: "Random",
        *,
        new_id: Callable[[int], str],
        http: SafeHttp | None = None,
        streams: int = 100,
        measures: Measures | None = None,
    ) -> "Outlets":
        http, telling, tide = http or SafeHttp(), Telling(store), Tide(store)
        return cls(
            WebhookDesk(store, http, new_id=new_id),
            Live(store, telling, tide, clock, limit=streams),
            Feeder(store),
            Poster(store, telling, http, clock, rng, measures=measures),
            tide,
        )

    def start(self, tasks: Supervisor, clock: Clock, *, idle_ms: int) -> None:
        """The tide wakes the feeder, the feeder wakes the posters. Retries come due by the clock: one poster looks for
        them, and each that finds something wakes the next."""

        def loop(step: Step, topic: str, idle_ms: int = idle_ms) -> Loop:
            event = self.bell.listener(topic)
            return lambda: keep_stepping(step, clock, event, idle_ms=idle_ms, expected=Unavailable)

        tasks.start("event-tide", loop(self._turn, "tide"))
        tasks.start("webhook-feeder", loop(self._feed, "events"))
        for number in range(1, POSTERS + 1):
            longest_ms = idle_ms if number == 1 else SPARE_IDLE_MS
            tasks.start(f"webhook-poster-{number}", loop(self._posting(number), f"poster-{number}", longest_ms))

    async def _turn(self, now_ms: int) -> int | None:
        again = await self.tide.step(now_ms)
        self.bell.ring("events")
        return again

    async def _feed(self, now_ms: int) -> int | None:
        again = await self.feeder.step(now_ms)
        if self.feeder.added:
            # All of them: which are free, nobody knows.
            for number in range(1, POSTERS + 1):
                self.bell.ring(f"poster-{number}")
        return again

    def _posting(self, number: int) -> Step:
        return lambda now_ms: self.poster.step(now_ms, lambda: self.bell.ring(f"poster-{number + 1}"))
