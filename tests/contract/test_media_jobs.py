"""Images and documents on their way: accepted with a file, claimed with it, fetched by the worker that holds it."""

import asyncio
import hashlib
import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from paceline.dispatcher.handing import Handing
from paceline.dispatcher.outbox_http import HttpOutbox
from paceline.gateway.media import FETCHES_AT_ONCE
from paceline.kits.safe_http import SafeHttp
from paceline.kits.secrets import derive
from paceline.worker.protocol import ProtocolUnavailable, RequestRefused
from paceline.worker.protocol_http import HttpProtocol

from .platform import FRIEND, SEND_KEY, SESSION, WEBHOOK_SECRET, Platform, refused
from .test_canaries import log  # noqa: F401 - a fixture
from .test_enqueue import enqueue, hand_off
from .test_media import stored
from .uploads import HTML, JPEG, PDF, PNG, ref_of, uploaded

URL = "https://files.example.com/shots/picture.png"
PUBLIC = "93.184.216.34"


def job_with(**fields: Any) -> dict[str, Any]:
    return {"contacts": [FRIEND], **fields}


async def post(platform: Platform, **fields: Any) -> httpx.Response:
    return await platform.gateway.post("/v1/jobs", json=job_with(**fields))


async def fetch(platform: Platform, ref: str, *, session: str = SESSION, secret: str | None = None) -> httpx.Response:
    header = {"X-Webhook-Secret": derive(WEBHOOK_SECRET, session) if secret is None else secret}
    return await platform.orchestrator.get(f"/api/worker/media/{ref}?sessionId={session}", headers=header)


async def claimed(platform: Platform, **fields: Any) -> dict[str, Any]:
    await platform.connect()
    answer = await post(platform, **fields)
    assert answer.status_code == 202, answer.text
    await platform.dispatch()
    claim = await platform.claim()
    assert claim["task"], claim
    return claim


# What is accepted


async def test_an_image_is_claimed_with_its_ref_its_type_and_its_caption(platform: Platform) -> None:
    ref = await uploaded(platform)
    contact = {"to": FRIEND, "vars": {"name": "Ada"}}
    task = (await claimed(platform, contacts=[contact], text="for {{name}}", mode="image", mediaRef=ref))["task"]
    assert (task["mode"], task["text"]) == ("image", "for Ada")
    assert (task["mediaRef"], task["mediaType"], task["mediaSize"]) == (ref, "image/png", len(PNG))
    assert task["mediaName"] == "picture.png"


async def test_a_document_needs_no_caption_and_no_name(platform: Platform) -> None:
    ref = await uploaded(platform, PDF, "application/pdf", None)
    task = (await claimed(platform, mode="document", mediaRef=ref))["task"]
    assert (task["mode"], task["text"], task["mediaRef"]) == ("document", "", ref)
    assert "mediaName" not in task


async def test_an_image_may_go_as_a_document(platform: Platform) -> None:
    ref = await uploaded(platform)
    assert (await post(platform, mode="document", mediaRef=ref)).status_code == 202


async def test_a_message_without_media_looks_as_it_always_did(platform: Platform) -> None:
    task = (await claimed(platform, text="hello"))["task"]
    assert task["mode"] == "message"
    assert [field for field in task if field.startswith("media")] == []


async def test_the_name_of_a_job_is_that_of_its_time(platform: Platform) -> None:
    """The same file uploaded by somebody else under another name does not rename what was accepted."""
    ref = await uploaded(platform)
    await platform.connect()
    await post(platform, mode="image", mediaRef=ref)
    await uploaded(platform, PNG, "image/png", "other.png")
    await platform.dispatch()
    assert (await platform.claim())["task"]["mediaName"] == "picture.png"


