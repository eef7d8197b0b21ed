"""What nobody could see is not sent: a text of spaces and characters without width is refused, its field named."""

from typing import Any

import pytest

from .platform import FRIEND, Platform, refused

BLANKS = [" \n\t", "\u200b", "\u2800", "\u3164 \ufe0f", "\u200e\u202b\u2060"]
ROUTES = [
    pytest.param("/api/v1/send", lambda text: {"to": FRIEND, "message": text}, "message", id="send"),
    pytest.param("/api/send", lambda text: {"to": FRIEND, "text": text}, "text", id="older send"),
    pytest.param(
        "/api/v1/send/batch", lambda text: {"messages": [{"to": FRIEND, "text": text}]}, "messages[0].text", id="batch"
    ),
    pytest.param("/v1/jobs", lambda text: {"contacts": [FRIEND], "text": text}, "text", id="job"),
    pytest.param("/v1/jobs/plan", lambda text: {"contacts": [FRIEND], "text": text}, "text", id="plan"),
]


@pytest.mark.parametrize("text", BLANKS, ids=ascii)
@pytest.mark.parametrize(("path", "body", "field"), ROUTES)
async def test_a_blank_text_is_refused(platform: Platform, path: str, body: Any, field: str, text: str) -> None:
    await platform.connect()
    async with platform.nothing_stored():
        refused(await platform.gateway.post(path, json=body(text)), 400, "EMPTY_TEXT", field)


@pytest.mark.parametrize("text", BLANKS, ids=ascii)
async def test_what_is_posted_into_an_outbox_too(platform: Platform, text: str) -> None:
    await platform.connect()
    body = {"to": FRIEND, "jobId": "j", "taskId": "t", "text": text}
    async with platform.nothing_stored():
        answer = await platform.orchestrator.post("/api/sessions/s1/outbox/enqueue", json=body)
    refused(answer, 400, "EMPTY_TEXT", "text")


async def test_one_that_becomes_blank_is_listed(platform: Platform) -> None:
    """By the plan and by the job: the others get theirs."""
    await platform.connect()
    contacts = [
        {"to": FRIEND, "vars": {"name": "\u200b", "city": ""}},
        {"to": "972529876544", "vars": {"name": " ", "city": "Haifa"}},
    ]
    for path in ("/v1/jobs/plan", "/v1/jobs"):
        body = {"contacts": contacts, "text": " {{name}} {{city}}"}
        answer = (await platform.gateway.post(path, json=body)).json()
        assert answer["rejected"] == [{"index": 0, "to": FRIEND, "code": "EMPTY_TEXT"}]
        assert answer["accepted"] == 1
