"""POST /v1/jobs/:id/pause and /resume: what no worker has claimed waits until the caller says so."""

from typing import Any

import httpx
import pytest

from .platform import FRIEND, NOON, PHONE, READ_KEY, Platform, refused

PEOPLE = [FRIEND, "972529876544", "972529876545"]
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def post(platform: Platform, job: dict[str, Any], verb: str) -> httpx.Response:
    return await platform.gateway.post(f"{job['statusUrl']}/{verb}")


async def status(platform: Platform, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await platform.gateway.get(job["statusUrl"])).json()
    return found


async def test_a_paused_job_says_so_everywhere(platform: Platform) -> None:
    """The answer, the job, and each of its messages, routed or not; nobody knows when it will be done."""
    await platform.connect()
    job = await platform.post_job(contacts=PEOPLE)
    await platform.dispatch()
    claim = await platform.claim()
    answer = await post(platform, job, "pause")
    assert (answer.status_code, answer.json()) == (
        200,
        {"jobId": job["jobId"], "state": "PAUSED", "pausedAt": NOON, "waiting": 2, "claimed": 1},
    )
    found = await status(platform, job)
    assert (found["state"], found["estimatedCompletion"]) == ("PAUSED", None)
    assert (found["waiting"]["reason"], found["waiting"]["until"]) == ("JOB_PAUSED", None)
    assert "paused" in found["waiting"]["text"]
    assert found["progress"]["queued"] == 2
    waiting = (await platform.message(f"{job['jobId']}:1"))["waiting"]
    assert (waiting["reason"], waiting["until"]) == ("JOB_PAUSED", None)
    assert (await platform.message(claim["task"]["taskId"]))["waiting"] is None


async def test_before_routing_too(platform: Platform) -> None:
    job = await platform.post_job(contacts=PEOPLE)
    await post(platform, job, "pause")
    await platform.connect()
    await platform.dispatch()
    assert (await status(platform, job))["progress"]["queued"] == 3
    assert (await platform.message(f"{job['jobId']}:2"))["waiting"]["reason"] == "JOB_PAUSED"


async def test_nothing_goes_out_while_it_is_paused_and_all_of_it_afterwards(platform: Platform) -> None:
    await platform.connect()
    job = await platform.post_job(contacts=PEOPLE)
    await platform.dispatch()
    await post(platform, job, "pause")
    for _ in range(3):
        assert (await platform.claim())["task"] is None
        platform.clock.forward(30_000)
        await platform.webhook("PING")
        await platform.dispatch()
    found = await status(platform, job)
    assert (found["state"], found["progress"]["parked"]) == ("PAUSED", 3)
    message = await platform.message(f"{job['jobId']}:0")
    assert (message["state"], message["waiting"]["reason"]) == ("parked", "JOB_PAUSED")
    answer = await post(platform, job, "resume")
    assert answer.json() == {"jobId": job["jobId"], "state": "ROUTED", "released": 3}
    assert (await status(platform, job))["estimatedCompletion"] is not None
    for index in range(3):
        await platform.dispatch()
        claim = await platform.claim()
        assert claim["task"]["taskId"] == f"{job['jobId']}:{index}", "in the old order"
        await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
        platform.clock.forward(40_000)
        await platform.webhook("PING")
    assert (await status(platform, job))["state"] == "DONE"


async def test_another_job_is_not_held_up_by_it(platform: Platform) -> None:
    await platform.connect()
    held = await platform.post_job(contacts=PEOPLE)
    await platform.dispatch()
    await post(platform, held, "pause")
    other = await platform.post_job(contacts=["972529876546"])
    assert (await platform.claim())["task"] is None
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    await platform.dispatch()
    assert (await platform.claim())["task"]["taskId"] == f"{other['jobId']}:0"


async def test_pausing_twice_is_no_error_and_one_event(platform: Platform) -> None:
    job = await platform.post_job()
    first = await post(platform, job, "pause")
    platform.clock.forward(5_000)
    second = await post(platform, job, "pause")
    assert (first.content, second.status_code) == (second.content, 200)
    events = [event["event"] for event in await platform.store.jobs.events(10)]
    assert events == ["JOB_PAUSED", "JOB_ACCEPTED"]


async def test_resuming_what_is_not_paused_is_a_409(platform: Platform) -> None:
    job = await platform.post_job()
    error = refused(await post(platform, job, "resume"), 409, "JOB_NOT_PAUSED")
    assert error["details"]["state"] == "QUEUED"
    await post(platform, job, "pause")
    assert (await post(platform, job, "resume")).json() == {"jobId": job["jobId"], "state": "QUEUED", "released": 0}
    refused(await post(platform, job, "resume"), 409, "JOB_NOT_PAUSED")


@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_a_job_that_has_ended_is_a_409(platform: Platform, verb: str) -> None:
    job = await platform.post_job()
    await post(platform, job, "cancel")
    async with platform.nothing_stored():
        error = refused(await post(platform, job, verb), 409, "JOB_CLOSED")
    assert error["details"]["state"] == "CANCELED"


async def test_a_paused_job_can_be_canceled(platform: Platform) -> None:
    job = await platform.post_job(contacts=PEOPLE)
    await post(platform, job, "pause")
    assert (await post(platform, job, "cancel")).json()["canceled"] == 3
    found = await status(platform, job)
    assert (found["state"], found["waiting"], found["progress"]["canceled"]) == ("CANCELED", None, 3)


async def test_a_single_message_can_be_held_by_its_job(platform: Platform) -> None:
    await platform.connect()
    sent = (await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "x", "phone": PHONE})).json()
    url = f"/v1/jobs/{sent['messageId'].partition(':')[0]}"
    assert (await platform.gateway.post(f"{url}/pause")).json()["waiting"] == 1
    await platform.dispatch()
    assert (await platform.claim())["task"] is None


@pytest.mark.parametrize("job_id", [NOBODY, "x", f"run:{NOBODY}"])
@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_a_job_nobody_knows_is_a_404(platform: Platform, verb: str, job_id: str) -> None:
    await platform.post_job()
    async with platform.nothing_stored():
        refused(await platform.gateway.post(f"/v1/jobs/{job_id}/{verb}"), 404, "UNKNOWN_JOB", "jobId")


@pytest.mark.parametrize(("key", "code"), [("", 401), (READ_KEY, 403)])
@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_it_needs_a_key_that_may_send(platform: Platform, verb: str, key: str, code: int) -> None:
    job = await platform.post_job()
    answer = await platform.gateway.post(f"{job['statusUrl']}/{verb}", headers={"X-API-KEY": key})
    refused(answer, code, "UNAUTHORIZED" if code == 401 else "FORBIDDEN")
    assert (await status(platform, job))["state"] == "QUEUED"
