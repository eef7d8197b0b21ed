"""POST /api/messages and POST /api/send: what older clients post is an ordinary job or message."""

from typing import Any

import httpx
import pytest

from .platform import FRIEND, READ_KEY, SEND_KEY, Platform, refused
from .test_media import stored
from .uploads import HTML, PDF, PNG, ref_of

OTHERS = ["972520000001", "972520000002"]
IMAGE = {"image": ("picture.png", PNG, "image/png")}
HTML_IMAGE = {"image": ("a.png", HTML, "image/png")}
PDF_IMAGE = {"image": ("a.pdf", PDF, "application/pdf")}


async def post(platform: Platform, files: Any = None, headers: Any = None, **fields: Any) -> httpx.Response:
    """Always a form, also without a file."""
    parts = [(name, (None, value)) for name, value in fields.items()] + list((files or {}).items())
    return await platform.gateway.post("/api/messages", files=parts, headers=headers)


@pytest.mark.parametrize(
    "contacts",
    [
        pytest.param(f"{FRIEND}\n\n  {OTHERS[0]} \r\n{OTHERS[1]}\n", id="lines"),
        pytest.param(f'["{FRIEND}", {{"to": "{OTHERS[0]}"}}, "+{OTHERS[1]}"]', id="json"),
    ],
)
async def test_contacts_as_lines_or_json_and_a_message(platform: Platform, contacts: str) -> None:
    answer = await post(platform, contacts=contacts, message="hello", headers={"X-API-KEY": SEND_KEY})
    assert answer.status_code == 202, answer.text
    job = answer.json()
    assert (job["total"], job["accepted"], job["rejected"]) == (3, 3, [])
    assert (await platform.gateway.get(job["statusUrl"])).json()["mode"] == "message"


async def test_an_image_goes_with_its_caption(platform: Platform) -> None:
    await platform.connect()
    answer = await post(platform, IMAGE, contacts=FRIEND, caption="look", message="")
    assert answer.status_code == 202, answer.text
    await platform.dispatch()
    task = (await platform.claim())["task"]
    assert (task["mode"], task["text"], task["mediaRef"]) == ("image", "look", ref_of(PNG, "png"))
    assert task["mediaName"] == "picture.png"


async def test_all_from_one_number(platform: Platform) -> None:
    await platform.connect()
    job = (await post(platform, contacts=FRIEND, message="hello", sessionId="s1")).json()
    assert (await platform.gateway.get(job["statusUrl"])).json()["sessionId"] == "s1"


TEXT = {"contacts": FRIEND, "message": "x"}


