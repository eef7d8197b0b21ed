"""GET /v1/events: what happens is streamed, resumed after a given event, filtered, bounded, and cleaned up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from paceline.gateway.live import Live
from paceline.gateway.telling import Telling

from .platform import READ_KEY, SEND_KEY, Platform, refused

SOON_S = 5


class Reader:
    """One connection over plain ASGI, which httpx's own transport would keep until the answer ends."""

    def __init__(self, platform: Platform, query: str = "", headers: dict[str, str] | None = None) -> None:
        given = {"x-api-key": READ_KEY, **(headers or {})}
        self._platform = platform
        self._scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": "/v1/events", "raw_path": b"/v1/events", "query_string": query.encode(), "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 1), "server": ("paceline", 80), "state": {},
        }  # fmt: skip
        self._gone = asyncio.Event()
        self._asked = False
        self._text = ""
        self._parts: asyncio.Queue[bytes] = asyncio.Queue()
        self.room = asyncio.Event()
        """Clear: this reader takes nothing."""
        self.room.set()
        self.headers: dict[str, str] = {}
        self.ended = asyncio.Event()

    async def run(self) -> None:
        try:
            await self._platform.services["gateway"](self._scope, self._receive, self._send)  # type: ignore[arg-type]
        finally:
            self.ended.set()

    def leave(self) -> None:
        self._gone.set()

    async def block(self) -> str:
        """The next block of lines."""
        async with asyncio.timeout(SOON_S):
            while "\n\n" not in self._text:
                self._text += (await self._parts.get()).decode()
        block, _, self._text = self._text.partition("\n\n")
        return block

    async def event(self) -> tuple[str, str, dict[str, Any]]:
        """The next event, past comments: its id, its type, its data."""
        while True:
            fields = dict(line.partition(": ")[::2] for line in (await self.block()).split("\n"))
            if "event" in fields:
                return fields.get("id", ""), fields["event"], msgspec.json.decode(fields["data"])

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        await self.room.wait()
        self._parts.put_nowait(message.get("body", b""))


@asynccontextmanager
async def reading(platform: Platform, query: str = "", **headers: str) -> AsyncIterator[Reader]:
    reader = Reader(platform, query, {name.replace("_", "-"): value for name, value in headers.items()})
    task = asyncio.create_task(reader.run())
    try:
        assert (await reader.block()).startswith("retry: 2000\nid: ")
        yield reader
    finally:
        reader.leave()
        async with asyncio.timeout(SOON_S):
            await task


async def happens(platform: Platform, number: int = 1) -> str:
    job = await platform.post_job(contacts=[str(972_540_000_000 + i) for i in range(number)], metadata={"m": 1})
    await platform.gateway.post(f"/v1/jobs/{job['jobId']}/cancel")
    platform.outlets.tide.ring()
    job_id: str = job["jobId"]
    return job_id


def live(platform: Platform, **options: Any) -> Live:
    """The same with other limits, in its place."""
    fresh = Live(platform.store, Telling(platform.store), platform.outlets.tide, platform.clock, **options)
    vars(platform.outlets.live).update(vars(fresh))
    return platform.outlets.live


async def test_what_happens_from_now_on_is_streamed(platform: Platform) -> None:
    await happens(platform)
    async with reading(platform) as reader:
        job = await happens(platform, 2)
        found = [await reader.event() for _ in range(3)]
    assert [kind for _, kind, _ in found] == ["message.canceled", "message.canceled", "job.done"]
    first = found[0][2]
    assert (first["type"], first["data"]["messageId"], first["data"]["metadata"]) == (
        "message.canceled",
        f"{job}:0",
        {"m": 1},
    )
    assert reader.headers["content-type"].startswith("text/event-stream")
    assert reader.headers["cache-control"] == "no-store"
    assert "content-length" not in reader.headers


@pytest.mark.parametrize("way", ["header", "query"])
async def test_a_reader_goes_on_where_it_was_cut_also_in_the_middle_of_a_canceled_job(
    platform: Platform, way: str
) -> None:
    async with reading(platform) as reader:
        job = await happens(platform, 5)
        seen = [await reader.event() for _ in range(3)]
    last = seen[-1][0]
    given: dict[str, Any] = {"last_event_id": last} if way == "header" else {}
    async with reading(platform, f"lastEventId={last}" if way == "query" else "", **given) as reader:
        seen += [await reader.event() for _ in range(3)]
    told = [data["data"].get("messageId") for _, _, data in seen]
    assert told == [*[f"{job}:{i}" for i in range(5)], None]
    assert len({id_ for id_, _, _ in seen}) == 6