async def test_a_job_tells_its_mode(platform: Platform) -> None:
    ref = await uploaded(platform)
    job = (await post(platform, mode="image", mediaRef=ref)).json()
    assert (await platform.gateway.get(job["statusUrl"])).json()["mode"] == "image"


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        pytest.param({"mode": "image"}, "MEDIA_MODE", "mediaRef", id="an image without a file"),
        pytest.param({"mode": "document", "text": "x"}, "MEDIA_MODE", "mediaRef", id="a document without a file"),
        pytest.param({"text": "x", "mediaRef": "REF"}, "MEDIA_MODE", "mediaRef", id="a message with a ref"),
        pytest.param({"text": "x", "mediaUrl": URL}, "MEDIA_MODE", "mediaUrl", id="a message with an address"),
        pytest.param({"mode": "image", "mediaRef": "REF", "mediaUrl": URL}, "MEDIA_MODE", "mediaUrl", id="both"),
        pytest.param({"mode": "image", "mediaRef": "PDF"}, "MEDIA_TYPE", "mediaRef", id="a pdf as an image"),
        pytest.param({"mode": "image", "mediaRef": "REF", "text": "x" * 4_097}, "TEXT_TOO_LONG", "text", id="caption"),
        pytest.param({"mode": "image", "mediaRef": 5}, "INVALID_REQUEST", "mediaRef", id="a ref that is a number"),
        pytest.param({"mode": "image", "mediaRef": "x" * 129}, "INVALID_REQUEST", "mediaRef", id="a long ref"),
        pytest.param({"mode": "image", "mediaUrl": "x" * 2_049}, "INVALID_REQUEST", "mediaUrl", id="a long address"),
        pytest.param({}, "EMPTY_TEXT", "text", id="a message without a text"),
    ],
)
async def test_what_does_not_fit_is_a_400_and_stores_nothing(
    platform: Platform, change: dict[str, Any], code: str, field: str
) -> None:
    refs = {"REF": await uploaded(platform), "PDF": await uploaded(platform, PDF, "application/pdf", "a.pdf")}
    if change.get("mediaRef") in refs:
        change = {**change, "mediaRef": refs[change["mediaRef"]]}
    async with platform.nothing_stored():
        refused(await post(platform, **change), 400, code, field)


@pytest.mark.parametrize("ref", [ref_of(PNG, "png"), "", "x", "jobs:x", "../../etc/passwd"])
async def test_an_unknown_ref_is_a_404(platform: Platform, ref: str) -> None:
    async with platform.nothing_stored():
        refused(await post(platform, mode="image", mediaRef=ref), 404, "UNKNOWN_MEDIA", "mediaRef")


@pytest.mark.parametrize(
    ("ref", "status", "code"),
    [
        pytest.param("nobody-knows", 404, "UNKNOWN_MEDIA", id="unknown"),
        pytest.param("PDF", 400, "MEDIA_TYPE", id="of a type that is no image"),
        pytest.param("PNG", 200, "", id="good"),
    ],
)
async def test_a_plan_refuses_the_file_that_the_job_would_refuse(
    platform: Platform, ref: str, status: int, code: str
) -> None:
    """It said when the job would be done, and the job was then a 404."""
    stored = {"PDF": await uploaded(platform, PDF, "application/pdf", "a.pdf"), "PNG": await uploaded(platform)}
    body = job_with(mode="image", mediaRef=stored.get(ref, ref))
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/v1/jobs/plan", json=body)
    assert answer.status_code == status, answer.text
    if code:
        refused(answer, status, code, "mediaRef")


async def test_a_ref_whose_file_the_disk_lost_is_a_404(platform: Platform) -> None:
    """Better now than ten thousand times later."""
    ref = await uploaded(platform)
    platform.files.path(ref).unlink()
    async with platform.nothing_stored():
        refused(await post(platform, mode="image", mediaRef=ref), 404, "UNKNOWN_MEDIA", "mediaRef")


async def test_a_file_that_is_removed_between_look_and_commit_is_a_404(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = await uploaded(platform)
    look = platform.media.by_ref

    async def late(*arguments: Any) -> Any:
        media = await look(*arguments)
        await platform.media.sweep(platform.clock.at_ms + 31 * 86_400_000)
        return media

    monkeypatch.setattr(platform.media, "by_ref", late)
    refused(await post(platform, mode="image", mediaRef=ref), 404, "UNKNOWN_MEDIA", "mediaRef")
    assert [key for key in await platform.snapshot() if key.startswith("job:stats")] == []


# mediaUrl


def typed(content: bytes, type_: str) -> httpx.Response:
    """As it comes over a network: in pieces, its length not told."""
    return httpx.Response(200, stream=httpx.ByteStream(content), headers={"Content-Type": type_})


Server = Callable[[httpx.Request], httpx.Response]


def serve(platform: Platform, answer: httpx.Response | Server | None = None, address: str = PUBLIC) -> list[str]:
    """The internet has one server; what it is asked is noted."""
    asked: list[str] = []

    async def resolve(_host: str, _port: int) -> list[str]:
        return [address]

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["host"] + request.url.raw_path.decode())
        if callable(answer):
            return answer(request)
        return answer or typed(PNG, "image/png")

    platform.media._http = SafeHttp(resolve=resolve, transport=httpx.MockTransport(handle))
    return asked


