"""DELETE /v1/recipients/{to}: what waits is canceled, the person is nowhere any more, and every count stays right."""

from collections.abc import Sequence
from typing import Any

import pytest

from paceline.domain.events import Event
from paceline.domain.ids import whatsapp_id
from paceline.gateway.telling import Telling

from .platform import FRIEND, NOON, PHONE, READ_KEY, SEND_KEY, Platform, refused

TRUNK = f"9720{FRIEND[3:]}"
OTHERS = ["972529876500", "972529876501"]


async def erase(platform: Platform, to: str = FRIEND) -> dict[str, Any]:
    answer = await platform.gateway.delete(f"/v1/recipients/{to}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def traces(platform: Platform) -> list[str]:
    """Keys in which the person can still be found."""
    stored = await platform.snapshot()
    return [name for name, value in stored.items() if any(n in name or n in repr(value) for n in (FRIEND, TRUNK))]


async def progress(platform: Platform, job: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = (await platform.gateway.get(f"/v1/jobs/{job['jobId']}")).json()["progress"]
    return found


async def ended(platform: Platform, *, error: str | None = None) -> str:
    """The next message that is claimed, sent or given up."""
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    await platform.dispatch()
    claim = await platform.claim()
    assert claim["task"], claim
    if error is None:
        await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]})
        data = {"messageId": claim["task"]["taskId"], "to": FRIEND, "whatsappId": claim["task"]["whatsappId"]}
        await platform.webhook("MESSAGE_DELIVERED", data)
    else:
        body = {"raw": claim["raw"], "epoch": 1, "error": {"code": error, "message": f"no {FRIEND}"}, "notSent": True}
        await platform.outbox("nack", body)
    found: str = claim["task"]["taskId"]
    return found


async def test_nothing_is_left_of_somebody_wherever_they_were(platform: Platform) -> None:
    await platform.connect()
    sent = await platform.post_job(contacts=[{"to": FRIEND, "vars": {"name": "Ada Lovelace"}}], text="Hi {{name}}")
    delivered = await ended(platform)
    failed = await platform.post_job(contacts=[FRIEND, *OTHERS])
    await ended(platform, error="NOT_ON_WHATSAPP")
    await platform.webhook("MESSAGE_RECEIVED", {"from": f"{FRIEND}@s.whatsapp.net", "whatsappId": "3A", "text": "hi"})
    waiting = await platform.post_job(contacts=[*OTHERS, TRUNK])
    later = {"to": FRIEND, "message": "a private word", "sendAt": platform.clock.at_ms + 3_600_000}
    single = (await platform.gateway.post("/api/v1/send", json=later)).json()
    assert await traces(platform)
    answer = await erase(platform)
    assert (answer["to"], answer["canceled"], answer["open"], answer["suppressed"]) == (FRIEND, 2, 0, False)
    assert answer["erased"] >= 7
    assert await traces(platform) == []
    stored = repr(await platform.snapshot())
    assert "Lovelace" not in stored
    assert "private" not in stored
    for job, expected in ((sent, {"sent": 1}), (failed, {"failed": 1}), (waiting, {"canceled": 1})):
        seen = await progress(platform, job)
        assert {name: seen[name] for name in expected} == expected, job
        assert seen["total"] == job["accepted"]
    for task in (delivered, single["messageId"]):
        assert (await platform.message(task))["to"] == "erased"
    assert [item["to"] for item in (await platform.gateway.get("/v1/dead-letters")).json()["items"]] == ["erased"]


async def test_asking_again_finds_nothing(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job()
    await erase(platform)
    async with platform.nothing_stored():
        assert await erase(platform, f"+{FRIEND}") == {
            "to": FRIEND, "canceled": 0, "erased": 0, "open": 0, "suppressed": False,
        }  # fmt: skip


async def test_the_others_of_a_job_go_on(platform: Platform) -> None:
    await platform.connect()
    job = await platform.post_job(contacts=[OTHERS[0], FRIEND, OTHERS[1]])
    await platform.dispatch()
    await erase(platform)
    claim = await platform.claim()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]})
    await ended(platform)
    seen = await progress(platform, job)
    assert (seen["sent"], seen["canceled"], seen["total"]) == (2, 1, 3)


