"""GET and DELETE of a session's queue, and DELETE /v1/messages/:id for a message in any queue."""

from typing import Any

import pytest

from .platform import FRIEND, NOON, OTHER_PHONE, PHONE, READ_KEY, SEND_KEY, SESSION, Platform, refused

PATH = f"/api/v1/queue/{SESSION}"
PEOPLE = [FRIEND, "972529876544", "972529876545"]
HOUR = 3_600_000


async def queue(platform: Platform, **params: Any) -> dict[str, Any]:
    answer = await platform.gateway.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def waiting_job(platform: Platform, **fields: Any) -> dict[str, Any]:
    """A job in the queue of a number that is away."""
    job = await platform.post_job(**{"contacts": PEOPLE, "phone": PHONE, **fields})
    await platform.dispatch()
    return job


async def away(platform: Platform) -> None:
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428, "reason": "lost"})


class TestLooking:
    async def test_an_empty_queue(self, platform: Platform) -> None:
        await platform.register()
        assert await queue(platform) == {
            "sessionId": SESSION,
            "phone": PHONE,
            "items": [],
            "total": 0,
            "parked": 0,
            "scheduled": 0,
            "nextCursor": None,
        }

    async def test_in_the_order_they_will_go_and_why_they_wait(self, platform: Platform) -> None:
        await away(platform)
        low = await waiting_job(platform, contacts=PEOPLE[:2])
        high = await waiting_job(platform, contacts=PEOPLE[2:], priority=3)
        later = {"to": FRIEND, "message": "x", "phone": PHONE, "sendAt": NOON + HOUR}
        await platform.gateway.post("/api/v1/send", json=later)
        found = await queue(platform)
        ids = [f"{high['jobId']}:0", f"{low['jobId']}:0", f"{low['jobId']}:1"]
        assert [item["messageId"] for item in found["items"]] == ids
        first = found["items"][0]
        waiting = first.pop("waiting")
        assert first == {
            "messageId": ids[0],
            "jobId": high["jobId"],
            "to": PEOPLE[2],
            "priority": 3,
            "position": 0,
            "state": "queued",
            "expiresAt": NOON + 30 * 24 * HOUR,
        }
        assert (waiting["reason"], waiting["until"]) == ("NOT_CONNECTED", None)
        assert waiting["text"] == (await platform.message(ids[0]))["waiting"]["text"]
        assert (found["total"], found["parked"], found["scheduled"], found["nextCursor"]) == (3, 0, 1, None)

    async def test_what_sleeps_comes_last_with_its_hour(self, platform: Platform) -> None:
        await platform.connect()
        sleeper = {"to": FRIEND, "timezone": "America/Los_Angeles"}
        job = await platform.post_job(contacts=[sleeper, "972529876544", "972529876545"])
        await platform.dispatch()
        found = await queue(platform)
        assert [item["messageId"][-1] for item in found["items"]] == ["2", "0"], "1 is with the worker"
        last = found["items"][-1]
        assert (last["state"], last["position"], last["messageId"]) == ("parked", None, f"{job['jobId']}:0")
        assert (last["waiting"]["reason"], last["waiting"]["until"]) == ("RECIPIENT_HOURS", NOON + 4 * HOUR)
        assert (found["total"], found["parked"]) == (2, 1)

    async def test_a_paused_job_and_a_stopped_fleet_are_the_reason(self, platform: Platform) -> None:
        await away(platform)
        held, other = await waiting_job(platform, contacts=PEOPLE[:1]), await waiting_job(platform, contacts=PEOPLE[1:])
        await platform.gateway.post(f"{held['statusUrl']}/pause")
        await platform.link.read(("HSET", "fleet", "stopped", 1))
        reasons = {item["jobId"]: item["waiting"]["reason"] for item in (await queue(platform))["items"]}
        assert reasons == {held["jobId"]: "JOB_PAUSED", other["jobId"]: "STOPPED"}

    async def test_page_by_page(self, platform: Platform) -> None:
        await away(platform)
        await waiting_job(platform)
        await waiting_job(platform, priority=2, contacts=[str(972_540_000_000 + i) for i in range(4)])
        whole = [item["messageId"] for item in (await queue(platform))["items"]]
        for limit in (1, 2, 3, 7):
            page = await queue(platform, limit=limit)
            seen = [item["messageId"] for item in page["items"]]
            while page["nextCursor"]:
                page = await queue(platform, limit=limit, cursor=page["nextCursor"])
                seen += [item["messageId"] for item in page["items"]]
            assert seen == whole

    @pytest.mark.parametrize(
        "cursor", ["x", "4-1", "1", "1-2-3-4", "1-x", "0-1", "-1", "1--1", "٣-1", "1-" + "9" * 30, "0-1-" + "9" * 30]
    )
    async def test_a_cursor_that_is_not_ours_is_named(self, platform: Platform, cursor: str) -> None:
        await platform.register()
        refused(await platform.gateway.get(PATH, params={"cursor": cursor}), 400, "INVALID_REQUEST", "cursor")

    @pytest.mark.parametrize("limit", ["0", "1001", "x", "-1"])
    async def test_a_bad_limit_is_named(self, platform: Platform, limit: str) -> None:
        await platform.register()
        refused(await platform.gateway.get(PATH, params={"limit": limit}), 400, "INVALID_REQUEST", "limit")

    @pytest.mark.parametrize("session", ["nobody", "status:s1", "processing:s1", "%20"])
    async def test_an_unknown_session_is_a_404(self, platform: Platform, session: str) -> None:
        await platform.register()
        answer = await platform.gateway.get(f"/api/v1/queue/{session}")
        refused(answer, 404, "UNKNOWN_SESSION", "sessionId")

    @pytest.mark.parametrize(("key", "status", "code"), [("", 401, "UNAUTHORIZED"), (SEND_KEY, 403, "FORBIDDEN")])
    async def test_it_needs_a_key_that_may_read(self, platform: Platform, key: str, status: int, code: str) -> None:
        refused(await platform.gateway.get(PATH, headers={"X-API-KEY": key}), status, code)


