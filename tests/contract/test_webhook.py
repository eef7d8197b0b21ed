"""/api/webhook: what workers report. Repeated, reordered and senseless events do no harm."""

from itertools import permutations
from typing import Any

import msgspec
import pytest

from .platform import NOON, PHONE, SESSION, Platform, refused

UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV:0"


def proof(claim: dict[str, Any]) -> dict[str, Any]:
    task = claim["task"]
    return {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}


async def session(platform: Platform) -> dict[str, Any]:
    found: dict[str, Any] = (await platform.orchestrator.get(f"/api/sessions/{SESSION}")).json()
    return found


@pytest.mark.parametrize(
    "order",
    list(permutations(["MESSAGE_SENT", "MESSAGE_DELIVERED", "MESSAGE_READ"])),
    ids=">".join,
)
async def test_receipts_in_any_order_and_twice_end_in_the_same_state(
    platform: Platform, order: tuple[str, ...]
) -> None:
    """Nothing moves backwards, nothing is counted twice, JOB_DONE comes once."""
    claim = await platform.claimed()
    for event in order * 2:
        assert (await platform.webhook(event, proof(claim))).status_code == 200
    job_id = claim["task"]["taskId"].partition(":")[0]
    status = (await platform.gateway.get(f"/v1/jobs/{job_id}")).json()
    assert (status["state"], status["progress"]["read"], status["progress"]["sent"]) == ("DONE", 1, 1)
    events = [event["event"] for event in await platform.store.jobs.events(100)]
    assert events.count("JOB_DONE") == 1


def failure(claim: dict[str, Any], **more: Any) -> dict[str, Any]:
    token = msgspec.json.decode(claim["raw"])["token"]
    error = {"code": "SEND_FAILED", "message": "x"}
    return {"messageId": claim["task"]["taskId"], "error": error, "notSent": True, "token": token, "epoch": 1, **more}


async def test_message_failed_and_nack_are_one_fact(platform: Platform) -> None:
    """Whichever comes second adds no failure."""
    claim = await platform.claimed()
    task_id = claim["task"]["taskId"]
    assert (await platform.webhook("MESSAGE_FAILED", failure(claim))).status_code == 200
    assert (await platform.message(task_id))["waiting"]["reason"] == "RETRY"
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": {"code": "NO_ACK"}})
    assert (await platform.link.read(("HGET", f"message:{task_id}", "failures")))[0] == "1"
    assert (await platform.message(task_id))["waiting"]["reason"] == "RETRY"


async def test_a_sent_after_a_failure_corrects_it(platform: Platform) -> None:
    """The proof counts: the job's numbers follow, without a second JOB_DONE."""
    claim = await platform.claimed()
    await platform.outbox(
        "nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": {"code": "NOT_ON_WHATSAPP"}}
    )
    await platform.webhook("MESSAGE_SENT", proof(claim))
    job_id = claim["task"]["taskId"].partition(":")[0]
    progress = (await platform.gateway.get(f"/v1/jobs/{job_id}")).json()["progress"]
    assert (progress["sent"], progress["failed"]) == (1, 0)
    events = [event["event"] for event in await platform.store.jobs.events(100)]
    assert (events.count("JOB_DONE"), events.count("JOB_CORRECTED")) == (1, 1)


async def test_an_older_word_about_the_connection_does_not_undo_a_newer(platform: Platform) -> None:
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428}, at_ms=NOON - 1)
    assert (await session(platform))["connection"] == "CONNECTED"
    await platform.webhook("DISCONNECTED", {"code": 428}, at_ms=NOON + 1)
    assert (await session(platform))["connection"] == "RECONNECTING"


async def test_a_worker_whose_clock_is_ahead_does_not_silence_those_after_it(platform: Platform) -> None:
    """An event from the future counts as one of now."""
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": 428}, at_ms=NOON + 10**12)
    platform.clock.forward(1)
    await platform.webhook("CONNECTED", {}, at_ms=NOON + 1)
    assert (await session(platform))["connection"] == "CONNECTED"


@pytest.mark.parametrize(
    ("code", "connection", "restriction"),
    [
        (428, "RECONNECTING", "NONE"),
        (440, "FAILED", "NONE"),
        (401, "FAILED", "QUARANTINED"),
        (403, "FAILED", "QUARANTINED"),
    ],
)
async def test_each_disconnect_has_its_meaning(
    platform: Platform, code: int, connection: str, restriction: str
) -> None:
    await platform.connect()
    await platform.webhook("DISCONNECTED", {"code": code, "reason": "x"})
    found = await session(platform)
    assert (found["connection"], found["restriction"]) == (connection, restriction)


