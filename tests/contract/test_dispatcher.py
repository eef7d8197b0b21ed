"""The dispatcher's HTTP: /health counts what it did, /queue/status what waits; every other route needs a key."""

import pytest

from .platform import FRIEND, NOON, READ_KEY, SEND_KEY, Platform, refused

READING = ["/queue/status", "/fleet", "/pacers", "/sessions/metrics", "/sessions/s1/explain", "/smartguard/status"]
READING += ["/incidents", "/jobs/events"]
CHANGING = ["/start", "/stop", "/fleet/pause", "/fleet/resume", "/smartguard/enable", "/pacers/s1", "/sessions/s1/rpm"]
CHANGING += ["/sessions/s1/cooldown/clear", "/sessions/s1/queue/requeue", "/sessions/s1/queue/cancel"]
OF_A_SESSION = ["/pacers/{}", "/sessions/{}/rpm", "/sessions/{}/cooldown/clear", "/sessions/{}/queue/requeue"]
OF_A_SESSION += ["/sessions/{}/queue/cancel", "/sessions/{}/explain"]
ROUTES = [("GET", path) for path in READING] + [("POST", path) for path in CHANGING]

EMPTY = dict.fromkeys(["gateway", "priority", "retry", "sessionRetry", "scheduled", "parked", "deadLetter", "total"], 0)


async def test_health_counts_turns_routed_tasks_and_phones_with_work(platform: Platform) -> None:
    await platform.connect()
    await platform.post_job(contacts=[FRIEND, "972529876544"])
    await platform.engine.routers[0].step(NOON)
    body = (await platform.dispatcher.get("/health")).json()
    assert body == {"status": "ok", "running": True, "processed": 1, "routed": 2, "failed": 0, "activePacers": 1}


async def test_a_job_that_cannot_be_read_counts_as_failed(platform: Platform) -> None:
    """Malformed jobs end visibly instead of stopping the round."""
    job = await platform.post_job()
    await platform.link.read(("SET", f"job:{job['jobId']}", "no json"))
    await platform.engine.routers[0].step(NOON)
    assert (await platform.dispatcher.get("/health")).json()["failed"] == 1


async def test_queue_status_knows_every_queue(platform: Platform) -> None:
    """One of each, and the total is their sum."""
    assert (await platform.dispatcher.get("/queue/status")).json() == EMPTY
    await platform.post_job()
    await platform.post_job(priority=2)
    body = (await platform.dispatcher.get("/queue/status")).json()
    assert body == EMPTY | {"gateway": 1, "priority": 1, "total": 2}
    await platform.dispatch()
    body = (await platform.dispatcher.get("/queue/status")).json()
    assert body == EMPTY | {"retry": 2, "total": 2}


async def test_scheduled_parked_retried_and_dead_are_counted(platform: Platform) -> None:
    await platform.connect()
    await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "x", "sendAt": NOON + 3_600_000})
    await platform.post_job(contacts=[{"to": "972529876544", "timezone": "America/Los_Angeles"}])
    await platform.dispatch()
    await platform.post_job(contacts=["972529876545"])
    await platform.dispatch()
    claim = await platform.claim()
    error = {"code": "NOT_ON_WHATSAPP", "message": "nobody there"}
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    body = (await platform.dispatcher.get("/queue/status")).json()
    assert body == EMPTY | {"scheduled": 1, "parked": 1, "deadLetter": 1, "total": 3}


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("key", ["", "wrong"])
async def test_without_a_valid_key_it_is_401(platform: Platform, method: str, path: str, key: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.dispatcher.request(method, path, json={}, headers={"X-API-KEY": key})
    refused(answer, 401, "UNAUTHORIZED")


@pytest.mark.parametrize("path", READING)
async def test_who_may_only_send_reads_nothing(platform: Platform, path: str) -> None:
    answer = await platform.dispatcher.get(path, headers={"X-API-KEY": SEND_KEY})
    assert refused(answer, 403, "FORBIDDEN")["details"] == {"scope": "read"}


@pytest.mark.parametrize("path", CHANGING)
@pytest.mark.parametrize("key", [READ_KEY, SEND_KEY], ids=["read", "send"])
async def test_who_may_not_administer_changes_nothing(platform: Platform, path: str, key: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer = await platform.dispatcher.post(path, json={"rpm": 5, "enabled": False}, headers={"X-API-KEY": key})
    assert refused(answer, 403, "FORBIDDEN")["details"] == {"scope": "admin"}


@pytest.mark.parametrize("path", READING)
async def test_who_may_read_reads_all_of_it(platform: Platform, path: str) -> None:
    await platform.connect()
    answer = await platform.dispatcher.get(path, headers={"X-API-KEY": READ_KEY})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("session", ["nobody", "outbox%3As1", "events:s1", "x" * 300, "%20", "é"])
@pytest.mark.parametrize("path", OF_A_SESSION)
async def test_an_unknown_session_is_404_and_stores_nothing(platform: Platform, path: str, session: str) -> None:
    """Also one that, as part of a key, would name something else: `outbox:s1` is a list."""
    await platform.connect()
    await platform.post_job()
    await platform.dispatch()
    method = "GET" if path.endswith("explain") else "POST"
    async with platform.nothing_stored():
        answer = await platform.dispatcher.request(method, path.format(session), json={"rpm": 5})
    refused(answer, 404, "UNKNOWN_SESSION", "sessionId")


@pytest.mark.parametrize("path", ["/pacers/s1", "/sessions/s1/rpm", "/smartguard/enable"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param(b"", 400, "INVALID_JSON", id="nothing"),
        pytest.param(b"{", 400, "INVALID_JSON", id="cut off"),
        pytest.param(b"[]", 400, "INVALID_REQUEST", id="an array"),
        pytest.param(b"null", 400, "INVALID_REQUEST", id="null"),
    ],
)
async def test_a_body_that_is_no_good_json_is_400(
    platform: Platform, path: str, body: bytes, status: int, code: str
) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer = await platform.dispatcher.post(path, content=body, headers={"Content-Type": "application/json"})
    refused(answer, status, code)


@pytest.mark.parametrize("path", ["/pacers/s1", "/sessions/s1/rpm", "/smartguard/enable"])
async def test_a_field_nobody_knows_is_400_by_its_name(platform: Platform, path: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        answer = await platform.dispatcher.post(path, json={"rpm": 5, "enabled": True, "burstlimit": 3})
    error = refused(answer, 400, "INVALID_REQUEST")
    assert error["details"]["field"] in {"burstlimit", "rpm", "enabled"}
