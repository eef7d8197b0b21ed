"""What every service does alike: one error shape, keys and scopes, limits, and its own documentation."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from paceline.kits.secrets import derive
from paceline.kits.web import MEGABYTE

from .platform import ADMIN_KEY, READ_KEY, SEND_KEY, SESSION, WEBHOOK_SECRET, Platform, big_job, error_of, refused

SERVICES = ["gateway", "dispatcher", "orchestrator"]
GUARDED = [
    pytest.param(("gateway", "POST", "/v1/jobs", "send"), id="post a job"),
    pytest.param(("gateway", "POST", "/api/v1/send", "send"), id="send"),
    pytest.param(("gateway", "GET", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV", "read"), id="look at a job"),
    pytest.param(("gateway", "POST", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV/cancel", "send"), id="cancel"),
    pytest.param(("gateway", "GET", "/api/v1/messages/01ARZ3NDEKTSV4RRFFQ69G5FAV:0/status", "read"), id="message"),
    pytest.param(("gateway", "POST", "/api/v1/send/batch", "send"), id="batch"),
    pytest.param(("gateway", "POST", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV/pause", "send"), id="pause"),
    pytest.param(("gateway", "POST", "/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV/resume", "send"), id="resume"),
    pytest.param(("gateway", "GET", "/api/v1/queue/s1", "read"), id="queue"),
    pytest.param(("gateway", "DELETE", "/api/v1/queue/s1/01ARZ3NDEKTSV4RRFFQ69G5FAV:0", "send"), id="cancel one"),
    pytest.param(("gateway", "GET", "/api/v1/stats/s1", "read"), id="stats"),
    pytest.param(("gateway", "GET", "/v1/suppressions", "read"), id="list suppressions"),
    pytest.param(("gateway", "POST", "/v1/suppressions", "send"), id="suppress"),
    pytest.param(("gateway", "DELETE", "/v1/suppressions/972529876543", "admin"), id="unsuppress"),
    pytest.param(("gateway", "DELETE", "/v1/recipients/972529876543", "admin"), id="erase a person"),
    pytest.param(("gateway", "GET", "/v1/dead-letters", "read"), id="dead letters"),
    pytest.param(("gateway", "POST", "/v1/dead-letters/replay", "send"), id="replay many"),
    pytest.param(("dispatcher", "GET", "/queue/status", "read"), id="queues"),
    pytest.param(("orchestrator", "GET", "/api/sessions", "read"), id="list sessions"),
    pytest.param(("orchestrator", "POST", "/api/sessions", "admin"), id="create a session"),
    pytest.param(("orchestrator", "GET", "/api/sessions/s1", "read"), id="look at a session"),
]
WITHOUT_BODY = (
    "/cancel", "/pause", "/resume", "/start", "/stop", "/clear", "/requeue", "/restart", "/restart/{session_id}",
    "/logout", "/pairing-code", "/simulated/scan", "/api/alerts/test",
)  # fmt: skip
"""POSTs that say everything with their path."""
WORKER_PATHS = [
    f"/api/worker/sessions/{SESSION}/{path}"
    for path in ("hello", "outbox/claim?timeout=0", "outbox/ack", "outbox/nack", "outbox/extend")
]


@pytest.mark.parametrize("name", SERVICES)
async def test_an_unknown_path_is_a_404_of_our_shape(platform: Platform, name: str) -> None:
    refused(await platform.client(name).get("/nowhere"), 404, "NOT_FOUND")


@pytest.mark.parametrize("name", SERVICES)
async def test_a_wrong_method_is_a_405_of_our_shape(platform: Platform, name: str) -> None:
    refused(await platform.client(name).delete("/health"), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("name", SERVICES)
async def test_health_is_open_to_everybody(platform: Platform, name: str) -> None:
    answer = await platform.client(name).get("/health", headers={"X-API-KEY": ""})
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"", "INVALID_JSON", id="nothing"),
        pytest.param(b'{"contacts": ["972', "INVALID_JSON", id="cut off"),
        pytest.param(b"\xff\xfe", "INVALID_JSON", id="no UTF-8"),
        pytest.param(b'{"contacts":["972529876543"],"text":"\xff"}', "INVALID_JSON", id="no UTF-8 in a text"),
        pytest.param(b'{"contacts":["972529876543"],"text":"\\ud800"}', "INVALID_JSON", id="half a surrogate"),
        pytest.param(b"[" * 100_000, "INVALID_REQUEST", id="an endless array"),
        pytest.param(
            b'{"contacts":["972529876543"],"text":"x","metadata":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
            "INVALID_JSON",
            id="nested too deeply",
        ),
        pytest.param(b"[]", "INVALID_REQUEST", id="an array"),
        pytest.param(b"null", "INVALID_REQUEST", id="null"),
    ],
)
async def test_a_body_that_is_no_good_json_is_a_400_and_stores_nothing(
    platform: Platform, body: bytes, code: str
) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 400, code)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""])
async def test_another_content_type_is_a_415(platform: Platform, kind: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs", content=big_job(1), headers={"Content-Type": kind})
    refused(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


async def pieces(total: int) -> AsyncIterator[bytes]:
    for _ in range(total // MEGABYTE + 1):
        yield b" " * MEGABYTE


@pytest.mark.parametrize(
    ("name", "path", "size"),
    [
        pytest.param("gateway", "/v1/jobs", 32 * MEGABYTE, id="32 MB of job"),
        pytest.param("gateway", "/api/v1/send", MEGABYTE, id="1 MB of message"),
        pytest.param("orchestrator", "/api/sessions", MEGABYTE, id="1 MB of session"),
        pytest.param("orchestrator", "/api/webhook", MEGABYTE, id="1 MB of event"),
    ],
)
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
async def test_a_body_over_the_limit_is_a_413_also_without_a_length(
    platform: Platform, name: str, path: str, size: int, chunked: bool
) -> None:
    content = pieces(size) if chunked else b" " * (size + 1)
    headers = {"Content-Type": "application/json"}
    async with platform.nothing_stored():
        answer = await platform.client(name).post(path, content=content, headers=headers)
    refused(answer, 413, "BODY_TOO_LARGE")


async def test_a_body_just_under_the_limit_is_read(platform: Platform) -> None:
    body = b'{"contacts":["972529876543"],"text":"x"}'.ljust(32 * MEGABYTE)
    answer = await platform.gateway.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 202


@pytest.mark.parametrize("key", ["", "wrong", ADMIN_KEY + "x", ADMIN_KEY[:-1], "ключ".encode()], ids=repr)
@pytest.mark.parametrize("route", GUARDED)
async def test_without_a_valid_key_everything_guarded_is_401(
    platform: Platform, route: tuple[str, str, str, str], key: str | bytes
) -> None:
    name, method, path, _ = route
    async with platform.nothing_stored():
        answer = await platform.client(name).request(method, path, headers={"X-API-KEY": key})
    refused(answer, 401, "UNAUTHORIZED")


@pytest.mark.parametrize("route", GUARDED)
async def test_a_key_without_the_scope_is_403(platform: Platform, route: tuple[str, str, str, str]) -> None:
    name, method, path, scope = route
    key = READ_KEY if scope == "send" else SEND_KEY
    async with platform.nothing_stored():
        answer = await platform.client(name).request(method, path, headers={"X-API-KEY": key})
    assert refused(answer, 403, "FORBIDDEN")["details"] == {"scope": scope}


async def test_a_key_may_come_as_bearer(platform: Platform) -> None:
    headers = {"X-API-KEY": "", "Authorization": f"Bearer {READ_KEY}"}
    assert (await platform.gateway.get("/v1/suppressions", headers=headers)).status_code == 200


async def test_keys_are_stored_hashed(platform: Platform) -> None:
    stored = repr(await platform.snapshot())
    assert all(key not in stored for key in (ADMIN_KEY, SEND_KEY, READ_KEY))


async def test_the_bootstrap_key_is_an_admin_key_and_the_newest_one_counts(platform: Platform) -> None:
    await platform.keys.save_bootstrap("another-bootstrap-key-1")
    platform.clock.forward(1_000)
    for key, status in (("another-bootstrap-key-1", 200), (ADMIN_KEY, 401)):
        answer = await platform.orchestrator.get("/api/sessions", headers={"X-API-KEY": key})
        assert answer.status_code == status


@pytest.mark.parametrize("path", [*WORKER_PATHS, "/api/webhook"])
@pytest.mark.parametrize("secret", ["", "wrong", "other session"])
async def test_a_worker_without_its_own_secret_is_401(platform: Platform, path: str, secret: str) -> None:
    await platform.register()
    body = (
        {"sessionId": SESSION, "event": "PING", "timestamp": 1, "eventId": "e"} if "webhook" in path else {"epoch": 1}
    )
    if secret == "other session":
        secret = derive(WEBHOOK_SECRET, "s2")
    async with platform.nothing_stored():
        refused(await platform.worker(path, body, secret=secret), 401, "UNAUTHORIZED")


async def test_an_unexpected_error_is_a_500_that_tells_nothing(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("canary of the inside")

    monkeypatch.setattr(platform.store.jobs, "view", fail)
    answer = await platform.gateway.get("/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    refused(answer, 500, "INTERNAL")
    assert "canary" not in answer.text
    assert "RuntimeError" not in answer.text


@pytest.mark.parametrize("name", SERVICES)
async def test_a_store_that_does_not_answer_is_a_503_with_retry_after(name: str) -> None:
    platform = Platform("unix:///nowhere/redis.sock")
    path = {"gateway": "/v1/suppressions", "dispatcher": "/queue/status", "orchestrator": "/api/sessions"}[name]
    for asked in ("/health", path):
        answer = await platform.client(name).get(asked)
        error = refused(answer, 503, "UNAVAILABLE")
        assert int(answer.headers["Retry-After"]) == error["retryAfterSeconds"] > 0
        assert "nowhere" not in answer.text
    await platform.close()


@pytest.mark.parametrize("name", SERVICES)
async def test_every_answer_has_a_request_id_and_keeps_the_callers(platform: Platform, name: str) -> None:
    client = platform.client(name)
    own = await client.get("/nowhere", headers={"X-Request-Id": "abc-1"})
    assert own.headers["x-request-id"] == "abc-1"
    odd = await client.get("/health", headers={"X-Request-Id": "a b\tc"})
    assert re.fullmatch(r"[0-9a-f]{32}", odd.headers["x-request-id"])


@pytest.mark.parametrize("name", SERVICES)
async def test_openapi_describes_every_route_with_its_body(platform: Platform, name: str) -> None:
    document = (await platform.client(name).get("/openapi.json", headers={"X-API-KEY": ""})).json()
    assert document["openapi"].startswith("3.")
    for path, item in document["paths"].items():
        for method, operation in item.items():
            has_body = "requestBody" in operation
            assert has_body == (method in ("post", "patch") and not path.endswith(WITHOUT_BODY)), path
            assert operation["summary"], path
    if name == "gateway":
        fields = document["components"]["schemas"]["JobRequest"]["properties"]
        assert {"contacts", "text", "sendAt", "validitySeconds", "onUnknown"} <= set(fields)


@pytest.mark.parametrize("name", SERVICES)
async def test_docs_is_one_page_that_loads_nothing(platform: Platform, name: str) -> None:
    answer = await platform.client(name).get("/docs", headers={"X-API-KEY": ""})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    # Addresses stand in examples, as words; nothing on the page leads or asks there.
    assert not re.search(r"<(?:script|link|img|iframe|object)|src=|url\(|@import|href=.?(?:https?:|//)", answer.text)
    paths = (await platform.client(name).get("/openapi.json")).json()["paths"]
    assert all(path in answer.text for path in paths)
    assert "BODY_TOO_LARGE" in answer.text


async def test_a_validation_error_of_a_query_names_the_parameter(platform: Platform) -> None:
    for value in ("0", "1001", "many"):
        refused(
            await platform.gateway.get("/v1/suppressions", params={"limit": value}), 400, "INVALID_REQUEST", "limit"
        )


async def test_every_error_is_json(platform: Platform) -> None:
    answer: httpx.Response = await platform.gateway.get("/nowhere")
    assert answer.headers["content-type"].startswith("application/json")
    error_of(answer)
