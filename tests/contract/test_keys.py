"""API keys over HTTP: shown once, listed without a secret, rotated, expired, revoked; and who asked for a job."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from lua.servers import LiveServer
from paceline.edge import BOOTSTRAP_ID, KEYS_AGE_MS, Keys, digest
from paceline.gateway import api_keys
from paceline.store.guards import ApiKeyRecord

from .platform import ADMIN_KEY, DAY_MS, FRIEND, NOON, READ_KEY, SEND_KEY, SESSION, Platform, refused

SERVICE_PATHS = {"gateway": "/v1/suppressions", "dispatcher": "/queue/status", "orchestrator": "/api/sessions"}


@pytest.fixture
async def other(platform: Platform, contract_redis: LiveServer) -> AsyncIterator[Platform]:
    """More processes of the same platform: they learn of a change only by looking."""
    more = Platform(contract_redis.url)
    more.clock.at_ms = platform.clock.at_ms
    yield more
    await more.close()


async def made(platform: Platform, **fields: Any) -> dict[str, Any]:
    answer = await platform.gateway.post("/v1/keys", json={"name": "CRM", "scopes": ["send", "read"], **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


async def ask(platform: Platform, key: str, name: str = "gateway") -> httpx.Response:
    return await platform.client(name).get(SERVICE_PATHS[name], headers={"X-API-KEY": key})


async def listed(platform: Platform) -> dict[str, dict[str, Any]]:
    answer = await platform.gateway.get("/v1/keys")
    assert answer.status_code == 200
    return {item["keyId"]: item for item in answer.json()["items"]}


async def test_a_key_is_shown_once_and_kept_as_a_hash(platform: Platform) -> None:
    created = await made(platform, expiresInDays=30, ratePerMinute=120)
    key = created.pop("key")
    assert re.fullmatch(r"pk_[A-Za-z0-9_-]{43}", key)
    assert created == {
        "keyId": created["keyId"],
        "name": "CRM",
        "scopes": ["send", "read"],
        "state": "live",
        "createdAt": NOON,
        "createdBy": "bootstrap",
        "expiresAt": NOON + 30 * DAY_MS,
        "ratePerMinute": 120,
        "revokedAt": None,
        "revokedBy": None,
    }
    answer = await platform.gateway.get("/v1/keys")
    assert created in answer.json()["items"]
    hashed = digest(key.encode())
    assert key not in answer.text
    assert hashed not in answer.text
    stored = repr(await platform.snapshot())
    assert key not in stored
    assert hashed in stored


async def test_every_key_is_another(platform: Platform) -> None:
    both = [await made(platform) for _ in range(2)]
    assert both[0]["key"] != both[1]["key"]
    assert both[0]["keyId"] != both[1]["keyId"]


async def test_scopes_are_said_once_and_in_one_order(platform: Platform) -> None:
    assert (await made(platform, scopes=["admin", "send", "send"]))["scopes"] == ["send", "admin"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"name": "  "}, "name", id="only spaces"),
        pytest.param({"name": "a\x1b[31mb"}, "name", id="a name that steers terminals"),
        pytest.param({"name": "x" * 101}, "name", id="a long name"),
        pytest.param({"name": 5}, "name", id="a name that is a number"),
        pytest.param({"scopes": []}, "scopes", id="no scopes"),
        pytest.param({"scopes": ["root"]}, "scopes[0]", id="an unknown scope"),
        pytest.param({"scopes": "send"}, "scopes", id="scopes as a string"),
        pytest.param({"expiresInDays": 0}, "expiresInDays", id="expired at once"),
        pytest.param({"expiresInDays": 3_651}, "expiresInDays", id="over ten years"),
        pytest.param({"expiresInDays": 1.5}, "expiresInDays", id="half days"),
        pytest.param({"ratePerMinute": -1}, "ratePerMinute", id="a negative rate"),
        pytest.param({"ratePerMinute": 1_000_001}, "ratePerMinute", id="a rate that is none"),
        pytest.param({"key": "mine"}, "key", id="a key of one's own"),
    ],
)
async def test_a_bad_request_names_the_field_and_makes_nothing(
    platform: Platform, change: dict[str, Any], field: str
) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/keys", json={"name": "CRM", "scopes": ["send"], **change})
    refused(answer, 400, "INVALID_REQUEST", field)


async def test_only_an_admin_sees_makes_or_revokes_keys(platform: Platform) -> None:
    created = await made(platform)
    async with platform.nothing_stored():
        for key in (SEND_KEY, READ_KEY, created["key"]):
            headers = {"X-API-KEY": key}
            body = {"name": "more", "scopes": ["admin"]}
            for answer in (
                await platform.gateway.get("/v1/keys", headers=headers),
                await platform.gateway.post("/v1/keys", json=body, headers=headers),
                await platform.gateway.delete(f"/v1/keys/{created['keyId']}", headers=headers),
            ):
                assert refused(answer, 403, "FORBIDDEN")["details"] == {"scope": "admin"}


async def test_a_new_key_works_at_once_where_it_was_made_and_soon_elsewhere(
    platform: Platform, other: Platform
) -> None:
    for stage in (platform, other):
        assert (await ask(stage, ADMIN_KEY)).status_code == 200
    key = (await made(platform))["key"]
    assert (await ask(platform, key)).status_code == 200
    refused(await ask(other, key), 401, "UNAUTHORIZED")
    other.clock.forward(100)
    assert (await ask(other, key)).status_code == 200


@pytest.mark.parametrize("name", list(SERVICE_PATHS))
async def test_two_live_keys_are_the_way_to_rotate(platform: Platform, other: Platform, name: str) -> None:
    """Old and new work side by side; the old one is refused within a second of its end, also by a process that did not
    hear of it."""
    old, new = [await made(platform, scopes=["admin"]) for _ in range(2)]
    for key in (old["key"], new["key"]):
        assert (await ask(other, key, name)).status_code == 200
    assert (await platform.gateway.delete(f"/v1/keys/{old['keyId']}")).status_code == 200
    refused(await ask(platform, old["key"], name), 401, "UNAUTHORIZED")
    other.clock.forward(1_000)
    error = refused(await ask(other, old["key"], name), 401, "UNAUTHORIZED")
    assert error["message"] == "this key was revoked"
    assert (await ask(other, new["key"], name)).status_code == 200


@pytest.mark.parametrize("name", list(SERVICE_PATHS))
async def test_an_expired_key_is_refused_to_the_millisecond(platform: Platform, name: str) -> None:
    key = (await made(platform, scopes=["admin"], expiresInDays=1))["key"]
    platform.clock.forward(DAY_MS - 1)
    assert (await ask(platform, key, name)).status_code == 200
    platform.clock.forward(1)
    assert refused(await ask(platform, key, name), 401, "UNAUTHORIZED")["message"] == "this key has expired"
    assert [item["state"] for item in (await listed(platform)).values()].count("expired") == 1


async def test_a_revoked_key_stays_on_the_list_and_again_changes_nothing(platform: Platform) -> None:
    created = await made(platform)
    first = await platform.gateway.delete(f"/v1/keys/{created['keyId']}")
    assert first.status_code == 200
    assert (first.json()["state"], first.json()["revokedAt"], first.json()["revokedBy"]) == (
        "revoked",
        NOON,
        "bootstrap",
    )
    platform.clock.forward(5_000)
    async with platform.nothing_stored():
        again = await platform.gateway.delete(f"/v1/keys/{created['keyId']}")
    assert again.json() == first.json() == (await listed(platform))[created["keyId"]]


async def test_a_key_may_revoke_itself(platform: Platform) -> None:
    own = await made(platform, scopes=["admin"])
    headers = {"X-API-KEY": own["key"]}
    answer = await platform.gateway.delete(f"/v1/keys/{own['keyId']}", headers=headers)
    assert answer.json()["revokedBy"] == own["keyId"]
    refused(await platform.gateway.get("/v1/keys", headers=headers), 401, "UNAUTHORIZED")


async def test_the_bootstrap_key_is_not_revoked_over_the_api(platform: Platform) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.delete(f"/v1/keys/{BOOTSTRAP_ID}")
    assert "API_KEY" in refused(answer, 409, "BOOTSTRAP_KEY")["message"]
    assert (await ask(platform, ADMIN_KEY)).status_code == 200


async def test_a_restart_with_the_same_bootstrap_key_writes_nothing(platform: Platform) -> None:
    await platform.keys.save_bootstrap("another-bootstrap-key-1")
    platform.clock.forward(60_000)
    async with platform.nothing_stored():
        await platform.keys.save_bootstrap("another-bootstrap-key-1")
    assert (await ask(platform, "another-bootstrap-key-1")).status_code == 200


@pytest.mark.parametrize("key_id", ["none", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "%00", "a%2Fb"])
async def test_an_unknown_key_is_404(platform: Platform, key_id: str) -> None:
    answer = await platform.gateway.delete(f"/v1/keys/{key_id}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] in ("UNKNOWN_KEY", "NOT_FOUND")


async def test_pages(platform: Platform) -> None:
    for _ in range(4):
        await made(platform)
        platform.clock.forward(1)
    whole = list(await listed(platform))
    found, cursor, pages = list[str](), "", 0
    while cursor is not None:
        page = (await platform.gateway.get("/v1/keys", params={"limit": 3, "cursor": cursor})).json()
        found += [item["keyId"] for item in page["items"]]
        cursor, pages = page["nextCursor"], pages + 1
    assert (found, pages, len(found)) == (whole, 3, 7)
    for limit in ("0", "1001"):
        refused(await platform.gateway.get("/v1/keys", params={"limit": limit}), 400, "INVALID_REQUEST", "limit")


async def test_there_is_a_bound(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "MAX_KEYS", 4)
    await made(platform)
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/keys", json={"name": "one more", "scopes": ["send"]})
    assert refused(answer, 409, "KEYS_FULL")["details"] == {"limit": 4}


async def test_every_job_tells_who_asked_for_it_also_after_the_key_has_ended(platform: Platform) -> None:
    await platform.connect()
    created = await made(platform, name="Newsletter")
    headers = {"X-API-KEY": created["key"]}
    job = await platform.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "text": "a"}, headers=headers)
    send = await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "b"}, headers=headers)
    batch = await platform.gateway.post(
        "/api/v1/send/batch", json={"messages": [{"to": FRIEND, "text": "c"}]}, headers=headers
    )
    body = {"mode": "message", "to": FRIEND, "text": "d", "jobId": "theirs", "taskId": "theirs:1"}
    direct = await platform.orchestrator.post(f"/api/sessions/{SESSION}/outbox/enqueue", json=body, headers=headers)
    assert direct.status_code == 200, direct.text
    await platform.gateway.delete(f"/v1/keys/{created['keyId']}")
    ids = [job.json()["jobId"], send.json()["messageId"][:-2], batch.json()["jobId"], direct.json()["messageId"][:-2]]
    for job_id in ids:
        assert (await platform.gateway.get(f"/v1/jobs/{job_id}")).json()["acceptedBy"] == created["keyId"]
    assert (await listed(platform))[created["keyId"]]["name"] == "Newsletter"


async def test_requests_that_come_together_read_the_keys_once(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand callers a second must not be a thousand readings."""
    readings = 0
    original = platform.store.guards.api_keys

    async def counted() -> Any:
        nonlocal readings
        readings += 1
        await asyncio.sleep(0)
        return await original()

    monkeypatch.setattr(platform.store.guards, "api_keys", counted)
    answers = await asyncio.gather(*(ask(platform, READ_KEY) for _ in range(20)))
    assert ({answer.status_code for answer in answers}, readings) == ({200}, 1)
    platform.clock.forward(999)
    await ask(platform, READ_KEY)
    assert readings == 1
    # An unknown key is worth another look, but not each time.
    for _ in range(5):
        await ask(platform, "unknown")
    assert readings == 2


