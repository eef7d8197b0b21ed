"""POST /api/sessions/:id/outbox/enqueue: the dispatcher's hand-overs (SEND_MODE=api), and messages of others."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from paceline.dispatcher.handing import LEASE_MS, Handing, Post
from paceline.dispatcher.outbox_http import HttpOutbox
from paceline.domain.ids import derived_job_id, is_job_id
from paceline.orchestrator.enqueue import Enqueue, EnqueueBody
from paceline.policy.dispatch import Send, decide
from paceline.store.guards import Suppression
from paceline.store.jobs import SINGLE_SENDS_LIMIT

from .platform import ADMIN_KEY, FRIEND, NOON, OTHER_PHONE, PHONE, READ_KEY, SEND_KEY, SESSION, Platform, refused

THEIRS = {"mode": "message", "to": FRIEND, "text": "hello", "jobId": "campaign-7", "taskId": "crm/4711"}
NOBODYS_TASK = "01ARZ3NDEKTSV4RRFFQ69G5FAV:0"


async def enqueue(
    platform: Platform, body: Any = None, *, session: str = SESSION, key: str = SEND_KEY, **changes: Any
) -> httpx.Response:
    sent = {**THEIRS, **changes} if body is None else body
    path = f"/api/sessions/{session}/outbox/enqueue"
    return await platform.orchestrator.post(path, json=sent, headers={"X-API-KEY": key})


async def hand_off(platform: Platform, **job: Any) -> str:
    """One message of a fresh job on its way to the outbox by POST; its task."""
    answer = await platform.post_job(**job)
    await platform.engine.routers[0].step(platform.clock.at_ms)
    due = await platform.store.pacers.claim_due(now_ms=platform.clock.at_ms, lease_ms=5_000, limit=10)
    (facts,) = [facts for facts in due.phones if facts.heads]
    decision = decide(facts, platform.rules, now_ms=platform.clock.at_ms, rng=platform.intake._rng)
    assert isinstance(decision.final, Send)
    now_ms = platform.clock.at_ms
    (code,) = await platform.store.pacers.hand_off([(facts, decision)], now_ms=now_ms, handoff_ttl_ms=60_000, api=True)
    assert code == "OK"
    return f"{answer['jobId']}:0"


def post_of(task: str, **changes: Any) -> dict[str, Any]:
    job, _, _ = task.partition(":")
    return {"mode": "message", "to": FRIEND, "text": "hello", "jobId": job, "taskId": task, **changes}


@pytest.fixture
async def handing(platform: Platform) -> AsyncIterator[Handing]:
    transport = httpx.ASGITransport(platform.services["orchestrator"])
    outbox = HttpOutbox("http://paceline", SEND_KEY, transport=transport)
    yield Handing(platform.store, outbox)
    await outbox.close()


# The dispatcher's hand-overs


async def test_a_message_goes_all_the_way_by_post(platform: Platform, handing: Handing) -> None:
    """Handed off, posted, claimed with its final text, sent."""
    await platform.connect()
    task = await hand_off(platform, contacts=[{"to": FRIEND, "vars": {"name": "Ada"}}], text="hi {{name}}")
    assert (await platform.claim())["task"] is None
    assert await handing.step(NOON) == NOON
    assert await handing.step(NOON) is None
    claim = await platform.claim()
    assert (claim["task"]["taskId"], claim["task"]["text"]) == (task, "hi Ada")
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    assert (await platform.message(task))["state"] == "sent"
    assert (handing.posted, handing.failed) == (1, 0)


async def test_a_hand_over_posted_twice_is_one_task(platform: Platform) -> None:
    await platform.connect()
    task = await hand_off(platform)
    first = await enqueue(platform, post_of(task))
    assert first.json() == {"status": "ok", "taskId": task, "messageId": task, "state": "handed_off"}
    async with platform.nothing_stored():
        again = await enqueue(platform, post_of(task))
    assert (again.status_code, again.content) == (200, first.content)


async def test_the_stored_message_counts_not_the_posted_one(platform: Platform) -> None:
    """Who knows a task's id can neither change its text nor its recipient."""
    await platform.connect()
    task = await hand_off(platform)
    assert (await enqueue(platform, post_of(task, text="forged", to="972520000000"))).status_code == 200
    given = (await platform.claim())["task"]
    assert (given["text"], given["to"]) == ("hello", FRIEND)


