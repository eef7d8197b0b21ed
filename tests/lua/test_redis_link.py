"""RedisLink: what it repeats, what it must not, and what a caller is told when Redis cannot serve."""

import asyncio
import tempfile
from collections.abc import AsyncIterator

import hiredis
import pytest
from redis.exceptions import ResponseError

from paceline.domain.errors import Unavailable
from paceline.policy.routing import Sticky
from paceline.store import keys
from paceline.store.client import RedisLink
from paceline.store.scripts import ScriptConfig, load
from paceline.store.store import Store

from .proxy import proxied
from .servers import LiveServer, start_redis
from .stage import PHONE, SESSION, Stage

COUNT = load(ScriptConfig(), {"save_key.lua": ("call('HSET', K.api_keys(), a.id, a.record)", "call('INCR', 'n')")})[
    "save_key"
]
"""A verb that is not idempotent, so that running twice would show."""
NOTHING, NO_ARGUMENTS = b"\x80", b"\xdf"
"""An empty table of arguments, and what is none."""


@pytest.fixture
async def link(server: LiveServer) -> AsyncIterator[RedisLink]:
    link = RedisLink(server.url)
    yield link
    await link.close()


async def test_the_whole_store_over_it(server: LiveServer, link: RedisLink) -> None:
    """The same calls as everywhere in these tests, through the production client: types come back as they should."""
    store, stage = Store(link), Stage(server.client)
    stage.connect()
    job = stage.routed(2)
    due = await store.pacers.claim_due(now_ms=stage.now, lease_ms=5_000, limit=10)
    assert due.phones[0].heads[0].task == job.task_id(0)
    view = await store.jobs.view(job.job_id)
    assert view is not None
    assert (view.progress["queued"], view.run["state"]) == (2, "ROUTED")
    message = await store.jobs.message(job.task_id(1))
    assert message is not None
    assert (message.phone, message.byte) == (PHONE, "r")
    assert (await store.sessions.page("", 10, now_ms=0))[0][0].session_id == SESSION
    assert not await store.guards.memory_is_short()
    assert await store.guards.suppressed(["1"]) == set()
    assert len(await store.jobs.stickies(["1", "2"])) == 2
    assert [event["event"] for event in await store.jobs.events(5)] == ["JOB_ACCEPTED"]
    assert await store.outbox.waiting([SESSION]) == []


async def test_large_and_small_calls_made_together_each_get_their_own_answer(link: RedisLink) -> None:
    """The small ones must not overtake the rest of a large one that the system has not taken yet."""
    words = [str(number) * (500_000 if number % 3 == 0 else 1) for number in range(30)]
    assert await asyncio.gather(*[link.read(("ECHO", word)) for word in words]) == [[word] for word in words]


async def test_a_call_is_on_its_way_before_anything_else_runs(link: RedisLink) -> None:
    """So that Redis is at work while we go on."""
    await link.time_ms()
    line = link._wire._line
    assert line is not None
    asked = link._wire.call(("PING",))
    asked.send(None)
    assert (line._transport.get_write_buffer_size(), len(line._asked)) == (0, 1)
    asked.close()
    # The answer to it goes to nobody; the next one is not mistaken for it.
    assert await link.read(("ECHO", "mine")) == ["mine"]


async def test_time(link: RedisLink, server: LiveServer) -> None:
    before = server.client.time()
    at = await link.time_ms()
    after = server.client.time()
    assert before[0] * 1000 <= at <= after[0] * 1000 + 1000


async def test_a_script_that_redis_forgot_is_sent_again_and_runs_once(link: RedisLink, server: LiveServer) -> None:
    await link.run(COUNT, NOTHING)
    server.client.script_flush()
    await link.run(COUNT, NOTHING)
    await link.run(COUNT, NOTHING)
    assert server.client.get("n") == "3"


