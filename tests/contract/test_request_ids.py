"""The id of the accepting request stays with its messages: whoever works on one later can name it in its log."""

from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from paceline.kits.logging import with_request_id
from paceline.orchestrator.measures import OrchestratorMeasures
from paceline.telemetry.service import new_metrics

from .platform import FRIEND, Platform

ASKED = {"X-Request-Id": "crm-42"}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "job": ("/v1/jobs", {"json": {"contacts": [FRIEND], "text": "hello"}}),
    "single": ("/api/v1/send", {"json": {"to": FRIEND, "message": "hello"}}),
    "batch": ("/api/v1/send/batch", {"json": {"messages": [{"to": FRIEND, "text": "hello"}]}}),
    "older send": ("/api/send", {"json": {"to": FRIEND, "text": "hello"}}),
    "older form": ("/api/messages", {"files": {"contacts": (None, f'["{FRIEND}"]'), "message": (None, "hello")}}),
}


@pytest.mark.parametrize(("path", "body"), WAYS.values(), ids=WAYS)
async def test_every_way_to_send_gives_it_to_the_worker(platform: Platform, path: str, body: dict[str, Any]) -> None:
    await platform.connect()
    answer = await platform.gateway.post(path, headers=ASKED, **body)
    assert answer.is_success, answer.text
    assert answer.headers["X-Request-Id"] == "crm-42"
    await platform.dispatch()
    assert (await platform.claim())["task"]["requestId"] == "crm-42"


async def test_without_one_of_their_own_it_is_the_one_they_were_answered_with(platform: Platform) -> None:
    await platform.connect()
    answer = await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "hello"})
    await platform.dispatch()
    assert (await platform.claim())["task"]["requestId"] == answer.headers["X-Request-Id"]


async def test_a_replay_has_the_id_of_whoever_asked_for_it(platform: Platform) -> None:
    claim = await platform.claimed()
    error = {"code": "NOT_ON_WHATSAPP", "message": "no"}
    await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error})
    path = f"/v1/dead-letters/{claim['task']['taskId']}/replay"
    answer = await platform.gateway.post(path, json={}, headers=ASKED)
    assert answer.status_code == 202, answer.text
    platform.clock.forward(60_000)
    await platform.webhook("PING")
    await platform.dispatch()
    assert (await platform.claim())["task"]["requestId"] == "crm-42"


async def test_where_no_lines_are_wanted_nothing_is_read_for_them(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG_MESSAGES=false, as this platform has it: the whole way of a message costs no lookup."""

    async def never(_: list[str]) -> list[str]:
        raise AssertionError("somebody looked an id up")

    monkeypatch.setattr(platform.store.jobs, "request_ids", never)
    claim = await platform.claimed()
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    assert (await platform.outbox("ack", body)).status_code == 200


async def test_it_outweighs_the_id_of_the_workers_own_request(platform: Platform) -> None:
    """A worker's report is a request too, with an id of its own; the line is about the message."""
    heard = LogCapture()
    measures = OrchestratorMeasures(new_metrics(), platform.store, log_messages=True)
    platform.settling._measures = measures
    await platform.connect()
    await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "hello"}, headers=ASKED)
    await platform.dispatch()
    claim = await platform.claim()
    body = {"raw": claim["raw"], "epoch": 1, "whatsappId": claim["task"]["whatsappId"]}
    before = structlog.get_config()
    structlog.configure(processors=[with_request_id, heard], cache_logger_on_first_use=False)
    try:
        await platform.outbox("ack", body)
    finally:
        structlog.configure(**before)
    (line,) = [entry for entry in heard.entries if entry["event"] == "sent"]
    assert (line["request_id"], line["task_id"]) == ("crm-42", claim["task"]["taskId"])