async def test_a_stream_can_ask_whether_its_key_is_still_good(platform: Platform) -> None:
    created = await made(platform, expiresInDays=1)
    assert await platform.keys.is_live(created["keyId"])
    assert not await platform.keys.is_live("none")
    platform.clock.forward(DAY_MS)
    assert not await platform.keys.is_live(created["keyId"])


async def test_a_revoked_key_is_refused_at_once_also_while_the_keys_are_being_read(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading that had looked before the change came in after it, and counted as fresh for another second."""
    guards, key_id = platform.store.guards, (await made(platform))["keyId"]
    read, looked, go_on = guards.api_keys, asyncio.Event(), asyncio.Event()

    async def slow() -> list[ApiKeyRecord]:
        found = await read()
        looked.set()
        await go_on.wait()
        return found

    platform.clock.forward(KEYS_AGE_MS)
    monkeypatch.setattr(guards, "api_keys", slow)
    before = asyncio.create_task(platform.keys.is_live(key_id))
    await looked.wait()
    monkeypatch.setattr(guards, "api_keys", read)
    await guards.revoke_key(key_id, by="somebody", now_ms=platform.clock.at_ms)
    platform.keys.forget()
    go_on.set()
    assert await platform.keys.is_live(key_id) is False
    await before
    assert await platform.keys.is_live(key_id) is False


@pytest.mark.parametrize(
    ("key", "scopes"), [(SEND_KEY, ["send"]), (READ_KEY, ["read"]), (ADMIN_KEY, ["send", "read", "admin"])]
)
async def test_any_valid_key_is_told_what_it_is_good_for(platform: Platform, key: str, scopes: list[str]) -> None:
    answer = await platform.gateway.get("/v1/keys/self", headers={"X-API-KEY": key})
    assert answer.status_code == 200
    assert answer.json()["scopes"] == scopes
    assert answer.json()["state"] == "live"
    assert "digest" not in answer.text


async def test_a_key_that_is_no_longer_valid_is_told_so_when_it_asks_about_itself(platform: Platform) -> None:
    created = await made(platform)
    await platform.gateway.delete(f"/v1/keys/{created['keyId']}")
    answer = await platform.gateway.get("/v1/keys/self", headers={"X-API-KEY": created["key"]})
    assert refused(answer, 401, "UNAUTHORIZED")["message"] == "this key was revoked"


async def test_a_clock_that_stands_still_keeps_no_key_alive(platform: Platform) -> None:
    """Running services wait for one that was set back; revoked keys do not."""
    key_id = (await made(platform))["keyId"]
    passed_ms = 0
    keys = Keys(platform.store, platform.clock, monotonic=lambda: passed_ms)
    assert await keys.is_live(key_id)
    await platform.store.guards.revoke_key(key_id, by="somebody", now_ms=platform.clock.at_ms)
    passed_ms += KEYS_AGE_MS
    assert not await keys.is_live(key_id)
