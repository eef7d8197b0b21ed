"""GET /api/v1/messages/:id/status: where a message is, what happened to it, and why it waits."""

from typing import Any

import msgspec
import pytest

from paceline.store.rows import Pace

from .platform import DAY_MS, FRIEND, NOON, PHONE, SESSION, Platform, refused

HOUR = 3_600_000


def told(message: dict[str, Any]) -> tuple[str, int | None]:
    """The reason and its end, after a look at the sentence."""
    waiting = message["waiting"]
    assert set(waiting) == {"reason", "until", "text"}, waiting
    assert waiting["text"][0].isupper(), waiting
    assert waiting["text"].endswith("."), waiting
    return waiting["reason"], waiting["until"]


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
    assert told(await platform.message(f"{plain['jobId']}:0")) == ("IN_TURN", None)
    later = await platform.post_job(sendAt=NOON + DAY_MS)
    assert told(await platform.message(f"{later['jobId']}:0")) == ("SCHEDULED", NOON + DAY_MS)
    spread = await platform.post_job(contacts=[FRIEND, "972529876544"], spreadMinutes=120)
    assert told(await platform.message(f"{spread['jobId']}:1")) == ("SCHEDULED", NOON + HOUR)


async def test_in_a_queue_it_gives_the_reason_of_its_number(platform: Platform) -> None:
    """While another is with the worker it is just not its turn; after that the number's next slot is the reason."""
    await platform.connect()
    job = await platform.post_job(contacts=[FRIEND, "972529876544"])
    await platform.dispatch()
    second = f"{job['jobId']}:1"
    assert told(await platform.message(second)) == ("IN_TURN", None)
    claim = await platform.claim()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    # Between the hand-over's lead and the slot nothing is looked at, so go to where the pacer looks.
    (text,) = await platform.link.read(("HGET", "phones:pace", PHONE))
    line, *rest = text.split("\n")
    longer = msgspec.structs.replace(Pace.of(line), gap_ms="60000").line
    await platform.link.read(
        ("ZADD", "dispatch:due", NOON, PHONE), ("HSET", "phones:pace", PHONE, "\n".join((longer, *rest)))
    )
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
    message = await platform.message(f"{job['jobId']}:0")
    assert told(message) == ("QUIET_HOURS", NOON + 19 * HOUR)
    assert "07:00" in message["waiting"]["text"], "in the number's own time"


async def test_a_number_that_is_away_is_a_reason_without_an_end(platform: Platform) -> None:
    """Nobody knows when it comes back, so no time is made up."""
    await platform.connect()
    job = await platform.post_job(phone=PHONE)
    await platform.webhook("DISCONNECTED", {"code": 428, "reason": "lost"})
    await platform.dispatch()
    message = await platform.message(f"{job['jobId']}:0")
    assert told(message) == ("NOT_CONNECTED", None)


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
    assert told(message) == ("RETRY", NOON + 60_000)
    assert message["lastError"] == error


async def test_an_unknown_outcome_says_so(platform: Platform) -> None:
    claim = await platform.claimed()
    platform.clock.forward(130_000)
    await platform.settling.sweep(platform.clock.at_ms)
    message = await platform.message(claim["task"]["taskId"])
    assert (message["state"], *told(message)) == ("unknown", "UNKNOWN_OUTCOME", None)


async def test_a_canceled_message_waits_for_nothing(platform: Platform) -> None:
    job = await platform.post_job()
    await platform.gateway.post(f"{job['statusUrl']}/cancel")
    message = await platform.message(f"{job['jobId']}:0")
    assert (message["state"], message["waiting"]) == ("canceled", None)


@pytest.mark.parametrize(("field", "reason"), [("stopped", "STOPPED"), ("paused", "FLEET_PAUSED")])
async def test_what_holds_the_whole_fleet_is_the_reason_of_every_waiting_message(
    platform: Platform, field: str, reason: str
) -> None:
    """Whatever its number waited for before, and whether it is routed or not; its job says the same."""
    await platform.connect()
    platform.clock.forward(12 * HOUR)
    await platform.webhook("PING")
    routed = await platform.post_job()
    await platform.dispatch()
    unrouted = await platform.post_job()
    await platform.link.read(("HSET", "fleet", field, 1))
    for job in (routed, unrouted):
        assert told(await platform.message(f"{job['jobId']}:0")) == (reason, None)
        assert told((await platform.gateway.get(job["statusUrl"])).json()) == (reason, None)
    await platform.link.read(("DEL", "fleet"))
    assert told(await platform.message(f"{routed['jobId']}:0")) == ("QUIET_HOURS", NOON + 19 * HOUR)


async def test_a_message_with_a_worker_is_not_held_by_what_holds_the_fleet(platform: Platform) -> None:
    claim = await platform.claimed()
    await platform.link.read(("HSET", "fleet", "paused", 1))
    message = await platform.message(claim["task"]["taskId"])
    assert (message["state"], message["waiting"]) == ("claimed", None)
