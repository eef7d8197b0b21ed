"""Telling an outside observer (SESSION_BRAIN_URL) what went wrong. Best effort: it never holds anybody up.

`tell` only puts an event aside; a task of its own posts them, one after the other, one try each. An observer that is
slow or away loses events, the oldest first, and nothing else happens.
"""

import asyncio
from collections import deque
from typing import Any, Protocol

import httpx
import structlog

from paceline.kits.logging import redact

log = structlog.stdlib.get_logger(__name__)

WAITING_LIMIT = 1_000
"""Events kept for an observer that does not keep up; a few hundred bytes each."""
TIMEOUT_S = 2.0
"""For the whole post. Who needs longer gets the next one."""


class BrainPort(Protocol):
    def tell(self, event: str, fields: dict[str, Any]) -> None: ...


class NoBrain:
    """Nobody listens."""

    def tell(self, event: str, fields: dict[str, Any]) -> None:
        pass


class Brain:
    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError("must start with http:// or https://")
        self._url = f"{url.rstrip('/')}/event"
        self._client = client
        self._waiting: deque[dict[str, Any]] = deque()
        self._there = asyncio.Event()
        self._away = False
        self.told = 0
        self.failed = 0
        self.dropped = 0

    def tell(self, event: str, fields: dict[str, Any]) -> None:
        """`fields` hold `at` (Unix milliseconds) and what the event is about: ids and codes, no texts."""
        if len(self._waiting) >= WAITING_LIMIT:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append({"event": event, **fields})
        self._there.set()

    async def run(self) -> None:
        """For ever; to be run as a supervised task."""
        while True:
            await self._there.wait()
            self._there.clear()
            while self._waiting:
                await self._post(self._waiting.popleft())

    async def _post(self, event: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                # The same nets as for the log: whatever a caller put in by mistake does not leave the house.
                answer = await self._client.post(self._url, json=redact(event), follow_redirects=False)
            problem = None if answer.is_success else str(answer.status_code)
        except Exception as error:
            # Whatever it is, an observer's trouble is not ours. Without the error's words: they may hold the address.
            problem = type(error).__name__
        self._note(problem)

    def _note(self, problem: str | None) -> None:
        """Told once when it begins and once when it is over, not for every event."""
        if problem is None:
            self.told += 1
            if self._away:
                log.info("the session brain takes events again", failed=self.failed, dropped=self.dropped)
        else:
            self.failed += 1
            if not self._away:
                log.warning("the session brain takes no events", reason=problem)
        self._away = problem is not None


def new_client() -> httpx.AsyncClient:
    """A client for `Brain`: no proxy from the environment, which is there for other ways."""
    return httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False)
