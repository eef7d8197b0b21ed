"""Who is logged in. A browser holds a random cookie; the key it stands for stays in this process's memory.

So a stolen disk or a page's script has no key to take, and a restart logs everybody out. Neighbours: `door` opens and
ends visits, `guarding` finds the one a request belongs to.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from paceline.client import AsyncOperator, Retries, Urls

IDLE_MS = 8 * 3_600_000
"""A working day without looking at any page. A page that is open and in view counts as looked at."""
MOST = 500
"""Far more people than operate a fleet; each holds a few connections. Then the one idle the longest makes room."""
TIMEOUT_SECONDS = 10.0
"""A page that waits longer says so instead, and asks again by itself."""


def ask_with(urls: Urls, key: str) -> AsyncOperator:
    """The three services, asked with one key. Not repeated: whoever looks at a page should see at once what is wrong,
    and the page itself asks again."""
    return AsyncOperator(urls, key, timeout_seconds=TIMEOUT_SECONDS, retries=Retries(tries=1))


Ending = Literal["logout", "key", "idle", "room", "stopped"]
"""By themselves, with their key, after too long, for somebody else, with the dashboard."""


@dataclass(eq=False)
class Visitor:
    """One logged-in browser."""

    api: AsyncOperator
    key_id: str
    key_name: str
    scopes: frozenset[str]
    seen_at_ms: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    ended: Ending | None = None
    """Why, once it has ended; its pages look at this."""

    def may(self, scope: str) -> bool:
        """`admin` includes the others."""
        return bool({scope, "admin"} & self.scopes)


class Visitors:
    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._by_token: dict[str, Visitor] = {}

    async def welcome(self, visitor: Visitor) -> None:
        await self._sweep()
        while len(self._by_token) >= MOST:
            await self.end(min(self._by_token.values(), key=lambda each: each.seen_at_ms), "room")
        self._by_token[visitor.token] = visitor

    def find(self, token: str) -> Visitor | None:
        """None also after too long without a look."""
        visitor = self._by_token.get(token)
        return visitor if visitor is not None and not self._is_idle(visitor) else None

    def seen(self, visitor: Visitor) -> None:
        visitor.seen_at_ms = self._now_ms()

    async def end(self, visitor: Visitor, why: Ending) -> None:
        visitor.ended = visitor.ended or why
        self._by_token.pop(visitor.token, None)
        await visitor.api.close()

    async def end_all(self) -> None:
        for visitor in list(self._by_token.values()):
            await self.end(visitor, "stopped")

    async def _sweep(self) -> None:
        for visitor in [each for each in self._by_token.values() if self._is_idle(each)]:
            await self.end(visitor, "idle")

    def _is_idle(self, visitor: Visitor) -> bool:
        return self._now_ms() - visitor.seen_at_ms > IDLE_MS
