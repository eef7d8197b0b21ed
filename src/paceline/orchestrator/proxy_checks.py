"""Asks every proxy for a real page now and then, and has the burned ones replaced.

A round is one look at the whole pool; `policy.proxy_health` says what follows from it. A proxy that is marked bad
loses its sessions, once, by `store.fleet.mark_proxy`; a banned number's session stays where it is. Errors of libraries
may hold the proxy's address with its password, so nothing of them is kept but their kind.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

import httpx
import structlog

from paceline.kits.clock import monotonic_ms
from paceline.policy.proxy_health import CHECKER, Checked, ProxyRules, judge
from paceline.store.inventory import ProxyRow
from paceline.store.store import Store

log = structlog.stdlib.get_logger(__name__)

LEASE = "proxy-checks"
PAGE = 500
AT_ONCE = 20
"""Requests under way at a time: a pool of a thousand is done in a few minutes even if all of them time out."""
TIMEOUT_S = 10.0
_REFUSED_BY_PROXY = frozenset({407, 502, 503, 504})
"""What a proxy itself answers when it may not, or cannot, reach the other side."""


class Probe(Protocol):
    async def __call__(self, proxy_url: str, target: str) -> str:
        """Why it does not work, in words without credentials; empty: it does."""


async def probe(proxy_url: str, target: str) -> str:
    """One request through it. Whatever the other side answers, the proxy has done its part."""
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(proxy=proxy_url, trust_env=False, timeout=TIMEOUT_S) as client,
            client.stream("GET", target) as answer,
        ):
            is_refused = answer.status_code in _REFUSED_BY_PROXY and target.startswith("http:")
            return f"the proxy answered {answer.status_code}" if is_refused else ""
    except (TimeoutError, httpx.TimeoutException):
        return "no answer in time"
    except httpx.ProxyError:
        return "the proxy refused"
    except Exception as error:
        # Whatever it may be (what speaks no SOCKS makes its library raise an error of its own): one proxy must not end
        # the round of all.
        return f"no connection ({type(error).__name__})"


class ProxyChecks:
    def __init__(
        self,
        store: Store,
        *,
        target: str,
        interval_ms: int,
        holder: str,
        rules: ProxyRules | None = None,
        probe: Probe = probe,
        elapsed_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._store = store
        self._target = target
        self._interval_ms = interval_ms
        self._holder = holder
        self._rules = rules or ProxyRules()
        self._probe = probe
        self._elapsed_ms = elapsed_ms
        self._next_ms = 0

    async def step(self, now_ms: int) -> int:
        """One round over all proxies, if one is due."""
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            ttl_ms = 2 * self._interval_ms
            if await self._store.fleet.hold_lease(LEASE, self._holder, ttl_ms=ttl_ms, now_ms=now_ms):
                await self._round(now_ms)
        return self._next_ms

    async def _round(self, now_ms: int) -> None:
        places = asyncio.Semaphore(AT_ONCE)
        checks: list[Checked] = []
        after: int | None = 0
        while after is not None:
            rows, after = await self._store.inventory.proxies(after, PAGE)
            checks += await asyncio.gather(*(self._checked(row, places) for row in rows))
        found = judge(checks, self._rules)
        await self._store.watch.checks(found.health, now_ms=now_ms)
        if found.is_doubtful:
            failing = sum(bool(one.fault) for one in checks)
            log.error("most proxies fail at once: nothing is concluded", failing=failing, of=len(checks))
        for mark in found.marks:
            marked = await self._store.fleet.mark_proxy(
                mark.proxy_id, mark.state, reason=mark.reason, by=CHECKER, now_ms=now_ms
            )
            log.warning("a proxy is marked", proxy_id=mark.proxy_id, state=mark.state, moved=len(marked.moved))

    async def _checked(self, row: ProxyRow, places: asyncio.Semaphore) -> Checked:
        async with places:
            began_ms = self._elapsed_ms()
            fault = await self._probe(row.url, self._target)
            took_ms = self._elapsed_ms() - began_ms
        return Checked(
            proxy_id=row.proxy_id,
            state=row.state,
            marked_by=row.about.get("by", ""),
            failures=int(row.about.get("failures", 0)),
            successes=int(row.about.get("successes", 0)),
            fault=fault,
            took_ms=took_ms,
        )
