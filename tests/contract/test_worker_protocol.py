"""The worker protocol: hello, claim, ack, nack, extend, and who may say what."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from paceline.kits.secrets import derive

from .platform import FRIEND, INSTANCE, JOURNAL, NOON, SESSION, WEBHOOK_SECRET, Platform, refused

ERROR = {"code": "NO_ACK", "message": "no word"}
UNKNOWN_TASK = "01ARZ3NDEKTSV4RRFFQ69G5FAV:0"


def raw_with(claim: dict[str, Any], **changes: Any) -> str:
    return msgspec.json.encode({**msgspec.json.decode(claim["raw"]), **changes}).decode()


async def state_of(platform: Platform, claim: dict[str, Any]) -> str:
    message = await platform.message(claim["task"]["taskId"])
    return str(message["state"])


async def test_hello_gives_the_terms_and_a_new_epoch_to_each_instance(platform: Platform) -> None:
    """The same instance keeps its epoch, so a lost reply costs nothing."""
    await platform.register()
    first = (await platform.hello()).json()
    assert first == {
        "epoch": 1,
        "nowMs": NOON,
        "leaseMs": 120_000,
        "typing": {"minMs": 1_000, "maxMs": 3_000},
        "unknownGraceMs": 10_000,
        "pending": [],
        "commands": [],
    }
    assert (await platform.hello()).json()["epoch"] == 1
    assert (await platform.hello(instance="instance-2")).json()["epoch"] == 2


async def test_hello_of_a_session_nobody_registered_is_a_404(platform: Platform) -> None:
    async with platform.nothing_stored():
        refused(await platform.hello("nobody"), 404, "UNKNOWN_SESSION", "sessionId")


async def test_an_instance_that_is_not_wanted_is_told_to_go(platform: Platform) -> None:
    await platform.register()
    await platform.link.read(("HSET", f"session:{SESSION}", "wantedInstance", "instance-9"))
    async with platform.nothing_stored():
        refused(await platform.hello(), 409, "NOT_WANTED", "instanceId")


async def test_a_claim_gives_the_task_with_its_text_and_its_times(platform: Platform) -> None:
    """Variables are filled; `raw` holds token, attempt and final text."""
    await platform.connect()
    contact = {"to": FRIEND, "vars": {"name": "Ada"}}
    await platform.post_job(contacts=[contact], text="hi {{name}}")
    await platform.dispatch()
    claim = await platform.claim()
    task = claim["task"]
    assert (claim["status"], claim["nowMs"], task["to"], task["text"]) == ("ok", NOON, FRIEND, "hi Ada")
    assert (task["mode"], task["attempt"], task["resend"]) == ("message", 1, False)
    assert task["sendAfterMs"] <= task["sendBeforeMs"] < task["leaseUntilMs"]
    raw = msgspec.json.decode(claim["raw"])
    assert (raw["taskId"], raw["attempt"], raw["text"]) == (task["taskId"], 1, "hi Ada")
    assert raw["token"] > 0


async def test_an_empty_outbox_gives_no_task(platform: Platform) -> None:
    await platform.connect()
    empty = {"status": "ok", "task": None, "raw": None, "pending": [], "commands": [], "nowMs": NOON}
    claim = await platform.claim()
    assert 0 <= claim.pop("waitedMs") < 60_000
    assert claim == empty


async def test_a_task_whose_claim_was_not_answered_is_asked_for(platform: Platform) -> None:
    """The reply of a claim was lost: the next claim names the task as pending instead of giving it twice."""
    first = await platform.claimed()
    again = await platform.claim()
    assert again["task"] is None
    assert [item["taskId"] for item in again["pending"]] == [first["task"]["taskId"]]
    assert isinstance(again["pending"][0]["token"], str)


async def test_only_the_newest_epoch_may_claim(platform: Platform) -> None:
    await platform.connect()
    await platform.hello(instance="instance-2")
    refused(await platform.outbox("claim?timeout=0", {"epoch": 1}), 409, "STALE_EPOCH", "epoch")
    assert (await platform.claim(2))["task"] is None


@pytest.mark.parametrize("seconds", ["-1", "31", "x", "1.5"])
async def test_a_timeout_outside_0_to_30_is_a_400(platform: Platform, seconds: str) -> None:
    await platform.connect()
    refused(await platform.outbox(f"claim?timeout={seconds}", {"epoch": 1}), 400, "INVALID_REQUEST", "timeout")


async def test_a_long_poll_is_woken_by_the_hand_over(platform: Platform) -> None:
    """The task is there as soon as the outbox has it, not when the poll ends."""
    await platform.connect()
    waiting = asyncio.create_task(platform.claim(seconds=30))
    await _until(lambda: SESSION in platform.waiters._waiting)
    await platform.post_job()
    await platform.dispatch()
    platform.waiters.ring(f"outbox:{SESSION}")
    assert (await waiting)["task"] is not None
    assert platform.waiters._waiting == {}


async def test_a_lost_wake_up_is_made_up_for_by_the_batched_look(platform: Platform) -> None:
    await platform.connect()
    waiting = asyncio.create_task(platform.claim(seconds=30))
    await _until(lambda: SESSION in platform.waiters._waiting)
    await platform.post_job()
    await platform.dispatch()
    assert await platform.waiters.check(NOON) == NOON + 1_000
    assert (await waiting)["task"] is not None


async def test_wake_ups_of_others_do_not_disturb(platform: Platform) -> None:
    await platform.connect()
    waiting = asyncio.create_task(platform.claim(seconds=1))
    await _until(lambda: SESSION in platform.waiters._waiting)
    for topic in ("jobs", "due", "outbox:other", f"outbox:{SESSION}x"):
        platform.waiters.ring(topic)
    assert (await waiting)["task"] is None


async def test_what_a_worker_asks_for_tells_whether_it_is_connected(platform: Platform) -> None:
    """A poll from before the connection was lost says nothing; the next question does."""
    await platform.connect()
    waiting = asyncio.create_task(platform.claim(seconds=30))
    await _until(lambda: SESSION in platform.waiters._waiting)
    await platform.webhook("DISCONNECTED", {"code": 408})
    platform.clock.at_ms += 60_000
    assert (await platform.orchestrator.post(f"/api/sessions/{SESSION}/logout")).status_code == 202
    platform.waiters.ring(f"outbox:{SESSION}")
    assert len((await waiting)["commands"]) == 1
    assert await _connection(platform) == "RECONNECTING"
    await platform.claim()
    assert await _connection(platform) == "CONNECTED"
    platform.clock.at_ms += 60_000
    await platform.outbox("claim?timeout=0", {"epoch": 1, "commandsOnly": True})
    assert await _connection(platform) == "RECONNECTING"


async def _connection(platform: Platform) -> str:
    return str((await platform.orchestrator.get(f"/api/sessions/{SESSION}")).json()["connection"])


async def test_a_task_is_not_given_to_a_worker_that_hung_up(platform: Platform) -> None:
    """The connection is gone while it waits; the task stays in the outbox for the one who comes next."""
    await platform.connect()
    hung_up = asyncio.Event()
    body = [{"type": "http.request", "body": b'{"epoch": 1}', "more_body": False}]

    async def receive() -> dict[str, Any]:
        if body:
            return body.pop()
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        pass

    secret = derive(WEBHOOK_SECRET, SESSION).encode()
    path = f"/api/worker/sessions/{SESSION}/outbox/claim"
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"timeout=30", "root_path": "",
        "server": ("x", 1), "client": ("x", 1),
        "headers": [(b"content-type", b"application/json"), (b"x-webhook-secret", secret)],
    }  # fmt: skip
    waiting = asyncio.create_task(platform.services["orchestrator"](scope, receive, send))
    await _until(lambda: SESSION in platform.waiters._waiting)
    hung_up.set()
    await waiting
    await platform.post_job()
    await platform.dispatch()
    assert (await platform.claim())["task"] is not None


@pytest.mark.parametrize("named", ["raw", "token as text", "token as number"])
async def test_an_ack_settles_the_task_however_it_is_named(platform: Platform, named: str) -> None:
    claim = await platform.claimed()
    token = msgspec.json.decode(claim["raw"])["token"]
    task_id = claim["task"]["taskId"]
    body = {
        "raw": {"raw": claim["raw"]},
        "token as text": {"taskId": task_id, "token": str(token)},
        "token as number": {"taskId": task_id, "token": token},
    }[named]
    answer = await platform.outbox("ack", {**body, "epoch": 1, "whatsappId": claim["task"]["whatsappId"]})
    assert answer.json() == {"status": "ok", "state": "sent"}
    assert await state_of(platform, claim) == "sent"


async def test_the_present_claim_needs_no_whatsapp_id(platform: Platform) -> None:
    """It follows from the task, and the token proves which claim is meant."""
    claim = await platform.claimed()
    assert (await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})).status_code == 200
    assert (await platform.message(claim["task"]["taskId"]))["whatsappId"] == claim["task"]["whatsappId"]


async def test_an_old_token_alone_proves_nothing_but_the_right_whatsapp_id_does(platform: Platform) -> None:
    """409 without it; with it, it is a fact from any claim."""
    claim = await platform.claimed()
    old = raw_with(claim, token=msgspec.json.decode(claim["raw"])["token"] + 1)
    async with platform.nothing_stored():
        refused(await platform.outbox("ack", {"raw": old, "epoch": 1}), 409, "STALE_TOKEN", "raw")
        wrong = {"raw": old, "epoch": 1, "whatsappId": "3EB0FFFF"}
        refused(await platform.outbox("ack", wrong), 400, "WRONG_WHATSAPP_ID", "whatsappId")
    right = {"raw": old, "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    assert (await platform.outbox("ack", right)).json()["state"] == "sent"


async def test_an_ack_of_an_old_epoch_is_a_fact(platform: Platform) -> None:
    """A replaced worker that did send must be believed, or the message would go out twice."""
    claim = await platform.claimed()
    await platform.hello(instance="instance-2")
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    assert (await platform.outbox("ack", body)).json()["state"] == "sent"


async def test_acks_are_counted_once_however_often_they_come(platform: Platform) -> None:
    """Ack and MESSAGE_SENT are one fact; the second changes nothing."""
    claim = await platform.claimed()
    task = claim["task"]
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": task["whatsappId"]}
    await platform.outbox("ack", body)
    before = await platform.snapshot()
    assert (await platform.outbox("ack", body)).status_code == 200
    after = await platform.snapshot()
    assert after == before
    proof = {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}
    assert (await platform.webhook("MESSAGE_SENT", proof)).status_code == 200
    sent = await platform.link.read(("GET", f"job:stats:{task['taskId'].partition(':')[0]}:sent"))
    assert sent == ["1"]


@pytest.mark.parametrize(
    ("words", "state", "reason"),
    [
        pytest.param({}, "queued", None, id="nothing said: back to the head"),
        pytest.param({"notSent": True}, "queued", None, id="not sent: back to the head"),
        pytest.param({"notSent": True, "error": ERROR}, "queued", "RETRY", id="refused: tried again later"),
        pytest.param({"notSent": True, "error": {"code": "NOT_ON_WHATSAPP"}}, "failed", None, id="refused for good"),
        pytest.param({"notSent": False}, "queued", "RETRY", id="unknown: the same id again"),
        pytest.param({"notSent": False, "error": ERROR}, "queued", "RETRY", id="unknown with an error"),
        pytest.param({"error": ERROR}, "queued", "RETRY", id="an error alone frees nothing"),
    ],
)
async def test_a_nack_means_what_it_says(
    platform: Platform, words: dict[str, Any], state: str, reason: str | None
) -> None:
    """And a task that may have gone out stays with its session."""
    claim = await platform.claimed()
    answer = await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, **words})
    assert answer.json() == {"status": "ok", "state": state}
    message = await platform.message(claim["task"]["taskId"])
    waiting = message["waiting"]
    assert (waiting["reason"] if waiting and reason else None) == reason
    pinned = (await platform.link.read(("HGET", f"message:{claim['task']['taskId']}", "pinned")))[0]
    is_unknown = words.get("notSent") is False or ("error" in words and "notSent" not in words)
    assert pinned == (SESSION if is_unknown else None)


async def test_a_returned_task_comes_again_as_the_same_attempt(platform: Platform) -> None:
    claim = await platform.claimed()
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True})
    await platform.dispatch()
    again = await platform.claim()
    assert (again["task"]["taskId"], again["task"]["attempt"]) == (claim["task"]["taskId"], 1)
    assert again["raw"] != claim["raw"]


async def test_nacks_are_one_fact_per_attempt(platform: Platform) -> None:
    """A repeat changes nothing; an old claim's nack after a new claim is refused."""
    claim = await platform.claimed()
    body = {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": ERROR}
    await platform.outbox("nack", body)
    async with platform.nothing_stored():
        assert (await platform.outbox("nack", body)).json()["state"] == "queued"
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    await platform.dispatch()
    assert (await platform.claim())["task"]["attempt"] == 2
    async with platform.nothing_stored():
        refused(await platform.outbox("nack", body), 409, "STALE_TOKEN", "raw")


@pytest.mark.parametrize("verb", ["nack", "extend"])
async def test_an_old_epoch_may_neither_nack_nor_extend(platform: Platform, verb: str) -> None:
    claim = await platform.claimed()
    await platform.hello(instance="instance-2")
    async with platform.nothing_stored():
        refused(await platform.outbox(verb, {"raw": claim["raw"], "epoch": 1}), 409, "STALE_TOKEN")


async def test_a_lease_is_extended_but_not_beyond_ten_minutes(platform: Platform) -> None:
    claim = await platform.claimed()
    body = {"raw": claim["raw"], "epoch": 1}
    platform.clock.forward(100_000)
    assert (await platform.outbox("extend", body)).json() == {"status": "ok", "leaseUntilMs": NOON + 220_000}
    platform.clock.forward(450_000)
    assert (await platform.outbox("extend", body)).json()["leaseUntilMs"] == NOON + 600_000


async def test_a_lease_that_ended_or_was_settled_cannot_be_extended(platform: Platform) -> None:
    claim = await platform.claimed()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    async with platform.nothing_stored():
        refused(await platform.outbox("extend", {"raw": claim["raw"], "epoch": 1}), 409, "STALE_TOKEN", "raw")


async def test_a_new_instance_is_asked_about_what_the_old_one_held(platform: Platform) -> None:
    """With the journal at hand it is pending; it can be nacked by id and token under the new epoch."""
    claim = await platform.claimed()
    welcome = (await platform.hello(instance="instance-2")).json()
    (pending,) = welcome["pending"]
    assert (pending["taskId"], pending["whatsappId"]) == (claim["task"]["taskId"], claim["task"]["whatsappId"])
    body = {"taskId": pending["taskId"], "token": pending["token"], "epoch": 2, "notSent": True}
    assert (await platform.outbox("nack", body)).json()["state"] == "queued"


async def test_a_task_that_takes_its_container_down_is_given_up_although_the_instance_stays_the_same(
    platform: Platform,
) -> None:
    """An engine restarts a container under the same instance: three deaths over one message were none, and a fourth
    followed."""
    claim = await platform.claimed()
    for life in ("second", "third", "fourth"):
        hello = (await platform.hello(life=life)).json()
        (pending,) = hello["pending"]
        body = {"taskId": pending["taskId"], "token": pending["token"], "epoch": hello["epoch"]}
        state = (await platform.outbox("nack", body)).json()["state"]
        if state != "failed":
            await platform.dispatch()
            assert (await platform.claim(hello["epoch"]))["task"]["taskId"] == claim["task"]["taskId"]
    message = await platform.message(claim["task"]["taskId"])
    assert (message["state"], message["lastError"]["code"]) == ("failed", "POISON")


async def test_hello_again_in_the_same_life_is_no_new_one(platform: Platform) -> None:
    """An answer was lost. Workers that are older than life ids say none."""
    await platform.register()
    epochs = [(await platform.hello(life=life)).json()["epoch"] for life in ("", "", "a", "a", "b", "b")]
    assert epochs == [1, 1, 2, 2, 3, 3]


async def test_with_a_new_journal_nobody_can_tell_and_it_ends_unknown(platform: Platform) -> None:
    claim = await platform.claimed()
    welcome = (await platform.hello(instance="instance-2", journal="journal-2")).json()
    assert welcome["pending"] == []
    message = await platform.message(claim["task"]["taskId"])
    assert (message["state"], message["lastError"]["code"]) == ("failed", "UNKNOWN_OUTCOME")


async def test_another_session_can_say_nothing_about_a_task(platform: Platform) -> None:
    claim = await platform.claimed()
    await platform.connect("s2", "972541234568")
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    async with platform.nothing_stored():
        refused(await platform.outbox("ack", body, "s2"), 404, "UNKNOWN_TASK")
        words = {"raw": claim["raw"], "epoch": 1}
        refused(await platform.outbox("nack", words, "s2"), 404, "UNKNOWN_TASK")
        refused(await platform.outbox("extend", words, "s2"), 409, "STALE_TOKEN")


@pytest.mark.parametrize("verb", ["ack", "nack", "extend"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({}, "raw", id="nothing"),
        pytest.param({"raw": 5}, "raw", id="raw a number"),
        pytest.param({"raw": "junk"}, "raw", id="raw junk"),
        pytest.param({"raw": ""}, "raw", id="raw empty"),
        pytest.param({"raw": "[]"}, "raw", id="raw an array"),
        pytest.param({"raw": "[" * 100_000}, "raw", id="raw without an end"),
        pytest.param({"raw": '{"taskId": "x", "token": 1}'}, "raw", id="raw of no task"),
        pytest.param({"raw": '{"token": 1}'}, "raw.taskId", id="raw without a task"),
        pytest.param({"raw": f'{{"taskId": "{UNKNOWN_TASK}", "token": "x"}}'}, "raw.token", id="raw with a bad token"),
        pytest.param({"raw": f'{{"taskId": "{UNKNOWN_TASK}", "token": {2**70}}}'}, "raw", id="raw with a huge token"),
        pytest.param({"taskId": UNKNOWN_TASK}, "raw", id="taskId without a token"),
        pytest.param({"taskId": "x", "token": "1"}, "taskId", id="taskId of no task"),
        pytest.param({"taskId": UNKNOWN_TASK, "token": "x"}, "token", id="token of letters"),
        pytest.param({"taskId": UNKNOWN_TASK, "token": "1", "more": 1}, "more", id="unknown field"),
    ],
)
async def test_junk_is_a_400_that_names_it(platform: Platform, verb: str, body: dict[str, Any], field: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer = await platform.outbox(verb, {"epoch": 1, **body})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"].startswith(field)


@pytest.mark.parametrize("verb", ["ack", "nack", "extend"])
async def test_a_task_that_never_was_is_refused(platform: Platform, verb: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer = await platform.outbox(verb, {"taskId": UNKNOWN_TASK, "token": "1", "epoch": 1})
    assert answer.status_code in (404, 409), answer.text


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        pytest.param("hello", {"journalId": JOURNAL}, "instanceId", id="hello without an instance"),
        pytest.param("hello", {"instanceId": INSTANCE, "journalId": 5}, "journalId", id="hello with a bad journal"),
        pytest.param("outbox/claim?timeout=0", {}, "epoch", id="claim without an epoch"),
        pytest.param("outbox/claim?timeout=0", {"epoch": "1"}, "epoch", id="claim with a text as epoch"),
        pytest.param("outbox/nack", {"raw": "{}"}, "epoch", id="nack without an epoch"),
        pytest.param("outbox/nack", {"raw": "{}", "epoch": 1, "error": "x"}, "error", id="nack with a text as error"),
        pytest.param("outbox/nack", {"raw": "{}", "epoch": 1, "error": {}}, "error.code", id="nack without a code"),
        pytest.param("outbox/nack", {"raw": "{}", "epoch": 1, "notSent": "no"}, "notSent", id="nack with a text"),
    ],
)
async def test_a_bad_field_of_a_worker_is_named(
    platform: Platform, path: str, body: dict[str, Any], field: str
) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer: httpx.Response = await platform.worker(f"/api/worker/sessions/{SESSION}/{path}", body)
    refused(answer, 400, "INVALID_REQUEST", field)


async def _until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the other side is a task of this very loop
            await asyncio.sleep(0)