async def test_a_ping_is_a_sign_of_life_and_nothing_more(platform: Platform) -> None:
    await platform.connect()
    before = await platform.snapshot()
    platform.clock.forward(5_000)
    await platform.webhook("PING")
    after = await platform.snapshot()
    assert after.pop(f"session:{SESSION}") == before.pop(f"session:{SESSION}") | {"lastSeen": str(NOON + 5_000)}
    assert after == before


async def test_what_people_write_is_not_kept_in_the_history_of_the_session(platform: Platform) -> None:
    await platform.connect()
    data = {"from": PHONE, "text": "canary of a private word", "whatsappId": "x"}
    assert (await platform.webhook("MESSAGE_RECEIVED", data)).status_code == 200
    assert "canary" not in repr(await platform.snapshot())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"event": "PARTY"}, "event", id="unknown event"),
        pytest.param({"event": 5}, "event", id="event a number"),
        pytest.param({"timestamp": "now"}, "timestamp", id="timestamp a word"),
        pytest.param({"eventId": ""}, "eventId", id="no event id"),
        pytest.param({"data": []}, "data", id="data a list"),
        pytest.param({"more": 1}, "more", id="unknown field"),
        pytest.param({"event": "MESSAGE_SENT"}, "data.messageId", id="sent without an id"),
        pytest.param({"event": "MESSAGE_SENT", "data": {"messageId": 5}}, "data.messageId", id="sent with a bad id"),
        pytest.param(
            {"event": "MESSAGE_SENT", "data": {"messageId": UNKNOWN}}, "data.whatsappId", id="sent as nothing"
        ),
        pytest.param(
            {"event": "MESSAGE_SENT", "data": {"messageId": UNKNOWN, "whatsappId": "x"}}, "whatsappId", id="wrong id"
        ),
        pytest.param(
            {"event": "MESSAGE_FAILED", "data": {"messageId": UNKNOWN}}, "data.error.code", id="failed without an error"
        ),
    ],
)
async def test_a_bad_event_is_a_400_that_names_the_field(
    platform: Platform, change: dict[str, Any], field: str
) -> None:
    await platform.connect()
    body = {"sessionId": SESSION, "event": "PING", "timestamp": NOON, "eventId": "e", "data": {}, **change}
    async with platform.nothing_stored():
        answer = await platform.worker("/api/webhook", body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


@pytest.mark.parametrize("not_sent", [True, False])
@pytest.mark.parametrize("task", [UNKNOWN, "x", "a:b:c", "\x00:1"], ids=repr)
async def test_a_failure_of_a_message_that_never_was_is_a_404(platform: Platform, task: str, not_sent: bool) -> None:
    await platform.connect()
    data = {"messageId": task, "error": {"code": "NO_ACK"}, "notSent": not_sent, "token": "1", "epoch": 1}
    async with platform.nothing_stored():
        refused(await platform.webhook("MESSAGE_FAILED", data), 404, "UNKNOWN_TASK")


async def test_an_event_of_a_session_nobody_registered_is_a_404(platform: Platform) -> None:
    async with platform.nothing_stored():
        refused(await platform.webhook("CONNECTED", session="nobody"), 404, "UNKNOWN_SESSION", "sessionId")


async def test_a_failure_told_again_does_not_settle_the_next_attempt(platform: Platform) -> None:
    """Found in review: a repeated webhook took the second try away from under its worker and freed the phone."""
    first = await platform.claimed()
    await platform.webhook("MESSAGE_FAILED", failure(first))
    platform.clock.forward(600_000)
    await platform.webhook("PING")
    await platform.dispatch()
    second = await platform.claim()
    assert second["task"]["attempt"] == 2
    await platform.webhook("MESSAGE_FAILED", failure(first))
    assert (await platform.message(first["task"]["taskId"]))["state"] == "claimed"
    await platform.webhook("MESSAGE_FAILED", {k: v for k, v in failure(second).items() if k != "token"})
    assert (await platform.message(first["task"]["taskId"]))["state"] == "claimed", "without its claim it is no word"


async def test_the_last_word_of_a_replaced_instance_does_not_silence_the_new_one(platform: Platform) -> None:
    """Found in review: the old worker said "replaced", and the session was FAILED though the new one was connected."""
    await platform.connect()
    assert (await platform.hello(instance="the-new-one")).json()["epoch"] == 2
    await platform.webhook("CONNECTED", {"epoch": 2})
    platform.clock.forward(20)
    await platform.webhook("DISCONNECTED", {"code": 440, "epoch": 1}, at_ms=platform.clock.now_ms())
    assert (await session(platform))["connection"] == "CONNECTED"