async def test_an_address_is_fetched_once_and_stored_like_an_upload(platform: Platform) -> None:
    asked = serve(platform)
    task = (await claimed(platform, mode="image", mediaUrl=URL))["task"]
    assert (task["mediaRef"], task["mediaType"], task["mediaName"]) == (ref_of(PNG, "png"), "image/png", "picture.png")
    assert asked == ["files.example.com/shots/picture.png"]
    assert (await fetch(platform, task["mediaRef"])).content == PNG


async def test_a_repeat_under_its_key_does_not_fetch_again(platform: Platform) -> None:
    asked = serve(platform)
    body, header = job_with(mode="image", mediaUrl=URL), {"Idempotency-Key": "k"}
    answers = [await platform.gateway.post("/v1/jobs", json=body, headers=header) for _ in range(2)]
    assert answers[0].status_code == 202
    assert answers[0].content == answers[1].content
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("answer", "address", "url", "code"),
    [
        pytest.param(None, "127.0.0.1", URL, "MEDIA_URL", id="a name of ours"),
        pytest.param(None, "169.254.169.254", URL, "MEDIA_URL", id="cloud metadata"),
        pytest.param(None, PUBLIC, "http://127.0.0.1/x.png", "MEDIA_URL", id="loopback"),
        pytest.param(None, PUBLIC, "file:///etc/passwd", "MEDIA_URL", id="file"),
        pytest.param(None, PUBLIC, "", "MEDIA_URL", id="empty"),
        pytest.param(None, PUBLIC, "picture.png", "MEDIA_URL", id="no address"),
        pytest.param(httpx.Response(404), PUBLIC, URL, "MEDIA_URL", id="404"),
        pytest.param(httpx.Response(500), PUBLIC, URL, "MEDIA_URL", id="500"),
        pytest.param(
            httpx.Response(302, headers={"Location": "http://10.0.0.1/"}), PUBLIC, URL, "MEDIA_URL", id="redirect"
        ),
        pytest.param(typed(HTML, "text/html"), PUBLIC, URL, "MEDIA_URL", id="html"),
        pytest.param(typed(HTML, "image/png"), PUBLIC, URL, "MEDIA_TYPE", id="html as png"),
        pytest.param(typed(PDF, "application/pdf"), PUBLIC, URL, "MEDIA_URL", id="a pdf as an image"),
        pytest.param(
            typed(PNG + bytes(17 * 1_048_576), "image/png"), PUBLIC, URL, "MEDIA_URL", id="seventeen megabytes"
        ),
        pytest.param(typed(b"", "image/png"), PUBLIC, URL, "INVALID_REQUEST", id="nothing"),
    ],
)
async def test_what_cannot_be_fetched_is_a_400_that_names_it_and_leaves_nothing(
    platform: Platform, answer: httpx.Response | None, address: str, url: str, code: str
) -> None:
    serve(platform, answer, address)
    async with platform.nothing_stored():
        refused(await post(platform, mode="image", mediaUrl=url), 400, code, "mediaUrl")
    assert stored(platform) == set()


