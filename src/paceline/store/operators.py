"""What operators and SmartGuard decide about numbers and the fleet, and what they look at first.

Neighbours: `pacers` serves the loops; here is what changes the terms they work under. Each decision is one script that
writes its own incident, so nothing changes without a trace and nothing is traced twice.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from paceline.policy.facts import PhoneFacts
from paceline.store import keys
from paceline.store.caller import Answer, Caller
from paceline.store.rows import Row, facts_of

CANCEL_BATCH = 500
"""Tasks one script call ends: a few milliseconds, so that nobody else has to wait for a long queue."""
LOOK_PAGE = 1_000
WATCH_PAGE = 200
"""Phones with all their facts in one call; a fast one alone may have hundreds of past sends."""
INCIDENTS_KEPT = 200
JOB_EVENTS_KEPT = 2_000
MINUTE_MS = 60_000


class FleetState(Answer, frozen=True):
    changed: bool = False
    stopped: bool = False
    paused: bool = False
    reason: str | None = None
    since: int | None = None


class Changed(Answer, frozen=True):
    """What became of a decision about one number."""

    changed: bool = False
    phone: str = ""
    waiting: int = 0
    min_delay_ms: int | None = None
    max_delay_ms: int | None = None


class CanceledQueue(Answer, frozen=True):
    canceled: int = 0
    failed: int = 0
    up_to: int | None = None
    more: bool = False
    open: int = 0
    cursor: str = "0"


class WatchedPhone(msgspec.Struct, frozen=True, rename="camel", kw_only=True, dict=True):
    row: Row
    queued: tuple[int, int, int]
    parked: int = 0
    wait_reason: str | None = None
    wait_until: int | None = None
    parked_reason: str | None = None
    parked_until: int | None = None

    @cached_property
    def facts(self) -> PhoneFacts:
        return facts_of(self.row)

    @property
    def queue_len(self) -> int:
        return sum(self.queued)


class WatchedPhones(Answer, frozen=True):
    phones: list[WatchedPhone] = []


class LastMinute(msgspec.Struct, frozen=True):
    sent: int
    routed: int
    failed: int


class GuardStatus(msgspec.Struct, frozen=True):
    enabled: bool
    last_tick: int | None
    last_action_at: int | None


class Tick(Answer, frozen=True):
    next_at: int | None = None


class _Parked(Answer, frozen=True):
    parked: int = 0
    phones: int = 0


class _More(Answer, frozen=True):
    more: bool = False


class Operators:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    # The fleet

    async def fleet(self) -> FleetState:
        names = ("stopped", "paused", "pausedReason", "pausedAt")
        stopped, paused, reason, since = await self._caller.read_one("HMGET", keys.fleet(), *names)
        return FleetState("OK", False, stopped == "1", paused == "1", reason, None if since is None else int(since))

    async def stop(self, stopped: bool, *, by: str, now_ms: int) -> FleetState:
        return await self._caller.call("stop_fleet", FleetState, stopped=stopped, by=by, now=now_ms)

    async def pause(self, paused: bool, *, by: str, now_ms: int) -> FleetState:
        return await self._caller.call("pause_fleet", FleetState, paused=paused, by=by, now=now_ms)

    async def look_at_all(self, *, now_ms: int) -> None:
        """Every phone with work is looked at now, not when it would have been. Phones that wait again meanwhile are not
        called back for ever: as many pages as there were at the beginning, and one."""
        waiting = int(await self._caller.read_one("ZCARD", keys.due()))
        for _ in range(waiting // LOOK_PAGE + 2):
            if not (await self._caller.call("look_at_all", _More, now=now_ms, limit=LOOK_PAGE)).more:
                return

    async def parked(self) -> int:
        """How many tasks are parked, over all phones."""
        total = offset = 0
        while True:
            answer = await self._caller.call("count_parked", _Parked, offset=offset, limit=LOOK_PAGE)
            total, offset = total + answer.parked, offset + answer.phones
            if answer.phones < LOOK_PAGE:
                return total

    async def incidents(self) -> list[dict[str, Any]]:
        """The newest first."""
        raw = await self._caller.read_one("LRANGE", keys.incidents(), 0, INCIDENTS_KEPT - 1)
        return [msgspec.json.decode(line) for line in raw]

    async def job_events(self) -> list[dict[str, Any]]:
        raw = await self._caller.read_one("LRANGE", keys.job_events(), 0, JOB_EVENTS_KEPT - 1)
        return [msgspec.json.decode(line) for line in raw]

    # Looking at numbers

    async def phone_of(self, session: str) -> str | None:
        """Membership first: a made-up id could name a key of another kind."""
        if not await self._caller.read_one("SISMEMBER", keys.sessions(), session):
            return None
        phone: str | None = await self._caller.read_one("HGET", keys.session(session), "phone")
        return phone

    async def phones(self, offset: int, limit: int) -> list[str]:
        """Numbers in the order of their registration."""
        found: list[str] = await self._caller.read_one("ZRANGE", keys.phones(), offset, offset + limit - 1)
        return found

    async def watch(self, phones: Sequence[str]) -> list[WatchedPhone]:
        found: list[WatchedPhone] = []
        for start in range(0, len(phones), WATCH_PAGE):
            page = phones[start : start + WATCH_PAGE]
            found += (await self._caller.call("watch_phones", WatchedPhones, phones=page)).phones
        return found

    async def last_minute(self, sessions: Sequence[tuple[str, str]], *, now_ms: int) -> list[LastMinute]:
        """Of sessions and their phones."""
        answer = await self._caller.rows("last_minute", sessions=sessions, now=now_ms)
        return [LastMinute(*row) for row in answer]

    # Decisions about one number

    async def set_pacer(
        self, session: str, *, set_: dict[str, int], remove: Sequence[str], by: str, now_ms: int
    ) -> Changed:
        given = {"set": set_, "remove": remove, "by": by, "now": now_ms}
        return await self._caller.call("set_pacer", Changed, session=session, **given)

    async def set_rpm(self, session: str, rpm: int | None, *, exceeds_trust: bool, by: str, now_ms: int) -> Changed:
        return await self._caller.call(
            "set_rpm", Changed, session=session, rpm=rpm, exceedsTrust=exceeds_trust, by=by, now=now_ms
        )

    async def clear_cooldown(self, session: str, *, by: str, now_ms: int) -> Changed:
        return await self._caller.call("clear_cooldown", Changed, session=session, by=by, now=now_ms)

    async def requeue(self, session: str, *, liveness_ms: int, by: str, now_ms: int) -> Changed:
        return await self._caller.call(
            "requeue_phone", Changed, session=session, liveness=liveness_ms, by=by, now=now_ms
        )

    async def cancel_queue(self, session: str, phone: str, *, by: str, now_ms: int) -> CanceledQueue:
        """Ends all that waits for the phone, in batches. Retries come first: one that is released meanwhile is found in
        the queue, while the other way round it could slip through."""
        done = CanceledQueue("OK")
        scanned = False
        while not scanned:
            answer = await self._caller.call(
                "cancel_retries", CanceledQueue, phone=phone, cursor=done.cursor, limit=CANCEL_BATCH, now=now_ms
            )
            scanned = answer.cursor == "0"
            done = msgspec.structs.replace(
                answer, canceled=done.canceled + answer.canceled, failed=done.failed + answer.failed, more=True
            )
        while done.more:
            done = await self._caller.call(
                "cancel_queue", CanceledQueue, phone=phone, session=session, by=by, limit=CANCEL_BATCH,
                upTo=done.up_to, canceled=done.canceled, failed=done.failed, now=now_ms,
            )  # fmt: skip
        return done

    # SmartGuard

    async def guard_status(self, *, setting: bool) -> GuardStatus:
        enabled, tick, action = await self._caller.read_one(
            "MGET", keys.smartguard_enabled(), keys.smartguard_tick(), keys.smartguard_action()
        )
        at = [None if value is None else int(value) for value in (tick, action)]
        return GuardStatus(setting if enabled is None else enabled == "1", *at)

    async def toggle_guard(self, enabled: bool, *, setting: bool, by: str, now_ms: int) -> bool:
        """Whether that changed something."""
        given = {"enabled": enabled, "setting": setting, "by": by, "now": now_ms}
        return (await self._caller.call("toggle_guard", Changed, **given)).changed

    async def guard_tick(self, *, tick_ms: int, setting: bool, now_ms: int) -> Tick:
        return await self._caller.call("guard_tick", Tick, tick=tick_ms, setting=setting, now=now_ms)

    async def guard_change(self, seen: PhoneFacts, rpm: int | None, reason: str, *, setting: bool, now_ms: int) -> str:
        """`seen` are the facts that the change was decided on."""
        was = {"source": seen.rpm_source, "changedAt": seen.rpm_changed_at}
        was |= {} if seen.rpm_override is None else {"rpm": seen.rpm_override}
        answer = await self._caller.call(
            "guard_change", Answer, phone=seen.phone, seen=was, rpm=rpm, reason=reason, setting=setting, now=now_ms
        )
        return answer.code