async def test_the_place_on_the_suppression_list_stays(platform: Platform) -> None:
    """Else the next import of the same address book would write to them again."""
    await platform.gateway.post("/v1/suppressions", json={"to": FRIEND})
    assert (await erase(platform))["suppressed"] is True
    assert sorted(await traces(platform)) == ["suppressions", "suppressions:info"]


async def test_what_a_worker_holds_is_told_and_erased_later(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job()
    await platform.dispatch()
    claim = await platform.claim()
    assert (await erase(platform))["open"] == 1
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]})
    answer = await erase(platform)
    assert (answer["open"], answer["canceled"]) == (0, 0)
    assert await traces(platform) == []


async def test_a_late_receipt_brings_nothing_back_but_its_own_line(platform: Platform) -> None:
    """The worker's journal still knows the number; its report stands in the session's events until others follow."""
    await platform.connect()
    await platform.post_job()
    task = await ended(platform)
    await erase(platform)
    data = {"messageId": task, "to": FRIEND, "whatsappId": whatsapp_id(task)}
    assert (await platform.webhook("MESSAGE_READ", data)).status_code == 200
    assert (await platform.message(task))["state"] == "read"
    assert await traces(platform) == ["session:events:s1"]


async def test_an_erased_letter_is_not_sent_again(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job()
    task = await ended(platform, error="NOT_ON_WHATSAPP")
    await erase(platform)
    refused(await platform.gateway.post(f"/v1/dead-letters/{task}/replay"), 409, "NOT_REPLAYABLE", "id")


async def test_nobody_is_passed_over_while_the_list_of_jobs_is_read(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads it drops the ids of jobs that are gone."""
    monkeypatch.setattr("paceline.store.people.JOBS_AT_ONCE", 1)
    await platform.connect()
    gone = (await platform.post_job(contacts=OTHERS[:1]))["jobId"]
    platform.clock.forward(1)
    await platform.post_job()
    await platform.link.read(("DEL", f"job:{gone}"))
    search = platform.store.people.messages_to

    async def messages_to(numbers: Sequence[str], jobs: Sequence[str]) -> list[str]:
        await platform.gateway.get("/v1/jobs")
        return await search(numbers, jobs)

    monkeypatch.setattr(platform.store.people, "messages_to", messages_to)
    assert (await erase(platform))["canceled"] == 1
    assert await traces(platform) == []


async def test_what_is_told_later_does_not_have_what_was_said_of_them(platform: Platform) -> None:
    """A gateway that told of their job before remembered its metadata."""
    job = await platform.post_job(metadata={"customer": "Ada Lovelace"})
    telling, event = Telling(platform.store), Event("1-1", "message.canceled", NOON, {"m": f"{job['jobId']}:0"})
    assert b"Lovelace" in await telling.told(event)
    await erase(platform)
    assert b"Lovelace" not in await telling.told(event)


async def test_who_may_and_what_is_no_number(platform: Platform) -> None:
    refused(await platform.gateway.delete("/v1/recipients/x"), 400, "INVALID_NUMBER", "to")
    for key, status in ((READ_KEY, 403), (SEND_KEY, 403), ("wrong", 401), ("", 401)):
        answer = await platform.gateway.delete(f"/v1/recipients/{FRIEND}", headers={"X-API-KEY": key})
        assert answer.status_code == status


@pytest.mark.parametrize("state", ["paused", "canceled"])
async def test_a_job_that_stands_still_lets_them_go_too(platform: Platform, state: str) -> None:
    """What lies in the queue of a number, or was put aside, is taken out of it."""
    await platform.connect()
    job = await platform.post_job(contacts=[FRIEND, *OTHERS])
    await platform.dispatch()
    await platform.gateway.post(f"/v1/jobs/{job['jobId']}/{'pause' if state == 'paused' else 'cancel'}")
    await platform.dispatch()
    await erase(platform)
    assert await traces(platform) == []
    assert (await progress(platform, job))["canceled"] >= 1
    assert PHONE in repr(await platform.snapshot())
