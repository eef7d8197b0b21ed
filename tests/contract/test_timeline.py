"""GET /v1/jobs/:id/timeline: what was planned when the job was accepted, and what went out when."""

from paceline.store import courses

from .platform import DAY_MS, NOON, PHONE, Platform, refused


async def timeline(platform: Platform, job_id: str) -> dict:
    answer = await platform.gateway.get(f"/v1/jobs/{job_id}/timeline")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def went_out(platform: Platform, job_id: str, times: list[int]) -> None:
    """As settling writes it, for as many tasks as there are times."""
    await platform.link.read(
        ("SETRANGE", f"job:states:{job_id}", 0, "S" * len(times)),
        *(("HSET", f"message:{job_id}:{index}", "sentAt", at) for index, at in enumerate(times)),
    )


async def test_the_plan_is_that_of_the_moment_it_was_accepted(platform: Platform) -> None:
    """It ends where the forecast ended, and does not move when the number is taken away later."""
    await platform.connect()
    job = await platform.post_job(contacts=[str(972_520_000_000 + i) for i in range(300)])
    before = await timeline(platform, job["jobId"])
    assert before["planned"][0] == {"at": NOON, "sent": 0}
    assert before["planned"][-1] == {"at": job["estimatedCompletion"], "sent": 300}
    assert before["actual"] == []
    await platform.webhook("DISCONNECTED", {"reason": "lost"})
    platform.clock.forward(DAY_MS)
    assert await timeline(platform, job["jobId"]) == before


async def test_what_was_sent_stands_at_its_time(platform: Platform) -> None:
    await platform.connect()
    job = await platform.post_job()
    await platform.dispatch()
    task = (await platform.claim())["task"]
    platform.clock.forward(2_500)
    proof = {"messageId": task["taskId"], "to": task["to"], "whatsappId": task["whatsappId"]}
    assert (await platform.webhook("MESSAGE_SENT", proof)).status_code == 200
    assert (await timeline(platform, job["jobId"]))["actual"] == [{"at": NOON + 2_500, "sent": 1}]


async def test_some_tell_of_all(platform: Platform) -> None:
    """Of more than 400 messages a sample is asked; the curve still ends with all that went out."""
    await platform.connect()
    size = 3 * courses.ASKED
    job = await platform.post_job(contacts=[str(972_520_000_000 + i) for i in range(size + 10)])
    await went_out(platform, job["jobId"], [NOON + index * 1_000 for index in range(size)])
    actual = (await timeline(platform, job["jobId"]))["actual"]
    assert len(actual) == courses.ASKED
    assert actual[-1]["sent"] == size
    assert all(abs(point["at"] - NOON - point["sent"] * 1_000) <= 4_000 for point in actual)


async def test_of_an_old_job_the_times_are_gone(platform: Platform) -> None:
    """Messages are kept for a shorter time than their job: no times, and no error."""
    await platform.connect()
    job = await platform.post_job()
    await platform.link.read(("SETRANGE", f"job:states:{job['jobId']}", 0, "S"))
    assert (await timeline(platform, job["jobId"]))["actual"] == []


async def test_a_batch_has_a_plan_too(platform: Platform) -> None:
    await platform.connect()
    body = {"messages": [{"to": f"97252000000{i}", "text": "hello"} for i in range(3)], "phone": PHONE}
    job = (await platform.gateway.post("/api/v1/send/batch", json=body)).json()
    assert (await timeline(platform, job["jobId"]))["planned"][-1] == {"at": job["estimatedCompletion"], "sent": 3}


async def test_without_a_number_nothing_is_planned(platform: Platform) -> None:
    job = await platform.post_job()
    assert (await timeline(platform, job["jobId"]))["planned"] == []


async def test_a_job_that_is_not_there(platform: Platform) -> None:
    refused(await platform.gateway.get("/v1/jobs/01KKBK4FE0S7MP2BKPJTKCXK0V/timeline"), 404, "UNKNOWN_JOB", "jobId")
    refused(await platform.gateway.get("/v1/jobs/no/timeline"), 404, "UNKNOWN_JOB", "jobId")
