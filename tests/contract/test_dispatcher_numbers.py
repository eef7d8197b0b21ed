"""Single numbers over HTTP: pacers, metrics, explanations, and what an operator decides about a number."""

from typing import Any

import pytest

from paceline.dispatcher.schemas import RpmRequest
from paceline.policy.pacing import ALLOWED_RPM

from .platform import FRIEND, NOON, OTHER_PHONE, PHONE, SESSION, Platform, refused

HALF_HOUR = 1_800_000


async def post(platform: Platform, path: str, body: Any = None) -> dict[str, Any]:
    answer = await platform.dispatcher.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def pacer(platform: Platform) -> dict[str, Any]:
    (found,) = (await platform.dispatcher.get("/pacers")).json()["items"]
    assert found["phone"] == PHONE
    return dict(found)


async def metrics(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await platform.dispatcher.get("/sessions/metrics")).json()["items"]
    return found


async def incidents(platform: Platform, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await platform.dispatcher.get("/incidents", params={"kind": kind})).json()["items"]
    return found


async def nack(platform: Platform, claim: dict[str, Any], code: str) -> None:
    error = {"code": code, "message": "no"}
    answer = await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    assert answer.status_code == 200, answer.text


async def ack(platform: Platform, claim: dict[str, Any]) -> None:
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    answer = await platform.outbox("ack", body)
    assert answer.status_code == 200, answer.text


