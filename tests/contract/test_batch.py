"""POST /api/v1/send/batch: many people, each with a text of their own, spread over time."""

from typing import Any

import httpx
import msgspec
import pytest

from paceline.kits.web import MEGABYTE

from .platform import FRIEND, NOON, OTHER_PHONE, PHONE, READ_KEY, SESSION, Platform, refused

PATH = "/api/v1/send/batch"
JSON = {"Content-Type": "application/json"}
GOOD = [{"to": FRIEND, "text": "hello"}, {"to": "972529876544", "text": "שלום"}]


async def batch(platform: Platform, messages: Any = None, **fields: Any) -> httpx.Response:
    return await platform.gateway.post(PATH, json={"messages": GOOD if messages is None else messages, **fields})


async def texts(platform: Platform, count: int) -> list[tuple[str, str]]:
    """What goes to a worker, in order."""
    found = []
    for _ in range(count):
        await platform.dispatch()
        claim = await platform.claim()
        found.append((claim["task"]["to"], claim["task"]["text"]))
        await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
        platform.clock.forward(40_000)
        await platform.webhook("PING")
    return found


async def test_a_batch_is_one_job_with_its_own_texts(platform: Platform) -> None:
    await platform.connect()
    answer = await batch(platform, sessionId=SESSION, priority=2)
    body = answer.json()
    assert answer.status_code == 200
    assert body == {
        "queued": 2,
        "jobId": body["jobId"],
        "suppressed": 0,
        "estimatedCompletion": body["estimatedCompletion"],
    }
    assert body["estimatedCompletion"] > NOON
    status = (await platform.gateway.get(f"/v1/jobs/{body['jobId']}")).json()
    assert (status["progress"]["total"], status["priority"], status["phone"]) == (2, 2, PHONE)
    assert await texts(platform, 2) == [(FRIEND, "hello"), ("972529876544", "שלום")]


async def test_texts_go_out_unchanged(platform: Platform) -> None:
    """Braces that would be a variable in a job's text are just characters here, also those of our own template."""
    await platform.connect()
    wild = ["hi {{name}}", "{{text}}", "{{ text }}{{text}}", r"\1 \g<0> {{", "{{{text}}}"]
    messages = [{"to": str(972_529_876_543 + i), "text": text} for i, text in enumerate(wild)]
    await batch(platform, messages)
    assert [text for _, text in await texts(platform, len(wild))] == wild


async def test_two_messages_to_the_same_person_are_both_sent(platform: Platform) -> None:
    await platform.connect()
    messages = [{"to": FRIEND, "text": "first"}, {"to": f"+{FRIEND}", "text": "second"}]
    assert (await batch(platform, messages)).json()["queued"] == 2
    assert await texts(platform, 2) == [(FRIEND, "first"), (FRIEND, "second")]


async def test_they_are_spread_over_the_time(platform: Platform) -> None:
    """The i-th at now + i × spread/n."""
    await platform.connect()
    messages = [{"to": str(972_529_876_543 + i), "text": "x"} for i in range(4)]
    body = (await batch(platform, messages, spreadMinutes=60)).json()
    await platform.dispatch()
    for index in (1, 2, 3):
        waiting = (await platform.message(f"{body['jobId']}:{index}"))["waiting"]
        assert (waiting["reason"], waiting["until"]) == ("SCHEDULED", NOON + index * 900_000)
    assert body["estimatedCompletion"] >= NOON + 3 * 900_000


async def test_suppressed_people_are_skipped_and_counted(platform: Platform) -> None:
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    body = (await batch(platform)).json()
    assert (body["queued"], body["suppressed"]) == (1, 1)
    assert (await platform.message(f"{body['jobId']}:0"))["to"] == "972529876544"


async def test_only_suppressed_people_is_a_422(platform: Platform) -> None:
    await platform.gateway.post("/v1/suppressions", json={"to": [item["to"] for item in GOOD]})
    async with platform.nothing_stored():
        error = refused(await batch(platform), 422, "NOTHING_ACCEPTED", "messages")
    assert error["details"]["suppressed"] == 2


