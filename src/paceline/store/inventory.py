"""The pools of proxies and profiles: filling, looking, taking out. Who gets what of them is `fleet`'s matter."""

from collections.abc import Sequence
from typing import Any

import msgspec

from paceline.domain.profiles import Profile
from paceline.store import keys
from paceline.store.caller import Answer, Caller, scored
from paceline.store.jobs import _pairs


class Added(Answer, frozen=True):
    added: int = 0
    duplicates: int = 0
    refused: list[int] = []
    """Positions for which the pool has no room."""


class Dropped(Answer, frozen=True):
    sessions: list[str] = []
    """IN_USE: who has it."""


class LowPool(msgspec.Struct, frozen=True):
    what: str
    level: str


class Watched(Answer, frozen=True):
    told: list[LowPool] = []


class ProxyRow(msgspec.Struct, frozen=True):
    proxy_id: str
    url: str
    """With its credentials: mask it before it goes anywhere."""
    state: str
    about: dict[str, str]
    sessions: list[str]


class ProfileRow(msgspec.Struct, frozen=True):
    profile_id: str
    known: dict[str, str]


class PoolSizes(msgspec.Struct, frozen=True):
    profiles_available: int
    profiles_used: int
    proxies_available: int
    proxies_total: int
    proxies_bad: int


class InventoryStore:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def add_proxies(self, urls: Sequence[str], *, limit: int, by: str, now_ms: int) -> Added:
        return await self._caller.call("add_proxies", Added, urls=urls, limit=limit, by=by, now=now_ms)

    async def add_profiles(self, profiles: Sequence[Profile], *, limit: int, by: str, now_ms: int) -> Added:
        rows = [_row_of(profile) for profile in profiles]
        return await self._caller.call("add_profiles", Added, profiles=rows, limit=limit, by=by, now=now_ms)

    async def drop_proxy(self, proxy_id: str, *, by: str, now_ms: int) -> Dropped:
        """OK | UNKNOWN_PROXY | IN_USE."""
        return await self._caller.call("drop_proxy", Dropped, proxy=proxy_id, by=by, now=now_ms)

    async def drop_profile(self, profile_id: str, *, by: str, now_ms: int) -> Dropped:
        """OK | UNKNOWN_PROFILE | IN_USE."""
        return await self._caller.call("drop_profile", Dropped, profile=profile_id, by=by, now=now_ms)

    async def watch(self, *, low: int, per_proxy: int, now_ms: int) -> Watched:
        """INVENTORY_LOW once at few and once at none, until there is enough again."""
        return await self._caller.call("watch_inventory", Watched, low=low, perProxy=per_proxy, now=now_ms)

    async def sizes(self) -> PoolSizes:
        pools = (
            keys.profiles_available, keys.profiles_used, keys.proxies_available, keys.proxies, keys.proxies_bad,
        )  # fmt: skip
        return PoolSizes(*await self._caller.read(*[("SCARD", pool()) for pool in pools]))

    async def proxies(self, after: int, limit: int) -> tuple[list[ProxyRow], int | None]:
        """Proxies in the order of their upload, behind a given number; the number to go on from."""
        found = await self._numbered(keys.proxies_numbers(), after, limit)
        rows = await self._proxy_rows([(url, number) for url, number in found[:limit]])
        return rows, found[limit - 1][1] if len(found) > limit else None

    async def proxy(self, proxy_id: str) -> ProxyRow | None:
        """`proxy_id` has the shape of one (`domain.proxies.is_proxy_id`)."""
        number = int(proxy_id[1:])
        found = await self._caller.read_one("ZRANGEBYSCORE", keys.proxies_numbers(), number, number)
        return (await self._proxy_rows([(found[0], number)]))[0] if found else None

    async def profiles(self, after: int, limit: int) -> tuple[list[ProfileRow], int | None]:
        found = await self._numbered(keys.profiles_numbers(), after, limit)
        ids = [profile_id for profile_id, _ in found[:limit]]
        known = await self._caller.read(*[("HGETALL", keys.profile(profile_id)) for profile_id in ids]) if ids else []
        # One that was taken out meanwhile is left out.
        rows = [ProfileRow(id_, pairs) for id_, row in zip(ids, known, strict=True) if (pairs := _pairs(row))]
        return rows, found[limit - 1][1] if len(found) > limit else None

    async def _numbered(self, key: str, after: int, limit: int) -> list[tuple[str, int]]:
        command = ("ZRANGEBYSCORE", key, f"({after}", "+inf", "WITHSCORES", "LIMIT", 0, limit + 1)
        return scored(await self._caller.read_one(*command))

    async def _proxy_rows(self, found: list[tuple[str, int]]) -> list[ProxyRow]:
        if not found:
            return []
        reads = [
            command
            for url, _ in found
            for command in (
                ("GET", keys.proxy_status(url)),
                ("HGETALL", keys.proxy_about(url)),
                ("SMEMBERS", keys.proxy_sessions(url)),
            )
        ]
        answers = await self._caller.read(*reads)
        return [
            ProxyRow(f"p{number}", url, state or "OK", _pairs(about), sorted(sessions))
            for (url, number), state, about, sessions in zip(
                found, answers[::3], answers[1::3], answers[2::3], strict=True
            )
        ]


def _row_of(profile: Profile) -> dict[str, Any]:
    """Tags as JSON, as a session keeps them; Lua would write an empty list as an object."""
    row: dict[str, Any] = {
        name: value for name, value in msgspec.to_builtins(profile).items() if value is not None and name != "tags"
    }
    if profile.tags is not None:
        row["tags"] = msgspec.json.encode(profile.tags).decode()
    return row