class TestPacers:
    async def test_an_idle_number(self, platform: Platform) -> None:
        await platform.connect()
        assert await pacer(platform) == {
            "phone": PHONE, "sessionIds": [SESSION], "avgDelayMs": 3_000, "minDelayMs": 2_000, "maxDelayMs": 4_000,
            "burstCount": 0, "burstLimit": 5, "burstCooldownMs": 30_000, "rpm": 20,
            "effectiveRpm": pytest.approx(6.82, abs=0.1), "nextSlotAt": None, "queueLen": 0, "parked": 0,
            "unsettled": None, "waiting": None, "config": {},
        }  # fmt: skip

    async def test_what_it_is_busy_with_and_when_the_next_may_go(self, platform: Platform) -> None:
        await platform.connect()
        job = await platform.post_job(contacts=[FRIEND, "972529876544"])
        await platform.dispatch()
        busy = await pacer(platform)
        assert (busy["unsettled"], busy["queueLen"]) == (f"{job['jobId']}:0", 1)
        assert busy["waiting"] == {"reason": "UNSETTLED", "until": None, "text": busy["waiting"]["text"]}
        assert "busy" in busy["waiting"]["text"]
        assert busy["nextSlotAt"] > NOON
        await ack(platform, await platform.claim())
        rests = await pacer(platform)
        assert (rests["unsettled"], rests["burstCount"], rests["waiting"]["reason"]) == (None, 1, "PACING")
        assert rests["waiting"]["until"] == rests["nextSlotAt"]
        assert NOON + 1_600 <= rests["nextSlotAt"] <= NOON + 4_800

    async def test_parked_for_the_night_of_its_recipient(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job(contacts=[{"to": FRIEND, "timezone": "America/Los_Angeles"}])
        await platform.dispatch()
        found = await pacer(platform)
        assert (found["queueLen"], found["parked"]) == (0, 1)
        assert found["waiting"]["reason"] == "RECIPIENT_HOURS"
        assert found["waiting"]["until"] > NOON

    async def test_pages_in_the_order_of_registration(self, platform: Platform) -> None:
        phones = [f"97254123450{number}" for number in range(5)]
        for number, phone in enumerate(phones):
            await platform.register(f"s{number}", phone)
            platform.clock.forward(1)
        first = (await platform.dispatcher.get("/pacers", params={"limit": 2})).json()
        assert ([item["phone"] for item in first["items"]], first["nextCursor"]) == (phones[:2], "2")
        last = (await platform.dispatcher.get("/pacers", params={"limit": 3, "cursor": 2})).json()
        assert ([item["phone"] for item in last["items"]], last["nextCursor"]) == (phones[2:], None)
        behind = (await platform.dispatcher.get("/pacers", params={"cursor": 99})).json()
        assert behind == {"items": [], "nextCursor": None}


class TestSetPacer:
    async def test_fields_are_kept_and_hold_at_once(self, platform: Platform) -> None:
        await platform.connect()
        body = {"minDelayMs": 10_000, "maxDelayMs": 20_000, "burstLimit": 0, "burstCooldownMs": 1, "rpm": 3}
        answer = await post(platform, f"/pacers/{SESSION}", body)
        assert answer == await pacer(platform)
        assert {name: answer[name] for name in body} == body
        assert answer["config"] == body
        assert (answer["avgDelayMs"], answer["effectiveRpm"]) == (15_000, 3.0)
        (line,) = await incidents(platform, "PACER_CHANGED")
        assert (line["by"], line["phone"], line["from"], line["to"]) == ("bootstrap", PHONE, {}, body)

    async def test_null_forgets_one_field(self, platform: Platform) -> None:
        await platform.connect()
        await post(platform, f"/pacers/{SESSION}", {"minDelayMs": 10_000, "rpm": 3})
        answer = await post(platform, f"/pacers/{SESSION}", {"rpm": None})
        assert answer["config"] == {"minDelayMs": 10_000}

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            pytest.param({}, "body", id="nothing to change"),
            pytest.param({"minDelayMs": -1}, "minDelayMs", id="negative"),
            pytest.param({"maxDelayMs": 3_600_001}, "maxDelayMs", id="over an hour"),
            pytest.param({"burstLimit": 33}, "burstLimit", id="longer than is remembered"),
            pytest.param({"burstCooldownMs": 3_600_001}, "burstCooldownMs", id="a rest over an hour"),
            pytest.param({"minDelayMs": "5"}, "minDelayMs", id="text"),
            pytest.param({"minDelayMs": 5.5}, "minDelayMs", id="half a millisecond"),
            pytest.param({"burstLimit": True}, "burstLimit", id="a truth"),
            pytest.param({"minDelayMs": 2, "maxDelayMs": 1}, "minDelayMs", id="inverted"),
            pytest.param({"delay": 2}, "delay", id="unknown"),
        ],
    )
    async def test_bad_fields_are_400_by_name_and_store_nothing(
        self, platform: Platform, body: dict[str, Any], field: str
    ) -> None:
        await platform.connect()
        async with platform.nothing_stored():
            answer = await platform.dispatcher.post(f"/pacers/{SESSION}", json=body)
        refused(answer, 400, "INVALID_REQUEST", field)

    async def test_inverted_against_what_is_kept(self, platform: Platform) -> None:
        await platform.connect()
        await post(platform, f"/pacers/{SESSION}", {"minDelayMs": 5_000})
        async with platform.nothing_stored():
            answer = await platform.dispatcher.post(f"/pacers/{SESSION}", json={"maxDelayMs": 4_999})
        error = refused(answer, 400, "INVALID_REQUEST", "maxDelayMs")
        assert (error["details"]["minDelayMs"], error["details"]["maxDelayMs"]) == (5_000, 4_999)

    async def test_a_rate_nobody_may_set(self, platform: Platform) -> None:
        await platform.connect()
        async with platform.nothing_stored():
            answer = await platform.dispatcher.post(f"/pacers/{SESSION}", json={"rpm": 4})
        assert refused(answer, 400, "INVALID_RPM", "rpm")["details"]["allowed"] == list(ALLOWED_RPM)

    async def test_a_number_that_rests_goes_earlier_when_it_may(self, platform: Platform) -> None:
        await platform.connect()
        await post(platform, f"/pacers/{SESSION}", {"minDelayMs": 600_000, "maxDelayMs": 600_000})
        await platform.post_job(contacts=[FRIEND, "972529876544"])
        await platform.dispatch()
        await ack(platform, await platform.claim())
        platform.clock.forward(60_000)
        await platform.webhook("PING")
        await platform.dispatch()
        assert (await platform.claim())["task"] is None
        await post(platform, f"/pacers/{SESSION}", {"minDelayMs": 0, "maxDelayMs": 0})
        await platform.dispatch()
        assert (await platform.claim())["task"] is not None


