"""Estimates count what runs, and only where it runs: not paused or later jobs, not paused numbers, not the queues of
numbers that have nothing of the job."""

from typing import Any

import pytest

from .platform import DAY_MS, NOON, OTHER_PHONE, PHONE, SESSION, Platform
from .test_plan import ask, israelis

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def others(count: int) -> list[str]:
    return [f"97253{i:07d}" for i in range(count)]


async def pause(platform: Platform, session: str = SESSION) -> None:
    answer = await platform.orchestrator.post(f"/api/sessions/{session}/pause")
    assert answer.status_code == 200, answer.text
    platform.clock.forward(1_000)


async def status(platform: Platform, job_id: str) -> dict[str, Any]:
    return (await platform.gateway.get(f"/v1/jobs/{job_id}")).json()


@pytest.mark.parametrize(
    ("fields", "is_paused"),
    [
        pytest.param({}, True, id="a paused job"),
        pytest.param({"sendAt": NOON + 2 * DAY_MS}, False, id="a job for later"),
        pytest.param({"phone": OTHER_PHONE}, False, id="a job of another number"),
        pytest.param({"priority": 1}, True, id="a paused job of its priority"),
    ],
)
async def test_what_does_not_run_here_costs_a_job_nothing(
    platform: Platform, fields: dict[str, Any], is_paused: bool
) -> None:
    """Each of these counted like a job that runs, so that 300 messages took twice as long."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    alone = await ask(platform, contacts=israelis(300), phone=PHONE)
    other = await platform.post_job(contacts=others(300), **fields)
    if is_paused:
        await platform.gateway.post(f"/v1/jobs/{other['jobId']}/pause")
    platform.clock.forward(1_000)
    beside = await ask(platform, contacts=israelis(300), phone=PHONE)
    assert beside["finishesAt"] == pytest.approx(alone["finishesAt"], abs=MINUTE_MS)


async def test_an_urgent_job_goes_before_all_of_a_common_one(platform: Platform) -> None:
    """The common one waits for all of it, not only for as many as its own; another urgent one takes turns with it."""
    await platform.connect()
    first = await platform.post_job(contacts=others(200), priority=3)
    platform.clock.forward(1_000)
    for priority in (1, 3):
        plan = await ask(platform, contacts=israelis(20 if priority == 1 else 200), priority=priority)
        assert plan["finishesAt"] > first["estimatedCompletion"]


async def test_what_waits_for_another_number_is_not_counted(platform: Platform) -> None:
    """A hundred messages wait for one number; ten more go by the other in a minute, and the plan says which."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    full = await platform.post_job(contacts=others(100), phone=PHONE)
    await platform.dispatch()
    platform.clock.forward(1_000)
    plan = await ask(platform, contacts=israelis(10))
    assert [(row["phone"], row["messages"]) for row in plan["phones"]] == [(OTHER_PHONE, 10)]
    assert plan["finishesAt"] < NOON + 3 * MINUTE_MS < full["estimatedCompletion"]


async def test_a_routed_job_waits_for_the_numbers_that_hold_it(platform: Platform) -> None:
    """One message with one number, and a hundred with another: they are told their own times."""
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    full = await platform.post_job(contacts=others(100), phone=PHONE)
    small = await platform.post_job(contacts=israelis(3), phone=OTHER_PHONE)
    any_number = await platform.post_job(contacts=["972527777777"])
    await platform.dispatch()
    platform.clock.forward(1_000)
    ends = [(await status(platform, job["jobId"]))["estimatedCompletion"] for job in (small, any_number, full)]
    assert max(ends[:2]) < NOON + 3 * MINUTE_MS < NOON + 10 * MINUTE_MS < ends[2]


async def test_a_paused_number_takes_no_share(platform: Platform) -> None:
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    await pause(platform)
    plan = await ask(platform, contacts=israelis(300))
    assert [(row["phone"], row["messages"]) for row in plan["phones"]] == [(OTHER_PHONE, 300)]