@pytest.mark.parametrize(
    ("fields", "files", "error"),
    [
        pytest.param({"contacts": FRIEND}, None, "400 INVALID_REQUEST message", id="neither"),
        pytest.param(TEXT, IMAGE, "400 INVALID_REQUEST image", id="both"),
        pytest.param({"message": "x"}, None, "400 INVALID_REQUEST contacts", id="no contacts"),
        pytest.param({**TEXT, "contacts": " \n "}, None, "400 INVALID_REQUEST contacts", id="blank contacts"),
        pytest.param({**TEXT, "contacts": "[]"}, None, "400 INVALID_REQUEST contacts", id="an empty list"),
        pytest.param({**TEXT, "contacts": "[1"}, None, "400 INVALID_JSON contacts", id="broken json"),
        pytest.param({**TEXT, "contacts": "[5]"}, None, "400 INVALID_REQUEST contacts[0]", id="a number"),
        pytest.param({**TEXT, "contacts": "[" * 9_999}, None, "400 INVALID_JSON contacts", id="deep json"),
        pytest.param({**TEXT, "contacts": "nobody"}, None, "422 NOTHING_ACCEPTED contacts", id="none good"),
        pytest.param({"contacts": "nobody"}, IMAGE, "422 NOTHING_ACCEPTED contacts", id="none good for an image"),
        pytest.param({**TEXT, "message": ""}, None, "400 EMPTY_TEXT message", id="an empty message"),
        pytest.param({**TEXT, "message": "x" * 4_097}, None, "400 TEXT_TOO_LONG message", id="a long message"),
        pytest.param(
            {"contacts": FRIEND, "caption": "x" * 4_097}, IMAGE, "400 TEXT_TOO_LONG caption", id="long caption"
        ),
        pytest.param({**TEXT, "caption": "y"}, None, "400 INVALID_REQUEST caption", id="a caption of nothing"),
        pytest.param({**TEXT, "txt": "y"}, None, "400 INVALID_REQUEST txt", id="a field misspelt"),
        pytest.param({"contacts": FRIEND, "image": "x"}, None, "400 INVALID_REQUEST image", id="an image as text"),
        pytest.param({"contacts": FRIEND}, HTML_IMAGE, "400 MEDIA_TYPE image", id="html as an image"),
        pytest.param({"contacts": FRIEND}, PDF_IMAGE, "400 MEDIA_TYPE image", id="a pdf as an image"),
        pytest.param({**TEXT, "sessionId": "s9"}, None, "404 UNKNOWN_SESSION sessionId", id="unknown session"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_stored(
    platform: Platform, fields: dict[str, str], files: Any, error: str
) -> None:
    status, code, field = error.split()
    async with platform.nothing_stored():
        refused(await post(platform, files, **fields), int(status), code, field)
    assert stored(platform) == set()


async def test_an_image_that_is_too_large_is_a_413_and_nothing_is_stored(platform: Platform) -> None:
    body = PNG + bytes(platform.media.limits.max_bytes)
    async with platform.nothing_stored():
        answer = await post(platform, {"image": ("a.png", body, "image/png")}, contacts=FRIEND)
        refused(answer, 413, "MEDIA_TOO_LARGE", "image")
    assert stored(platform) == set()


async def test_other_bodies_are_a_415(platform: Platform) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/api/messages", json={"contacts": [FRIEND], "message": "x"})
        refused(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_form_that_is_repeated_under_its_key_is_one_job(platform: Platform) -> None:
    """Every form has another boundary; what counts is what is in it."""
    key = {"Idempotency-Key": "k"}
    answers = [await post(platform, IMAGE, key, contacts=FRIEND, caption="look") for _ in range(2)]
    assert answers[0].status_code == 202, answers[0].text
    assert answers[0].content == answers[1].content
    refused(await post(platform, IMAGE, key, contacts=FRIEND, caption="other"), 422, "IDEMPOTENCY_KEY_REUSED")
    other = {"image": ("picture.png", PNG + b"x", "image/png")}
    refused(await post(platform, other, key, contacts=FRIEND, caption="look"), 422, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize("path", ["/api/messages", "/api/send"])
async def test_who_may_send(platform: Platform, path: str) -> None:
    for key, status, code in (("", 401, "UNAUTHORIZED"), ("x", 401, "UNAUTHORIZED"), (READ_KEY, 403, "FORBIDDEN")):
        async with platform.nothing_stored():
            refused(await platform.gateway.post(path, headers={"X-API-KEY": key}), status, code)


# POST /api/send


async def test_the_older_send_is_a_send(platform: Platform) -> None:
    await platform.connect()
    answer = await platform.gateway.post("/api/send", json={"to": FRIEND, "text": "hello"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["queued"] is True
    await platform.dispatch()
    assert (await platform.claim())["task"]["text"] == "hello"


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"to": "12"}, "INVALID_NUMBER", "to"),
        ({"text": " "}, "EMPTY_TEXT", "text"),
        ({"text": "{{name}}"}, "MISSING_VARIABLE", "text"),
        ({"text": "x" * 4_097}, "TEXT_TOO_LONG", "text"),
        ({"message": "x"}, "INVALID_REQUEST", "message"),
        ({"text": None}, "INVALID_REQUEST", "text"),
    ],
)
async def test_a_bad_older_send_names_the_field_as_the_caller_wrote_it(
    platform: Platform, change: dict[str, Any], code: str, field: str
) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post("/api/send", json={"to": FRIEND, "text": "hello"} | change)
        refused(answer, 400, code, field)


async def test_an_older_send_can_be_repeated_safely(platform: Platform) -> None:
    await platform.connect()
    body, key = {"to": FRIEND, "text": "hello"}, {"Idempotency-Key": "k"}
    answers = [await platform.gateway.post("/api/send", json=body, headers=key) for _ in range(2)]
    assert answers[0].content == answers[1].content
