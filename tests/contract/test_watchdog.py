"""The watchdog on a real Redis: quiet workers get a successor, once; who is away is told, once; others are left
alone."""

from collections.abc import Iterable
from typing import Any

import pytest

from paceline.orchestrator.runners.base import RunnerAway, Seen, Usage
from paceline.orchestrator.watchdog import Watchdog
from paceline.policy.watchdog import WatchRules
from paceline.store.fleet import AllocationLimits

from .platform import INSTANCE, SESSION, Platform

TICK_MS = 30_000
RULES = WatchRules()


class FakeRunner:
    """Runs everything, and measures what it is told."""

    def __init__(self) -> None:
        self.is_ours = True
        self.is_away = False
        self.used: dict[str, Usage] = {}

    def runs(self, driver: str) -> bool:
        return self.is_ours

    async def observe(self) -> list[Seen]:
        if self.is_away:
            raise RunnerAway("away")
        return [Seen(session, INSTANCE, 1, "running", session) for session in self.used]

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        return {session: self.used[session] for session in handles}

    async def start(self, spec: Any) -> None: ...
    async def stop(self, handle: str, grace_ms: int) -> None: ...
    async def remove(self, handle: str) -> None: ...
    async def close(self) -> None: ...

    async def logs(self, session_id: str, lines: int) -> list[str]:
        return []


class Stage:
    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.runner = FakeRunner()
        self.dog = Watchdog(platform.store, self.runner, RULES, holder="one", interval_ms=TICK_MS)

    async def begin(self) -> None:
        """A worker that was begun, greeted and connected, and a watchdog that has had its first look."""
        await self.platform.register()
        await self.platform.store.fleet.begin_start(
            SESSION, generation=1, instance=INSTANCE, limits=AllocationLimits(), now_ms=self.platform.clock.at_ms
        )
        await self.platform.hello()
        await self.platform.webhook("CONNECTED")
        await self.platform.claim()
        await self.dog.step(self.platform.clock.at_ms)

    async def tick(self, times: int = 1, *, pings: dict[str, Any] | None = None, claims: bool = False) -> None:
        for _ in range(times):
            self.platform.clock.forward(TICK_MS)
            if pings is not None:
                await self.platform.webhook("PING", pings)
            if claims:
                await self.platform.claim()
            await self.dog.step(self.platform.clock.at_ms)

    async def session(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.platform.orchestrator.get(f"/api/sessions/{SESSION}")).json()
        return found

    async def wished(self) -> tuple[int, str | None]:
        session = await self.session()
        return session["generation"], session["restartReason"]

    async def incidents(self) -> list[str]:
        found = (await self.platform.dispatcher.get("/incidents")).json()["items"]
        return [one["kind"] for one in reversed(found) if one["kind"].startswith("SESSION_")]


@pytest.fixture
async def stage(platform: Platform) -> Stage:
    ready = Stage(platform)
    await ready.begin()
    return ready


async def test_a_worker_that_works_is_left_alone(stage: Stage) -> None:
    await stage.tick(20, pings={"quietMs": 12_000}, claims=True)
    assert await stage.wished() == (1, None)
    assert (await stage.session())["heardAt"] == stage.platform.clock.at_ms - 12_000


async def test_a_silent_worker_gets_one_successor(stage: Stage) -> None:
    await stage.tick(2)
    assert await stage.wished() == (1, None)
    await stage.tick(5)
    assert await stage.wished() == (2, "SILENT")


async def test_a_worker_that_pings_but_asks_for_no_work_gets_one(stage: Stage) -> None:
    await stage.tick(4, pings={"quietMs": 0})
    assert await stage.wished() == (1, None)
    await stage.tick(3, pings={"quietMs": 0})
    assert await stage.wished() == (2, "STUCK")


async def test_a_deaf_worker_that_pings_and_asks_gets_one(stage: Stage) -> None:
    for tick in range(1, 10):
        await stage.tick(pings={"quietMs": tick * TICK_MS}, claims=(await stage.wished())[0] == 1)
        assert await stage.wished() == ((2, "DEAF") if tick > 6 else (1, None))


async def test_a_receipt_is_a_sign_of_hearing(stage: Stage) -> None:
    await stage.tick(pings={"quietMs": 0}, claims=True)
    for _ in range(10):
        await stage.platform.webhook("MESSAGE_RECEIVED", {"from": "972529876543", "whatsappId": "x", "text": "hi"})
        await stage.tick(claims=True)
    assert await stage.wished() == (1, None)


async def test_after_an_outage_of_the_orchestrator_nobody_is_blamed(stage: Stage) -> None:
    stage.platform.clock.forward(600_000)
    await stage.dog.step(stage.platform.clock.at_ms)
    await stage.tick(2)
    assert await stage.wished() == (1, None)
    await stage.tick(1)
    assert await stage.wished() == (2, "SILENT")