@pytest.mark.parametrize(
    ("item", "field", "code"),
    [
        pytest.param({"to": "12", "text": "x"}, "messages[2].to", "INVALID_NUMBER", id="no number"),
        pytest.param({"to": "9" * 65, "text": "x"}, "messages[2].to", "INVALID_NUMBER", id="an endless number"),
        pytest.param({"to": 972529876543, "text": "x"}, "messages[2].to", "INVALID_REQUEST", id="an integer"),
        pytest.param({"text": "x"}, "messages[2].to", "INVALID_REQUEST", id="no to"),
        pytest.param({"to": FRIEND}, "messages[2].text", "INVALID_REQUEST", id="no text"),
        pytest.param({"to": FRIEND, "text": ""}, "messages[2].text", "EMPTY_TEXT", id="an empty text"),
        pytest.param({"to": FRIEND, "text": " \n"}, "messages[2].text", "EMPTY_TEXT", id="a blank text"),
        pytest.param({"to": FRIEND, "text": "x" * 4097}, "messages[2].text", "TEXT_TOO_LONG", id="4,097 characters"),
        pytest.param({"to": FRIEND, "text": None}, "messages[2].text", "INVALID_REQUEST", id="text null"),
        pytest.param(
            {"to": FRIEND, "text": "x", "vars": {}}, "messages[2].vars", "INVALID_REQUEST", id="a field too many"
        ),
        pytest.param("972529876543", "messages[2]", "INVALID_REQUEST", id="a bare number"),
    ],
)
async def test_one_bad_message_refuses_all_and_is_named(platform: Platform, item: Any, field: str, code: str) -> None:
    """Unlike a job's contacts: a text that somebody wrote for one person must not be dropped in silence."""
    async with platform.nothing_stored():
        refused(await batch(platform, [*GOOD, item]), 400, code, field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"messages": []}, "messages", id="none"),
        pytest.param({"messages": None}, "messages", id="null"),
        pytest.param({"messages": {"to": FRIEND}}, "messages", id="no list"),
        pytest.param({"spreadMinutes": -1}, "spreadMinutes", id="negative spread"),
        pytest.param({"spreadMinutes": "5"}, "spreadMinutes", id="spread a string"),
        pytest.param({"priority": 4}, "priority", id="priority 4"),
        pytest.param({"phone": "12"}, "phone", id="phone no number"),
        pytest.param({"sendAt": NOON}, "sendAt", id="unknown field"),
    ],
)
async def test_a_bad_field_is_named_and_nothing_stored(platform: Platform, change: dict[str, Any], field: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post(PATH, json={"messages": GOOD, **change})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


@pytest.mark.parametrize(
    ("name", "code", "field"),
    [
        pytest.param({"sessionId": "nobody"}, "UNKNOWN_SESSION", "sessionId", id="session"),
        pytest.param({"phone": OTHER_PHONE}, "UNKNOWN_PHONE", "phone", id="phone"),
    ],
)
async def test_an_unknown_session_or_phone_is_a_404(
    platform: Platform, name: dict[str, str], code: str, field: str
) -> None:
    await platform.register()
    async with platform.nothing_stored():
        refused(await batch(platform, **name), 404, code, field)


def many(count: int) -> bytes:
    return msgspec.json.encode({"messages": [{"to": str(972_540_000_000 + i), "text": "hello"} for i in range(count)]})


async def test_10_000_messages_are_one_batch_and_10_001_are_none(platform: Platform) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post(PATH, content=many(10_001), headers=JSON)
    refused(answer, 400, "INVALID_REQUEST", "messages")
    assert len(many(10_000)) < MEGABYTE
    answer = await platform.gateway.post(PATH, content=many(10_000), headers=JSON)
    assert answer.json()["queued"] == 10_000
    status = (await platform.gateway.get(f"/v1/jobs/{answer.json()['jobId']}")).json()
    assert status["progress"]["queued"] == 10_000


async def test_a_body_over_1_mb_is_a_413(platform: Platform) -> None:
    body = msgspec.json.encode({"messages": [{"to": FRIEND, "text": "x" * 4_000}] * 300})
    async with platform.nothing_stored():
        refused(await platform.gateway.post(PATH, content=body, headers=JSON), 413, "BODY_TOO_LARGE")


async def test_the_same_key_gets_the_same_bytes_and_one_job(platform: Platform) -> None:
    await platform.connect()
    headers = {"Idempotency-Key": "k-1"}
    first = await platform.gateway.post(PATH, json={"messages": GOOD}, headers=headers)
    platform.clock.forward(60_000)
    second = await platform.gateway.post(PATH, json={"messages": GOOD}, headers=headers)
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert len((await platform.link.read(("KEYS", "job:run:*")))[0]) == 1
    other = await platform.gateway.post(PATH, json={"messages": GOOD[:1]}, headers=headers)
    refused(other, 422, "IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")


async def test_a_refused_batch_does_not_use_up_its_key(platform: Platform) -> None:
    headers = {"Idempotency-Key": "k-1"}
    bad = await platform.gateway.post(PATH, json={"messages": [{"to": "12", "text": "x"}]}, headers=headers)
    refused(bad, 400, "INVALID_NUMBER")
    assert (await platform.gateway.post(PATH, json={"messages": GOOD}, headers=headers)).status_code == 200


async def test_above_80_percent_of_memory_nothing_new_is_taken(platform: Platform) -> None:
    used = int((await platform.link.read(("INFO", "memory")))[0]["used_memory"])
    await platform.link.read(("CONFIG", "SET", "maxmemory", used * 11 // 10))
    platform.clock.forward(1_000)
    try:
        async with platform.nothing_stored():
            refused(await batch(platform), 503, "UNAVAILABLE")
    finally:
        await platform.link.read(("CONFIG", "SET", "maxmemory", 0))


@pytest.mark.parametrize(("key", "status", "code"), [("", 401, "UNAUTHORIZED"), (READ_KEY, 403, "FORBIDDEN")])
async def test_it_needs_a_key_that_may_send(platform: Platform, key: str, status: int, code: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post(PATH, json={"messages": GOOD}, headers={"X-API-KEY": key})
    refused(answer, status, code)
