"""The whole fleet over HTTP: start and stop, pause and resume, SmartGuard, incidents and job events."""

from typing import Any

import pytest

from paceline.dispatcher import guard as guard_module

from .platform import FRIEND, NOON, PHONE, SESSION, Platform, refused

TICK = 10_000


async def incidents(platform: Platform, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await platform.dispatcher.get("/incidents", params={"kind": kind})).json()["items"]
    return found


async def post(platform: Platform, path: str, body: Any = None) -> dict[str, Any]:
    answer = await platform.dispatcher.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def fleet(platform: Platform) -> dict[str, Any]:
    found: dict[str, Any] = (await platform.dispatcher.get("/fleet")).json()
    return found


async def task_in_outbox(platform: Platform) -> Any:
    return (await platform.claim())["task"]


class TestStopAndStart:
    async def test_a_first_boot_runs(self, platform: Platform) -> None:
        assert (await platform.dispatcher.get("/health")).json()["running"] is True
        assert await fleet(platform) == {"running": True, "paused": False, "pausedReason": None, "pausedAt": None}

    async def test_stopped_rests_and_started_goes_on(self, platform: Platform) -> None:
        await platform.connect()
        assert await post(platform, "/stop") == {"running": False}
        assert (await platform.dispatcher.get("/health")).json()["running"] is False
        await platform.post_job()
        await platform.dispatch()
        assert await task_in_outbox(platform) is None
        assert (await platform.dispatcher.get("/queue/status")).json()["gateway"] == 1
        assert await post(platform, "/start") == {"running": True}
        await platform.dispatch()
        assert (await task_in_outbox(platform))["to"] == FRIEND

    async def test_stopped_between_routing_and_pacing(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job()
        await platform.engine.routers[0].step(NOON)
        await post(platform, "/stop")
        await platform.dispatch()
        assert await task_in_outbox(platform) is None
        (pacer,) = (await platform.dispatcher.get("/pacers")).json()["items"]
        assert (pacer["waiting"]["reason"], pacer["waiting"]["until"]) == ("STOPPED", None)
        await post(platform, "/start")
        await platform.dispatch()
        assert await task_in_outbox(platform) is not None

    async def test_said_twice_is_one_incident(self, platform: Platform) -> None:
        for path in ("/start", "/stop", "/stop", "/start"):
            await post(platform, path)
        (stopped,), (started,) = await incidents(platform, "FLEET_STOPPED"), await incidents(platform, "FLEET_STARTED")
        assert stopped == {"kind": "FLEET_STOPPED", "at": NOON, "by": "bootstrap"}
        assert started["by"] == "bootstrap"


class TestPauseAndResume:
    async def test_paused_hands_nothing_over_and_resumed_looks_at_once(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job()
        assert await post(platform, "/fleet/pause") == {"paused": True, "reason": "OPERATOR", "since": NOON}
        expected = {"running": True, "paused": True, "pausedReason": "OPERATOR", "pausedAt": NOON}
        assert await fleet(platform) == expected
        await platform.dispatch()
        assert await task_in_outbox(platform) is None
        (pacer,) = (await platform.dispatcher.get("/pacers")).json()["items"]
        assert pacer["waiting"]["reason"] == "FLEET_PAUSED"
        assert await post(platform, "/fleet/resume") == {"paused": False, "reason": None, "since": None}
        await platform.dispatch()
        assert await task_in_outbox(platform) is not None
        (paused,), (resumed,) = await incidents(platform, "FLEET_PAUSED"), await incidents(platform, "FLEET_RESUMED")
        assert (paused["by"], resumed["by"], resumed["reason"]) == ("bootstrap", "bootstrap", "OPERATOR")

    async def test_resume_clears_a_breaker_that_tripped_and_it_does_not_trip_again_at_once(
        self, platform: Platform
    ) -> None:
        for number in range(4):
            await platform.connect(f"s{number}", f"97254123456{number}")
        for number in range(3):
            event = {"session": f"s{number}", "now_ms": NOON, "at_ms": NOON, "quarantine": "banned"}
            await platform.store.sessions.event(**event)  # type: ignore[arg-type]
        assert (await fleet(platform))["pausedReason"] == "BREAKER"
        assert await post(platform, "/fleet/pause") == {"paused": True, "reason": "BREAKER", "since": NOON}
        await post(platform, "/fleet/resume")
        await platform.store.sessions.event("s3", now_ms=NOON, at_ms=NOON, quarantine="banned")
        assert (await fleet(platform))["paused"] is False


class TestSmartGuard:
    async def failing(self, platform: Platform, count: int) -> None:
        """So many attempts fail, and not because of the recipients."""
        await platform.pace(failures=",".join([str(platform.clock.at_ms)] * count))

    async def test_status_before_it_ever_looked(self, platform: Platform) -> None:
        body = (await platform.dispatcher.get("/smartguard/status")).json()
        assert body == {"enabled": True, "tickMs": TICK, "lastTick": None, "lastActionAt": None}

    async def test_switched_off_it_rests_and_on_it_goes_on(self, platform: Platform) -> None:
        off = await post(platform, "/smartguard/enable", {"enabled": False})
        assert off == {"enabled": False, "tickMs": TICK, "lastTick": None, "lastActionAt": None}
        assert await platform.engine.guard.step(NOON) is None
        assert (await post(platform, "/smartguard/enable", {"enabled": True}))["enabled"] is True
        assert await platform.engine.guard.step(NOON) == NOON + TICK
        assert (await platform.dispatcher.get("/smartguard/status")).json()["lastTick"] == NOON

    async def test_an_incident_only_when_it_changed(self, platform: Platform) -> None:
        for enabled in (True, False, False):
            await post(platform, "/smartguard/enable", {"enabled": enabled})
        expected = {"kind": "SMART_GUARD_TOGGLE", "at": NOON, "enabled": False, "by": "bootstrap"}
        assert await incidents(platform, "SMART_GUARD_TOGGLE") == [expected]

    @pytest.mark.parametrize(
        "body", [{}, {"enabled": 1}, {"enabled": "true"}, {"enabled": None}, {"enabled": []}], ids=str
    )
    async def test_only_true_and_false_will_do(self, platform: Platform, body: Any) -> None:
        async with platform.nothing_stored():
            answer = await platform.dispatcher.post("/smartguard/enable", json=body)
        refused(answer, 400, "INVALID_REQUEST", "enabled")

    async def test_three_failures_slow_a_number_down_one_step(self, platform: Platform) -> None:
        await platform.connect()
        platform.clock.forward(60_000)
        await self.failing(platform, 3)
        guard, now = platform.engine.guard, platform.clock.at_ms
        assert await guard.step(now) == now + TICK
        (line,) = await incidents(platform, "SMART_GUARD_RPM_CHANGE")
        assert (line["phone"], line["sessionId"], line["from"], line["to"]) == (PHONE, SESSION, None, 15)
        assert line["reason"]
        (metrics,) = (await platform.dispatcher.get("/sessions/metrics")).json()["items"]
        assert (metrics["rpmDefault"], metrics["rpmOverride"], metrics["rpmSource"]) == (20, 15, "smartguard")
        assert (await platform.dispatcher.get("/smartguard/status")).json()["lastActionAt"] == now
        # The tick is taken; in the next ones it is too soon for another step.
        await guard.step(now)
        await guard.step(now + TICK)
        assert guard.changes == 1

    async def test_of_two_dispatchers_one_ticks(self, platform: Platform) -> None:
        await platform.connect()
        await self.failing(platform, 5)
        other = type(platform.engine.guard)(platform.store, platform.rules, enabled=True, tick_ms=TICK)
        for guard in (platform.engine.guard, other):
            assert await guard.step(NOON + 1) == NOON + 1 + TICK
        assert (platform.engine.guard.changes, other.changes) == (1, 0)

    async def test_every_page_of_the_fleet_is_looked_at(
        self, platform: Platform, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(guard_module, "PAGE", 2)
        for number in range(5):
            await platform.connect(f"s{number}", f"97254123450{number}")
            await platform.pace(f"97254123450{number}", failures=",".join([str(NOON)] * 3))
        await platform.engine.guard.step(NOON + 1)
        changed = [line["phone"] for line in await incidents(platform, "SMART_GUARD_RPM_CHANGE")]
        assert sorted(changed) == [f"97254123450{number}" for number in range(5)]

    async def test_a_manual_override_is_not_touched(self, platform: Platform) -> None:
        await platform.connect()
        await post(platform, f"/sessions/{SESSION}/rpm", {"rpm": 20})
        await self.failing(platform, 9)
        await platform.engine.guard.step(NOON + 1)
        platform.clock.forward(120_000)
        await self.failing(platform, 9)
        await platform.engine.guard.step(platform.clock.at_ms)
        assert platform.engine.guard.changes == 0

    async def test_null_removes_smartguards_override_too(self, platform: Platform) -> None:
        await platform.connect()
        await self.failing(platform, 3)
        await platform.engine.guard.step(NOON + 1)
        answer = await post(platform, f"/sessions/{SESSION}/rpm", {"rpm": None})
        assert (answer["rpm"], answer["source"]) == (None, None)


class TestIncidents:
    async def test_the_newest_first_in_pages(self, platform: Platform) -> None:
        for _ in range(3):
            await post(platform, "/stop")
            await post(platform, "/start")
        first = (await platform.dispatcher.get("/incidents", params={"limit": 4})).json()
        kinds = [line["kind"] for line in first["items"]]
        assert (kinds, first["nextCursor"]) == (["FLEET_STARTED", "FLEET_STOPPED"] * 2, "4")
        params = {"limit": 4, "cursor": first["nextCursor"]}
        rest = (await platform.dispatcher.get("/incidents", params=params)).json()
        assert ([line["kind"] for line in rest["items"]], rest["nextCursor"]) == (
            ["FLEET_STARTED", "FLEET_STOPPED"], None,
        )  # fmt: skip

    async def test_only_one_kind(self, platform: Platform) -> None:
        await post(platform, "/stop")
        await post(platform, "/start")
        assert len(await incidents(platform, "FLEET_STOPPED")) == 1
        assert await incidents(platform, "NO_SUCH") == []

    @pytest.mark.parametrize(
        ("path", "params", "field"),
        [
            pytest.param("/incidents", {"limit": 0}, "limit", id="no incident"),
            pytest.param("/incidents", {"limit": 201}, "limit", id="more than are kept"),
            pytest.param("/incidents", {"cursor": -1}, "cursor", id="before the first"),
            pytest.param("/incidents", {"cursor": "x"}, "cursor", id="no number"),
            pytest.param("/jobs/events", {"limit": 1_001}, "limit", id="too many events"),
            pytest.param("/jobs/events", {"cursor": 2_001}, "cursor", id="behind the last"),
            pytest.param("/pacers", {"limit": 1_001}, "limit", id="too many pacers"),
            pytest.param("/pacers", {"cursor": "x"}, "cursor", id="no number of a pacer"),
            pytest.param("/sessions/metrics", {"limit": 0}, "limit", id="no session"),
        ],
    )
    async def test_bad_pages_are_400_by_name(
        self, platform: Platform, path: str, params: dict[str, Any], field: str
    ) -> None:
        refused(await platform.dispatcher.get(path, params=params), 400, "INVALID_REQUEST", field)


class TestJobEvents:
    async def test_all_or_those_of_one_job(self, platform: Platform) -> None:
        ids = [(await platform.post_job())["jobId"] for _ in range(3)]
        body = (await platform.dispatcher.get("/jobs/events", params={"limit": 2})).json()
        assert [line["jobId"] for line in body["items"]] == [ids[2], ids[1]]
        assert [line["event"] for line in body["items"]] == ["JOB_ACCEPTED"] * 2
        assert body["nextCursor"] == "2"
        one = (await platform.dispatcher.get("/jobs/events", params={"jobId": ids[0]})).json()
        assert ([line["jobId"] for line in one["items"]], one["nextCursor"]) == ([ids[0]], None)
