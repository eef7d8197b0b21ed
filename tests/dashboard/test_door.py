"""The door of the dashboard without its pages: who comes in, what a cookie is worth, who is turned away."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request

from paceline.client import Unauthorized, Unreachable, Urls
from paceline.client.answers_lists import ApiKey
from paceline.dashboard import door
from paceline.dashboard.guarding import VISITOR, VISITORS_BODY, Guard
from paceline.dashboard.visitors import IDLE_MS, MOST, Visitor, Visitors

GOOD = "pk_canary-of-a-good-key"
HERE = "http://paceline.test"


class FakeKeys:
    def __init__(self, api: "FakeApi") -> None:
        self._api = api

    async def own(self) -> ApiKey:
        if self._api.away:
            raise Unreachable("no answer", maybe_done=False)
        if self._api.key != GOOD:
            raise Unauthorized("gateway", 401, "UNAUTHORIZED", "this key is not valid")
        return ApiKey(
            key_id="k1", name="CRM", scopes=["read"], state="live", created_at=0, created_by="bootstrap",
            expires_at=None, rate_per_minute=None, revoked_at=None, revoked_by=None,
        )  # fmt: skip


class FakeApi:
    away = False

    def __init__(self, key: str) -> None:
        self.key = key
        self.keys = FakeKeys(self)
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class Clock:
    at_ms = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep_ms(self, ms: int) -> None:
        raise AssertionError("nobody waits here")


class House:
    """The door and its guard around one page that tells who is looking."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.visitors = Visitors(self.clock.now_ms)
        app = FastAPI()
        app.include_router(door.routes(Urls(), self.visitors, self.clock))

        @app.get("/")
        async def inside(request: Request) -> dict[str, Any]:
            return {"key": request.scope[VISITOR].key_name}

        @app.get("/_nicegui_ws/socket.io/")
        async def socket() -> dict[str, Any]:
            return {}

        self.app = Guard(app, self.visitors)
        self.browser = self.another_browser()

    def another_browser(self, url: str = HERE) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app=self.app), base_url=url)

    async def log_in(self, key: str = GOOD, **headers: str) -> httpx.Response:
        return await self.browser.post("/login", data={"key": key}, headers={"Origin": HERE, **headers})


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(door, "ask_with", lambda urls, key: FakeApi(key))
    monkeypatch.setattr(FakeApi, "away", False)
    made = House()
    yield made
    await made.browser.aclose()


async def test_whoever_has_no_cookie_is_led_to_the_door(house: House) -> None:
    answer = await house.browser.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


async def test_a_good_key_opens_it_and_stays_out_of_the_browser(house: House) -> None:
    answer = await house.log_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert GOOD not in cookie
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert (await house.browser.get("/")).json() == {"key": "CRM"}


async def test_over_tls_the_cookie_is_for_this_host_alone(house: House) -> None:
    async with house.another_browser("https://paceline.test") as browser:
        answer = await browser.post("/login", data={"key": GOOD}, headers={"Origin": "https://paceline.test"})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-paceline=")
        assert "Secure" in cookie
        assert (await browser.get("/")).status_code == 200


@pytest.mark.parametrize(
    ("key", "status", "word"),
    [
        pytest.param("pk_wrong", 401, "this key is not valid", id="wrong"),
        pytest.param("", 401, "not a valid key", id="empty"),
        pytest.param("ключ", 401, "not a valid key", id="no possible key"),
    ],
)
async def test_another_key_is_told_so_in_words(house: House, key: str, status: int, word: str) -> None:
    answer = await house.log_in(key)
    assert answer.status_code == status
    assert word in answer.text
    assert "set-cookie" not in answer.headers


async def test_without_the_gateway_nobody_comes_in(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeApi, "away", True)
    answer = await house.log_in()
    assert answer.status_code == 502
    assert "gateway does not answer" in answer.text


async def test_tries_that_fail_are_bounded_and_time_heals(house: House) -> None:
    for _ in range(door.TRIES_PER_MINUTE):
        assert (await house.log_in("pk_wrong")).status_code == 401
    assert (await house.log_in()).status_code == 429
    house.clock.at_ms += 60_000
    assert (await house.log_in()).status_code == 303


