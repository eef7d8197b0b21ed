"""The key goes to the gateway and to nobody else; and webhooks are believed only if they are signed."""

import base64
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from standardwebhooks.webhooks import Webhook

import paceline
from paceline.client import (
    BadAnswer,
    BadSignature,
    Misused,
    Operator,
    Paceline,
    Retries,
    Unreachable,
    Urls,
    verify_webhook,
)
from paceline.client import requests_fleet_inventory as inventory
from paceline.client import requests_fleet_sessions as sessions
from paceline.client.calls import Call
from paceline.client.wire import Wire

KEY = "canary-key-of-the-client"
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
EVENT = json.dumps({"type": "job.done", "timestamp": "2026-03-10T10:00:00.000Z", "data": {"jobId": "01K"}, "new": 1})


class Trap(HTTPServer):
    """Somebody who must never see the key: a proxy, the target of a redirect."""

    def __init__(self, location: str | None = None) -> None:
        seen: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(dict(self.headers))
                self.send_response(307 if location else 200)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = seen
        self.url = f"http://127.0.0.1:{self.server_port}"
        Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *arguments: Any) -> None:
        self.shutdown()
        super().__exit__(*arguments)


@pytest.mark.parametrize(
    "url", ["ftp://me:canary@gw", "me:canary@gw", "http://me:canary@gw:port", "http://me:canary@gw?x=1"]
)
def test_an_address_that_is_none_is_named_without_its_password(url: str) -> None:
    with pytest.raises(Misused, match="gw") as misused:
        Paceline(url, KEY)
    assert "canary" not in str(misused.value)


def test_a_redirect_is_not_followed() -> None:
    with Trap() as trap, Trap(location=trap.url) as gateway, Paceline(gateway.url, KEY) as p:
        with pytest.raises(BadAnswer, match="307"):
            p.health()
        with pytest.raises(BadAnswer, match="307"):
            next(p.events())
        assert (len(gateway.seen), trap.seen) == (2, [])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.8.8.8", "[::1]"])
def test_what_is_on_this_machine_is_not_asked_through_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Trap() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        with Paceline(f"http://{host}:9", KEY, retries=Retries(tries=1)) as p, pytest.raises(Unreachable):
            p.health()
        assert proxy.seen == []
        # The trap would have caught it: elsewhere the environment counts.
        with Paceline("http://gateway.invalid", KEY) as p, pytest.raises(BadAnswer):
            p.health()
        assert [headers["X-API-KEY"] for headers in proxy.seen] == [KEY]


def test_neither_key_nor_password_is_in_an_error() -> None:
    url = "http://user:canary-password@127.0.0.1:9/behind/a/proxy/"
    with Paceline(url, KEY, retries=Retries(tries=1)) as p, pytest.raises(Unreachable) as error:
        p.health()
    assert "http://127.0.0.1:9/behind/a/proxy:" in str(error.value)
    assert "canary" not in str(error.value) + repr(error.value) + repr(p)


def test_an_address_below_a_path_stays_there() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, json={"status": "ok"})

    with Paceline("https://crm.example/paceline/", KEY, transport=httpx.MockTransport(handle)) as p:
        p.health()
        assert p.ask(paceline.client.requests_lists.health()).status == "ok"
    assert seen == ["https://crm.example/paceline/health"] * 2
    with pytest.raises(Misused):
        Wire("https://crm.example/?a=b", KEY, 1)


def test_it_loads_nothing_of_the_services() -> None:
    """import-linter holds the tree; this is the running program, in a process of its own."""
    code = "import sys, paceline.client; print(*sorted(sys.modules), sep='\\n')"
    environment = {**os.environ, "PYTHONPATH": str(Path(paceline.__file__).parents[1])}
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    ours = {name for name in loaded if name.startswith("paceline.") and not name.startswith("paceline.client")}
    assert ours == set()
    assert not {"redis", "litestar", "uvicorn", "structlog", "pydantic"} & set(loaded)


def signed(secret: str = SECRET, body: str = EVENT, at: float | None = None) -> dict[str, str]:
    when = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return {
        "Webhook-Id": "evt_5-1",
        "WEBHOOK-TIMESTAMP": str(int(when.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_5-1", when, body),
        "Content-Type": "application/json",
    }


@pytest.mark.parametrize("body", [EVENT, EVENT.encode()], ids=["text", "bytes"])
def test_a_signed_webhook_is_an_event(body: str | bytes) -> None:
    event = verify_webhook(SECRET, signed(), body)
    assert (event.id, event.type, event.job_id) == ("evt_5-1", "job.done", "01K")
    other = "whsec_" + base64.b64encode(b"x" * 24).decode()
    assert verify_webhook([other, SECRET], signed(), body) == event


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, EVENT, id="no headers"),
        pytest.param(signed(), EVENT + " ", id="another body"),
        pytest.param(signed("whsec_" + base64.b64encode(b"y" * 24).decode()), EVENT, id="another secret"),
        pytest.param(signed(at=1_700_000_000), EVENT, id="years old"),
        pytest.param(signed(at=4_000_000_000), EVENT, id="of the future"),
        pytest.param(signed() | {"webhook-signature": "garbage"}, EVENT, id="no signature"),
        pytest.param(signed() | {"webhook-signature": "v1,%%%"}, EVENT, id="no base64"),
        pytest.param(signed() | {"WEBHOOK-TIMESTAMP": "soon"}, EVENT, id="no time"),
        pytest.param(signed() | {"Webhook-Id": "evt_5-2"}, EVENT, id="another id"),
        pytest.param(signed(), b"\xff", id="no text"),
        pytest.param(signed(body="[1]"), "[1]", id="signed, but no event"),
    ],
)
def test_anything_else_is_refused(headers: dict[str, str], body: str | bytes) -> None:
    with pytest.raises(BadSignature):
        verify_webhook(SECRET, headers, body)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!", []])
def test_what_is_no_secret_is_told(secret: str | list[str]) -> None:
    with pytest.raises(Misused):
        verify_webhook(secret, signed(), EVENT)


@pytest.mark.parametrize(
    ("call", "read_seconds"),
    [(sessions.pairing_code("s"), 35), (inventory.test_alerts(), 20), (sessions.get_session("s"), 10)],
    ids=["a worker's code", "alert channels", "any other"],
)
def test_what_the_service_itself_waits_for_is_waited_for(call: Call[Any], read_seconds: float) -> None:
    """The dashboard gave up after ten seconds on a pairing code that was on its way."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(500)

    options = {"transport": httpx.MockTransport(answer), "timeout_seconds": 10, "retries": Retries(tries=1)}
    with Operator(Urls(), KEY, **options) as operator, pytest.raises(BadAnswer):  # type: ignore[arg-type]
        operator.ask(call)
    timeout = asked[0].extensions["timeout"]
    assert (timeout["connect"], timeout["read"]) == (10, read_seconds)
