"""Live events: from the real gateway, over broken connections, and out of bytes that are cut anywhere."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from contract.platform import FRIEND, Platform
from contract.test_events import live
from paceline.client import AsyncPaceline, BadAnswer, Event, Paceline, Retries, Unauthorized, Unreachable
from paceline.client.calls import Service
from paceline.client.streaming import LINE_LIMIT, Stream
from paceline.client.talking import Talker

from .conftest import Client, Naps, outside, serving
from .test_repeating import Standin, error

SOON_S = 20


async def happens(platform: Platform, c: Client) -> str:
    job = await c(c.api.jobs.create, contacts=[FRIEND], text="hello", metadata={"m": "one\u2028line"})
    await c(c.api.jobs.cancel, job.job_id)
    platform.outlets.tide.ring()
    job_id: str = job.job_id
    return job_id


@pytest.fixture(params=["async", "sync"])
async def streaming(request: pytest.FixtureRequest, platform: Platform) -> Any:
    """Either client on a real socket: a stream without end cannot come out of ASGITransport."""
    naps = Naps()
    async with serving(platform.services["gateway"]) as url:
        if request.param == "async":
            async with AsyncPaceline(url, "contract-admin-key-canary-1", sleep=naps.asleep) as api:
                yield Client(api)
        else:
            with Paceline(url, "contract-admin-key-canary-1", sleep=naps.sleep) as blocking:
                yield Client(blocking)


async def test_what_happened_since_an_event_is_told_with_its_type(platform: Platform, streaming: Client) -> None:
    first, second = await happens(platform, streaming), await happens(platform, streaming)
    async with asyncio.timeout(SOON_S):
        found = await streaming.first(streaming.api.events(after="0-0"), 4)
        [last] = await streaming.first(streaming.api.events("job.done", after=found[1].id), 1)
    assert [(event.type, event.job_id) for event in found] == [
        ("message.canceled", first),
        ("job.done", first),
        ("message.canceled", second),
        ("job.done", second),
    ]
    assert (last, found[0].message_id, found[0].data["metadata"]) == (found[3], f"{first}:0", {"m": "one\u2028line"})


async def test_a_stream_that_is_cut_goes_on_where_it_was(platform: Platform, streaming: Client) -> None:
    """The gateway ends each after a while, here after 30 ms: nothing is missed, nothing comes twice, also if the cut
    comes before the first event."""
    short = live(platform, life_ms=30, heartbeat_ms=1)
    opened, number = asyncio.Event(), 0
    plain = short.stream

    async def counted(*arguments: Any) -> Any:
        nonlocal number
        found = await plain(*arguments)
        number += 1
        if number == 3:
            opened.set()
        return found

    vars(short)["stream"] = counted
    async with asyncio.timeout(SOON_S):
        reading = asyncio.ensure_future(streaming.first(streaming.api.events(["job.done"]), 3))
        await opened.wait()
        jobs = [await happens(platform, streaming) for _ in range(3)]
        found = await reading
    assert [event.job_id for event in found] == jobs
    assert number >= 3


async def test_a_gap_is_told(platform: Platform, streaming: Client) -> None:
    platform.store.events._kept = 1
    await happens(platform, streaming)
    async with asyncio.timeout(SOON_S):
        gap, first = await streaming.first(streaming.api.events(after="1-0"), 2)
    assert (gap.type, first.type) == ("gap", "message.canceled")


def body(number: int) -> bytes:
    told = {"type": "job.done", "timestamp": "t", "data": {"jobId": str(number)}}
    return b"id: 5-%d\nevent: job.done\ndata: %b\n\n" % (number, msgspec.json.encode(told))


def stream(**more: Any) -> Stream:
    talker = Talker({Service.GATEWAY: "http://gw"}, Retries(**more), outside())
    return Stream(talker, (), None)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_bytes_may_be_cut_anywhere(size: int, end: bytes) -> None:
    whole = (b"retry: 3000\nid: 4-0\n\n: still here\n\n" + body(1) + body(2)).replace(b"\n", end)
    reading = stream()
    found = [event for at in range(0, len(whole), size) for event in reading.feed(whole[at : at + size])]
    assert [(event.id, event.job_id) for event in found] == [("5-1", "1"), ("5-2", "2")]
    assert reading.ask().headers["Last-Event-ID"] == "5-2"


@pytest.mark.parametrize("cut", range(1, len(body(1))))
def test_half_an_event_is_none_and_is_asked_for_again(cut: int) -> None:
    reading = stream()
    assert list(reading.feed(b"retry: 2000\nid: 4-0\n\n")) == []
    assert list(reading.feed(body(1)[:cut])) == []
    reading.ended(None)
    assert reading.ask().headers["Last-Event-ID"] == "4-0"
    assert [event.id for event in reading.feed(body(1))] == ["5-1"]


def test_a_line_without_end_and_what_is_no_event_are_refused() -> None:
    with pytest.raises(BadAnswer, match="without end"):
        list(stream().feed(b"data: " + b"x" * (LINE_LIMIT + 1)))
    with pytest.raises(BadAnswer, match="no events"):
        list(stream().feed(b"event: x\ndata: {}\n\n"))


def sse(*numbers: int) -> httpx.Response:
    return httpx.Response(200, content=b"retry: 2000\n\n" + b"".join(map(body, numbers)))


def test_streams_that_bring_nothing_are_given_up_and_one_that_does_starts_the_count_anew() -> None:
    nobody = httpx.ConnectError("refused")
    empty = sse()
    standin = Standin(nobody, empty, sse(1), nobody, error(503, after=1), sse(2), nobody)
    naps = Naps()
    with Paceline(
        "http://gw",
        "k",
        transport=httpx.MockTransport(standin),
        sleep=naps.sleep,
        retries=Retries(tries=3),
        outside=outside(),
    ) as p:
        found: list[Event] = []
        with pytest.raises(Unreachable) as given_up:
            found.extend(p.events())
    assert [event.id for event in found] == ["5-1", "5-2"]
    assert [request.headers.get("Last-Event-ID") for request in standin.asked] == [None] * 3 + ["5-1"] * 3 + ["5-2"] * 3
    assert given_up.value.tries == 3


def test_a_key_that_was_revoked_ends_it_at_once() -> None:
    standin = Standin(sse(1), error(401, "UNAUTHORIZED"))
    with Paceline("http://gw", "k", transport=httpx.MockTransport(standin), sleep=Naps().sleep) as p:
        events = p.events()
        next(events)
        with pytest.raises(Unauthorized):
            next(events)
    assert len(standin.asked) == 2
