"""POST /api/v1/send on the wire, the short way: neither a caller nor the store can tell it from the long one."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from house.test_http_protocol import Connection, connected
from lua.servers import LiveServer
from paceline.domain.errors import Unavailable
from paceline.edge import Limits
from paceline.gateway.app import create_app
from paceline.kits.http_protocol import Protocol
from paceline.store import keys
from paceline.store.jobs import SINGLE_SENDS_LIMIT
from paceline.telemetry.service import watch_requests

from .platform import ADMIN_KEY, FRIEND, NOON, OTHER_PHONE, PHONE, READ_KEY, SEND_KEY, Platform

LIMIT = 50
STREAMS = ("audit", "events")
Opened = Callable[..., AbstractAsyncContextManager["Caller"]]


class Caller:
    """One kept connection to a gateway; `taken` has for each request whether it went the short way."""

    def __init__(self, platform: Platform, connection: Connection, taken: list[bool]) -> None:
        self.platform = platform
        self.connection = connection
        self.taken = taken

    async def send(self, body: bytes, key: str = SEND_KEY, more: bytes = b"") -> tuple[int, dict[bytes, bytes], Any]:
        await self.connection.send(request(body, key, more))
        return await self.answer()

    async def answer(self) -> tuple[int, dict[bytes, bytes], Any]:
        head = await self.connection.word()
        headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        content = await self.connection.bytes_of(int(headers[b"content-length"]))
        return int(head.split()[1]), headers, json.loads(content)

    async def both(self, body: bytes) -> list[tuple[int, set[bytes], Any]]:
        """What the long way answers, and the short one: status, headers, body."""
        found = []
        for more in (b"X-Request-Id: mine\r\n", b""):
            status, headers, content = await self.send(body, more=more)
            found.append((status, set(headers), content))
        return found


def request(body: bytes, key: str = SEND_KEY, more: bytes = b"") -> bytes:
    head = b"POST /api/v1/send HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nX-API-KEY: %b\r\n%b"
    return head % (key.encode(), more) + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def to(number: str, text: str = "hello") -> bytes:
    return json.dumps({"to": number, "message": text}).encode()


@pytest.fixture
def opened(contract_redis: LiveServer) -> Opened:
    @asynccontextmanager
    async def open_(limits: Limits = Limits(per_key=LIMIT), *, numbers: bool = True) -> AsyncIterator[Caller]:  # noqa: B008
        contract_redis.client.flushall()
        platform = Platform(contract_redis.url, limits=limits)
        await platform.open()
        if numbers:
            await platform.connect()
        at = platform
        app = create_app(at.store, at.intake, at.media, at.keys, at.clock, outlets=at.outlets)
        watch_requests(app, platform.metrics["gateway"])
        taken: list[bool] = []
        briefly = app.answer_briefly
        app.answer_briefly = lambda *asked: taken.append(briefly(*asked)) or taken[-1]  # type: ignore[method-assign,func-returns-value]
        async with connected(app, Protocol) as connection:
            caller = Caller(platform, connection, taken)
            # A head has to be seen once.
            for key in (SEND_KEY, READ_KEY):
                await caller.send(to("972521111111"), key)
            yield caller
        await platform.close()

    return open_


async def test_the_second_of_its_kind_goes_the_short_way_and_into_the_same_queue(opened: Opened) -> None:
    async with opened() as caller:
        status, headers, body = await caller.send(to(FRIEND))
        assert (status, body["queued"], body["position"], caller.taken) == (200, True, 1, [True])
        assert body["estimatedDelivery"] >= NOON
        assert headers[b"x-ratelimit-remaining"] == b"%d" % (LIMIT - 2)
        known = await caller.platform.message(body["messageId"])
        assert known["phone"] == PHONE


async def test_both_ways_answer_and_store_alike(opened: Opened) -> None:
    kept = []
    for more in (b"X-Request-Id: mine\r\n", b""):
        async with opened() as caller:
            status, headers, body = await caller.send(to(FRIEND), more=more)
            job = body["messageId"].partition(":")[0]
            # What streams hold goes by Redis' own time.
            stored = {name: value for name, value in (await caller.platform.snapshot()).items() if name not in STREAMS}
            headers.pop(b"date", None)
            written = repr((status, headers, body, stored)).replace(job, "J")
            kept.append((re.sub("mine|[0-9a-f]{32}", "R", written), caller.taken))
    assert kept[0][0] == kept[1][0]
    assert [taken for _, taken in kept] == [[], [True]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(to("12", "hi"), 400, id="no number"),
        pytest.param(to(FRIEND, "    "), 400, id="nothing to see"),
        pytest.param(to(FRIEND, "{{x}}"), 400, id="a variable"),
        pytest.param(to(FRIEND, "x" * 4097), 400, id="too long"),
        pytest.param(b'{"to": "%b", "to": "%b", "message": "m"}' % (FRIEND.encode(), FRIEND.encode()), 400, id="twice"),
        pytest.param(b'{"to": "%b", "message": "m", "more": 1}' % FRIEND.encode(), 400, id="a field too many"),
        pytest.param(b'{"to": "%b"}' % FRIEND.encode(), 400, id="a field too few"),
        pytest.param(b'{"to": "%b", "message": "a\\u0000"}' % FRIEND.encode(), 400, id="a NUL"),
        pytest.param(b'{"to": "972529999999", "message":', 400, id="no JSON"),
        pytest.param(b"\xff" * 20, 400, id="no text"),
        pytest.param(to("972529999999"), 422, id="suppressed"),
    ],
)
async def test_what_is_refused_is_refused_alike_and_nothing_stored(opened: Opened, body: bytes, status: int) -> None:
    async with opened() as caller:
        await caller.platform.gateway.post("/v1/suppressions", json={"to": "972529999999"})
        async with caller.platform.nothing_stored():
            await caller.both(body)
            long, short = await caller.both(body)
        assert long == short
        assert long[0] == status


async def test_a_key_without_the_scope_is_refused_as_ever(opened: Opened) -> None:
    async with opened() as caller:
        for _ in range(2):
            status, _, body = await caller.send(to("972521111111"), READ_KEY)
            assert (status, body["error"]["code"]) == (403, "FORBIDDEN")


async def test_a_key_that_was_revoked_is_refused_from_the_next_request_on(opened: Opened) -> None:
    async with opened() as caller:
        platform = caller.platform
        made = (await platform.gateway.post("/v1/keys", json={"name": "n", "scopes": ["send"]})).json()
        for _ in range(2):
            assert (await caller.send(to(FRIEND), made["key"]))[0] == 200
        assert caller.taken[-1]
        await platform.gateway.delete(f"/v1/keys/{made['keyId']}", headers={"X-API-KEY": ADMIN_KEY})
        platform.clock.forward(1_000)
        await caller.send(to(FRIEND))  # From here on all is known that the short way needs, and what became of the key.
        assert [(await caller.send(to(FRIEND), made["key"]))[0] for _ in range(3)] == [401] * 3


async def test_the_limit_of_a_key_counts_both_ways_together(opened: Opened) -> None:
    async with opened(Limits(per_key=4)) as caller:
        told = [await caller.send(to(FRIEND)) for _ in range(4)]
        assert [status for status, _, _ in told] == [200, 200, 200, 429]
        assert [headers[b"x-ratelimit-remaining"] for _, headers, _ in told] == [b"2", b"1", b"0", b"0"]
        assert told[-1][2]["error"]["code"] == "RATE_LIMITED"


async def test_somebody_who_is_written_to_by_a_number_stays_with_it(opened: Opened) -> None:
    """Also while that one has more to do; and the number that was chosen first has nothing more to do for it."""
    async with opened() as caller:
        platform = caller.platform
        await platform.connect("s2", OTHER_PHONE)
        mine = [await platform.gateway.post("/api/v1/send", json={"to": FRIEND, "message": "m"}) for _ in range(3)]
        phone = (await platform.message(mine[0].json()["messageId"]))["phone"]
        other = OTHER_PHONE if phone == PHONE else PHONE
        platform.clock.forward(1_000)
        await caller.send(to("972521111112"), more=b"X-Request-Id: mine\r\n")  # A fresh picture, and fresh keys.
        fleet = (await platform.intake.watcher.look(platform.clock.now_ms())).fleet(priority=1, turn=0, now_ms=NOON)
        before = {name: load.load for name, load in fleet.loads.items()}
        answer = await caller.send(to(FRIEND))
        assert caller.taken == [True]
        assert (await platform.message(answer[2]["messageId"]))["phone"] == phone
        assert {name: load.load for name, load in fleet.loads.items()} == {
            phone: before[phone] + 1,
            other: before[other],
        }


async def test_a_number_for_which_too_many_wait_is_told(opened: Opened) -> None:
    async with opened() as caller:
        waiting = [f"J{number}:0" for number in range(SINGLE_SENDS_LIMIT)]
        await caller.platform.link._waiting.sadd(keys.singles(PHONE), *waiting)
        status, headers, body = await caller.send(to(FRIEND))
        assert (status, body["error"]["code"], headers[b"retry-after"]) == (429, "QUEUE_FULL", b"60")
        assert caller.taken == [True]


async def test_without_any_number_it_waits_as_a_job_of_one(opened: Opened) -> None:
    async with opened(numbers=False) as caller:
        status, _, body = await caller.send(to(FRIEND))
        assert (status, body["position"], body["estimatedDelivery"], caller.taken) == (200, 0, None, [True])
        assert (await caller.platform.message(body["messageId"]))["phone"] is None


async def test_a_store_that_is_away_is_told_and_the_next_request_is_served(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as caller:
        with monkeypatch.context() as patched:

            async def away(*_asked: Any) -> Any:
                raise Unavailable("away")

            patched.setattr(caller.platform.link, "run", away)
            status, headers, body = await caller.send(to(FRIEND))
        assert (status, body["error"]["code"], b"retry-after" in headers) == (503, "UNAVAILABLE", True)
        assert (await caller.send(to(FRIEND)))[0] == 200
        assert caller.taken == [True, True]


async def test_requests_that_do_not_wait_for_each_other_are_answered_in_their_order(opened: Opened) -> None:
    async with opened() as caller:
        await caller.connection.send(request(to("972520000001")))
        await asyncio.sleep(0)
        await caller.connection.send(request(to("972520000002")) + request(to("1", "no number")))
        answers = [await caller.answer() for _ in range(3)]
        assert [status for status, _, _ in answers] == [200, 200, 400]
        assert [body["position"] for _, _, body in answers[:2]] == [1, 2]
        # And the connection is as good as it was.
        assert (await caller.send(to("972520000003")))[2]["position"] == 3


async def test_each_answer_is_counted_under_its_route(opened: Opened) -> None:
    async with opened() as caller:
        await caller.send(to(FRIEND))
        told = (await caller.platform.metrics["gateway"].render()).decode()
        (line,) = [line for line in told.splitlines() if 'route="/api/v1/send",status="200"' in line]
        assert line.endswith(" 2.0")
