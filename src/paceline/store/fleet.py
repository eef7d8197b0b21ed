"""What is wanted of each session's worker, and what it holds while it runs: a place on its phone, a proxy, a profile.

`begin_start` takes, `release` and `finish_removal` give back; each is one script, so no limit can be broken by two who
ask at once, and nothing is given back twice. Neighbours: `inventory` fills the pools, `sessions` knows the rows.
"""

from typing import Literal

import msgspec

from paceline.policy.proxy_health import CHECKER
from paceline.store.caller import Answer
from paceline.store.wishes import Wishes
from paceline.store.workers import WorkerRows


class AllocationLimits(msgspec.Struct, frozen=True):
    """How many sessions with a worker share one proxy, and one phone. WhatsApp links at most four devices."""

    per_proxy: int = 4
    per_phone: int = 4


class Begun(Answer, frozen=True):
    """OK, AGAIN, STALE, NOT_WANTED, NO_PROXY or PHONE_FULL; see begin_start.lua."""

    proxy: str = ""
    """The URL with its credentials, for the worker alone; empty: it goes out directly, as was asked for."""
    proxy_id: str = ""
    profile: str = ""


class Released(Answer, frozen=True):
    released: bool = False
    """Whether it held anything; a repeat finds nothing."""


class Removal(Answer, frozen=True):
    tasks: int = 0
    """BUSY: so many messages its worker held have not ended yet."""


class Marked(Answer, frozen=True):
    changed: bool = False
    moved: list[str] = []
    """Sessions that want a new worker because of it."""
    kept: list[str] = []
    """Sessions of banned phones: they stay where they are."""


class FleetStore(WorkerRows, Wishes):
    # Places on phones and proxies

    async def begin_start(
        self,
        session: str,
        *,
        generation: int,
        instance: str,
        limits: AllocationLimits,
        now_ms: int,
        after: str | None = None,
    ) -> Begun:
        """Everything a worker needs before it may start, or a reason why not. Only when no older worker of it runs.
        With `after`, only while that is the instance wanted so far: of two who decided on the same facts one begins."""
        return await self._caller.call(
            "begin_start", Begun, session=session, generation=generation, instance=instance,
            perProxy=limits.per_proxy, perPhone=limits.per_phone, after=after, now=now_ms,
        )  # fmt: skip

    async def release(
        self,
        session: str,
        *,
        now_ms: int,
        instance: str | None = None,
        generation: int | None = None,
        reason: str = "STOPPED",
    ) -> Released:
        """The worker is gone for good. With `instance` (or `generation`) only if it is still the wanted one: STALE."""
        return await self._caller.call(
            "release_session", Released, session=session, instance=instance, generation=generation, reason=reason,
            now=now_ms,
        )  # fmt: skip

    async def finish_removal(self, session: str, *, now_ms: int) -> Removal:
        """OK | GONE | NOT_REMOVING | BUSY: call it again at the next tick, the sweeper ends what is left."""
        return await self._caller.call("finish_removal", Removal, session=session, now=now_ms)

    async def mark_proxy(
        self, proxy_id: str, state: Literal["OK", "BAD"], *, reason: str, by: str, now_ms: int
    ) -> Marked:
        """OK | UNKNOWN_PROXY. Bad moves each session that holds it, once. `reason` must hold no credentials."""
        return await self._caller.call(
            "mark_proxy", Marked, proxy=proxy_id, state=state, reason=reason, by=by, check=by == CHECKER or None,
            now=now_ms,
        )  # fmt: skip
