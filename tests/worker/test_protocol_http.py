"""The worker protocol over HTTP: what goes out, and what each answer means."""

import json

import httpx
import pytest

from paceline.worker.book import SendError
from paceline.worker.protocol import (
    Blocked,
    ByRaw,
    ByToken,
    NotWanted,
    ProtocolUnavailable,
    RequestRefused,
    StaleEpoch,
    WorkerEvent,
)
from paceline.worker.protocol_http import HttpProtocol, error_of


def body(code: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": "m", "details": {}}}).encode()


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (409, body("STALE_EPOCH"), StaleEpoch),
        (409, body("NOT_WANTED"), NotWanted),
        (409, body("NOT_YOURS"), RequestRefused),
        (400, body("BAD"), RequestRefused),
        (401, body("UNAUTHORIZED"), RequestRefused),
        (404, body("UNKNOWN_TASK"), RequestRefused),
        (404, b"<html>", Blocked),
        (413, b"", Blocked),
        (408, b"<html>", ProtocolUnavailable),
        (429, b"<html>", ProtocolUnavailable),
        (502, b"<html>", ProtocolUnavailable),
        (403, b'{"message": "Forbidden"}', Blocked),
        (401, b"", Blocked),
        (400, b'{"error": {"code": "\xff", "message": "m", "details": {}}}', Blocked),
        (422, b'{"error": "text"}', Blocked),
        (404, b'{"error": {"code": 404, "message": "m", "details": []}}', Blocked),
        (404, b'{"error": {"code": "NOT_FOUND", "message": "m"}}', Blocked),
        (408, body("X"), ProtocolUnavailable),
        (429, body("X"), ProtocolUnavailable),
        (500, b"", ProtocolUnavailable),
        (503, b"[]", ProtocolUnavailable),
        (302, b"", ProtocolUnavailable),
    ],
)
def test_what_an_answer_means(status: int, content: bytes, error: type[Exception]) -> None:
    """Repeat, stop or give up: each status has its class, if it is the orchestrator's own word. A page of something in
    between was taken for it, so a refused message went out again and a "stop" was lost."""
    assert type(error_of(status, content)) is error


class Recorder:
    """An orchestrator that notes what it hears and gives one answer."""

    def __init__(self, answer: httpx.Response | Exception) -> None:
        self.answer = answer
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def protocol(self) -> HttpProtocol:
        return HttpProtocol("http://orchestrator", "s1", "secret", transport=httpx.MockTransport(self))


async def test_hello_and_claim_speak_camel_case_and_carry_the_secret() -> None:
    """Paths, bodies, header and time limits as in the contract."""
    recorder = Recorder(
        httpx.Response(
            200,
            json={
                "epoch": 7,
                "nowMs": 5,
                "leaseMs": 120000,
                "typing": {"minMs": 1, "maxMs": 3},
                "unknownGraceMs": 10,
                "pending": [{"taskId": "t", "token": "k", "whatsappId": "w", "to": "4477"}],
            },
        )
    )
    answer = await recorder.protocol().hello(instance_id="i", life_id="l", journal_id="j", driver="simulated")
    assert (answer.epoch, answer.pending[0].task_id, answer.typing.max_ms) == (7, "t", 3)
    (request,) = recorder.requests
    assert request.url.path == "/api/worker/sessions/s1/hello"
    assert request.headers["X-Webhook-Secret"] == "secret"
    assert json.loads(request.content) == {"instanceId": "i", "lifeId": "l", "journalId": "j", "driver": "simulated"}

    recorder = Recorder(httpx.Response(200, json={"status": "ok", "task": None, "raw": None, "nowMs": 9}))
    claim = await recorder.protocol().claim(epoch=7)
    assert (claim.task, claim.now_ms) == (None, 9)
    assert str(recorder.requests[0].url).endswith("/outbox/claim?timeout=20")
    assert recorder.requests[0].extensions["timeout"]["read"] == 30


async def test_reports_name_the_task_by_raw_or_by_token() -> None:
    """ack, nack, extend and webhook bodies."""
    recorder = Recorder(httpx.Response(200, json={"status": "ok", "leaseUntilMs": 42, "state": "queued"}))
    protocol = recorder.protocol()
    await protocol.ack(ByRaw(raw="r"), epoch=1, whatsapp_id="w")
    await protocol.nack(ByToken(task_id="t", token="k"), epoch=1, not_sent=True, error=None)
    await protocol.nack(ByRaw(raw="r"), epoch=1, not_sent=False, error=SendError("NO_ACK", "m"))
    assert await protocol.extend(ByRaw(raw="r"), epoch=1) == 42
    await protocol.webhook(WorkerEvent(session_id="s1", event="PING", data={}, timestamp=3, event_id="e"))
    assert [json.loads(request.content) for request in recorder.requests] == [
        {"raw": "r", "epoch": 1, "whatsappId": "w"},
        {"taskId": "t", "token": "k", "epoch": 1, "notSent": True},
        {"raw": "r", "epoch": 1, "notSent": False, "error": {"code": "NO_ACK", "message": "m"}},
        {"raw": "r", "epoch": 1},
        {"sessionId": "s1", "event": "PING", "data": {}, "timestamp": 3, "eventId": "e"},
    ]


@pytest.mark.parametrize(
    "page", [b"<html>We are back soon</html>", b"{}", b"", b'{"status": "down"}'], ids=["page", "{}", "empty", "other"]
)
async def test_a_page_of_something_in_between_does_not_count_as_told(page: bytes) -> None:
    """Though its status is 200."""
    protocol = Recorder(httpx.Response(200, content=page)).protocol()
    event = WorkerEvent(session_id="s1", event="MESSAGE_RECEIVED", data={}, timestamp=3, event_id="e")
    with pytest.raises(ProtocolUnavailable):
        await protocol.webhook(event)
    with pytest.raises(ProtocolUnavailable):
        await protocol.ack(ByRaw(raw="r"), epoch=1, whatsapp_id="w")
    with pytest.raises(ProtocolUnavailable):
        await protocol.nack(ByRaw(raw="r"), epoch=1, not_sent=True, error=None)


@pytest.mark.parametrize(
    ("failure", "maybe_done"),
    [
        (httpx.ConnectError("refused"), False),
        (httpx.ConnectTimeout("slow"), False),
        (httpx.ReadTimeout("slow"), True),
        (httpx.RemoteProtocolError("closed"), True),
        (httpx.Response(200, content=b"{"), True),
        (httpx.Response(200, json={"task": 5}), True),
    ],
    ids=["refused", "connect-timeout", "read-timeout", "closed", "half", "wrong-shape"],
)
async def test_no_usable_answer_says_whether_it_may_have_been_done(
    failure: httpx.Response | Exception, maybe_done: bool
) -> None:
    """A claim that never arrived can simply be repeated; one that may have been carried out must be asked for."""
    with pytest.raises(ProtocolUnavailable) as caught:
        await Recorder(failure).protocol().claim(epoch=1)
    assert caught.value.maybe_done == maybe_done
