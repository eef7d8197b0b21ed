"""GET /api/audit: what went out and who did what, newest first, page by page."""

import asyncio
from typing import Any

import pytest

from paceline.orchestrator.audit import AuditFollower, AuditThread
from paceline.orchestrator.audit_db import AuditDb

from .platform import FRIEND, NOON, PHONE, READ_KEY, SESSION, Platform, refused


async def follow(platform: Platform) -> None:
    """As the orchestrator's loop does it, in a thread of its own."""
    db = AuditDb(platform.audit_path)
    follower = AuditFollower(platform.store, db, kept_days=365, in_thread=AuditThread())
    while await follower.step(platform.clock.now_ms()) is not None:
        pass
    db.close()


async def ask(platform: Platform, **query: Any) -> dict[str, Any]:
    answer = await platform.orchestrator.get("/api/audit", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def some_facts(platform: Platform) -> str:
    """A send, then two decisions; the message's id."""
    claim = await platform.claimed()
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    await platform.dispatcher.post("/fleet/pause")
    await platform.dispatcher.post(f"/sessions/{SESSION}/rpm", json={"rpm": 5})
    await follow(platform)
    task: str = claim["task"]["taskId"]
    return task


async def test_before_anything_happened_it_is_empty(platform: Platform) -> None:
    assert await ask(platform) == {"items": [], "nextCursor": None}


async def test_each_fact_with_what_belongs_to_it(platform: Platform) -> None:
    task = await some_facts(platform)
    (send,) = (await ask(platform, kind="SENT"))["items"]
    about = {"kind": "SENT", "at": NOON, "sessionId": SESSION, "phone": PHONE, "messageId": task}
    assert send == {**about, "id": send["id"], "whatsappId": send["whatsappId"]}
    assert send["whatsappId"]
    rate, pause = (await ask(platform, kind="OPERATOR", limit=2))["items"]
    assert (pause["action"], pause["by"]) == ("pause_fleet", "bootstrap")
    assert (rate["action"], rate["sessionId"], rate["details"]) == ("set_rpm", SESSION, {"to": 5})


async def test_webhooks_suppressions_and_erasing_say_who_did_it(platform: Platform) -> None:
    """They left no trace, although they decide who is written to and who is told."""
    await platform.post_job()
    hook = {"url": "http://127.0.0.1:9443/", "events": ["*"]}
    webhook = (await platform.gateway.post("/v1/webhooks", json=hook)).json()["webhookId"]
    asked = [
        ("POST", f"/v1/webhooks/{webhook}/redrive", {}),
        ("DELETE", f"/v1/webhooks/{webhook}", None),
        ("POST", "/v1/suppressions", {"to": FRIEND}),
        ("POST", "/v1/suppressions", {"to": FRIEND}),
        ("DELETE", f"/v1/suppressions/{FRIEND}", None),
        ("DELETE", f"/v1/recipients/{FRIEND}", None),
    ]
    for method, path, body in asked:
        answer = await platform.gateway.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
    await follow(platform)
    rows = (await ask(platform, kind="OPERATOR"))["items"]
    assert [row["action"] for row in reversed(rows)] == [
        "create_webhook", "redrive_webhook", "remove_webhook", "suppress", "unsuppress", "erase_person",
    ]  # fmt: skip
    assert {row["by"] for row in rows} == {"bootstrap"}
    assert FRIEND not in str(rows)
    assert rows[-1]["details"] == {"webhookId": webhook}


async def test_nobody_who_was_written_to_and_no_text_is_in_it(platform: Platform) -> None:
    await some_facts(platform)
    answer = await platform.orchestrator.get("/api/audit")
    assert FRIEND not in answer.text
    assert "hello" not in answer.text


async def test_page_by_page_each_fact_comes_once(platform: Platform) -> None:
    await some_facts(platform)
    whole = (await ask(platform))["items"]
    assert [row["id"] for row in whole] == sorted((row["id"] for row in whole), reverse=True)
    found, cursor = [], ""
    while True:
        page = await ask(platform, limit=1, cursor=cursor)
        found += page["items"]
        if page["nextCursor"] is None:
            break
        cursor = page["nextCursor"]
    assert found == whole
    assert len(found) >= 3


async def test_only_one_session(platform: Platform) -> None:
    await some_facts(platform)
    kinds = {row["kind"] for row in (await ask(platform, session=SESSION))["items"]}
    assert {"SENT", "OPERATOR"} <= kinds
    assert all(row["sessionId"] == SESSION for row in (await ask(platform, session=SESSION))["items"])
    assert (await ask(platform, session="other"))["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"kind": "EVERYTHING"}, "kind", id="no such kind"),
        pytest.param({"limit": 0}, "limit", id="limit too small"),
        pytest.param({"limit": 1_001}, "limit", id="limit too large"),
        pytest.param({"cursor": "x"}, "cursor", id="no cursor"),
        pytest.param({"cursor": "9" * 20}, "cursor", id="a cursor that is too long"),
        pytest.param({"session": "s" * 65}, "session", id="no session has such a name"),
    ],
)
async def test_bad_questions_name_the_field(platform: Platform, query: dict[str, Any], field: str) -> None:
    refused(await platform.orchestrator.get("/api/audit", params=query), 400, "INVALID_REQUEST", field)


async def test_it_needs_the_admin_scope(platform: Platform) -> None:
    answer = await platform.orchestrator.get("/api/audit", headers={"X-API-KEY": READ_KEY})
    refused(answer, 403, "FORBIDDEN")


async def test_a_broken_file_is_a_503_and_sending_goes_on(platform: Platform) -> None:
    await asyncio.to_thread(platform.audit_path.write_bytes, b"no database at all" * 100)
    refused(await platform.orchestrator.get("/api/audit"), 503, "UNAVAILABLE")
    claim = await platform.claimed()
    assert (await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})).status_code == 200


async def test_reading_works_while_it_is_written(platform: Platform) -> None:
    """The writer's connection is open and in the middle of a transaction."""
    await some_facts(platform)
    db = AuditDb(platform.audit_path)
    db.cursors()
    assert db._db is not None
    db._db.execute("BEGIN IMMEDIATE")
    try:
        assert len((await ask(platform))["items"]) >= 3
    finally:
        db.close()
