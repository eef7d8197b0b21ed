"""GET /api/v1/stats/:sessionId: a session's day in figures."""

from typing import Any

import pytest

from .platform import DAY_MS, FRIEND, PHONE, SEND_KEY, SESSION, Platform, refused

PATH = f"/api/v1/stats/{SESSION}"
TODAY = "2026-03-10"


async def stats(platform: Platform, **params: Any) -> dict[str, Any]:
    answer = await platform.gateway.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_day_without_anything_is_all_zero(platform: Platform) -> None:
    """No time is made up where nothing was delivered."""
    await platform.register()
    assert await stats(platform) == {
        "sessionId": SESSION,
        "date": TODAY,
        "sent": 0,
        "failed": 0,
        "delivered": 0,
        "read": 0,
        "avgDeliveryTime": None,
        "queueSize": 0,
    }


async def test_what_was_sent_delivered_and_read_is_counted_with_its_time(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job(contacts=[FRIEND, "972529876544"])
    for seconds in (2, 4):
        await platform.dispatch()
        task = (await platform.claim())["task"]
        proof = {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}
        await platform.webhook("MESSAGE_SENT", proof)
        platform.clock.forward(seconds * 1_000)
        await platform.webhook("MESSAGE_DELIVERED", proof)
        platform.clock.forward(60_000)
        await platform.webhook("PING")
    await platform.webhook("MESSAGE_READ", proof)
    found = await stats(platform)
    assert (found["sent"], found["delivered"], found["read"], found["failed"]) == (2, 2, 1, 0)
    assert found["avgDeliveryTime"] == 3_000


async def test_what_failed_for_good_is_counted(platform: Platform) -> None:
    claim = await platform.claimed()
    error = {"code": "NOT_ON_WHATSAPP", "message": "no"}
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    found = await stats(platform)
    assert (found["sent"], found["failed"]) == (0, 1)


async def test_the_day_is_that_of_the_number(platform: Platform) -> None:
    """Late in the evening in Jerusalem it is still yesterday in UTC's midnight, and the other way round."""
    await platform.register()
    platform.clock.forward(11 * 3_600_000 + 1_800_000)
    assert (await stats(platform))["date"] == TODAY
    platform.clock.forward(1_800_000)
    assert (await stats(platform))["date"] == "2026-03-11", "22:00 in UTC"
    await platform.link.read(("HSET", f"phone:{PHONE}", "timezone", "America/New_York"))
    assert (await stats(platform))["date"] == TODAY


async def test_another_day_can_be_asked_for(platform: Platform) -> None:
    claim = await platform.claimed()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    platform.clock.forward(DAY_MS)
    assert (await stats(platform))["sent"] == 0
    found = await stats(platform, date=TODAY)
    assert (found["date"], found["sent"]) == (TODAY, 1)


async def test_the_queue_is_that_of_now_with_what_is_parked(platform: Platform) -> None:
    await platform.connect()
    sleeper = {"to": FRIEND, "timezone": "America/Los_Angeles"}
    await platform.post_job(contacts=[sleeper, "972529876544", "972529876545"])
    await platform.dispatch()
    assert (await stats(platform))["queueSize"] == 2, "one is with the worker"
    assert (await stats(platform, date="2026-01-01"))["queueSize"] == 2


@pytest.mark.parametrize(
    "date",
    [
        "yesterday",
        "2026-02-30",
        "2026-13-01",
        "20260310",
        "2026-W11-2",
        "10.3.2026",
        "2026-3-1",
        "2026-03-10T00:00",
        "*",
    ],
)
async def test_a_date_that_is_none_is_named(platform: Platform, date: str) -> None:
    await platform.register()
    refused(await platform.gateway.get(PATH, params={"date": date}), 400, "INVALID_TIME", "date")


@pytest.mark.parametrize("session", ["nobody", "status:s1", f"{SESSION}:{TODAY}"])
async def test_an_unknown_session_is_a_404(platform: Platform, session: str) -> None:
    await platform.register()
    refused(await platform.gateway.get(f"/api/v1/stats/{session}"), 404, "UNKNOWN_SESSION", "sessionId")


@pytest.mark.parametrize(("key", "status", "code"), [("", 401, "UNAUTHORIZED"), (SEND_KEY, 403, "FORBIDDEN")])
async def test_it_needs_a_key_that_may_read(platform: Platform, key: str, status: int, code: str) -> None:
    refused(await platform.gateway.get(PATH, headers={"X-API-KEY": key}), status, code)