async def test_after_an_outage_of_the_store_nobody_is_blamed(stage: Stage) -> None:
    """Redis was away for a minute and a bit, so two looks failed and no ping was taken: all workers were replaced."""
    await stage.tick(pings={}, claims=True)
    stage.platform.clock.forward(75_000)
    await stage.dog.step(stage.platform.clock.at_ms)
    assert await stage.wished() == (1, None)


@pytest.mark.parametrize("why", ["banned", "stopped", "somebody else's"])
async def test_who_is_not_to_run_is_not_restarted(stage: Stage, why: str) -> None:
    if why == "banned":
        await stage.platform.webhook("DISCONNECTED", {"code": 403})
    elif why == "stopped":
        await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/stop")
    else:
        stage.runner.is_ours = False
    before = await stage.wished()
    await stage.tick(20)
    assert await stage.wished() == before


async def test_two_watchdogs_are_one(stage: Stage) -> None:
    other = Watchdog(stage.platform.store, stage.runner, RULES, holder="two", interval_ms=TICK_MS)
    for _ in range(4):
        stage.platform.clock.forward(TICK_MS)
        await stage.dog.step(stage.platform.clock.at_ms)
        await other.step(stage.platform.clock.at_ms)
    assert await stage.wished() == (2, "SILENT")


async def test_who_is_away_is_told_once_and_who_is_back_too(stage: Stage) -> None:
    await stage.platform.webhook("DISCONNECTED", {"code": 408})
    await stage.tick(3, pings={})
    assert "SESSION_DOWN" not in await stage.incidents()
    await stage.tick(4, pings={})
    assert await stage.incidents() == ["SESSION_DOWN"]
    await stage.platform.webhook("CONNECTED")
    await stage.tick(4, pings={}, claims=True)
    assert await stage.incidents() == ["SESSION_DOWN", "SESSION_UP"]


@pytest.mark.parametrize("end", ["stopped", "banned", "failed"])
async def test_whoever_has_ended_meanwhile_is_not_called_up_again_before_it_is(stage: Stage, end: str) -> None:
    """Down, then given up or banned: the next alert was "is up again"."""
    await stage.platform.webhook("DISCONNECTED", {"code": 408})
    await stage.tick(6, pings={})
    if end == "stopped":
        await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/stop")
    else:
        await stage.platform.webhook("DISCONNECTED", {"code": 403 if end == "banned" else 405})
    await stage.tick(4, pings={})
    assert "SESSION_UP" not in await stage.incidents()


async def test_the_return_of_one_that_failed_is_told(stage: Stage) -> None:
    await stage.platform.webhook("DISCONNECTED", {"code": 405})
    await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/start")
    await stage.platform.store.fleet.begin_start(
        SESSION, generation=2, instance="i2", limits=AllocationLimits(), now_ms=stage.platform.clock.at_ms
    )
    await stage.platform.hello(instance="i2")
    await stage.platform.webhook("CONNECTED", {"epoch": 2})
    await stage.tick()
    assert await stage.incidents() == ["SESSION_FAILED", "SESSION_UP"]


async def test_one_that_failed_and_does_not_come_back_when_it_is_started_is_down(stage: Stage) -> None:
    await stage.platform.webhook("DISCONNECTED", {"code": 405})
    await stage.tick(10)
    await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/start")
    await stage.tick(5)
    assert await stage.incidents() == ["SESSION_FAILED", "SESSION_DOWN"]


async def test_one_that_an_operator_starts_in_vain_is_down_again(stage: Stage) -> None:
    await stage.platform.webhook("DISCONNECTED", {"code": 408})
    await stage.tick(5, pings={})
    for what in ("stop", "start"):
        await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/{what}")
        await stage.tick(5)
    assert await stage.incidents() == ["SESSION_DOWN", "SESSION_DOWN"]


async def test_one_that_was_stopped_for_long_is_not_down_the_moment_it_starts(stage: Stage) -> None:
    """It counted from the stop: a look between its start and its connection raised an alarm."""
    await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/stop")
    await stage.tick(20)
    await stage.platform.orchestrator.post(f"/api/sessions/{SESSION}/start")
    await stage.tick(3)
    assert await stage.incidents() == []
    await stage.tick(2)
    assert await stage.incidents() == ["SESSION_DOWN"]


async def test_what_workers_take_is_known(stage: Stage) -> None:
    stage.runner.used = {SESSION: Usage(50_000_000, 1.5), "gone": Usage(1, 1)}
    await stage.tick(pings={}, claims=True)
    session = await stage.session()
    assert (session["memoryBytes"], session["cpuMs"]) == (50_000_000, 1_500)
    stage.runner.is_away = True
    await stage.tick(pings={}, claims=True)
    assert (await stage.session())["memoryBytes"] == 50_000_000
    assert (await stage.platform.orchestrator.get("/api/sessions/gone")).status_code == 404
