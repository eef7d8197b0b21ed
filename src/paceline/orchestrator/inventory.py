"""Proxies and profiles as operators see them: uploads, lists, marks, and the watch over how much is left.

Neighbours: `uploading` takes a file apart, `domain.proxies` and `domain.profiles` read a line, `routes_inventory` is
the HTTP, `store.fleet` gives what is here to sessions.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from paceline.domain.errors import Conflict, NotFound
from paceline.domain.profiles import Profile, is_profile_id, read_profile
from paceline.domain.proxies import Proxy, Refused, is_proxy_id, read_proxy
from paceline.orchestrator.inventory_views import (
    InventoryStatus,
    Marked,
    ProfilePage,
    ProxyPage,
    Rules,
    Uploaded,
    inventory_of,
    profile_view,
    proxy_view,
)
from paceline.orchestrator.uploading import take_lines
from paceline.policy.hours import is_zone
from paceline.store.fleet import AllocationLimits
from paceline.store.inventory import Added
from paceline.store.store import Store

MAX_POOL = 100_000
"""Proxies, and profiles: more than numbers one installation has, and some 100 MB of Redis at the worst."""
SESSIONS_AT_ONCE = 500
WATCH_MS = 2_000
"""How often the pools are looked at, as often as workers are begun."""


@dataclass(frozen=True)
class InventoryRules:
    limits: AllocationLimits = field(default_factory=AllocationLimits)
    low: int = 5


class Inventory:
    def __init__(self, store: Store, rules: InventoryRules) -> None:
        self._store = store
        self._rules = rules

    async def upload_proxies(self, data: bytes, *, by: str, now_ms: int) -> Uploaded:
        async def add(found: Sequence[Proxy]) -> Added:
            urls = [proxy.url for proxy in found]
            return await self._store.inventory.add_proxies(urls, limit=MAX_POOL, by=by, now_ms=now_ms)

        return await take_lines(data, read_proxy, add)

    async def upload_profiles(self, data: bytes, *, by: str, now_ms: int) -> Uploaded:
        def read(line: str) -> Profile | Refused:
            return read_profile(line, is_zone=is_zone, now_ms=now_ms)

        async def add(found: Sequence[Profile]) -> Added:
            return await self._store.inventory.add_profiles(found, limit=MAX_POOL, by=by, now_ms=now_ms)

        return await take_lines(data, read, add)

    async def status(self, *, now_ms: int) -> InventoryStatus:
        sizes = await self._store.inventory.sizes()
        limits = self._rules.limits
        return InventoryStatus(
            inventory=inventory_of(sizes),
            rules=Rules(limits.per_proxy, limits.per_phone),
            sessions=await self._sessions_by_status(now_ms),
        )

    async def proxies(self, cursor: int, limit: int) -> ProxyPage:
        rows, last = await self._store.inventory.proxies(cursor, limit)
        per_proxy = self._rules.limits.per_proxy
        return ProxyPage([proxy_view(row, per_proxy) for row in rows], None if last is None else str(last))

    async def profiles(self, cursor: int, limit: int) -> ProfilePage:
        rows, last = await self._store.inventory.profiles(cursor, limit)
        return ProfilePage([profile_view(row) for row in rows], None if last is None else str(last))

    async def mark(self, proxy: str, state: Literal["OK", "BAD"], *, reason: str, by: str, now_ms: int) -> Marked:
        if not is_proxy_id(proxy):
            raise _unknown_proxy()
        marked = await self._store.fleet.mark_proxy(proxy, state, reason=reason, by=by, now_ms=now_ms)
        row = await self._store.inventory.proxy(proxy)
        if marked.code != "OK" or row is None:
            raise _unknown_proxy()
        return Marked(proxy_view(row, self._rules.limits.per_proxy), marked.changed, marked.moved, marked.kept)

    async def drop_proxy(self, proxy: str, *, by: str, now_ms: int) -> None:
        if not is_proxy_id(proxy):
            raise _unknown_proxy()
        dropped = await self._store.inventory.drop_proxy(proxy, by=by, now_ms=now_ms)
        if dropped.code == "UNKNOWN_PROXY":
            raise _unknown_proxy()
        if dropped.code == "IN_USE":
            message = "sessions hold this proxy; mark it bad to move them"
            raise Conflict("PROXY_IN_USE", message, details={"sessions": dropped.sessions})

    async def drop_profile(self, profile: str, *, by: str, now_ms: int) -> None:
        dropped = (
            await self._store.inventory.drop_profile(profile, by=by, now_ms=now_ms) if is_profile_id(profile) else None
        )
        if dropped is None or dropped.code == "UNKNOWN_PROFILE":
            raise NotFound("UNKNOWN_PROFILE", "there is no such profile", field="profileId")
        if dropped.code == "IN_USE":
            raise Conflict("PROFILE_IN_USE", "a session has this profile", details={"sessions": dropped.sessions})

    async def watch(self, now_ms: int) -> int:
        """One look at both pools; returns when to look again."""
        await self._store.inventory.watch(low=self._rules.low, per_proxy=self._rules.limits.per_proxy, now_ms=now_ms)
        return now_ms + WATCH_MS

    async def _sessions_by_status(self, now_ms: int) -> dict[str, int]:
        counted: Counter[str] = Counter()
        cursor: str | None = ""
        while cursor is not None:
            views, cursor = await self._store.sessions.page(cursor, SESSIONS_AT_ONCE, now_ms=now_ms)
            counted.update(view.status for view in views)
        return dict(sorted(counted.items()))


def _unknown_proxy() -> NotFound:
    return NotFound("UNKNOWN_PROXY", "there is no such proxy", field="proxyId")
