"""Secrets, keys and what people write are in no log line and in no answer."""

import io
import logging
from collections.abc import Iterator

import pytest
import structlog

from paceline.gateway import checks
from paceline.gateway.schemas import JobRequest
from paceline.kits.logging import configure_logging
from paceline.kits.secrets import derive

from .platform import ADMIN_KEY, FRIEND, READ_KEY, SEND_KEY, SESSION, WEBHOOK_SECRET, Platform

TEXT = "canary-text-of-a-message"
FORBIDDEN = (ADMIN_KEY, SEND_KEY, READ_KEY, WEBHOOK_SECRET, derive(WEBHOOK_SECRET, SESSION), "wrong-key-canary", TEXT)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, at the most talkative level."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("contract", "debug", stream=stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


async def test_nothing_secret_is_logged_or_answered_on_the_way_and_in_errors(
    platform: Platform, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message goes its way, then everything goes wrong that can; neither the log nor an error tells a secret."""
    answers = []
    await platform.connect()
    job = await platform.post_job(text=TEXT)
    await platform.dispatch()
    claim = await platform.claim()
    answers.append(await platform.gateway.get(job["statusUrl"]))
    answers.append(await platform.gateway.get(f"/api/v1/messages/{claim['task']['taskId']}/status"))
    error = {"code": "SEND_FAILED", "message": "refused"}
    answers.append(await platform.outbox("nack", {"raw": claim["raw"], "epoch": 1, "notSent": True, "error": error}))
    answers.append(await platform.orchestrator.get("/api/sessions"))
    # Wrong in every way
    wrong = {"X-API-KEY": "wrong-key-canary"}
    answers.append(await platform.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "text": TEXT}, headers=wrong))
    answers.append(await platform.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "text": TEXT, TEXT: 1}))
    answers.append(await platform.gateway.post("/v1/jobs", json={"contacts": [5], "text": TEXT}))
    answers.append(await platform.gateway.post("/v1/jobs", content=f'{{"text": "{TEXT}"'.encode()))
    answers.append(await platform.outbox("ack", {"raw": TEXT, "epoch": 1}))

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"{TEXT} {ADMIN_KEY}")

    monkeypatch.setattr(platform.store.jobs, "get", fail)
    answers.append(await platform.gateway.post("/v1/jobs", json={"contacts": [FRIEND], "text": TEXT}))
    assert answers[-1].status_code == 500
    logged = log.getvalue()
    assert "request failed" in logged
    for secret in FORBIDDEN:
        assert secret not in logged
        # A field that the caller misnamed is named back to the caller alone.
        told = [answer.text for answer in answers if answer.status_code != 400]
        assert all(secret not in text for text in told)


async def test_a_planted_handler_that_logs_a_text_is_seen(
    platform: Platform, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were what people write logged once, the test above would say so."""
    checked = checks.job

    def logs_it(request: JobRequest) -> None:
        structlog.get_logger().info("job", request=str(request))
        checked(request)

    monkeypatch.setattr(checks, "job", logs_it)
    with pytest.raises(AssertionError, match=f"'{TEXT}' not in"):
        await test_nothing_secret_is_logged_or_answered_on_the_way_and_in_errors(platform, log, monkeypatch)


async def test_a_line_about_a_request_names_the_route_and_the_id_but_no_number(
    platform: Platform, log: io.StringIO
) -> None:
    await platform.gateway.delete(f"/v1/suppressions/{FRIEND}", headers={"X-Request-Id": "req-1"})
    lines = [line for line in log.getvalue().splitlines() if '"request"' in line]
    assert len(lines) == 1
    assert '"request_id": "req-1"' in lines[0]
    assert "/v1/suppressions/{to" in lines[0]
    assert FRIEND not in lines[0]


async def test_codes_that_link_a_device_are_in_no_log(platform: Platform, log: io.StringIO) -> None:
    """Whoever reads a log must not be able to link a device to the number."""
    await platform.register()
    await platform.hello()
    await platform.webhook("QR", {"qr": "canary-qr-text", "epoch": 1})
    assert (await platform.orchestrator.get(f"/api/sessions/{SESSION}/qr")).json()["qr"] == "canary-qr-text"
    await platform.store.fleet.give_command(
        SESSION, "pair", command_id="c1", until_ms=platform.clock.at_ms + 1_000, by="k", now_ms=platform.clock.at_ms
    )
    await platform.webhook("COMMAND_DONE", {"commandId": "c1", "ok": True, "pairingCode": "CANA-RYPC"})
    shown = await platform.orchestrator.post(f"/api/sessions/{SESSION}/pairing-code")
    assert shown.json()["code"] == "CANA-RYPC"
    logged = log.getvalue()
    assert "pairing-code" in logged
    assert "canary-qr-text" not in logged
    assert "CANA-RYPC" not in logged