class TestCancelingOne:
    async def test_it_leaves_the_queue_and_the_others_stay(self, platform: Platform) -> None:
        await away(platform)
        job = await waiting_job(platform)
        task = f"{job['jobId']}:1"
        answer = await platform.gateway.delete(f"{PATH}/{task}")
        assert (answer.status_code, answer.json()) == (200, {"messageId": task, "state": "canceled"})
        found = await queue(platform)
        assert ([item["messageId"][-1] for item in found["items"]], found["total"]) == (["0", "2"], 2)
        message = await platform.message(task)
        assert (message["state"], message["waiting"], message["phone"]) == ("canceled", None, PHONE)
        assert message["times"]["endedAt"] == NOON

    @pytest.mark.parametrize("separator", ["%3A", "%3a"])
    async def test_the_id_may_be_escaped(self, platform: Platform, separator: str) -> None:
        await away(platform)
        job = await waiting_job(platform)
        answer = await platform.gateway.delete(f"{PATH}/{job['jobId']}{separator}0")
        assert answer.json()["messageId"] == f"{job['jobId']}:0"

    async def test_twice_says_that_it_has_ended(self, platform: Platform) -> None:
        await away(platform)
        job = await waiting_job(platform)
        await platform.gateway.delete(f"{PATH}/{job['jobId']}:0")
        async with platform.nothing_stored():
            error = refused(await platform.gateway.delete(f"{PATH}/{job['jobId']}:0"), 409, "MESSAGE_ENDED")
        assert error["details"]["state"] == "canceled"

    async def test_a_scheduled_message(self, platform: Platform) -> None:
        await platform.connect()
        body = {"to": FRIEND, "message": "x", "phone": PHONE, "sendAt": NOON + HOUR}
        sent = (await platform.gateway.post("/api/v1/send", json=body)).json()
        await platform.gateway.delete(f"{PATH}/{sent['messageId']}")
        assert (await queue(platform))["scheduled"] == 0
        platform.clock.forward(HOUR)
        await platform.webhook("PING")
        await platform.dispatch()
        assert (await platform.claim())["task"] is None

    async def test_one_handed_over_is_not_sent(self, platform: Platform) -> None:
        await platform.connect()
        job = await platform.post_job(contacts=PEOPLE[:2])
        await platform.dispatch()
        assert (await platform.message(f"{job['jobId']}:0"))["state"] == "handed_off"
        assert (await platform.gateway.delete(f"{PATH}/{job['jobId']}:0")).status_code == 200
        assert (await platform.claim())["task"] is None
        platform.clock.forward(10_000)
        await platform.dispatch()
        assert (await platform.claim())["task"]["taskId"] == f"{job['jobId']}:1"

    async def test_one_with_a_worker_is_a_409(self, platform: Platform) -> None:
        claim = await platform.claimed()
        async with platform.nothing_stored():
            answer = await platform.gateway.delete(f"{PATH}/{claim['task']['taskId']}")
        assert refused(answer, 409, "MESSAGE_CLAIMED")["details"]["state"] == "claimed"

    async def test_one_that_was_sent_is_a_409(self, platform: Platform) -> None:
        claim = await platform.claimed()
        await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
        answer = await platform.gateway.delete(f"{PATH}/{claim['task']['taskId']}")
        assert refused(answer, 409, "MESSAGE_ENDED")["details"]["state"] == "sent"

    async def test_one_that_may_have_gone_out_ends_failed(self, platform: Platform) -> None:
        """`canceled` would say that it was not sent."""
        claim = await platform.claimed()
        error = {"code": "NO_ACK", "message": "no word"}
        await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": False, "error": error})
        answer = await platform.gateway.delete(f"{PATH}/{claim['task']['taskId']}")
        assert (answer.status_code, answer.json()["state"]) == (200, "failed")

    async def test_another_numbers_message_is_a_404(self, platform: Platform) -> None:
        await away(platform)
        await platform.connect("s2", OTHER_PHONE)
        job = await waiting_job(platform)
        async with platform.nothing_stored():
            answer = await platform.gateway.delete(f"/api/v1/queue/s2/{job['jobId']}:0")
        refused(answer, 404, "UNKNOWN_MESSAGE", "messageId")

    @pytest.mark.parametrize("id_", ["x", "{job}", "{job}:9", "{job}:00", "{job}:-1", "{job}:0:0", ":0"])
    async def test_a_message_nobody_knows_is_a_404(self, platform: Platform, id_: str) -> None:
        await away(platform)
        job = await waiting_job(platform)
        async with platform.nothing_stored():
            answer = await platform.gateway.delete(f"{PATH}/{id_.format(job=job['jobId'])}")
        refused(answer, 404, "UNKNOWN_MESSAGE", "messageId")

    async def test_an_unknown_session_is_a_404(self, platform: Platform) -> None:
        await away(platform)
        job = await waiting_job(platform)
        answer = await platform.gateway.delete(f"/api/v1/queue/nobody/{job['jobId']}:0")
        refused(answer, 404, "UNKNOWN_SESSION", "sessionId")

    @pytest.mark.parametrize(("key", "status", "code"), [("", 401, "UNAUTHORIZED"), (READ_KEY, 403, "FORBIDDEN")])
    async def test_it_needs_a_key_that_may_send(self, platform: Platform, key: str, status: int, code: str) -> None:
        await away(platform)
        job = await waiting_job(platform)
        async with platform.nothing_stored():
            answer = await platform.gateway.delete(f"{PATH}/{job['jobId']}:0", headers={"X-API-KEY": key})
        refused(answer, status, code)