class TestRpm:
    async def test_set_raised_beyond_trust_and_removed(self, platform: Platform) -> None:
        await platform.register(age_days=1)
        set_ = await post(platform, f"/sessions/{SESSION}/rpm", {"rpm": 2})
        assert set_ == {
            "sessionId": SESSION, "phone": PHONE, "rpm": 2, "source": "manual", "effectiveRpm": set_["effectiveRpm"],
        }  # fmt: skip
        assert set_["effectiveRpm"] <= 2
        raised = await post(platform, f"/sessions/{SESSION}/rpm", {"rpm": 10})
        assert (raised["rpm"], raised["source"]) == (10, "manual")
        removed = await post(platform, f"/sessions/{SESSION}/rpm", {"rpm": None})
        assert (removed["rpm"], removed["source"]) == (None, None)
        lines = await incidents(platform, "RPM_OVERRIDE")
        assert [(line["from"], line["to"], line["exceedsTrust"]) for line in reversed(lines)] == [
            (None, 2, False), (2, 10, True), (10, None, False),
        ]  # fmt: skip
        assert {(line["by"], line["phone"], line["sessionId"]) for line in lines} == {("bootstrap", PHONE, SESSION)}

    async def test_it_holds_for_every_session_of_the_number(self, platform: Platform) -> None:
        await platform.connect()
        await platform.connect("s2")
        await post(platform, "/sessions/s2/rpm", {"rpm": 5})
        assert [(m["sessionId"], m["rpmOverride"], m["rpmSource"]) for m in await metrics(platform)] == [
            (SESSION, 5, "manual"), ("s2", 5, "manual"),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "body",
        [{}, *({"rpm": rpm} for rpm in (0, 1, 4, 21, -5, "5", 5.0, True, [], {}, 1e30))],
        ids=str,
    )
    async def test_anything_else_is_400_and_says_what_is_allowed(self, platform: Platform, body: Any) -> None:
        await platform.connect()
        async with platform.nothing_stored():
            answer = await platform.dispatcher.post(f"/sessions/{SESSION}/rpm", json=body)
        assert refused(answer, 400, "INVALID_RPM", "rpm")["details"]["allowed"] == [2, 3, 5, 10, 15, 20]

    def test_what_the_type_allows_is_what_the_policy_allows(self) -> None:
        assert all(RpmRequest(rpm=rpm) for rpm in ALLOWED_RPM)  # type: ignore[arg-type]
        assert RpmRequest.__annotations__["rpm"].__args__[0].__args__ == ALLOWED_RPM


class TestCooldown:
    async def cooled_down(self, platform: Platform) -> None:
        await nack(platform, await platform.claimed(), "RATE_LIMIT")

    async def test_cleared_it_goes_on_and_is_not_cleared_twice(self, platform: Platform) -> None:
        await self.cooled_down(platform)
        (before,) = await metrics(platform)
        assert before["restriction"] == {"kind": "COOLDOWN", "until": NOON + HALF_HOUR}
        assert await post(platform, f"/sessions/{SESSION}/cooldown/clear") == {"cleared": True}
        assert await post(platform, f"/sessions/{SESSION}/cooldown/clear") == {"cleared": False}
        (after,) = await metrics(platform)
        assert after["restriction"] == {"kind": "NONE", "until": None}
        assert len(await incidents(platform, "COOLDOWN_CLEARED")) == 1
        await platform.post_job(contacts=["972529876544"])
        platform.clock.forward(30_000)
        await platform.webhook("PING")
        await platform.dispatch()
        assert (await platform.claim())["task"]["to"] == "972529876544"


