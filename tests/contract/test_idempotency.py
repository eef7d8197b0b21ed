"""Idempotency-Key: the first answer again, byte for byte, whatever happened in between."""

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from paceline.domain.errors import BadRequest, Unavailable
from paceline.gateway.idempotency import Idempotency
from paceline.gateway.schemas import JobRequest
from paceline.kits import failpoint
from paceline.store.guards import IDEMPOTENCY_STALE_MS, Begun

from .platform import ADMIN_KEY, DAY_MS, FRIEND, NOON, PHONE, SEND_KEY, Platform, refused

BODIES: list[Any] = [
    pytest.param("/v1/jobs", {"contacts": [FRIEND, "x"], "text": "hello"}, id="job"),
    pytest.param("/api/v1/send", {"to": FRIEND, "message": "hello"}, id="send"),
    pytest.param("/api/v1/send/batch", {"messages": [{"to": FRIEND, "text": "hello"}]}, id="batch"),
]


async def post(
    platform: Platform, path: str, body: dict[str, Any], *, key: str = "k-1", api_key: str = ADMIN_KEY
) -> httpx.Response:
    headers = {"Idempotency-Key": key, "X-API-KEY": api_key}
    return await platform.gateway.post(path, json=body, headers=headers)


async def jobs(platform: Platform) -> int:
    return len((await platform.link.read(("KEYS", "job:run:*")))[0])


class Crash(BaseException):
    """The process ends here; no handler of ours runs."""


@pytest.mark.parametrize(("path", "body"), BODIES)
@pytest.mark.parametrize("connected", [True, False], ids=["with a number", "without"])
async def test_the_same_request_again_gets_the_same_bytes(
    platform: Platform, path: str, body: dict[str, Any], connected: bool
) -> None:
    """One job, one answer, also when the queue has changed in between."""
    if connected:
        await platform.connect()
        await platform.gateway.post("/api/v1/send", json={"to": "972529876544", "message": "before"})
    first = await post(platform, path, body)
    await platform.gateway.post("/api/v1/send", json={"to": "972529876545", "message": "between"})
    count = await jobs(platform)
    platform.clock.forward(3_000)
    second = await post(platform, path, body)
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert first.status_code in (200, 202)
    assert await jobs(platform) == count


async def test_the_kept_answer_of_a_send_has_its_true_position(platform: Platform) -> None:
    """Only the script that queues it knows the position; it is in the first answer and in the kept one."""
    await platform.connect()
    await platform.gateway.post("/api/v1/send", json={"to": "972529876544", "message": "before"})
    body = {"to": FRIEND, "message": "hello", "phone": PHONE}
    assert [(await post(platform, "/api/v1/send", body)).json()["position"] for _ in range(2)] == [1, 1]


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_another_body_under_the_same_key_is_a_422(platform: Platform, path: str, body: dict[str, Any]) -> None:
    await post(platform, path, body)
    other = {**body, "priority": 2}
    async with platform.nothing_stored():
        refused(await post(platform, path, other), 422, "IDEMPOTENCY_KEY_REUSED", "Idempotency-Key")


