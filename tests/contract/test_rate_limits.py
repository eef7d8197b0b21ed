"""Request rates: each key's own, the ceiling of all, callers without a valid key; every answer says what is left."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import pytest

from lua.servers import LiveServer
from paceline import edge
from paceline.edge import Keys, Limits

from .platform import ADMIN_KEY, READ_KEY, SEND_KEY, Platform, refused

PATH = "/v1/suppressions"
Limited = Callable[[Limits], AbstractAsyncContextManager[Platform]]


@pytest.fixture
def limited(contract_redis: LiveServer) -> Limited:
    @asynccontextmanager
    async def opened(limits: Limits) -> AsyncIterator[Platform]:
        contract_redis.client.flushall()
        stage = Platform(contract_redis.url, limits=limits)
        await stage.open()
        yield stage
        await stage.close()

    return opened


async def ask(platform: Platform, key: str = READ_KEY, path: str = PATH) -> httpx.Response:
    return await platform.gateway.get(path, headers={"X-API-KEY": key})


def told(answer: httpx.Response) -> tuple[int, int, int]:
    limit, remaining, reset = (int(answer.headers[f"X-RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))
    return limit, remaining, reset


async def test_every_guarded_answer_says_how_much_is_left_and_the_refusal_when_to_come_again(limited: Limited) -> None:
    async with limited(Limits(per_key=3)) as platform:
        assert [told(await ask(platform)) for _ in range(3)] == [(3, 2, 20), (3, 1, 40), (3, 0, 60)]
        answer = await ask(platform)
        error = refused(answer, 429, "RATE_LIMITED")
        assert error["details"] == {"limit": 3, "of": "key"}
        assert (told(answer), answer.headers["Retry-After"], error["retryAfterSeconds"]) == ((3, 0, 60), "20", 20)
        platform.clock.forward(20_000)
        assert (await ask(platform)).status_code == 200
        refused(await ask(platform), 429, "RATE_LIMITED")


async def test_answers_that_are_errors_say_it_too_and_count(limited: Limited) -> None:
    async with limited(Limits(per_key=4)) as platform:
        missing = await ask(platform, path="/v1/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV")
        bad = await ask(platform, path=f"{PATH}?limit=0")
        forbidden = await ask(platform, path="/v1/keys")
        assert [answer.status_code for answer in (missing, bad, forbidden)] == [404, 400, 403]
        assert [told(answer)[1] for answer in (missing, bad, forbidden)] == [3, 2, 1]


async def test_one_key_does_not_use_up_anothers_limit(limited: Limited) -> None:
    async with limited(Limits(per_key=2)) as platform:
        for _ in range(3):
            await ask(platform)
        refused(await ask(platform), 429, "RATE_LIMITED")
        assert (await ask(platform, ADMIN_KEY)).status_code == 200


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(None, 5, id="the setting's"),
        pytest.param(2, 2, id="less"),
        pytest.param(50, 50, id="more"),
        pytest.param(0, None, id="none of its own"),
    ],
)
async def test_a_key_may_have_a_rate_of_its_own(limited: Limited, own: int | None, expected: int | None) -> None:
    async with limited(Limits(per_key=5)) as platform:
        body = {"name": "CRM", "scopes": ["read"], "ratePerMinute": own}
        key = (await platform.gateway.post("/v1/keys", json=body)).json()["key"]
        answers = [await ask(platform, key) for _ in range(7)]
        assert answers[0].headers.get("X-RateLimit-Limit") == (None if expected is None else str(expected))
        good = 7 if expected is None else min(7, expected)
        assert [answer.status_code for answer in answers] == [200] * good + [429] * (7 - good)


async def test_all_keys_together_have_a_ceiling_and_what_it_refuses_counts_for_no_key(limited: Limited) -> None:
    async with limited(Limits(per_key=10, all_keys=4)) as platform:
        for key in (READ_KEY, READ_KEY, ADMIN_KEY):
            assert told(await ask(platform, key))[0] == 10
        assert told(await ask(platform))[1] == 7
        for key in (READ_KEY, ADMIN_KEY):
            answer = await ask(platform, key)
            assert refused(answer, 429, "RATE_LIMITED")["details"] == {"limit": 4, "of": "all"}
            assert (told(answer), answer.headers["Retry-After"]) == ((4, 0, 60), "15")
        platform.clock.forward(15_000)
        # Three requests so far, of which 15 s gave two back.
        assert told(await ask(platform))[1] == 8


async def test_with_the_key_limit_off_the_headers_tell_of_the_ceiling(limited: Limited) -> None:
    async with limited(Limits(all_keys=4)) as platform:
        assert told(await ask(platform)) == (4, 3, 15)


async def test_zero_switches_each_off(limited: Limited) -> None:
    async with limited(Limits()) as platform:
        answers = [await ask(platform) for _ in range(30)]
        assert {answer.status_code for answer in answers} == {200}
        assert "X-RateLimit-Limit" not in answers[0].headers


@pytest.mark.parametrize("key", ["", "wrong"], ids=["no key", "a wrong key"])
@pytest.mark.parametrize("name", ["gateway", "dispatcher", "orchestrator"])
async def test_an_address_without_a_valid_key_is_limited_but_a_valid_key_there_is_not(
    platform: Platform, name: str, key: str
) -> None:
    path = {"gateway": PATH, "dispatcher": "/queue/status", "orchestrator": "/api/sessions"}[name]

    async def ask(key: str) -> httpx.Response:
        return await platform.client(name).get(path, headers={"X-API-KEY": key})

    for left in range(59, -1, -1):
        answer = await ask(key)
        refused(answer, 401, "UNAUTHORIZED")
        assert told(answer)[:2] == (60, left)
    answer = await ask(key)
    assert refused(answer, 429, "RATE_LIMITED")["details"] == {"limit": 60, "of": "address"}
    assert answer.headers["Retry-After"] == "1"
    assert (await ask(ADMIN_KEY)).status_code == 200
    platform.clock.forward(1_000)
    refused(await ask(key), 401, "UNAUTHORIZED")


async def from_address(platform: Platform, address: str | None) -> httpx.Response:
    transport = httpx.ASGITransport(platform.services["gateway"], client=(address, 1) if address else None)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://paceline") as client:
        return await client.get(PATH)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param("192.0.2.1", "192.0.2.1", True, id="the same"),
        pytest.param("192.0.2.1", "192.0.2.2", False, id="a neighbour"),
        pytest.param("2001:db8::1", "2001:db8::ffff:2", True, id="one /64"),
        pytest.param("2001:db8::1", "2001:db8:0:1::1", False, id="another /64"),
        pytest.param("::ffff:192.0.2.1", "::ffff:192.0.2.2", False, id="IPv4 in IPv6"),
        pytest.param("testclient", "testclient", True, id="a name"),
        pytest.param(None, None, True, id="a socket without addresses"),
    ],
)
async def test_who_is_one_address(platform: Platform, first: str | None, second: str | None, same: bool) -> None:
    one, two = await from_address(platform, first), await from_address(platform, second)
    assert (one.status_code, two.status_code) == (401, 401)
    assert (told(one)[1], told(two)[1]) == (59, 58 if same else 59)


async def test_addresses_are_forgotten_beyond_a_bound(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "METERED", 3)
    bounded = Platform("unix:///nowhere/redis.sock")
    for number in range(10):
        await from_address(bounded, f"192.0.2.{number}")
    assert len(bounded.keys._failures) == 3
    await bounded.close()


async def test_counting_asks_redis_nothing(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the keys are known, a request that is refused for its rate costs no round trip."""
    keys = Keys(platform.store, platform.clock, Limits(per_key=1), platform.clock.now_ms)
    monkeypatch.setattr(platform.keys, "_limits", keys._limits)
    assert (await ask(platform, SEND_KEY, "/v1/keys")).status_code == 403

    async def never(*_: object) -> None:
        raise AssertionError("Redis was asked")

    monkeypatch.setattr(platform.link, "read", never)
    monkeypatch.setattr(platform.link, "run", never)
    for _ in range(3):
        refused(await ask(platform, SEND_KEY, "/v1/keys"), 429, "RATE_LIMITED")
        refused(await ask(platform, "", "/v1/keys"), 401, "UNAUTHORIZED")


async def test_what_is_open_to_everybody_is_not_counted(limited: Limited) -> None:
    async with limited(Limits(per_key=1, all_keys=1)) as platform:
        for _ in range(3):
            answer = await ask(platform, path="/health")
            assert answer.status_code == 200
            assert "X-RateLimit-Limit" not in answer.headers
