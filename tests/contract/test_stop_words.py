"""Somebody writes "stop": they are on the list at once, are told so once, and get nothing else."""

from typing import Any

import pytest

from paceline.orchestrator.inbound import Inbound
from paceline.orchestrator.stops import StopRules

from .platform import DAY_MS, FRIEND, NOON, OTHER_PHONE, PHONE, Platform

BYE = "You will hear no more from us."


def say(text: str = "STOP", *, sender: str = FRIEND, wire_id: str = "3A01") -> dict[str, Any]:
    return {"from": sender, "whatsappId": wire_id, "text": text}


@pytest.fixture
def telling(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """With a confirmation, as the setting has it, and one more word."""
    known = Inbound(platform.store, platform.settling, StopRules(BYE, ["canary word"]))

    async def receive(self: Inbound, event: Any, *, now_ms: int) -> None:
        await original(known, event, now_ms=now_ms)

    original = Inbound.receive
    monkeypatch.setattr(Inbound, "receive", receive)
    return platform


async def entries(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await platform.gateway.get("/v1/suppressions")).json()["items"]
    return found


async def next_task(platform: Platform) -> dict[str, Any] | None:
    """What the worker is given now, sent at once."""
    await platform.dispatch()
    claim = await platform.claim()
    if claim["task"] is None:
        return None
    done = await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]})
    assert done.status_code == 200, done.text
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    task: dict[str, Any] = claim["task"]
    return task


async def test_they_are_told_once_and_get_nothing_else(telling: Platform) -> None:
    """What waited for them ends `suppressed`; the confirmation goes first, from the number they wrote to."""
    await telling.connect()
    job = await telling.post_job(contacts=[FRIEND])
    assert (await telling.webhook("MESSAGE_RECEIVED", say())).status_code == 200
    task = await next_task(telling)
    assert task is not None
    assert (task["to"], task["text"]) == (FRIEND, BYE)
    assert await next_task(telling) is None
    progress = (await telling.gateway.get(f"/v1/jobs/{job['jobId']}")).json()["progress"]
    assert (progress["suppressed"], progress["total"]) == (1, 1)
    [entry] = await entries(telling)
    assert (entry["to"], entry["source"], entry["reason"]) == (FRIEND, "inbound", "stop")


async def test_again_and_again_is_not_answered(telling: Platform) -> None:
    await telling.connect()
    for wire_id in ("3A01", "3A01", "3A02"):
        await telling.webhook("MESSAGE_RECEIVED", say(wire_id=wire_id), id_=wire_id)
    assert await next_task(telling) is not None
    await telling.webhook("MESSAGE_RECEIVED", say(wire_id="3A03"))
    assert await next_task(telling) is None


async def test_a_late_duplicate_does_nothing_after_an_operator_lifted_it(telling: Platform) -> None:
    await telling.connect()
    await telling.webhook("MESSAGE_RECEIVED", say())
    assert await next_task(telling) is not None
    await telling.gateway.delete(f"/v1/suppressions/{FRIEND}")
    await telling.webhook("MESSAGE_RECEIVED", say(), at_ms=NOON)
    assert await entries(telling) == []
    assert await next_task(telling) is None


async def test_the_answer_comes_from_the_number_they_wrote_to(telling: Platform) -> None:
    await telling.connect()
    await telling.connect("s2", OTHER_PHONE)
    await telling.webhook("MESSAGE_RECEIVED", say(), session="s2")
    await telling.dispatch()
    assert (await telling.claim())["task"] is None
    assert (await telling.claim(session="s2"))["task"]["text"] == BYE


async def test_a_stop_that_comes_a_day_late_is_obeyed_and_not_answered(telling: Platform) -> None:
    await telling.connect()
    telling.clock.forward(DAY_MS)
    await telling.webhook("PING")
    await telling.webhook("MESSAGE_RECEIVED", say(), at_ms=NOON)
    assert [entry["to"] for entry in await entries(telling)] == [FRIEND]
    assert await next_task(telling) is None


async def test_without_a_text_they_are_only_put_on_the_list(platform: Platform) -> None:
    await platform.connect()
    await platform.webhook("MESSAGE_RECEIVED", say())
    assert [entry["to"] for entry in await entries(platform)] == [FRIEND]
    assert await next_task(platform) is None


@pytest.mark.parametrize("text", ["don't stop", "see you at the bus stop", "", 5, None])
async def test_anything_else_changes_nothing(telling: Platform, text: Any) -> None:
    await telling.connect()
    answer = await telling.webhook("MESSAGE_RECEIVED", {"from": FRIEND, "whatsappId": "3A01", "text": text})
    assert answer.status_code == 200
    assert await entries(telling) == []


async def test_a_sender_in_whatsapps_own_notation_is_the_person_we_write_to(telling: Platform) -> None:
    """Mexican mobile ids have a 1 that nobody dials; Brazilian ones may lack a 9 that everybody does."""
    await telling.connect()
    await telling.webhook("MESSAGE_RECEIVED", say(sender="5215512345678@s.whatsapp.net"))
    await telling.webhook("MESSAGE_RECEIVED", say(sender="551187654321@s.whatsapp.net", wire_id="3A02"))
    for to in ("+52 55 1234 5678", "+55 11 98765-4321", "+55 11 8765-4321"):
        answer = await telling.gateway.post("/api/v1/send", json={"to": to, "message": "hello"})
        assert answer.json()["error"]["code"] == "SUPPRESSED", to


LID = "123456789012345@lid"


async def incidents(platform: Platform) -> list[dict[str, Any]]:
    return [one for one in await platform.store.operators.incidents() if one["kind"] == "STOP_UNRESOLVED"]


async def test_a_stop_of_somebody_whose_number_nobody_knows_is_told_an_operator_once(
    telling: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    """WhatsApp may name a sender by a LID alone. Their stop vanished, and they were written to on."""
    await telling.connect()
    for _ in range(2):
        assert (await telling.webhook("MESSAGE_RECEIVED", say(sender=LID))).status_code == 200
    (found,) = await incidents(telling)
    expected = {"sessionId": "s1", "phone": PHONE, "from": "…2345", "whatsappId": "3A01", "sentAt": NOON}
    assert {name: found[name] for name in expected} == expected
    assert await entries(telling) == []
    assert LID.partition("@")[0] not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sender", "text"),
    [(LID, "hello"), ("120363025246125486@g.us", "stop"), ("status@broadcast", "stop")],
    ids=["no stop", "in a group", "a status"],
)
async def test_nothing_else_of_them_is_worth_an_operators_time(telling: Platform, sender: str, text: str) -> None:
    await telling.connect()
    assert (await telling.webhook("MESSAGE_RECEIVED", say(text, sender=sender))).status_code == 200
    assert await incidents(telling) == []


async def test_what_they_wrote_is_kept_nowhere(telling: Platform, capsys: pytest.CaptureFixture[str]) -> None:
    await telling.connect()
    await telling.webhook("MESSAGE_RECEIVED", say("please, CANARY word!"))
    assert [entry["to"] for entry in await entries(telling)] == [FRIEND]
    assert "canary" not in repr(await telling.snapshot()).lower()
    assert "canary" not in "".join(capsys.readouterr()).lower()


async def test_the_confirmation_says_what_it_is(telling: Platform) -> None:
    await telling.connect()
    await telling.webhook("MESSAGE_RECEIVED", say())
    task = await next_task(telling)
    assert task is not None
    stored = (await telling.store.jobs.get(task["taskId"].partition(":")[0])) or pytest.fail("no job")
    assert (stored.confirmation, stored.phone, stored.total) == (True, PHONE, 1)