class TestCancelingAnywhere:
    async def test_one_that_waits_for_its_number(self, platform: Platform) -> None:
        await away(platform)
        task = f"{(await waiting_job(platform))['jobId']}:1"
        answer = await platform.gateway.delete(f"/v1/messages/{task}")
        assert (answer.status_code, answer.json()) == (200, {"messageId": task, "state": "canceled"})
        assert (await queue(platform))["total"] == 2

    async def test_one_that_has_no_number_yet(self, platform: Platform) -> None:
        """It never gets one: the others are routed around it."""
        job = await platform.post_job(contacts=PEOPLE)
        answer = await platform.gateway.delete(f"/v1/messages/{job['jobId']}%3A1")
        assert answer.json()["state"] == "canceled"
        await platform.connect()
        await platform.dispatch()
        states = [(await platform.message(f"{job['jobId']}:{index}"))["state"] for index in range(3)]
        assert states == ["handed_off", "canceled", "queued"]

    async def test_one_that_a_worker_holds(self, platform: Platform) -> None:
        claim = await platform.claimed()
        async with platform.nothing_stored():
            answer = await platform.gateway.delete(f"/v1/messages/{claim['task']['taskId']}")
        refused(answer, 409, "MESSAGE_CLAIMED")

    @pytest.mark.parametrize("message_id", ["01KKBK4FE0S7MP2BKPJTKCXK0V:0", "no"])
    async def test_one_that_is_not_there(self, platform: Platform, message_id: str) -> None:
        refused(await platform.gateway.delete(f"/v1/messages/{message_id}"), 404, "UNKNOWN_MESSAGE", "messageId")

    async def test_it_needs_a_key_that_may_send(self, platform: Platform) -> None:
        answer = await platform.gateway.delete("/v1/messages/x", headers={"X-API-KEY": READ_KEY})
        refused(answer, 403, "FORBIDDEN")