async def test_the_key_of_another_caller_is_another_key(platform: Platform) -> None:
    body = {"contacts": [FRIEND], "text": "hello"}
    first = await post(platform, "/v1/jobs", body)
    second = await post(platform, "/v1/jobs", body, api_key=SEND_KEY)
    assert first.json()["jobId"] != second.json()["jobId"]


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a b", "ä"], ids=["empty", "blank", "long", "space", "umlaut"])
async def test_a_key_that_is_none_is_a_400(platform: Platform, key: str) -> None:
    headers = {"Idempotency-Key": key.encode("latin-1")}
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "text": "x"}, headers=headers)
    refused(answer, 400, "INVALID_REQUEST", "Idempotency-Key")


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_a_request_still_in_flight_is_a_409(
    platform: Platform, path: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two at once is told to come back; then it gets the first one's answer."""
    arrived, go_on = asyncio.Event(), asyncio.Event()
    look = platform.intake.watcher.look

    async def slow_look(*args: Any, **kwargs: Any) -> Any:
        arrived.set()
        await go_on.wait()
        return await look(*args, **kwargs)

    monkeypatch.setattr(platform.intake.watcher, "look", slow_look)
    first = asyncio.create_task(post(platform, path, body))
    await arrived.wait()
    second = await post(platform, path, body)
    refused(second, 409, "IDEMPOTENCY_IN_FLIGHT", "Idempotency-Key")
    assert int(second.headers["Retry-After"]) > 0
    go_on.set()
    assert (await first).content == (await post(platform, path, body)).content


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_a_crash_after_the_commit_is_answered_from_the_record(
    platform: Platform, path: str, body: dict[str, Any]
) -> None:
    """Accepted, not answered: the repeat finds the answer and accepts nothing again, at once."""
    failpoint.set_hook(_crash_at("accepted-not-answered"))
    try:
        with pytest.raises(Crash):
            await post(platform, path, body)
    finally:
        failpoint.set_hook(None)
    assert await jobs(platform) == 1
    again = await post(platform, path, body)
    assert again.status_code in (200, 202)
    assert again.content == (await post(platform, path, body)).content
    assert await jobs(platform) == 1


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_a_crash_before_the_commit_is_taken_over(
    platform: Platform, path: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For half a minute it counts as running; then a repeat does the work, under the same job id."""

    async def crash(*_: Any, **__: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(platform.intake.watcher, "look", crash)
        with pytest.raises(Crash):
            await post(platform, path, body)
    record = "idempotency:bootstrap:k-1"
    # The process that comes back after a crash is another.
    begun, _ = await platform.link.read(("HGET", record, "job"), ("HSET", record, "holder", "the one that crashed"))
    refused(await post(platform, path, body), 409, "IDEMPOTENCY_IN_FLIGHT")
    platform.clock.forward(IDEMPOTENCY_STALE_MS)
    answer = await post(platform, path, body)
    assert answer.status_code in (200, 202)
    assert begun in answer.text
    assert answer.content == (await post(platform, path, body)).content
    assert await jobs(platform) == 1


async def test_a_takeover_that_finds_the_job_answers_from_it(platform: Platform) -> None:
    """The record was lost to a crash between two versions of us; the job was not, and is not accepted twice."""
    body = {"contacts": [FRIEND], "text": "hello"}
    first = await post(platform, "/v1/jobs", body)
    await platform.link.read(("HSET", "idempotency:bootstrap:k-1", "state", "begun"))
    platform.clock.forward(IDEMPOTENCY_STALE_MS)
    again = await post(platform, "/v1/jobs", body)
    assert (again.status_code, again.json()["jobId"]) == (202, first.json()["jobId"])
    assert again.json()["accepted"] == 1
    assert await jobs(platform) == 1
    assert again.content == (await post(platform, "/v1/jobs", body)).content


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_a_takeover_says_what_was_accepted_even_if_it_would_be_refused_now(
    platform: Platform, path: str, body: dict[str, Any]
) -> None:
    """The person said stop after the job was accepted: the repeat must not tell the caller that nothing was."""
    first = await post(platform, path, body)
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    await platform.link.read(("HSET", "idempotency:bootstrap:k-1", "state", "begun"))
    platform.clock.forward(IDEMPOTENCY_STALE_MS)
    again = await post(platform, path, body)
    assert again.status_code == first.status_code, again.text
    assert await jobs(platform) == 1


async def test_a_late_first_request_does_not_touch_what_its_successor_committed(platform: Platform) -> None:
    """A gateway that slept between staging and commit wakes up when the job is there: it finds it and adds nothing."""
    request = JobRequest(contacts=[FRIEND], text="hello")
    job_id = platform.intake.new_job_id(platform.clock.at_ms)
    stage = platform.store.jobs.stage
    answers = []

    async def overtaken(*args: Any) -> int:
        platform.store.jobs.stage = stage  # type: ignore[method-assign]
        answers.append(await platform.intake.job(request, by="b", job_id=job_id, idem_key=None, now_ms=1))
        return await stage(*args)

    platform.store.jobs.stage = overtaken  # type: ignore[method-assign, assignment]
    answers.append(await platform.intake.job(request, by="b", job_id=job_id, idem_key=None, now_ms=1))
    assert answers[0].job_id == answers[1].job_id
    ttl = (await platform.link.read(("TTL", f"job:contacts:{job_id}:0")))[0]
    assert (ttl, await jobs(platform)) == (-1, 1)


@pytest.mark.parametrize(("path", "body"), BODIES)
async def test_what_was_cut_off_by_the_store_is_done_at_the_first_repeat(
    platform: Platform, path: str, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody works at it any more, so there is nothing to wait for; it keeps the job id that may have been accepted."""

    async def away(*_: Any, **__: Any) -> None:
        raise Unavailable("the store does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(platform.intake.watcher, "look", away)
        assert (await post(platform, path, body)).status_code == 503
    begun = (await platform.link.read(("HGET", "idempotency:bootstrap:k-1", "job")))[0]
    answer = await post(platform, path, body)
    assert (answer.status_code in (200, 202), begun in answer.text, await jobs(platform)) == (True, True, 1)


async def test_of_those_who_come_together_one_is_at_work_also_when_the_first_failed() -> None:
    """The first lost the store and left; the second is at it, and a third must see that."""
    began: list[bool] = []
    first_fails, work_ends = asyncio.Event(), asyncio.Event()

    class Guards:
        async def begin(self, *_: Any, is_free: bool, **__: Any) -> Begun:
            began.append(is_free)
            if len(began) == 1:
                await first_fails.wait()
                raise Unavailable("the store does not answer")
            return Begun("NEW", job="J")

    async def work(_job_id: str) -> bytes:
        await work_ends.wait()
        return b"{}"

    def asks() -> asyncio.Task[bytes]:
        return asyncio.create_task(idempotency.answer(by="b", key="k", body="h", job_id="J", now_ms=NOON, work=work))

    idempotency = Idempotency(SimpleNamespace(guards=Guards()))  # type: ignore[arg-type]
    first = asks()
    await asyncio.sleep(0)
    second = asks()
    await asyncio.sleep(0)
    first_fails.set()
    with pytest.raises(Unavailable):
        await first
    third = asks()
    await asyncio.sleep(0)
    assert began == [True, False, False]
    work_ends.set()
    assert [await second, await third] == [b"{}", b"{}"]
    assert idempotency._at_work == {}


async def test_a_late_refusal_does_not_forget_its_successors_request(platform: Platform) -> None:
    """A gateway slept through a download, and woke to find that it took too long. Its repeat was at work by then; with
    the key forgotten, that one's answer was not kept, and the next repeat made a second job."""
    guards = platform.store.guards

    async def late(_job_id: str) -> bytes:
        begun = await guards.begin(
            "b", "k", "hash", "J2", now_ms=NOON + IDEMPOTENCY_STALE_MS, holder="another", is_free=True
        )
        assert (begun.code, begun.job) == ("NEW", "J1")
        raise BadRequest("MEDIA_URL", "no answer in time")

    with pytest.raises(BadRequest):
        await Idempotency(platform.store).answer(by="b", key="k", body="hash", job_id="J1", now_ms=NOON, work=late)
    third = await guards.begin(
        "b", "k", "hash", "J3", now_ms=NOON + IDEMPOTENCY_STALE_MS + 1, holder="third", is_free=True
    )
    assert third.code == "IN_FLIGHT"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param("/v1/jobs", {"contacts": ["x"], "text": "hello"}, id="422"),
        pytest.param("/v1/jobs", {"contacts": [FRIEND], "text": "x", "sessionId": "nobody"}, id="404"),
        pytest.param("/api/v1/send", {"to": "x", "message": "hello"}, id="400"),
    ],
)
async def test_a_refused_request_leaves_its_key_free(platform: Platform, path: str, body: dict[str, Any]) -> None:
    """The caller mends the body and may use the same key."""
    async with platform.nothing_stored():
        assert (await post(platform, path, body)).status_code in (400, 404, 422)
    assert (await post(platform, "/v1/jobs", {"contacts": [FRIEND], "text": "hello"})).status_code == 202


async def test_an_unexpected_error_leaves_the_key_free(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    body = {"contacts": [FRIEND], "text": "hello"}
    with monkeypatch.context() as patch:
        patch.setattr(platform.intake.watcher, "look", fail)
        assert (await post(platform, "/v1/jobs", body)).status_code == 500
    assert (await post(platform, "/v1/jobs", body)).status_code == 202


async def test_a_lost_reply_of_the_commit_does_not_lead_to_two_jobs(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 to the caller, who repeats with the same key and gets the answer of what was accepted."""
    accept = platform.store.jobs.accept

    async def accept_without_reply(*args: Any, **kwargs: Any) -> str:
        await accept(*args, **kwargs)
        raise Unavailable("the reply was lost")

    body = {"contacts": [FRIEND], "text": "hello"}
    with monkeypatch.context() as patch:
        patch.setattr(platform.store.jobs, "accept", accept_without_reply)
        refused(await post(platform, "/v1/jobs", body), 503, "UNAVAILABLE")
    assert (await post(platform, "/v1/jobs", body)).status_code == 202
    assert await jobs(platform) == 1


async def test_after_24_hours_a_key_is_new_again(platform: Platform) -> None:
    body = {"contacts": [FRIEND], "text": "hello"}
    first = await post(platform, "/v1/jobs", body)
    platform.clock.forward(DAY_MS)
    assert (await post(platform, "/v1/jobs", body)).json()["jobId"] != first.json()["jobId"]


def _crash_at(name: str) -> Any:
    def hook(passed: str) -> None:
        if passed == name:
            raise Crash

    return hook