async def test_a_server_that_does_not_answer_is_a_400(platform: Platform) -> None:
    def silent(_request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow")

    serve(platform, silent)
    async with platform.nothing_stored():
        refused(await post(platform, mode="image", mediaUrl=URL), 400, "MEDIA_URL", "mediaUrl")


async def test_nothing_is_fetched_for_a_job_that_is_refused(platform: Platform) -> None:
    asked = serve(platform)
    for fields in ({"contacts": ["x"]}, {"sessionId": "nobody"}, {"sendAt": "soon"}, {"text": "{{name}}"}):
        answer = await platform.gateway.post("/v1/jobs", json=job_with(mode="image", mediaUrl=URL) | fields)
        assert 400 <= answer.status_code < 500
    assert asked == []


async def test_only_so_many_are_fetched_at_once(platform: Platform) -> None:
    """Downloads lie in memory: the next one is told to come again."""
    serve(platform)
    platform.media._fetching = FETCHES_AT_ONCE
    async with platform.nothing_stored():
        answer = await post(platform, mode="image", mediaUrl=URL)
        refused(answer, 503, "UNAVAILABLE")
    platform.media._fetching = 0
    assert (await post(platform, mode="image", mediaUrl=URL)).status_code == 202
    assert platform.media._fetching == 0


async def test_who_was_told_to_come_again_for_a_file_may_come_at_once(platform: Platform) -> None:
    """Nothing was accepted. Its key was held for half a minute all the same: 503 `Retry-After: 2`, then only 409."""
    serve(platform)
    body, header = job_with(mode="image", mediaUrl=URL), {"Idempotency-Key": "k"}
    platform.media._fetching = FETCHES_AT_ONCE
    refused(await platform.gateway.post("/v1/jobs", json=body, headers=header), 503, "UNAVAILABLE")
    platform.media._fetching = 0
    assert (await platform.gateway.post("/v1/jobs", json=body, headers=header)).status_code == 202


# What a worker may fetch


async def test_a_worker_gets_the_file_of_a_task_it_holds_and_of_no_other(platform: Platform) -> None:
    other = await uploaded(platform, JPEG, "image/jpeg", "b.jpg")
    ref = await uploaded(platform)
    claim = await claimed(platform, mode="image", mediaRef=ref)
    answer = await fetch(platform, ref)
    assert (answer.status_code, answer.content) == (200, PNG)
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    refused(await fetch(platform, other), 404, "UNKNOWN_MEDIA", "ref")
    await platform.outbox("ack", {"raw": claim["raw"], "epoch": 1})
    refused(await fetch(platform, ref), 404, "UNKNOWN_MEDIA", "ref")


async def test_who_may_fetch(platform: Platform) -> None:
    ref = await uploaded(platform)
    await claimed(platform, mode="image", mediaRef=ref)
    for secret in ("", "wrong", derive(WEBHOOK_SECRET, "s2")):
        refused(await fetch(platform, ref, secret=secret), 401, "UNAUTHORIZED")
    refused(await fetch(platform, ref, session="s2"), 404, "UNKNOWN_MEDIA", "ref")
    answer = await platform.orchestrator.get(f"/api/worker/media/{ref}")
    refused(answer, 400, "INVALID_REQUEST")


@pytest.mark.parametrize("ref", ["..%2F..%2Fetc%2Fpasswd", "x", f"{ref_of(PNG, 'png')}%00", "%2e%2e"])
async def test_what_is_no_ref_is_a_404(platform: Platform, ref: str) -> None:
    await platform.connect()
    assert (await fetch(platform, ref)).status_code == 404


async def test_a_file_the_disk_lost_is_a_404(platform: Platform) -> None:
    ref = await uploaded(platform)
    await claimed(platform, mode="image", mediaRef=ref)
    platform.files.path(ref).unlink()
    refused(await fetch(platform, ref), 404, "UNKNOWN_MEDIA", "ref")


async def test_the_workers_own_client_fetches_it(platform: Platform) -> None:
    """The real client against the real route, a file larger than one piece of the stream."""
    body = PNG + bytes(3_000_000)
    ref = await uploaded(platform, body, "image/png", "big.png")
    await claimed(platform, mode="image", mediaRef=ref)
    transport = httpx.ASGITransport(platform.services["orchestrator"])
    protocol = HttpProtocol("http://paceline", SESSION, derive(WEBHOOK_SECRET, SESSION), transport=transport)
    content = await protocol.media(ref, size=len(body))
    assert hashlib.sha256(content).hexdigest() == ref.partition("-")[0]
    with pytest.raises(ProtocolUnavailable, match="more than"):
        await protocol.media(ref, size=1_000_000)
    with pytest.raises(RequestRefused, match="UNKNOWN_MEDIA"):
        await protocol.media(ref_of(PDF, "pdf"), size=1)
    await protocol.close()


async def test_a_worker_without_the_file_is_believed_and_it_is_tried_again(platform: Platform) -> None:
    ref = await uploaded(platform)
    claim = await claimed(platform, mode="image", mediaRef=ref)
    error = {"code": "MEDIA_UNAVAILABLE", "message": "gone"}
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    message = await platform.message(claim["task"]["taskId"])
    assert (message["state"], message["waiting"]["reason"]) == ("queued", "RETRY")
    assert message["lastError"]["code"] == "MEDIA_UNAVAILABLE"


# The enqueue endpoint


async def test_an_image_by_post_waits_its_turn_and_goes_with_its_file(platform: Platform) -> None:
    await platform.connect()
    ref = await uploaded(platform)
    body = {"mode": "image", "to": FRIEND, "jobId": "c", "taskId": "t", "mediaRef": ref, "caption": "look"}
    first = await enqueue(platform, body | {"mediaPath": "/etc/passwd"})
    assert first.status_code == 200, first.text
    assert (await enqueue(platform, body)).content == first.content
    await platform.dispatch()
    task = (await platform.claim())["task"]
    assert (task["mode"], task["text"], task["mediaRef"]) == ("image", "look", ref)


@pytest.mark.parametrize(
    ("change", "status", "code", "field"),
    [
        pytest.param({"mediaRef": None}, 400, "MEDIA_MODE", "mediaRef", id="no ref"),
        pytest.param({"mediaRef": None, "mediaPath": "/etc/passwd"}, 400, "MEDIA_MODE", "mediaRef", id="a path alone"),
        pytest.param({"mediaRef": "x"}, 404, "UNKNOWN_MEDIA", "mediaRef", id="unknown"),
        pytest.param({"mediaRef": "PDF"}, 400, "MEDIA_TYPE", "mediaRef", id="a pdf"),
        pytest.param({"text": "a", "caption": "b"}, 400, "MEDIA_MODE", "text", id="text and caption"),
        pytest.param({"caption": " "}, 400, "EMPTY_TEXT", "caption", id="a blank caption"),
        pytest.param({"caption": "{{x}}"}, 400, "MISSING_VARIABLE", "caption", id="a variable"),
    ],
)
async def test_an_image_by_post_that_cannot_go_is_refused(
    platform: Platform, change: dict[str, Any], status: int, code: str, field: str
) -> None:
    await platform.connect()
    body = {"mode": "image", "to": FRIEND, "jobId": "c", "taskId": "t", "mediaRef": await uploaded(platform)} | change
    if body["mediaRef"] == "PDF":
        body["mediaRef"] = await uploaded(platform, PDF, "application/pdf", "a.pdf")
    async with platform.nothing_stored():
        refused(await enqueue(platform, body), status, code, field)


async def test_a_hand_over_with_media_goes_by_post(platform: Platform) -> None:
    """SEND_MODE=api: what is posted says what it is, and what is stored counts."""
    await platform.connect()
    ref = await uploaded(platform)
    task = await hand_off(platform, mode="image", mediaRef=ref, text="look")
    outbox = HttpOutbox("http://paceline", SEND_KEY, transport=httpx.ASGITransport(platform.services["orchestrator"]))
    handing = Handing(platform.store, outbox)
    await handing.step(platform.clock.at_ms)
    await outbox.close()
    assert (handing.posted, handing.failed) == (1, 0)
    claim = await platform.claim()
    assert (claim["task"]["taskId"], claim["task"]["mediaRef"], claim["task"]["text"]) == (task, ref, "look")


# Nothing of it is in a log

CANARIES = ("canary-file-name", "canary-caption", "canary-query")


async def test_file_names_captions_and_addresses_are_in_no_log(platform: Platform, log: io.StringIO) -> None:  # noqa: F811
    serve(platform, typed(PDF, "application/pdf"))
    ref = await uploaded(platform, PNG, "image/png", "canary-file-name.png")
    await claimed(platform, mode="image", mediaRef=ref, text="canary-caption")
    await fetch(platform, ref)
    await uploaded(platform, PDF, "application/pdf", "canary-file-name.pdf")
    await platform.gateway.post("/v1/media", files={"file": ("canary-file-name.png", HTML, "image/png")})
    await platform.gateway.post("/v1/media", files={"canary-file-name": ("canary-file-name.png", PNG, "image/png")})
    await post(platform, mode="document", mediaUrl=f"{URL}?canary-query=1", text="canary-caption")
    await post(platform, mode="image", mediaUrl="http://127.0.0.1/canary-query", text="canary-caption")
    await post(platform, mode="image", mediaRef="canary-file-name", text="canary-caption")
    files = {"image": ("canary-file-name.png", HTML, "image/png")}
    await platform.gateway.post("/api/messages", data={"contacts": FRIEND, "caption": "canary-caption"}, files=files)

    def full(*_: object) -> None:
        raise OSError(28, "canary-file-name")

    platform.files.keep = full  # type: ignore[method-assign]
    await platform.gateway.post("/v1/media", files={"file": ("canary-file-name.png", PNG, "image/png")})
    await asyncio.sleep(0)
    logged = log.getvalue()
    assert "/v1/media" in logged
    assert [canary for canary in CANARIES if canary in logged] == []