async def test_logging_in_often_is_nobodys_fault(house: House) -> None:
    for _ in range(3 * door.TRIES_PER_MINUTE):
        assert (await house.log_in()).status_code == 303


async def test_logout_ends_it_and_closes_its_connections(house: House) -> None:
    await house.log_in()
    (visitor,) = house.visitors._by_token.values()
    answer = await house.browser.post("/logout", headers={"Origin": HERE})
    assert answer.headers["location"] == "/login?ended=logout"
    assert (visitor.ended, visitor.api.closed) == ("logout", True)  # type: ignore[attr-defined]
    assert (await house.browser.get("/")).status_code == 303


async def test_a_visit_ends_when_nobody_looks_for_long(house: House) -> None:
    await house.log_in()
    house.clock.at_ms += IDLE_MS
    assert (await house.browser.get("/")).status_code == 200
    house.clock.at_ms += IDLE_MS + 1
    assert (await house.browser.get("/")).status_code == 303


async def test_the_one_who_looked_longest_ago_makes_room(house: House) -> None:
    for number in range(MOST + 1):
        house.clock.at_ms += 1
        visitor = Visitor(FakeApi(GOOD), "k", str(number), frozenset(), house.clock.at_ms)  # type: ignore[arg-type]
        await house.visitors.welcome(visitor)
    known = [visitor.key_name for visitor in house.visitors._by_token.values()]
    assert (len(known), known[0]) == (MOST, "1")


@pytest.mark.parametrize("path", ["/login", "/logout"])
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Origin": "https://evil.example"}, id="another page's"),
        pytest.param({"Origin": "null"}, id="a sandbox's"),
        pytest.param({"Origin": f"{HERE}:8443"}, id="another port's"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, id="a browser says so"),
        pytest.param({}, id="nobody's"),
    ],
)
async def test_what_a_foreign_page_posts_is_refused(house: House, path: str, headers: dict[str, str]) -> None:
    await house.log_in()
    answer = await house.browser.post(path, data={"key": GOOD}, headers=headers)
    assert answer.status_code == 403
    assert (await house.browser.get("/")).status_code == 200


async def test_a_socket_needs_its_own_page_and_its_own_login(house: House) -> None:
    await house.log_in()
    path = "/_nicegui_ws/socket.io/?transport=polling&client_id=guessed"
    foreign = await house.browser.get(path, headers={"Origin": "https://evil.example"})
    assert (foreign.status_code, "does not come from" in foreign.text) == (403, True)
    guessed = await house.browser.get(path, headers={"Sec-Fetch-Site": "same-origin"})
    assert (guessed.status_code, guessed.text) == (403, "log in first")


@pytest.mark.parametrize("path", ["/", "/login", "/health"])
async def test_every_answer_tells_browsers_to_be_careful(house: House, path: str) -> None:
    answer = await house.browser.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy.replace("https", "")
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status"), [("/_nicegui/client/guessed/upload/1", 303), ("/", 303), ("/logout", 303), ("/login2", 303)]
)
async def test_a_stranger_can_post_nowhere_but_at_the_door(house: House, path: str, status: int) -> None:
    answer = await house.browser.post(path, content=b"x", headers={"Origin": HERE})
    assert answer.status_code == status


async def test_a_stranger_cannot_post_much(house: House) -> None:
    assert (await house.log_in("x" * 10_000)).status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        yield b"key=x"

    answer = await house.browser.post("/login", content=endless(), headers={"Origin": HERE})
    assert answer.status_code == 413


async def test_nor_can_a_visitor_post_without_end(house: House) -> None:
    await house.log_in()
    headers = {"Origin": HERE, "Content-Length": str(VISITORS_BODY + 1)}
    answer = await house.browser.post("/_nicegui/client/any/upload/1", content=b"", headers=headers)
    assert (answer.status_code, answer.text) == (413, "this file is too large")


async def test_a_nonce_is_good_for_one_answer(house: House) -> None:
    first, second = [(await house.browser.get("/login")) for _ in range(2)]
    assert first.headers["content-security-policy"] != second.headers["content-security-policy"]


async def test_a_word_in_the_address_is_not_shown(house: House) -> None:
    answer = await house.browser.get("/login?ended=<script>alert(1)</script>")
    assert "alert" not in answer.text
