"""SEND_MODE=api in the World: the dispatcher's posts to the orchestrator, without HTTP.

A post may find nobody, may be carried out and lose its answer, or may arrive long after its sender has given up.
"""

from collections.abc import Sequence

import msgspec

from paceline.dispatcher.handing import Post
from paceline.domain.errors import RequestError, Unavailable
from paceline.orchestrator.enqueue import Enqueue, EnqueueBody
from paceline.testing.sim import Sim
from paceline.testing.steps import Pause, Point, Process, ProcessDied

TIMEOUT_MS = 5_000
LATEST_MS = 150_000
"""So long a post may be under way: over the end of its hand-over, so that it comes when it must not count."""


class SimOutbox:
    def __init__(self, sim: Sim, dispatcher: Process, server: Process, enqueue: Enqueue) -> None:
        self._sim = sim
        self._dispatcher = dispatcher
        self._server = server
        self._enqueue = enqueue

    async def enqueue_many(self, posts: Sequence[Post]) -> list[str | None]:
        return [await self._post(post) for post in posts]

    async def _post(self, post: Post) -> str | None:
        await Point(self._dispatcher)
        if not self._server.up or self._server.frozen_until_ms > self._sim.now_ms:
            return "ConnectError"
        if self._sim.chance(self._sim.faults.lose_reply * 2):
            self._sim.start(self._server, self._arrive_late(post))
            await Pause(self._sim.now_ms + TIMEOUT_MS)
            return "TimeoutError"
        try:
            await self._carry_out(post)
            await Point(self._server)
        except RequestError as error:
            return f"{error.status} {error.code}"
        except (ProcessDied, Unavailable):
            return "ReadError"
        return "ReadTimeout" if self._sim.chance(self._sim.faults.lose_reply) else None

    async def _arrive_late(self, post: Post) -> None:
        await Pause(self._sim.now_ms + self._sim.rng.randrange(LATEST_MS))
        try:
            await self._carry_out(post)
        except (RequestError, Unavailable, ProcessDied):
            return

    async def _carry_out(self, post: Post) -> None:
        body = msgspec.convert(post.body, EnqueueBody)
        await self._enqueue.enqueue(post.session, body, by="dispatcher", now_ms=self._sim.time_of(self._server))
