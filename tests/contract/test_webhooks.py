"""/v1/webhooks: adding and removing them, what reaches a real receiver, and what becomes of what it does not take."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paceline.gateway.deliveries import LEASE_MS, Poster
from paceline.gateway.telling import Telling
from paceline.kits.logging import redact
from paceline.kits.rng import new_rng
from paceline.kits.safe_http import SafeHttp
from paceline.store.webhooks import OUTBOX_LIMIT

from .platform import FRIEND, NOON, PHONE, READ_KEY, SEND_KEY, SESSION, Platform, refused
from .receiver import Receiver, receiving

HOUR_MS = 3_600_000


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as found:
        yield found


async def add(platform: Platform, receiver: Receiver, **fields: Any) -> dict[str, Any]:
    answer = await platform.gateway.post("/v1/webhooks", json={"url": receiver.url, "events": ["*"], **fields})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def run(platform: Platform) -> None:
    """Feeds and posts until nothing is due."""
    while await platform.outlets.feeder.step(platform.clock.at_ms):
        pass
    while await platform.outlets.poster.step(platform.clock.at_ms) == platform.clock.at_ms:
        pass


async def deliveries(platform: Platform, webhook: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    answer = await platform.gateway.get(f"/v1/webhooks/{webhook['webhookId']}/deliveries", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def view(platform: Platform) -> dict[str, Any]:
    (found,) = (await platform.gateway.get("/v1/webhooks")).json()["items"]
    shown: dict[str, Any] = found
    return shown


async def happens(platform: Platform, number: int = 1) -> None:
    """Something small that is told: a job of that many is accepted and canceled."""
    people = [str(972_540_000_000 + i) for i in range(number)]
    job = await platform.post_job(contacts=people)
    await platform.gateway.post(f"/v1/jobs/{job['jobId']}/cancel")


# Adding and removing


async def test_the_secret_is_shown_once(platform: Platform, receiver: Receiver) -> None:
    answer = await platform.gateway.post(
        "/v1/webhooks", json={"url": receiver.url, "events": ["job.done", "job.done"], "description": "CRM"}
    )
    created = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert created["secret"].startswith("whsec_")
    shown = {name: value for name, value in created.items() if name != "secret"}
    assert shown == {
        "webhookId": created["webhookId"],
        "url": receiver.url,
        "events": ["job.done"],
        "description": "CRM",
        "state": "enabled",
        "createdAt": NOON,
        "createdBy": "bootstrap",
        "pending": 0,
        "failingSince": None,
        "disabledAt": None,
        "disabledReason": None,
    }
    listed = await platform.gateway.get("/v1/webhooks")
    assert listed.json() == {"items": [shown], "nextCursor": None}
    assert created["secret"] not in listed.text


async def test_a_secret_of_one_s_own_is_taken(platform: Platform, receiver: Receiver) -> None:
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert (await add(platform, receiver, secret=secret))["secret"] == secret


async def test_no_log_line_and_no_repr_shows_a_secret(platform: Platform, receiver: Receiver) -> None:
    secret = (await add(platform, receiver))["secret"]
    assert secret not in str(redact({"event": f"webhook with {secret} added"}))
    assert secret not in repr(await platform.store.webhooks.all())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"url": "ftp://x.example/"}, "url", id="another scheme"),
        pytest.param({"url": "http://a@x.example/"}, "url", id="a user name"),
        pytest.param({"url": "http://127.0.0.1:6379/"}, "url", id="a store's port"),
        pytest.param({"url": "http://no-such-host.invalid/"}, "url", id="no such host"),
        pytest.param({"url": "http://x\r\n.example/"}, "url", id="line breaks"),
        pytest.param({"url": "x" * 3_000}, "url", id="too long"),
        pytest.param({"url": 5}, "url", id="no text"),
        pytest.param({"url": None}, "url", id="missing"),
        pytest.param({"events": []}, "events", id="no events"),
        pytest.param({"events": ["job.done", "job.started"]}, "events[1]", id="no such event"),
        pytest.param({"events": "*"}, "events", id="no list"),
        pytest.param({"secret": "whsec_c2hvcnQ="}, "secret", id="a short secret"),
        pytest.param({"secret": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, "secret", id="a secret without its prefix"),
        pytest.param({"secret": "whsec_!!!"}, "secret", id="a secret that is no base64"),
        pytest.param({"description": "x" * 300}, "description", id="a long description"),
        pytest.param({"name": "x"}, "name", id="unknown field"),
    ],
)
async def test_a_bad_body_names_the_field(
    platform: Platform, receiver: Receiver, change: dict[str, Any], field: str
) -> None:
    body = {"url": receiver.url, "events": ["*"], **change}
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/webhooks", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["details"]["field"] == field


async def test_private_addresses_are_refused_unless_they_are_allowed(platform: Platform, receiver: Receiver) -> None:
    platform.outlets.desk._http = SafeHttp()
    for url in (
        receiver.url,
        "http://localhost:8080/",
        "http://[::1]/",
        "http://2130706433/",
        "http://169.254.169.254/",
    ):
        body = {"url": url, "events": ["*"]}
        refused(await platform.gateway.post("/v1/webhooks", json=body), 400, "INVALID_URL", "url")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/webhooks"),
        ("POST", "/v1/webhooks"),
        ("DELETE", "/v1/webhooks/wh_1"),
        ("GET", "/v1/webhooks/wh_1/deliveries"),
        ("POST", "/v1/webhooks/wh_1/redrive"),
    ],
)
async def test_they_are_for_admins(platform: Platform, method: str, path: str) -> None:
    for key, status in (("", 401), ("wrong", 401), (SEND_KEY, 403), (READ_KEY, 403)):
        answer = await platform.gateway.request(method, path, json={}, headers={"X-API-KEY": key})
        assert answer.status_code == status, (key, answer.text)


async def test_what_is_not_there_is_a_404(platform: Platform) -> None:
    refused(await platform.gateway.delete("/v1/webhooks/wh_1"), 404, "UNKNOWN_WEBHOOK", "webhookId")
    refused(await platform.gateway.get("/v1/webhooks/wh_1/deliveries"), 404, "UNKNOWN_WEBHOOK", "webhookId")
    refused(await platform.gateway.post("/v1/webhooks/wh_1/redrive", json={}), 404, "UNKNOWN_WEBHOOK", "webhookId")


async def test_bad_queries_and_times_are_named(platform: Platform, receiver: Receiver) -> None:
    path = f"/v1/webhooks/{(await add(platform, receiver))['webhookId']}"
    refused(await platform.gateway.get(f"{path}/deliveries?cursor=x"), 400, "INVALID_REQUEST", "cursor")
    refused(await platform.gateway.get(f"{path}/deliveries?state=lost"), 400, "INVALID_REQUEST", "state")
    refused(await platform.gateway.post(f"{path}/redrive", json={"from": "x"}), 400, "INVALID_TIME", "from")
    refused(
        await platform.gateway.post(f"{path}/redrive", json={"state": "delivered"}), 400, "INVALID_REQUEST", "state"
    )


async def test_the_list_is_paged_and_a_removed_one_is_gone(platform: Platform, receiver: Receiver) -> None:
    ids = sorted([(await add(platform, receiver))["webhookId"] for _ in range(5)])
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await platform.gateway.get("/v1/webhooks", params={"cursor": cursor, "limit": 2})).json()
        seen += [item["webhookId"] for item in page["items"]]
        cursor = page["nextCursor"]
    assert seen == ids
    removed = await platform.gateway.delete(f"/v1/webhooks/{ids[0]}")
    assert removed.json() == {"removed": True, "webhookId": ids[0]}
    assert len((await platform.gateway.get("/v1/webhooks")).json()["items"]) == 4


# What arrives


async def test_a_message_s_life_arrives_signed_with_all_that_the_caller_gave(
    platform: Platform, receiver: Receiver
) -> None:
    """The reference library verifies each; its clock is the real one."""
    platform.clock.at_ms = time.time_ns() // 1_000_000
    webhook = await add(platform, receiver, events=["message.sent", "job.done"])
    await platform.connect()
    contact = {"to": FRIEND, "clientRef": "order-7"}
    job = await platform.post_job(contacts=[contact], metadata={"campaign": 3}, tags=["spring"])
    await platform.dispatch()
    for _ in range(100):
        task = (await platform.claim())["task"]
        if task is not None:
            break
        platform.clock.forward(HOUR_MS)
        await platform.webhook("PING")
        await platform.dispatch()
    proof = {"messageId": task["taskId"], "to": FRIEND, "whatsappId": task["whatsappId"]}
    await platform.webhook("MESSAGE_SENT", proof)
    sent_at = platform.clock.at_ms
    platform.clock.at_ms = time.time_ns() // 1_000_000
    await run_at(platform, max(sent_at, platform.clock.at_ms))
    sent, done = [call.verified(webhook["secret"]) for call in receiver.calls]
    about = {"jobId": job["jobId"], "tags": ["spring"], "metadata": {"campaign": 3}}
    assert (sent["type"], done["type"]) == ("message.sent", "job.done")
    assert sent["data"] == {
        "at": sent_at,
        "messageId": task["taskId"],
        "to": FRIEND,
        "clientRef": "order-7",
        "phone": PHONE,
        "sessionId": SESSION,
        "state": "sent",
        "whatsappId": task["whatsappId"],
        **about,
    }
    counts = {"total": 1, "sent": 1, "failed": 0, "expired": 0, "canceled": 0, "suppressed": 0}
    assert done["data"] == {"at": sent_at, "state": "DONE", **counts, **about}
    assert receiver.calls[0].headers["content-type"] == "application/json"
    assert receiver.calls[0].headers["host"] == f"127.0.0.1:{receiver.port}"


async def run_at(platform: Platform, now_ms: int) -> None:
    """The signature's time is the clock's; what is due is looked for at another one."""
    while await platform.outlets.feeder.step(now_ms):
        pass
    while await platform.outlets.poster.step(now_ms) == now_ms:
        pass


async def test_a_received_message_is_told_without_its_text_unless_that_was_set(
    platform: Platform, receiver: Receiver
) -> None:
    await platform.connect()
    await add(platform, receiver, events=["message.received"])
    data = {"from": FRIEND, "whatsappId": "3EB0AA", "text": "secret words"}
    for _ in range(2):
        await platform.webhook("MESSAGE_RECEIVED", data, id_="r1")
    await run(platform)
    (call,) = receiver.calls
    assert b"secret words" not in call.body
    assert FRIEND.encode() in call.body
    assert b'"whatsappId":"3EB0AA"' in call.body


async def test_only_what_was_asked_for_arrives(platform: Platform, receiver: Receiver) -> None:
    await add(platform, receiver, events=["job.done"])
    await happens(platform, 3)
    await run(platform)
    assert [b'"type":"job.done"' in call.body for call in receiver.calls] == [True]


async def test_a_canceled_job_tells_of_each_message(platform: Platform, receiver: Receiver) -> None:
    """Its one entry in the stream becomes an event for each, with an id of its own."""
    webhook = await add(platform, receiver, events=["message.canceled"])
    await happens(platform, 250)
    await run(platform)
    assert len(set(receiver.ids())) == len(receiver.calls) == 250
    log = await deliveries(platform, webhook, state="delivered", limit=1_000)
    assert sorted(item["deliveryId"] for item in log) == sorted(receiver.ids())


async def test_the_outbox_is_bounded_and_the_stream_keeps_the_rest(platform: Platform, receiver: Receiver) -> None:
    await add(platform, receiver, events=["message.canceled"])
    await happens(platform, OUTBOX_LIMIT + 50)
    while await platform.outlets.feeder.step(NOON):
        pass
    assert (await view(platform))["pending"] == OUTBOX_LIMIT
    for _ in range(3):
        await run(platform)
    assert len(set(receiver.ids())) == OUTBOX_LIMIT + 50


# What does not


async def test_errors_are_tried_again_until_it_is_back(platform: Platform, receiver: Receiver) -> None:
    webhook = await add(platform, receiver, events=["job.done"])
    receiver.statuses = [500, 302, 404]
    await happens(platform)
    for wait_ms in (6_100, 6 * 60_000 + 100, 36 * 60_000 + 100):
        await run(platform)
        (waiting,) = await deliveries(platform, webhook, state="pending")
        platform.clock.at_ms = waiting["nextTryAt"] - 1
        await run(platform)
        assert waiting["nextTryAt"] - waiting["lastTryAt"] <= wait_ms
        platform.clock.forward(1)
    await run(platform)
    (item,) = await deliveries(platform, webhook)
    assert (item["state"], item["tries"], item["status"]) == ("delivered", 4, 200)
    assert len(receiver.calls) == 4
    assert len(set(receiver.ids())) == 1


async def test_a_slow_receiver_is_given_up_after_its_time(platform: Platform, receiver: Receiver) -> None:
    webhook = await add(platform, receiver, events=["job.done"])
    receiver.hold.clear()

    class Hasty(SafeHttp):
        async def post(self, url: str, content: bytes, headers: Any, **_: Any) -> Any:
            return await super().post(url, content, headers, timeout_s=0.05)

    await happens(platform)
    await platform.outlets.feeder.step(NOON)
    hasty = Poster(platform.store, Telling(platform.store), Hasty(allow_private=True), platform.clock, new_rng(1))
    await hasty.step(NOON)
    (item,) = await deliveries(platform, webhook)
    assert (item["state"], item["status"], item["error"]) == ("pending", None, "no answer in time")
    receiver.hold.set()
    platform.clock.forward(HOUR_MS)
    await run(platform)
    assert [item["state"] for item in await deliveries(platform, webhook)] == ["delivered"]


async def test_nobody_there_is_tried_again_too(platform: Platform, receiver: Receiver) -> None:
    async with receiving() as gone:
        webhook = await add(platform, gone, events=["job.done"])
    await happens(platform)
    await run(platform)
    (item,) = await deliveries(platform, webhook)
    assert (item["state"], item["status"], item["error"]) == ("pending", None, "it cannot be connected to")


async def test_410_disables_it_with_an_incident_and_redrive_brings_it_back(
    platform: Platform, receiver: Receiver
) -> None:
    webhook = await add(platform, receiver, events=["job.done"])
    receiver.statuses = [410]
    await happens(platform)
    await run(platform)
    await happens(platform)
    await run(platform)
    shown = await view(platform)
    assert (shown["state"], shown["disabledReason"], shown["disabledAt"]) == ("disabled", "GONE", NOON)
    assert len(receiver.calls) == 1
    incidents = (await platform.dispatcher.get("/incidents?kind=WEBHOOK_DISABLED")).json()["items"]
    assert [item["webhookId"] for item in incidents] == [webhook["webhookId"]]
    path = f"/v1/webhooks/{webhook['webhookId']}/redrive"
    answer = await platform.gateway.post(path, json={"from": NOON, "until": NOON, "state": "failed"})
    assert answer.json() == {"redriven": 1, "pulled": 0}
    await run(platform)
    assert (await view(platform))["state"] == "enabled"
    ids = receiver.ids()
    assert (len(ids), len(set(ids)), ids[0] in ids[1:]) == (3, 2, True)


async def test_five_days_of_failing_disable_it(platform: Platform, receiver: Receiver) -> None:
    webhook = await add(platform, receiver, events=["job.done"])
    receiver.statuses = [500] * 1_000
    await happens(platform)
    for _ in range(24 * 6):
        await run(platform)
        platform.clock.forward(HOUR_MS)
        if platform.clock.at_ms - NOON > 100 * HOUR_MS:
            await happens(platform)
    shown = await view(platform)
    assert (shown["state"], shown["disabledReason"]) == ("disabled", "FAILING")
    assert 120 * HOUR_MS <= shown["disabledAt"] - NOON <= 122 * HOUR_MS
    first = (await deliveries(platform, webhook, state="failed"))[-1]
    assert first["tries"] == 10


# Crashes, and several gateways


async def test_a_crash_between_stream_and_delivery_loses_nothing(platform: Platform, receiver: Receiver) -> None:
    """Before the feed, after it, and after the post but before its end was written: it comes again, under its id."""
    await add(platform, receiver, events=["job.done"])
    await happens(platform)
    # A gateway that died here has only read. The next one feeds:
    await platform.outlets.feeder.step(NOON)
    # It died with the outbox full. The next one takes one, posts it, and dies before it can say so:
    original = platform.store.webhooks.settle

    async def dies(*_arguments: Any, **_facts: Any) -> Any:
        raise asyncio.CancelledError

    platform.store.webhooks.settle = dies  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await platform.outlets.poster.step(NOON)
    platform.store.webhooks.settle = original  # type: ignore[method-assign]
    await run(platform)
    assert len(receiver.calls) == 1
    platform.clock.forward(LEASE_MS)
    await run(platform)
    assert len(receiver.calls) == 2
    assert len(set(receiver.ids())) == 1


async def test_several_gateways_share_the_work_and_post_nothing_twice(platform: Platform, receiver: Receiver) -> None:
    await add(platform, receiver, events=["*"])
    await happens(platform, 60)
    others = [Poster(platform.store, Telling(platform.store), SafeHttp(allow_private=True), platform.clock, new_rng(n))
              for n in range(6)]  # fmt: skip

    async def gateway(poster: Poster) -> None:
        for _ in range(40):
            await platform.outlets.feeder.step(NOON)
            await poster.step(NOON)

    await asyncio.gather(*[gateway(poster) for poster in others])
    await run(platform)
    assert len(receiver.calls) == len(set(receiver.ids())) == 61
