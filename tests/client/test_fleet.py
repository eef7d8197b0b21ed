"""The operator's client: its answers hold all that the services say, and its calls do what they are named after."""

import inspect
import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import msgspec
import pytest

from contract.platform import ADMIN_KEY, PHONE, SESSION, Platform
from paceline.client import AsyncOperator, Conflict, NotFound, Operator, Urls
from paceline.client import requests_fleet as fleet
from paceline.client import requests_fleet_inventory as inventory
from paceline.client import requests_fleet_sessions as sessions
from paceline.client.calls import Call, Repeat, Service
from paceline.dispatcher.reference import REFERENCE as OF_DISPATCHER
from paceline.orchestrator.reference import REFERENCE as OF_ORCHESTRATOR

from .conftest import Client, Naps, serving

IDS = {"session_id": "s", "proxy_id": "p1", "profile_id": "f1", "ref": "r"}
ARGUMENTS = {**IDS, "phone": "1", "file": b"x", "rpm": 5, "enabled": True}
REFERENCES = {Service.DISPATCHER: OF_DISPATCHER, Service.ORCHESTRATOR: OF_ORCHESTRATOR}


def calls() -> Iterator[Any]:
    for module in (fleet, sessions, inventory):
        for name, make in vars(module).items():
            if inspect.isfunction(make) and make.__module__ == module.__name__ and not name.startswith("_"):
                needed = [p for p in inspect.signature(make).parameters.values() if p.default is p.empty]
                yield pytest.param(make(*(ARGUMENTS[p.name] for p in needed)), id=f"{module.__name__[25:]}.{name}")


@pytest.mark.parametrize("call", list(calls()))
def test_an_answer_holds_all_that_the_document_shows(call: Call[Any]) -> None:
    paths = {name.format(**IDS): entry for name, entry in REFERENCES[call.service].items()}
    example = paths[f"{call.method} {call.path}"].answer
    if call.path.endswith("/qr"):
        example = example["application/json"]
    if example is None:
        assert call.answer is type(None)
        return
    found = msgspec.to_builtins(msgspec.json.decode(msgspec.json.encode(example), type=call.answer))
    assert _within({**example, "status": None}, {**found, "status": None})


def _within(shown: Any, found: Any) -> bool:
    if isinstance(shown, dict):
        return all(name in found and _within(value, found[name]) for name, value in shown.items())
    if isinstance(shown, list):
        return len(shown) == len(found) and all(map(_within, shown, found))
    return bool(shown == found)


class ByHost(httpx.AsyncBaseTransport):
    def __init__(self, platform: Platform) -> None:
        self._of = {name: httpx.ASGITransport(platform.services[name]) for name in platform.services}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._of[request.url.host].handle_async_request(request)


@pytest.fixture(params=["async", "sync"])
async def o(request: pytest.FixtureRequest, platform: Platform) -> AsyncIterator[Client]:
    naps = Naps()
    if request.param == "async":
        urls = Urls("http://gateway", "http://dispatcher", "http://orchestrator")
        async with AsyncOperator(urls, ADMIN_KEY, transport=ByHost(platform), sleep=naps.asleep) as api:
            yield Client(api)
        return
    async with (
        serving(platform.services["gateway"]) as gateway,
        serving(platform.services["dispatcher"]) as dispatcher,
        serving(platform.services["orchestrator"]) as orchestrator,
    ):
        with Operator(Urls(gateway, dispatcher, orchestrator), ADMIN_KEY, sleep=naps.sleep) as blocking:
            yield Client(blocking)


async def test_sessions_are_created_changed_walked_and_removed(o: Client) -> None:
    for number in range(3):
        await o(o.api.sessions.create, f"97254000000{number}", session_id=f"s{number}", tags=["il"])
    assert [one.session_id for one in await o.all(o.api.sessions.each(tag="il", limit=1))] == ["s0", "s1", "s2"]
    changed = await o(o.api.sessions.change, "s1", timezone="Europe/Athens")
    assert (changed.timezone, changed.tags) == ("Europe/Athens", ["il"])
    acted = [await o(getattr(o.api.sessions, wish), "s1") for wish in ("pause", "pause", "resume", "stop", "start")]
    assert [one.changed for one in acted] == [True, False, True, True, True]
    assert (await o(o.api.sessions.remove, "s1")).removing
    with pytest.raises(NotFound, match="UNKNOWN_SESSION"):
        await o(o.api.sessions.get, "nobody")
    assert await o(o.api.sessions.history, "s2")