async def test_a_late_post_of_what_was_canceled_is_a_409(platform: Platform) -> None:
    await platform.connect()
    task = await hand_off(platform)
    await platform.gateway.post(f"/v1/jobs/{task.split(':')[0]}/cancel")
    async with platform.nothing_stored():
        refused(await enqueue(platform, post_of(task)), 409, "TASK_GONE", "taskId")


async def test_a_task_of_ours_that_waits_for_its_turn_cannot_be_pushed_forward(platform: Platform) -> None:
    await platform.connect()
    job = await platform.post_job()
    await platform.engine.routers[0].step(NOON)
    async with platform.nothing_stored():
        refused(await enqueue(platform, post_of(f"{job['jobId']}:0")), 409, "TASK_GONE", "taskId")


async def test_a_hand_over_of_another_session_is_a_404(platform: Platform) -> None:
    await platform.connect()
    task = await hand_off(platform)
    async with platform.nothing_stored():
        refused(await enqueue(platform, post_of(task), session="s2"), 404, "UNKNOWN_TASK", "taskId")


async def test_a_key_that_is_refused_loses_nothing(platform: Platform) -> None:
    """Posted again under the next lease, by whoever holds a good key."""
    await platform.connect()
    await hand_off(platform)
    transport = httpx.ASGITransport(platform.services["orchestrator"])
    for key, posted in ((READ_KEY, 0), ("wrong", 0), (ADMIN_KEY, 1)):
        outbox = HttpOutbox("http://paceline", key, transport=transport)
        handing = Handing(platform.store, outbox)
        await handing.step(platform.clock.at_ms)
        assert (handing.posted, handing.failed) == (posted, 1 - posted)
        await outbox.close()
        platform.clock.forward(LEASE_MS)
    assert (await platform.claim())["task"] is not None


# Messages of others


async def test_a_message_of_others_waits_for_its_pace_and_is_sent_by_that_session(platform: Platform) -> None:
    await platform.connect()
    answer = await enqueue(platform)
    message = f"{derived_job_id(SESSION, 'crm/4711')}:0"
    assert answer.json() == {"status": "ok", "taskId": "crm/4711", "messageId": message, "state": "queued"}
    assert (await platform.claim())["task"] is None
    await platform.dispatch()
    given = (await platform.claim())["task"]
    assert (given["taskId"], given["to"], given["text"]) == (message, FRIEND, "hello")
    stored = await platform.store.jobs.message(message)
    assert stored is not None
    assert (stored.job.accepted_by, stored.job.phone, stored.job.session_id) == ("sender", PHONE, SESSION)
    assert (stored.contact.client_ref, stored.job.metadata, stored.job.single) == (
        "crm/4711",
        {"jobId": "campaign-7"},
        True,
    )


async def test_the_same_task_id_twice_is_one_task_whatever_happened_since(platform: Platform) -> None:
    """The answer was lost. By the time of the repeat the person is suppressed; what was accepted was accepted."""
    await platform.connect()
    first = await enqueue(platform)
    await platform.store.guards.suppress([Suppression(FRIEND, NOON)])
    async with platform.nothing_stored():
        again = await enqueue(platform, text="another text")
    assert (again.status_code, again.content) == (200, first.content)


async def test_the_same_task_id_at_once_is_one_task(platform: Platform) -> None:
    await platform.connect()
    answers = await asyncio.gather(*(enqueue(platform) for _ in range(8)))
    assert {answer.content for answer in answers} == {answers[0].content}
    assert {answer.status_code for answer in answers} == {200}
    assert (await platform.link.read(("LLEN", f"queue:session:{PHONE}")))[0] == 1


