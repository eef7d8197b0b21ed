"""GET /api/v1/messages/:id/status: where a message is, what happened to it, and why it waits."""

import pytest

from .platform import DAY_MS, FRIEND, NOON, PHONE, SESSION, Platform, refused

HOUR = 3_600_000


async def test_a_message_tells_its_whole_way(platform: Platform) -> None:
    """Times of every step, attempts, the id on the wire, and what the caller said about it."""
    await platform.connect()
    job = await platform.post_job(contacts=[{"to": FRIEND, "clientRef": "c-1"}], metadata={"m": 1})
    await platform.dispatch()
    claim = await platform.claim()
    task = claim["task"]
    proof = {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}
    for event in ("MESSAGE_SENT", "MESSAGE_DELIVERED", "MESSAGE_READ"):
        platform.clock.forward(1_000)
        await platform.webhook(event, proof)
    message = await platform.message(task["taskId"])
    assert message.pop("history")[-1]["what"] == "sent"
    assert message == {
        "messageId": f"{job['jobId']}:0",
        "jobId": job["jobId"],
        "to": FRIEND,
        "state": "read",
        "phone": PHONE,
        "sessionId": SESSION,
        "times": {
            "acceptedAt": NOON,
            "handedOffAt": NOON,
            "claimedAt": NOON,
            "sentAt": NOON + 1_000,
            "deliveredAt": NOON + 2_000,
            "readAt": NOON + 3_000,
            "endedAt": None,
        },
        "attempts": 1,
        "whatsappId": task["whatsappId"],
        "lastError": None,
        "waiting": None,
        "clientRef": "c-1",
        "metadata": {"m": 1},
    }


@pytest.mark.parametrize("separator", [":", "%3A", "%3a"])
async def test_the_id_is_read_with_and_without_escape(platform: Platform, separator: str) -> None:
    job = await platform.post_job()
    answer = await platform.gateway.get(f"/api/v1/messages/{job['jobId']}{separator}0/status")
    assert answer.json()["messageId"] == f"{job['jobId']}:0"


@pytest.mark.parametrize("id_", ["x", "{job}", "{job}:1", "{job}:00", "{job}:-1", "{job}:0:0", "{job}:٠", ":0"])
async def test_a_message_nobody_knows_is_a_404(platform: Platform, id_: str) -> None:
    job = await platform.post_job()
    answer = await platform.gateway.get(f"/api/v1/messages/{id_.format(job=job['jobId'])}/status")
    refused(answer, 404, "UNKNOWN_MESSAGE", "messageId")


async def test_before_routing_it_waits_in_turn_or_for_its_time(platform: Platform) -> None:
    """A job nobody has looked at yet; a job for tomorrow; the second half of a spread job."""
    plain = await platform.post_job()
    assert (await platform.message(f"{plain['jobId']}:0"))["waiting"] == {"reason": "IN_TURN", "until": None}
    later = await platform.post_job(sendAt=NOON + DAY_MS)
    assert (await platform.message(f"{later['jobId']}:0"))["waiting"] == {"reason": "SCHEDULED", "until": NOON + DAY_MS}
    spread = await platform.post_job(contacts=[FRIEND, "972529876544"], spreadMinutes=120)
    assert (await platform.message(f"{spread['jobId']}:1"))["waiting"] == {"reason": "SCHEDULED", "until": NOON + HOUR}


async def test_in_a_queue_it_gives_the_reason_of_its_number(platform: Platform) -> None:
    """While another is with the worker it is just not its turn; after that the number's next slot is the reason."""
    await platform.connect()
    job = await platform.post_job(contacts=[FRIEND, "972529876544"])
    await platform.dispatch()
    second = f"{job['jobId']}:1"
    assert (await platform.message(second))["waiting"] == {"reason": "IN_TURN", "until": None}
    claim = await platform.claim()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    # Between the hand-over's lead and the slot nothing is looked at, so go to where the pacer looks.
    await platform.link.read(("ZADD", "dispatch:due", NOON, PHONE), ("HSET", f"pacer:{PHONE}", "gapMs", 60_000))
    await platform.dispatch()
    waiting = (await platform.message(second))["waiting"]
    assert waiting["reason"] == "PACING"
    assert waiting["until"] > NOON


async def test_at_night_it_waits_for_the_opening_of_its_number(platform: Platform) -> None:
    await platform.connect()
    platform.clock.forward(12 * HOUR)
    await platform.webhook("PING")
    job = await platform.post_job()
    await platform.dispatch()
    assert (await platform.message(f"{job['jobId']}:0"))["waiting"] == {
        "reason": "QUIET_HOURS",
        "until": NOON + 19 * HOUR,
    }


async def test_a_number_that_is_away_is_a_reason_without_an_end(platform: Platform) -> None:
    """Nobody knows when it comes back, so no time is made up."""
    await platform.connect()
    job = await platform.post_job(phone=PHONE)
    await platform.webhook("DISCONNECTED", {"code": 428, "reason": "lost"})
    await platform.dispatch()
    message = await platform.message(f"{job['jobId']}:0")
    assert message["waiting"] == {"reason": "NOT_CONNECTED", "until": None}


async def test_a_recipient_who_sleeps_is_parked_with_the_hour_of_waking(platform: Platform) -> None:
    await platform.connect()
    job = await platform.post_job(contacts=[{"to": FRIEND, "timezone": "America/Los_Angeles"}])
    await platform.dispatch()
    message = await platform.message(f"{job['jobId']}:0")
    assert (message["state"], message["waiting"]["reason"]) == ("parked", "RECIPIENT_HOURS")
    assert message["waiting"]["until"] == NOON + 4 * HOUR


async def test_a_retry_says_when_and_why(platform: Platform) -> None:
    """The last error stands beside the reason for waiting."""
    claim = await platform.claimed()
    error = {"code": "NO_ACK", "message": "no word from the server"}
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    message = await platform.message(claim["task"]["taskId"])
    assert message["state"] == "queued"
    assert message["waiting"] == {"reason": "RETRY", "until": NOON + 60_000}
    assert message["lastError"] == error


async def test_an_unknown_outcome_says_so(platform: Platform) -> None:
    claim = await platform.claimed()
    platform.clock.forward(130_000)
    await platform.settling.sweep(platform.clock.at_ms)
    message = await platform.message(claim["task"]["taskId"])
    assert (message["state"], message["waiting"]) == ("unknown", {"reason": "UNKNOWN_OUTCOME", "until": None})


async def test_a_canceled_message_waits_for_nothing(platform: Platform) -> None:
    job = await platform.post_job()
    await platform.gateway.post(f"{job['statusUrl']}/cancel")
    message = await platform.message(f"{job['jobId']}:0")
    assert (message["state"], message["waiting"]) == ("canceled", None)
