"""Rounds of proxy checks on a real Redis: a burned proxy's sessions move once, a ban moves nothing, it comes back."""

from typing import Any

import pytest

from paceline.orchestrator.proxy_checks import ProxyChecks
from paceline.policy.proxy_health import CHECKER
from paceline.store.fleet import AllocationLimits

from .platform import PHONE, SESSION, Platform

ROUND_MS = 300_000
URLS = [f"http://user{number}:canary-word@proxy{number}.example:8080" for number in range(1, 6)]


class Stage:
    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.broken: set[str] = set()
        self.asked: list[str] = []
        self.checks = ProxyChecks(
            platform.store, target="https://there.example/", interval_ms=ROUND_MS, holder="one", probe=self.probe,
            elapsed_ms=lambda: 0,
        )  # fmt: skip

    async def probe(self, proxy_url: str, target: str) -> str:
        self.asked.append(proxy_url)
        return "no answer in time" if proxy_url in self.broken else ""

    async def rounds(self, number: int) -> None:
        for _ in range(number):
            await self.checks.step(self.platform.clock.at_ms)
            self.platform.clock.forward(ROUND_MS)

    async def proxies(self) -> dict[str, dict[str, Any]]:
        answer = await self.platform.orchestrator.get("/api/proxies")
        assert "canary-word" not in answer.text
        return {one["proxyId"]: one for one in answer.json()["items"]}

    async def session(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.platform.orchestrator.get(f"/api/sessions/{SESSION}")).json()
        return found


@pytest.fixture
async def stage(platform: Platform) -> Stage:
    """Five proxies, and a session that holds the first."""
    ready = Stage(platform)
    now_ms = platform.clock.at_ms
    await platform.store.inventory.add_proxies(URLS, limit=100, by="x", now_ms=now_ms)
    body = {"sessionId": SESSION, "phone": PHONE, "proxy": "p1"}
    assert (await platform.orchestrator.post("/api/sessions", json=body)).status_code == 201
    begun = await platform.store.fleet.begin_start(
        SESSION, generation=1, instance="i1", limits=AllocationLimits(), now_ms=now_ms
    )
    assert begun.proxy == URLS[0]
    return ready


async def test_good_ones_stay_and_their_health_is_shown(stage: Stage) -> None:
    await stage.rounds(5)
    shown = (await stage.proxies())["p1"]
    assert (shown["state"], shown["latencyMs"], shown["checkedAt"]) == ("OK", 0, stage.platform.clock.at_ms - ROUND_MS)
    assert sorted(stage.asked) == sorted(URLS * 5)


async def test_a_burned_one_loses_its_session_once(stage: Stage) -> None:
    stage.broken = {URLS[0]}
    await stage.rounds(2)
    assert (await stage.session())["generation"] == 1
    await stage.rounds(4)
    session, shown = await stage.session(), (await stage.proxies())["p1"]
    assert (session["generation"], session["restartReason"]) == (2, "PROXY_BAD")
    assert (shown["state"], shown["by"], shown["reason"]) == ("BAD", CHECKER, "no answer in time")
    begun = await stage.platform.store.fleet.begin_start(
        SESSION, generation=2, instance="i2", limits=AllocationLimits(), now_ms=stage.platform.clock.at_ms
    )
    assert begun.proxy in URLS[1:]


async def test_a_ban_moves_nothing(stage: Stage) -> None:
    await stage.platform.hello(instance="i1")
    await stage.platform.webhook("DISCONNECTED", {"code": 403})
    stage.broken = {URLS[0]}
    await stage.rounds(5)
    assert ((await stage.proxies())["p1"]["state"], (await stage.session())["generation"]) == ("BAD", 1)


async def test_it_comes_back_but_not_against_a_persons_word(stage: Stage) -> None:
    stage.broken = {URLS[0]}
    await stage.rounds(3)
    await stage.platform.orchestrator.post("/api/proxies/p2/bad", json={"reason": "expensive"})
    stage.broken = set()
    await stage.rounds(2)
    assert {proxy: one["state"] for proxy, one in (await stage.proxies()).items()} == {
        "p1": "OK", "p2": "BAD", "p3": "OK", "p4": "OK", "p5": "OK",
    }  # fmt: skip


async def test_when_all_fail_nothing_moves(stage: Stage) -> None:
    stage.broken = set(URLS)
    await stage.rounds(10)
    assert {one["state"] for one in (await stage.proxies()).values()} == {"OK"}
    assert (await stage.session())["generation"] == 1


async def test_two_orchestrators_ask_once(stage: Stage) -> None:
    other = ProxyChecks(
        stage.platform.store, target="x", interval_ms=ROUND_MS, holder="two", probe=stage.probe, elapsed_ms=lambda: 0
    )
    await stage.checks.step(stage.platform.clock.at_ms)
    await other.step(stage.platform.clock.at_ms)
    assert len(stage.asked) == len(URLS)


async def test_a_person_who_confirms_what_the_checks_found_has_the_last_word(stage: Stage) -> None:
    """The mark stayed the checks' own, so two answers in a row undid what a person had said."""
    stage.broken = {URLS[0]}
    await stage.rounds(3)
    answer = await stage.platform.orchestrator.post("/api/proxies/p1/bad", json={"reason": "cancelled"})
    assert (answer.json()["changed"], answer.json()["moved"]) == (False, [])
    stage.broken = set()
    await stage.rounds(4)
    shown = (await stage.proxies())["p1"]
    assert (shown["state"], shown["reason"], shown["by"] == CHECKER) == ("BAD", "cancelled", False)


async def test_whoever_says_it_is_good_again_starts_the_count_anew(stage: Stage) -> None:
    """Marked ok by a person it was bad again after a single failure."""
    stage.broken = {URLS[0]}
    await stage.rounds(3)
    await stage.platform.orchestrator.post("/api/proxies/p1/ok", json={})
    await stage.rounds(2)
    assert (await stage.proxies())["p1"]["state"] == "OK"
    await stage.rounds(1)
    assert (await stage.proxies())["p1"]["state"] == "BAD"