async def test_a_lost_reply_is_not_repeated(server: LiveServer) -> None:
    """redis-py's default client would run the script a second time."""
    server.client.script_load(COUNT.source)
    async with proxied(server.socket) as proxy:
        link = RedisLink(f"redis://127.0.0.1:{proxy.port}")
        await link.run(COUNT, NOTHING)
        proxy.drop_reply_to = b"EVALSHA"
        with pytest.raises(Unavailable):
            await link.run(COUNT, NOTHING)
        assert (server.client.get("n"), proxy.count(b"EVALSHA")) == ("2", 2)
        proxy.drop_reply_to = b"GET"
        with pytest.raises(Unavailable):
            await link.read(("GET", "n"))
        proxy.drop_reply_to = None
        assert await link.read(("GET", "n")) == ["2"]
        await link.close()


async def test_a_dead_server_is_unavailable_and_comes_back(live_server: LiveServer) -> None:
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        process, socket = start_redis(live_server.name, folder)
        link = RedisLink(f"unix://{socket}")
        await link.run(COUNT, NOTHING)
        process.kill()
        process.wait()
        with pytest.raises(Unavailable):
            await link.run(COUNT, NOTHING)
        with pytest.raises(Unavailable):
            await link.read(("GET", "n"))
        process, _ = start_redis(live_server.name, folder)
        try:
            await link.run(COUNT, NOTHING)
            assert await link.read(("GET", "n")) == ["1"]
        finally:
            await link.close()
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    "refusal",
    [
        "LOADING Redis is loading the dataset in memory",
        "MISCONF Errors writing to the AOF file: No space left on device",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "ERR Error running script (call to f_1): @user_script:7: @user_script: 7: -OOM command not allowed",
        "BUSY Redis is busy running a script.",
        "READONLY You can't write against a read only replica.",
    ],
    ids=["loading", "disk", "memory", "memory-in-6.2", "busy", "replica"],
)
async def test_a_server_that_cannot_serve_now_is_unavailable(refusal: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Every command is refused, also of several that come together: who waits for an answer waits in vain."""
        commands = hiredis.Reader()
        while sent := await reader.read(65_536):
            commands.feed(sent)
            while commands.gets() is not False:
                writer.write(f"-{refusal}\r\n".encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        link = RedisLink(f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}?protocol=2&lib_name=&lib_version=")
        with pytest.raises(Unavailable) as caught:
            await link.run(COUNT, NOTHING)
        await link.close()
    assert "TimeoutError" not in str(caught.value)


async def test_a_mistake_of_ours_is_not_called_unavailable(link: RedisLink) -> None:
    with pytest.raises(ResponseError):
        await link.run(COUNT, NO_ARGUMENTS)


async def test_a_full_redis_is_unavailable(link: RedisLink, server: LiveServer) -> None:
    server.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable):
            await link.run(COUNT, NOTHING)
    finally:
        server.client.config_set("maxmemory", 0)


class TestOneConnection:
    async def test_calls_made_together_each_get_their_own_answer(self, link: RedisLink, server: LiveServer) -> None:
        for n in range(50):
            server.client.set(f"k{n}", n)
        asked = [link.read(("GET", f"k{n}"), ("GET", f"k{n + 1}")) for n in range(49)]
        answers = await asyncio.gather(*asked, *(link.run(COUNT, NOTHING) for _ in range(200)))
        assert answers[:49] == [[str(n), str(n + 1)] for n in range(49)]
        assert server.client.get("n") == "200"

    async def test_an_error_is_its_callers_alone(self, link: RedisLink, server: LiveServer) -> None:
        server.client.set("text", "x")
        asked = (
            link.read(("GET", "text")),
            link.run(COUNT, NO_ARGUMENTS),
            link.read(("LLEN", "text"), ("GET", "text")),
        )
        first, script, mixed = await asyncio.gather(*asked, return_exceptions=True)
        assert first == ["x"]
        assert isinstance(script, ResponseError)
        assert isinstance(mixed, ResponseError)
        assert await link.read(("GET", "text")) == ["x"]

    async def test_a_caller_that_goes_away_takes_no_answer_of_another(
        self, link: RedisLink, server: LiveServer
    ) -> None:
        server.client.mset({"a": "1", "b": "2"})
        await link.read(("PING",))
        gone = asyncio.ensure_future(link.read(("GET", "a")))
        stays = asyncio.ensure_future(link.read(("GET", "b")))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == ["2"]
        assert await link.read(("GET", "a")) == ["1"]

    async def test_who_waits_in_redis_holds_nobody_up(self, link: RedisLink, server: LiveServer) -> None:
        """An XREAD that blocks on the shared connection would stop every other call of the process."""
        waiting = asyncio.ensure_future(link.read(("XREAD", "BLOCK", 9_000, "STREAMS", "s", "$")))
        async with asyncio.timeout(30):
            while not server.client.info("clients")["blocked_clients"]:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            assert await link.read(("PING",)) in (["PONG"], [True])
            assert not waiting.done()
            server.client.xadd("s", {"a": "1"})
            await waiting

    async def test_a_late_answer_is_nobodys_and_those_behind_it_are_in_time(
        self, server: LiveServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It must not be taken for that of the next question, nor take the next question down with it."""
        monkeypatch.setattr("paceline.store.client.TIMEOUT_S", 1.0)
        link = RedisLink(server.url)
        server.client.set("a", "1")
        await link.read(("PING",))
        with pytest.raises(Unavailable):
            await link.read(("BLPOP", "nothing", 1.3))
        assert await link.read(("GET", "a")) == ["1"]
        await link.close()

    async def test_a_silent_connection_is_given_up(self, server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
        # Longer than a busy machine may let an answer wait.
        monkeypatch.setattr("paceline.store.client.TIMEOUT_S", 1.5)
        link = RedisLink(server.url)
        server.client.set("a", "1")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await link.read(("BLPOP", "nothing", 60))
        assert await link.read(("GET", "a")) == ["1"]
        await link.close()

    async def test_no_question_is_answered_at_once(self, link: RedisLink) -> None:
        """It must not wait for an answer that belongs to the next."""
        assert await link.read() == []
        assert await link.read(("ECHO", "x")) == ["x"]

    async def test_an_answer_that_is_no_text_breaks_no_other(self, link: RedisLink, server: LiveServer) -> None:
        server.client.set("bytes", b"\xff\xfe")
        server.client.set("text", "x")
        with pytest.raises(Unavailable):
            await link.read(("GET", "bytes"))
        assert await link.read(("GET", "text")) == ["x"]


class TestWakes:
    async def subscribed(self, server: LiveServer) -> None:
        async with asyncio.timeout(30):
            while not dict(server.client.pubsub_numsub(keys.WAKE_CHANNEL)).get(keys.WAKE_CHANNEL):  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def test_every_wake_up_comes(self, link: RedisLink, server: LiveServer) -> None:
        wakes = link.wakes()
        first = asyncio.ensure_future(anext(wakes))
        await self.subscribed(server)
        stage = Stage(server.client)
        stage.connect()
        stage.routed(1)
        stage.hand_off()
        got = [await first]
        while got[-1] != f"outbox:{SESSION}":
            got.append(await anext(wakes))
        assert {"jobs", "due"} <= set(got)
        await wakes.aclose()  # type: ignore[attr-defined]

    async def test_a_lost_connection_is_told(self, link: RedisLink, server: LiveServer) -> None:
        wakes = link.wakes()
        first = asyncio.ensure_future(anext(wakes))
        await self.subscribed(server)
        server.client.client_kill_filter(_type="pubsub")
        with pytest.raises(Unavailable):
            await asyncio.wait_for(first, 30)


async def test_people_are_looked_up_together_and_what_is_wrong_with_one_does_not_touch_the_others(
    link: RedisLink, server: LiveServer
) -> None:
    store, client = Store(link), server.client
    client.set(keys.sticky("972540000002"), "no phone")
    client.zadd(keys.suppressions(), {"972540000003": 1})
    client.set(keys.sticky("972540000001"), f"{PHONE} 5")
    asked = [store.jobs.person(f"97254000000{number}") for number in range(4)]
    nobody, known, wrong, listed = await asyncio.gather(*asked)
    assert nobody == (False, None)
    assert known == (False, Sticky(PHONE, 5))
    assert wrong == (False, None)
    assert listed == (True, None)
