"""The Session Brain: events are posted best effort, to a real server that may be slow, broken, away or back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
import structlog

from paceline.kits import brain as kit
from paceline.kits.brain import WAITING_LIMIT, Brain, BrainPort, NoBrain, new_client
from paceline.kits.logging import register_secret
from paceline.kits.tasks import Supervisor

FAILED = {"at": 1_773_136_800_000, "sessionId": "s1", "taskId": "t:0", "code": "RATE_LIMIT"}


class Observer:
    """An HTTP server that notes what it hears. `statuses` are its next answers, 200 when there are none."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        self.answers = asyncio.Event()
        """Unset, it keeps everybody waiting."""
        self.answers.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", self.port) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield
            # Whoever still waits for an answer is hung up on.
            self.answers.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length: ")[2].split("\r\n", 1)[0])
            self.heard.append(msgspec.json.decode(await reader.readexactly(length)))
            self.paths.append(head.split(" ", 2)[1])
            await self.answers.wait()
            status = self.statuses.pop(0) if self.statuses else 200
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        finally:
            writer.close()


async def until(condition: Callable[[], object]) -> None:
    """With a bound that is only reached when something is broken."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens on the other side of a socket
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy host must not look like a slow observer."""
    monkeypatch.setattr(kit, "TIMEOUT_S", 30.0)


@pytest.fixture
async def observer() -> AsyncIterator[Observer]:
    found = Observer()
    async with found.serving():
        yield found


@asynccontextmanager
async def running(url: str) -> AsyncIterator[Brain]:
    async with new_client() as client, Supervisor() as tasks:
        brain = Brain(url, client)
        tasks.start("brain", brain.run)
        yield brain


async def test_an_event_is_posted_as_json_to_event(observer: Observer) -> None:
    async with running(f"{observer.url}/brain/") as brain:
        brain.tell("SEND_FAILED", FAILED)
        await until(lambda: brain.told)
    assert observer.paths == ["/brain/event"]
    assert observer.heard == [{"event": "SEND_FAILED", **FAILED}]


async def test_events_arrive_in_their_order_and_also_those_told_before_it_ran(observer: Observer) -> None:
    async with new_client() as client:
        brain = Brain(observer.url, client)
        for number in range(3):
            brain.tell("SEND_FAILED", {"at": number})
        async with Supervisor() as tasks:
            tasks.start("brain", brain.run)
            await until(lambda: brain.told == 3)
            brain.tell("SESSION_CONSUMER_ERROR", {"at": 3})
            await until(lambda: brain.told == 4)
    assert [event["at"] for event in observer.heard] == [0, 1, 2, 3]


async def test_a_slow_observer_holds_nobody_up(observer: Observer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One post hangs; `tell` is a plain call and returns. What comes out in the end are the newest."""
    monkeypatch.setattr(kit, "WAITING_LIMIT", 20)
    observer.answers.clear()
    async with running(observer.url) as brain:
        brain.tell("SEND_FAILED", {"at": -1})
        await until(lambda: observer.heard)
        for number in range(25):
            brain.tell("SEND_FAILED", {"at": number})
        assert (len(observer.heard), brain.dropped, brain.told) == (1, 5, 0)
        observer.answers.set()
        await until(lambda: brain.told == 21)
    assert [event["at"] for event in observer.heard] == [-1, *range(5, 25)]


async def test_a_thousand_events_are_kept() -> None:
    async with new_client() as client:
        brain = Brain("http://brain", client)
        for _ in range(1_003):
            brain.tell("SEND_FAILED", FAILED)
    assert (WAITING_LIMIT, len(brain._waiting), brain.dropped) == (1_000, 1_000, 3)


async def test_an_observer_that_never_answers_loses_the_event_and_gets_the_next(
    observer: Observer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "TIMEOUT_S", 0.05)
    observer.answers.clear()
    async with running(observer.url) as brain:
        brain.tell("SEND_FAILED", {"at": 1})
        await until(lambda: brain.failed == 1)
        observer.answers.set()
        monkeypatch.setattr(kit, "TIMEOUT_S", 30.0)
        brain.tell("SEND_FAILED", {"at": 2})
        await until(lambda: brain.told == 1)
    # On a busy machine the first may be given up before the observer has read it.
    assert (observer.heard[-1]["at"], brain.failed) == (2, 1)


@pytest.mark.parametrize("status", [500, 404, 302])
async def test_an_error_is_one_try_and_then_the_next_event(observer: Observer, status: int) -> None:
    observer.statuses = [status]
    async with running(observer.url) as brain:
        brain.tell("SEND_FAILED", {"at": 1})
        brain.tell("SEND_FAILED", {"at": 2})
        await until(lambda: brain.told == 1)
        assert (brain.failed, brain.dropped) == (1, 0)
    assert [event["at"] for event in observer.heard] == [1, 2]


async def test_an_observer_that_is_away_and_comes_back() -> None:
    """Said once when it goes and once when it is back, whatever is lost in between."""
    observer = Observer()
    async with observer.serving():
        pass
    with structlog.testing.capture_logs() as lines:
        async with running(observer.url) as brain:
            for number in range(3):
                brain.tell("SEND_FAILED", {"at": number})
            await until(lambda: brain.failed == 3)
            async with observer.serving():
                brain.tell("SEND_FAILED", {"at": 3})
                brain.tell("SEND_FAILED", {"at": 4})
                await until(lambda: brain.told == 2)
    assert [event["at"] for event in observer.heard] == [3, 4]
    assert [line["log_level"] for line in lines] == ["warning", "info"]
    assert str(observer.port) not in repr(lines)


async def test_what_is_not_the_observers_business_stays_here(observer: Observer) -> None:
    register_secret("brain-secret-canary")
    fields = {
        "at": 1, "sessionId": "s1", "text": "canary of a text", "apiKey": "canary of a key", "to": "972529876543",
        "error": "refused with brain-secret-canary", "odd": object(),
    }  # fmt: skip
    async with running(observer.url) as brain:
        brain.tell("SEND_FAILED", fields)
        await until(lambda: brain.told)
    said = repr(observer.heard)
    assert "canary" not in said
    assert "97252987" not in said
    assert observer.heard[0]["sessionId"] == "s1"


async def test_stopping_does_not_wait_for_a_slow_observer(observer: Observer) -> None:
    observer.answers.clear()
    async with running(observer.url) as brain:
        brain.tell("SEND_FAILED", FAILED)
        await until(lambda: observer.heard)
    assert (brain.told, brain.failed) == (0, 0)


async def test_nothing_a_client_raises_ends_it() -> None:
    """Not even what no client should raise: the next event is posted."""

    def respond(request: httpx.Request) -> httpx.Response:
        if b'"at":1' in request.content:
            raise RuntimeError("not even this")
        return httpx.Response(204)

    async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as client:
        brain = Brain("http://brain", client)
        brain.tell("SEND_FAILED", {"at": 1})
        brain.tell("SEND_FAILED", {"at": 2})
        async with Supervisor() as tasks:
            tasks.start("brain", brain.run)
            await until(lambda: brain.told == 1)
    assert brain.failed == 1


@pytest.mark.parametrize(
    "url", ["", "brain", "ftp://brain", "file:///etc/passwd", "unix://brain", "//brain", " http://x"]
)
async def test_only_http_addresses(url: str) -> None:
    async with new_client() as client:
        with pytest.raises(ValueError, match="http"):
            Brain(url, client)


def test_without_an_address_nobody_is_told() -> None:
    deaf: BrainPort = NoBrain()
    deaf.tell("SEND_FAILED", FAILED)