async def test_another_session_or_another_task_id_is_another_task(platform: Platform) -> None:
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    ids = [
        (await enqueue(platform, session=session, taskId=task)).json()["messageId"]
        for session in (SESSION, "s2")
        for task in ("a", "b", NOBODYS_TASK, "ж" * 128, " ")
    ]
    assert len(set(ids)) == 10
    assert all(is_job_id(id_.removesuffix(":0")) for id_ in ids)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        pytest.param({"to": "12"}, "INVALID_NUMBER", "to", id="no number"),
        pytest.param({"to": "x" * 65}, "INVALID_REQUEST", "to", id="a number too long"),
        pytest.param({"to": 5}, "INVALID_REQUEST", "to", id="a number as a number"),
        pytest.param({"text": None}, "EMPTY_TEXT", "text", id="no text"),
        pytest.param({"text": " \n"}, "EMPTY_TEXT", "text", id="an empty text"),
        pytest.param({"text": "x" * 4_097}, "TEXT_TOO_LONG", "text", id="a text too long"),
        pytest.param({"text": "hi {{name}}"}, "MISSING_VARIABLE", "text", id="a variable"),
        pytest.param({"mode": "image"}, "MEDIA_MODE", "mediaRef", id="an image without a file"),
        pytest.param({"mode": "video"}, "INVALID_REQUEST", "mode", id="no mode"),
        pytest.param({"mediaRef": "m"}, "MEDIA_MODE", "mediaRef", id="media in a text message"),
        pytest.param({"caption": "c"}, "MEDIA_MODE", "caption", id="a caption in a text message"),
        pytest.param({"mediaPath": "x" * 4_097}, "INVALID_REQUEST", "mediaPath", id="a path too long"),
        pytest.param({"taskId": ""}, "INVALID_REQUEST", "taskId", id="an empty task id"),
        pytest.param({"taskId": "x" * 129}, "INVALID_REQUEST", "taskId", id="a task id too long"),
        pytest.param({"taskId": "a\nb"}, "INVALID_ID", "taskId", id="a line break in a task id"),
        pytest.param({"taskId": "a\0b"}, "INVALID_JSON", "taskId", id="a zero in a task id"),
        pytest.param({"jobId": "a\tb"}, "INVALID_ID", "jobId", id="a tab in a job id"),
        pytest.param({"jobId": None}, "INVALID_REQUEST", "jobId", id="no job id"),
        pytest.param({"sendAt": 1}, "INVALID_REQUEST", "sendAt", id="an unknown field"),
    ],
)
async def test_bad_input_is_a_400_that_names_the_field(
    platform: Platform, changes: dict[str, Any], code: str, field: str
) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        refused(await enqueue(platform, **changes), 400, code, field)


