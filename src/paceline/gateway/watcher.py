"""Watching the fleet: one picture for all requests, made by one task beside them while there are any.

Reading a large fleet takes a second, so no request should pay for it, and none should believe a picture that nobody has
looked after. One lock: whoever looks holds it, so the fleet is never read twice at once. Neighbours: `picture` is what
is seen, `intake` and the routes ask.
"""

import asyncio

from paceline.domain.errors import Unavailable
from paceline.domain.jobs import Strategy
from paceline.gateway.picture import PICTURE_AGE_MS, SLICE, Breathe, Picture, go_on
from paceline.policy.facts import Rules
from paceline.policy.forecast import ROUTE_AHEAD
from paceline.store.store import Store

KEPT_FOR_MS = 60_000
"""So long after the last request the picture is kept fresh; a gateway nobody asks leaves Redis alone."""
LATE = 2
"""Times as old as it should be: so far a request leaves the looking to the task beside it."""
STALE = 5
"""From here on it is not believed: whoever asks waits for the next."""


class Watcher:
    def __init__(
        self,
        store: Store,
        rules: Rules,
        strategy: Strategy = "sticky",
        ahead: int = ROUTE_AHEAD,
        breathe: Breathe = go_on,
    ) -> None:
        self._store = store
        self._breathe = breathe
        self._rules = rules
        self._strategy: Strategy = strategy
        self._ahead = ahead
        self._picture = Picture((), {}, rules, strategy, ahead)
        self._looked_at_ms = -PICTURE_AGE_MS
        self._asked_at_ms = -KEPT_FOR_MS
        self._is_kept = False
        """A task beside the requests looks after it."""
        self._lock = asyncio.Lock()
        self._begun = self._seen = 0
        """Looks that began, and the last that ended."""
        self._problem: Exception | None = None
        """Why that one saw nothing."""

    async def look(self, now_ms: int, *, fresh: bool = False) -> Picture:
        """The picture. While one looks, the others go on with the one there is, unless it is stale or they want it
        `fresh`: a hundred requests at once must not read the fleet a hundred times."""
        picture = None if fresh else self.at_hand(now_ms)
        if picture is not None:
            return picture
        self._asked_at_ms = now_ms
        await self._look(now_ms, begun=self._begun if fresh or not self._lock.locked() else self._begun - 1)
        return self._picture

    def at_hand(self, now_ms: int) -> Picture | None:
        """The picture, if it is good enough as it is."""
        self._asked_at_ms = now_ms
        age = self._age(now_ms)
        is_late = age >= (LATE if self._is_kept else 1)
        is_usable = self._lock.locked() and age < STALE and self._picture.phones
        return None if is_late and not is_usable else self._picture

    async def step(self, now_ms: int) -> int:
        """Keeps it fresh while there are requests; when to come again."""
        self._is_kept = True
        if now_ms - self._asked_at_ms >= KEPT_FOR_MS:
            return now_ms + PICTURE_AGE_MS
        if self._age(now_ms) >= 1:
            await self._look(now_ms, begun=self._begun)
        return self._looked_at_ms + self._picture.lasts_ms

    def _age(self, now_ms: int) -> float:
        """In times of how long it is good enough. After a step back of the clock it may be of any age."""
        return abs(now_ms - self._looked_at_ms) / self._picture.lasts_ms

    async def _look(self, now_ms: int, *, begun: int) -> None:
        """Unless somebody else did meanwhile, in a look that began after so many others."""
        async with self._lock:
            if self._seen > begun:
                if self._problem is not None:
                    # While the store is away all would try it one after the other.
                    raise Unavailable(str(self._problem)) from self._problem
                return
            self._begun += 1
            try:
                self._picture = await self._read(now_ms)
            except Exception as problem:
                self._problem, self._seen = problem, self._begun
                raise
            self._problem, self._seen, self._looked_at_ms = None, self._begun, now_ms

    async def _read(self, now_ms: int) -> Picture:
        phones = await self._store.pacers.fleet(page=SLICE)
        unrouted = await self._store.rounds.unrouted()
        resting = await self._store.rounds.resting(unrouted)
        picture = Picture(phones, unrouted, self._rules, self._strategy, self._ahead, resting=resting)
        await picture.prepare(self._picture, self._breathe, now_ms=now_ms)
        return picture