async def test_each_service_is_asked_where_it_is(platform: Platform, o: Client) -> None:
    await platform.connect()
    assert (await o(o.api.health)).status == "ok"
    assert (await o(o.api.fleet.health)).running
    assert (await o(o.api.inventory.health)).status == "ok"
    assert (await o(o.api.jobs.create, [PHONE], text="hello")).accepted == 1
    assert (await o(o.api.fleet.queues)).gateway == 1
    assert (await o(o.api.inventory.status)).sessions == {"WORKING": 1}


async def test_a_number_is_steered(platform: Platform, o: Client) -> None:
    await platform.connect()
    assert (await o(o.api.sessions.set_rpm, SESSION, 5)).rpm == 5
    assert (await o(o.api.sessions.set_rpm, SESSION, None)).rpm is None
    assert (await o(o.api.sessions.set_pacer, SESSION, burst_limit=3)).config.burst_limit == 3
    kept = await o(o.api.sessions.set_pacer, SESSION, rpm=5)
    assert (kept.config.burst_limit, kept.config.rpm) == (3, 5)
    assert (await o(o.api.sessions.set_pacer, SESSION, burst_limit=None)).config.burst_limit is None
    assert (await o(o.api.sessions.explain, SESSION)).decision == "idle"
    assert [one.session_id for one in await o.all(o.api.fleet.each_metrics())] == [SESSION]
    assert "RPM_OVERRIDE" in {one["kind"] for one in await o.all(o.api.fleet.each_incident(limit=1))}
    assert (await o(o.api.fleet.pause)).paused
    assert not (await o(o.api.fleet.resume)).paused
    assert not (await o(o.api.smartguard.enable, False)).enabled


async def test_proxies_come_from_a_file_and_go(o: Client) -> None:
    told = await o(o.api.proxies.upload, b"http://u:p@proxy.example:1\nsocks5://proxy.example:2\n")
    assert (told.added, [one.line for one in told.rejected]) == (1, [2])
    (proxy,) = await o.all(o.api.proxies.each())
    assert "u:p" not in proxy.proxy
    assert (await o(o.api.proxies.mark_bad, proxy.proxy_id, reason="slow")).proxy.reason == "slow"
    assert (await o(o.api.proxies.mark_ok, proxy.proxy_id)).proxy.state == "OK"
    assert await o(o.api.proxies.drop, proxy.proxy_id) is None
    assert await o.all(o.api.proxies.each()) == []
    assert (await o(o.api.profiles.upload, b'{"displayName": "Ada"}\n')).added == 1
    with pytest.raises(Conflict, match="NO_ALERT_CHANNEL"):
        await o(o.api.inventory.test_alerts)


@pytest.mark.parametrize(
    ("call", "repeat"),
    [
        (sessions.restart_session("s"), Repeat.ANOTHER),
        (sessions.create_session("1"), Repeat.ANOTHER),
        (sessions.create_session("1", session_id="s"), Repeat.HARMLESS),
        (inventory.test_alerts(), Repeat.ANOTHER),
        (sessions.pause_session("s"), Repeat.HARMLESS),
    ],
)
def test_what_would_be_a_second_thing_is_not_repeated(call: Call[Any], repeat: Repeat) -> None:
    assert call.repeat is repeat


def test_a_code_that_links_a_device_is_in_no_log() -> None:
    for call, field in itertools.product((sessions.qr("s"), sessions.pairing_code("s")), (repr, str)):
        body = msgspec.json.encode({"qr": "canary", "code": "canary", "expiresAt": 1})
        assert "canary" not in field(msgspec.json.decode(body, type=call.answer))