@pytest.mark.parametrize("field", ["to", "jobId", "taskId"])
async def test_a_missing_field_is_named(platform: Platform, field: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        body = {name: value for name, value in THEIRS.items() if name != field}
        refused(await enqueue(platform, body), 400, "INVALID_REQUEST", field)


async def test_the_longest_text_and_a_media_path_are_taken(platform: Platform) -> None:
    """The path is that of an old client's disk; nobody reads it."""
    await platform.connect()
    answer = await enqueue(platform, text="ж" * 4_096, mediaPath="/etc/passwd")
    assert answer.status_code == 200
    assert "passwd" not in repr(await platform.snapshot())


@pytest.mark.parametrize("session", ["nobody", "status:s1", "s1%20", "%2e%2e", "s1%3Aphone", "x" * 65])
async def test_an_unknown_session_is_a_404(platform: Platform, session: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        refused(await enqueue(platform, session=session), 404, "UNKNOWN_SESSION", "sessionId")


@pytest.mark.parametrize(("key", "status", "code"), [("", 401, "UNAUTHORIZED"), (READ_KEY, 403, "FORBIDDEN")])
async def test_only_a_key_that_may_send(platform: Platform, key: str, status: int, code: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        refused(await enqueue(platform, key=key), status, code)


async def test_a_suppressed_person_is_a_422(platform: Platform) -> None:
    await platform.connect()
    await platform.store.guards.suppress([Suppression(FRIEND, NOON)])
    async with platform.nothing_stored():
        refused(await enqueue(platform), 422, "SUPPRESSED", "to")


async def test_a_number_with_too_much_waiting_is_a_429(platform: Platform) -> None:
    await platform.connect()
    await platform.link.read(("SADD", f"queue:singles:{PHONE}", *[str(i) for i in range(SINGLE_SENDS_LIMIT)]))
    async with platform.nothing_stored():
        answer = await enqueue(platform)
    error = refused(answer, 429, "QUEUE_FULL")
    assert int(answer.headers["Retry-After"]) == error["retryAfterSeconds"] > 0


async def test_a_full_store_takes_nothing_new_but_what_was_handed_off(platform: Platform) -> None:
    await platform.connect()
    task = await hand_off(platform)
    await platform.link.read(("CONFIG", "SET", "maxmemory", 1_100_000))
    refused(await enqueue(platform), 503, "UNAVAILABLE")
    assert (await enqueue(platform, post_of(task))).status_code == 200


async def test_the_core_needs_no_http(platform: Platform) -> None:
    """How the World calls it."""
    await platform.connect()
    body = msgspec.convert(THEIRS, EnqueueBody)
    answer = await Enqueue(platform.store).enqueue(SESSION, body, by="k", now_ms=NOON)
    assert (answer.status, answer.task_id, answer.state) == ("ok", "crm/4711", "queued")


# The dispatcher's client


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(httpx.Response(200), None, id="taken"),
        pytest.param(httpx.Response(409, json={"error": {"code": "TASK_GONE"}}), "409 TASK_GONE", id="refused by ours"),
        pytest.param(httpx.Response(502, text="<html>"), "502 UNREADABLE", id="refused by somebody in between"),
        pytest.param(httpx.Response(500, json=["x"]), "500 UNREADABLE", id="an odd shape"),
        pytest.param(httpx.Response(302, headers={"Location": "http://else"}), "302 UNREADABLE", id="sent elsewhere"),
        pytest.param(httpx.ConnectError("secret address"), "ConnectError", id="nobody there"),
        pytest.param(httpx.ReadTimeout("slow"), "ReadTimeout", id="too slow"),
    ],
)
async def test_what_an_answer_means(answer: httpx.Response | Exception, problem: str | None) -> None:
    """The client says what went wrong and raises nothing; the first post's trouble is not the second one's."""
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path.startswith("/api/sessions/good"):
            return httpx.Response(200)
        if isinstance(answer, Exception):
            raise answer
        return answer

    outbox = HttpOutbox("http://orchestrator:3000", "key-1", transport=httpx.MockTransport(respond))
    posts = [Post("bad", {"taskId": "a", "text": "ж"}, request_id="crm-42"), Post("good", {"taskId": "b"})]
    assert await outbox.enqueue_many(posts) == [problem, None]
    assert str(seen[0].url) == "http://orchestrator:3000/api/sessions/bad/outbox/enqueue"
    assert msgspec.json.decode(seen[0].content) == posts[0].body
    assert (seen[0].headers["X-API-KEY"], seen[0].headers["Content-Type"]) == ("key-1", "application/json")
    assert [post.headers.get("X-Request-Id") for post in seen] == ["crm-42", None]
    await outbox.close()


async def test_a_session_id_cannot_leave_its_place_in_the_path() -> None:
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    outbox = HttpOutbox("http://orchestrator:3000", "key-1", transport=httpx.MockTransport(respond))
    await outbox.enqueue_many([Post("../a?b", {})])
    assert seen[0].url.raw_path == b"/api/sessions/..%2Fa%3Fb/outbox/enqueue"
    await outbox.close()


def test_a_derived_job_id_is_one_of_ours_and_always_the_same() -> None:
    first = derived_job_id("s1", "crm/4711")
    assert is_job_id(first)
    assert first == derived_job_id("s1", "crm/4711")
    assert len({first, derived_job_id("s1c", "rm/4711"), derived_job_id("s2", "crm/4711")}) == 3