async def test_what_a_paused_number_holds_is_not_counted(platform: Platform) -> None:
    await platform.connect()
    await platform.connect("s2", OTHER_PHONE)
    await platform.post_job(contacts=others(150), phone=PHONE)
    await platform.dispatch()
    await pause(platform)
    backlog = (await platform.gateway.get("/v1/backlog")).json()
    job = await platform.post_job(contacts=israelis(5))
    assert job["estimatedCompletion"] < NOON + 3 * MINUTE_MS
    assert backlog["waiting"] >= 149


async def test_only_paused_numbers_nobody_knows_when(platform: Platform) -> None:
    """No time, and the reason; it was told as if they were sending."""
    await platform.connect()
    await pause(platform)
    plan = await ask(platform, contacts=israelis(3))
    assert (plan["finishesAt"], plan["phones"], plan["bottleneck"]) == (None, [], "SESSION_PAUSED")
    named = await ask(platform, contacts=israelis(3), phone=PHONE)
    assert (named["finishesAt"], named["bottleneck"]) == (None, "SESSION_PAUSED")
    job = await platform.post_job(contacts=israelis(3))
    assert job["estimatedCompletion"] is None
    assert (await status(platform, job["jobId"]))["estimatedCompletion"] is None
    for names in ({}, {"phone": PHONE}):
        body = {"to": "972527777777", "message": "hello", **names}
        assert (await platform.gateway.post("/api/v1/send", json=body)).json()["estimatedDelivery"] is None


async def test_a_job_for_tomorrow_does_not_wait_for_what_is_gone_by_then(platform: Platform) -> None:
    await platform.connect()
    alone = await ask(platform, contacts=israelis(100), sendAt=NOON + DAY_MS)
    await platform.post_job(contacts=others(200))
    await platform.dispatch()
    platform.clock.forward(1_000)
    plan = await ask(platform, contacts=israelis(100), sendAt=NOON + DAY_MS)
    assert plan["finishesAt"] == pytest.approx(alone["finishesAt"], abs=MINUTE_MS)


async def test_a_job_that_begins_on_the_way_takes_its_turns(platform: Platform) -> None:
    """Two hundred in half an hour; in a quarter another two hundred begin."""
    await platform.connect()
    alone = await ask(platform, contacts=israelis(200))
    await platform.post_job(contacts=others(200), sendAt=NOON + 15 * MINUTE_MS)
    platform.clock.forward(1_000)
    plan = await ask(platform, contacts=israelis(200))
    took = alone["finishesAt"] - NOON
    assert 1.2 * took < plan["finishesAt"] - NOON < 1.8 * took


async def test_the_backlog_ends_when_the_job_for_tomorrow_does(platform: Platform) -> None:
    """It was told to end when that job begins."""
    await platform.connect()
    job = await platform.post_job(contacts=others(200), sendAt=NOON + DAY_MS)
    platform.clock.forward(1_000)
    backlog = (await platform.gateway.get("/v1/backlog")).json()
    assert backlog["estimatedCompletion"] == pytest.approx(job["estimatedCompletion"], abs=MINUTE_MS)
    assert backlog["estimatedCompletion"] > NOON + DAY_MS + 20 * MINUTE_MS


async def test_what_a_paused_job_left_in_the_queues_is_in_nobodys_way(platform: Platform) -> None:
    """In the queue, and when a dispatcher has put it aside; the backlog counts it as waiting all the same."""
    await platform.connect()
    big = await platform.post_job(contacts=others(250))
    await platform.dispatch()
    await platform.gateway.post(f"/v1/jobs/{big['jobId']}/pause")
    for _ in range(3):
        platform.clock.forward(1_000)
        plan = await ask(platform, contacts=israelis(10))
        assert plan["finishesAt"] < platform.clock.at_ms + 3 * MINUTE_MS
        assert (await platform.gateway.get("/v1/backlog")).json()["waiting"] >= 249
        for _ in range(20):
            await platform.dispatch()