async def test_only_the_asked_types_come(platform: Platform) -> None:
    async with reading(platform, "types=job.done,job.paused") as reader:
        first, second = await happens(platform, 3), await happens(platform, 3)
        found = [await reader.event() for _ in range(2)]
    assert [(kind, data["data"]["jobId"]) for _, kind, data in found] == [("job.done", first), ("job.done", second)]


async def test_a_quiet_stream_shows_that_it_lives(platform: Platform) -> None:
    live(platform, heartbeat_ms=10)
    async with reading(platform) as reader:
        assert [await reader.block() for _ in range(3)] == [": still here\nid: 0-0"] * 3


async def test_so_does_one_on_which_others_events_pass_by(platform: Platform) -> None:
    """It said nothing while much happened that it did not want, and came back to where it began."""
    live(platform, heartbeat_ms=10)

    async def busy() -> None:
        while True:
            platform.outlets.tide.ring()
            await asyncio.sleep(0)

    async with reading(platform, "types=job.paused") as reader:
        await happens(platform)
        rings = asyncio.create_task(busy())
        newest = await platform.store.events.newest()
        try:
            async with asyncio.timeout(SOON_S):
                while await reader.block() != f": still here\nid: {newest}":
                    pass
        finally:
            rings.cancel()


async def test_what_is_gone_is_said(platform: Platform) -> None:
    platform.store.events._kept = 1
    await happens(platform)
    async with reading(platform, last_event_id="1-0") as reader:
        found = [(await reader.event())[1] for _ in range(3)]
    assert found == ["gap", "message.canceled", "job.done"]


async def test_there_are_only_so_many_and_a_place_is_free_when_one_leaves(platform: Platform) -> None:
    streams = live(platform, limit=1)
    async with reading(platform):
        assert streams.open == 1
        answer = await platform.gateway.get("/v1/events")
        assert refused(answer, 429, "TOO_MANY_STREAMS")["retryAfterSeconds"] == 10
    assert streams.open == 0
    async with reading(platform):
        assert streams.open == 1


async def test_a_reader_that_takes_nothing_is_cut(platform: Platform) -> None:
    streams = live(platform, patience_ms=20)
    async with reading(platform) as reader:
        reader.room.clear()
        await happens(platform)
        async with asyncio.timeout(SOON_S):
            await reader.ended.wait()
        assert streams.open == 0


async def test_a_stream_ends_with_its_key(platform: Platform) -> None:
    live(platform, heartbeat_ms=10)
    created = (await platform.gateway.post("/v1/keys", json={"name": "reader", "scopes": ["read"]})).json()
    async with reading(platform, x_api_key=created["key"]) as reader:
        await platform.gateway.delete(f"/v1/keys/{created['keyId']}")
        async with asyncio.timeout(SOON_S):
            await reader.ended.wait()


async def test_every_stream_ends_some_time(platform: Platform) -> None:
    live(platform, life_ms=30, heartbeat_ms=10)
    async with reading(platform) as reader, asyncio.timeout(SOON_S):
        await reader.ended.wait()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("types=job.started", "types", id="no such type"),
        pytest.param("types=" + "x" * 600, "types", id="a long list"),
        pytest.param("lastEventId=x", "lastEventId", id="no id"),
        pytest.param("lastEventId=1-0_x", "lastEventId", id="no index"),
        pytest.param("lastEventId=99999999999999999999-0", "lastEventId", id="no number"),
    ],
)
async def test_a_bad_question_names_the_field(platform: Platform, query: str, field: str) -> None:
    refused(await platform.gateway.get(f"/v1/events?{query}"), 400, "INVALID_REQUEST", field)


async def test_it_needs_a_key_that_may_read(platform: Platform) -> None:
    refused(await platform.gateway.get("/v1/events", headers={"X-API-KEY": "wrong"}), 401, "UNAUTHORIZED")
    refused(await platform.gateway.get("/v1/events", headers={"X-API-KEY": SEND_KEY}), 403, "FORBIDDEN")


async def test_the_tide_rings_when_something_is_written(platform: Platform) -> None:
    """One blocking read wakes everybody."""
    rung = platform.outlets.tide.next()
    waiting = asyncio.create_task(platform.outlets.tide.step(0))
    while "xread" not in str(await platform.link.read(("CLIENT", "LIST"))):
        pass
    assert not rung.is_set()
    job = await platform.post_job()
    await platform.gateway.post(f"/v1/jobs/{job['jobId']}/cancel")
    async with asyncio.timeout(SOON_S):
        await waiting
    assert rung.is_set()