class TestRequeue:
    async def quarantined(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job(contacts=[FRIEND, "972529876544"])
        await platform.engine.routers[0].step(NOON)
        await platform.store.sessions.event(SESSION, now_ms=NOON, at_ms=NOON, connection="FAILED", quarantine="banned")

    async def test_not_before_it_is_connected(self, platform: Platform) -> None:
        await self.quarantined(platform)
        async with platform.nothing_stored():
            answer = await platform.dispatcher.post(f"/sessions/{SESSION}/queue/requeue")
        refused(answer, 409, "NOT_RESTORED", "sessionId")

    async def test_restored_its_queue_goes_on_on_the_same_number(self, platform: Platform) -> None:
        await self.quarantined(platform)
        await platform.connect("s9", OTHER_PHONE)
        platform.clock.forward(1)
        await platform.webhook("CONNECTED")
        await platform.dispatch()
        assert (await pacer_of(platform, PHONE))["waiting"]["reason"] == "QUARANTINED"
        assert await post(platform, f"/sessions/{SESSION}/queue/requeue") == {"requeued": 2, "quarantined": False}
        await platform.dispatch()
        assert (await platform.claim())["task"]["to"] == FRIEND
        (line,) = await incidents(platform, "QUEUE_REQUEUED")
        assert (line["phone"], line["by"], line["waiting"]) == (PHONE, "bootstrap", 2)


async def pacer_of(platform: Platform, phone: str) -> dict[str, Any]:
    items = (await platform.dispatcher.get("/pacers")).json()["items"]
    return next(item for item in items if item["phone"] == phone)


class TestCancelQueue:
    async def test_all_that_waits_ends_and_its_job_is_done(self, platform: Platform) -> None:
        await platform.connect()
        job = await platform.post_job(contacts=[FRIEND, "972529876544", "972529876545"])
        single = {"to": "972529876546", "message": "x", "sendAt": NOON + HALF_HOUR}
        sent = (await platform.gateway.post("/api/v1/send", json=single)).json()
        await platform.dispatch()
        answer = await post(platform, f"/sessions/{SESSION}/queue/cancel")
        assert answer == {"canceled": 4, "failed": 0, "open": 0}
        assert await post(platform, f"/sessions/{SESSION}/queue/cancel") == {"canceled": 0, "failed": 0, "open": 0}
        for task in (*(f"{job['jobId']}:{index}" for index in range(3)), sent["messageId"]):
            assert (await platform.message(task))["state"] == "canceled"
        progress = (await platform.gateway.get(job["statusUrl"])).json()["progress"]
        assert (progress["total"], progress["canceled"]) == (3, 3)
        events = (await platform.dispatcher.get("/jobs/events", params={"jobId": job["jobId"]})).json()["items"]
        assert [line["event"] for line in events] == ["JOB_DONE", "JOB_ACCEPTED"]
        (line,) = await incidents(platform, "QUEUE_CANCELED")
        assert (line["canceled"], line["failed"], line["by"]) == (4, 0, "bootstrap")
        # The one that lay in the outbox still holds its number until the worker's next claim.
        assert (await platform.claim())["task"] is None
        found = await pacer(platform)
        assert (found["unsettled"], found["queueLen"], found["waiting"]) == (None, 0, None)
        assert (await metrics(platform))[0]["budgetLeft"] == 500

    async def test_what_a_worker_holds_is_left_to_it(self, platform: Platform) -> None:
        claim = await platform.claimed()
        answer = await post(platform, f"/sessions/{SESSION}/queue/cancel")
        assert answer == {"canceled": 0, "failed": 0, "open": 1}
        await ack(platform, claim)
        assert (await platform.message(claim["task"]["taskId"]))["state"] == "sent"


class TestMetrics:
    async def test_a_connected_session(self, platform: Platform) -> None:
        await ack(platform, await platform.claimed())
        await platform.register("s2", OTHER_PHONE)
        (found,) = await metrics(platform)
        assert found == {
            "sessionId": SESSION, "phone": PHONE, "queueLen": 0, "sentLast60s": 1, "routedLast60s": 1,
            "failedLast60s": 0, "trustLevel": "hot", "rpmDefault": 20, "rpmOverride": None, "rpmSource": None,
            "effectiveRpm": pytest.approx(6.82, abs=0.1), "budgetLeft": 499,
            "restriction": {"kind": "NONE", "until": None}, "nextSlotAt": found["nextSlotAt"], "waiting": None,
        }  # fmt: skip
        assert found["nextSlotAt"] > NOON
        platform.clock.forward(60_000)
        (later,) = await metrics(platform)
        assert (later["sentLast60s"], later["routedLast60s"]) == (0, 0)

    async def test_failures_of_the_last_minute(self, platform: Platform) -> None:
        await nack(platform, await platform.claimed(), "SEND_FAILED")
        assert (await metrics(platform))[0]["failedLast60s"] == 1

    @pytest.mark.parametrize(
        ("laid", "expected"),
        [
            pytest.param({"quarantined": 1, "cooldownUntil": NOON + 1}, ("QUARANTINED", None), id="quarantine"),
            pytest.param({"restriction": "CAPPED", "restrictedUntil": NOON + 5}, ("CAPPED", NOON + 5), id="capped"),
            pytest.param(
                {"restriction": "TIME_LOCKED", "restrictedUntil": NOON + 5}, ("TIME_LOCKED", NOON + 5), id="locked"
            ),
            pytest.param({"restriction": "TIME_LOCKED", "restrictedUntil": NOON}, ("NONE", None), id="over"),
        ],
    )
    async def test_what_holds_a_number_back(
        self, platform: Platform, laid: dict[str, Any], expected: tuple[str, int | None]
    ) -> None:
        await platform.connect()
        await platform.link.read(("HSET", f"phone:{PHONE}", *[part for pair in laid.items() for part in pair]))
        (found,) = await metrics(platform)
        assert (found["restriction"]["kind"], found["restriction"]["until"]) == expected

    async def test_pages_by_session(self, platform: Platform) -> None:
        for number in range(5):
            await platform.connect(f"s{number}", f"97254123450{number}")
        await platform.webhook("DISCONNECTED", session="s1")
        first = (await platform.dispatcher.get("/sessions/metrics", params={"limit": 3})).json()
        assert ([item["sessionId"] for item in first["items"]], first["nextCursor"]) == (["s0", "s2"], "s2")
        params = {"limit": 3, "cursor": "s2"}
        rest = (await platform.dispatcher.get("/sessions/metrics", params=params)).json()
        assert ([item["sessionId"] for item in rest["items"]], rest["nextCursor"]) == (["s3", "s4"], None)


class TestExplain:
    async def explained(self, platform: Platform) -> dict[str, Any]:
        async with platform.nothing_stored():
            answer = await platform.dispatcher.get(f"/sessions/{SESSION}/explain")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def test_nothing_waits(self, platform: Platform) -> None:
        await platform.connect()
        found = await self.explained(platform)
        assert (found["decision"], found["phone"], found["queueLen"], found["heads"]) == ("idle", PHONE, 0, [])

    async def test_it_would_send_and_looking_changes_nothing(self, platform: Platform) -> None:
        await platform.connect()
        job = await platform.post_job(contacts=[FRIEND, "972529876544"])
        await platform.engine.routers[0].step(NOON)
        found = await self.explained(platform)
        assert (found["decision"], found["queueLen"]) == ("send", 2)
        assert [head["task"] for head in found["heads"]] == [f"{job['jobId']}:0", f"{job['jobId']}:1"]
        assert FRIEND not in str(found), "whom it writes to is for the message's own page"

    async def test_it_says_what_it_waits_for(self, platform: Platform) -> None:
        await platform.connect()
        await platform.post_job()
        await platform.engine.routers[0].step(NOON)
        await post(platform, "/fleet/pause")
        found = await self.explained(platform)
        assert (found["decision"], found["rule"], found["until"]) == ("wait", "FLEET_PAUSED", None)
        assert found["facts"]["fleetPaused"] is True
