"""Nothing that the services offer is left out of the clients, and both kinds of client can do the same."""

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import httpx
import pytest

from contract.platform import Platform
from paceline.client import (
    AsyncOperator,
    AsyncPaceline,
    Misused,
    Operator,
    Paceline,
    Refused,
    Urls,
    aio,
    aio_fleet,
    blocking,
    requests_fleet,
    sync,
    sync_fleet,
)

from .conftest import Naps
from .test_repeating import Standin

NOT_IN_THE_CLIENT = {
    ("gateway", "POST", "/api/messages"): "for older clients; jobs.create",
    ("gateway", "POST", "/api/send"): "for older clients; send",
    ("gateway", "GET", "/metrics"): "for Prometheus",
    ("dispatcher", "GET", "/metrics"): "for Prometheus",
    ("orchestrator", "GET", "/metrics"): "for Prometheus",
    ("orchestrator", "POST", "/session/restart/{session_id}"): "for older clients; sessions.restart",
    ("orchestrator", "POST", "/api/sessions/{session_id}/outbox/enqueue"): "for dispatchers; send",
}
"""Operations a new program has no use for, and what to use instead."""

EXAMPLES: dict[str, tuple[Any, ...]] = {
    "health": (),
    "send": ("1", "hello"),
    "send_batch": ([("1", "hello")],),
    "events": (),
    "jobs.create": (["1"],),
    "jobs.plan": (["1"],),
    "jobs.get": ("j",),
    "jobs.timeline": ("j",),
    "jobs.backlog": (),
    "jobs.list": (),
    "jobs.each": (),
    "jobs.messages": ("j",),
    "jobs.each_message": ("j",),
    "jobs.cancel": ("j",),
    "jobs.pause": ("j",),
    "jobs.resume": ("j",),
    "jobs.watch": ("j",),
    "jobs.wait": ("j",),
    "messages.get": ("j:0",),
    "messages.cancel": ("j:0",),
    "messages.find": ("1",),
    "messages.each": ("1",),
    "messages.wait": ("j:0",),
    "queues.get": ("s",),
    "queues.each": ("s",),
    "queues.cancel": ("s", "j:0"),
    "queues.stats": ("s",),
    "media.upload": (b"bytes",),
    "suppressions.add": ("1",),
    "suppressions.import_csv": ("to\n1",),
    "suppressions.list": (),
    "suppressions.each": (),
    "suppressions.export_csv": (),
    "suppressions.remove": ("1",),
    "recipients.erase": ("1",),
    "dead_letters.list": (),
    "dead_letters.each": (),
    "dead_letters.replay": ("j:0",),
    "dead_letters.replay_all": (),
    "keys.create": ("CRM", ["send"]),
    "keys.list": (),
    "keys.each": (),
    "keys.own": (),
    "keys.revoke": ("k",),
    "webhooks.create": ("http://crm",),
    "webhooks.list": (),
    "webhooks.each": (),
    "webhooks.remove": ("w",),
    "webhooks.deliveries": ("w",),
    "webhooks.each_delivery": ("w",),
    "webhooks.redrive": ("w",),
}
"""Every method of the gateway's client, and arguments that will do."""

OF_OPERATORS: dict[str, tuple[Any, ...]] = {
    **EXAMPLES,
    "fleet.state": (),
    "fleet.policy": (),
    "fleet.overview": (),
    "fleet.roster": (),
    "fleet.start": (),
    "fleet.stop": (),
    "fleet.pause": (),
    "fleet.resume": (),
    "fleet.queues": (),
    "fleet.pacers": (),
    "fleet.each_pacer": (),
    "fleet.metrics": (),
    "fleet.each_metrics": (),
    "fleet.incidents": (),
    "fleet.each_incident": (),
    "fleet.job_events": (),
    "fleet.each_job_event": (),
    "fleet.health": (),
    "smartguard.status": (),
    "smartguard.enable": (True,),
    "sessions.list": (),
    "sessions.each": (),
    "sessions.create": ("1",),
    "sessions.get": ("s",),
    "sessions.change": ("s",),
    "sessions.remove": ("s",),
    "sessions.start": ("s",),
    "sessions.stop": ("s",),
    "sessions.restart": ("s",),
    "sessions.pause": ("s",),
    "sessions.resume": ("s",),
    "sessions.logout": ("s",),
    "sessions.qr": ("s",),
    "sessions.pairing_code": ("s",),
    "sessions.scan_simulated": ("s",),
    "sessions.events": ("s",),
    "sessions.each_event": ("s",),
    "sessions.history": ("s",),
    "sessions.each_history": ("s",),
    "sessions.logs": ("s",),
    "sessions.explain": ("s",),
    "sessions.pacing": ("s",),
    "sessions.set_rpm": ("s", 5),
    "sessions.set_pacer": ("s",),
    "sessions.clear_cooldown": ("s",),
    "sessions.requeue": ("s",),
    "sessions.cancel_queue": ("s",),
    "proxies.upload": (b"http://p:1",),
    "proxies.list": (),
    "proxies.each": (),
    "proxies.mark_bad": ("p1",),
    "proxies.mark_ok": ("p1",),
    "proxies.drop": ("p1",),
    "profiles.upload": (b"x",),
    "profiles.list": (),
    "profiles.each": (),
    "profiles.drop": ("f1",),
    "inventory.status": (),
    "inventory.alert_channels": (),
    "inventory.audit": (),
    "inventory.each_audit": (),
    "inventory.test_alerts": (),
    "inventory.health": (),
}
"""The same of an operator's."""
URLS = Urls("http://gateway", "http://dispatcher", "http://orchestrator")
KINDS: list[tuple[type[Any], Any, dict[str, tuple[Any, ...]]]] = [
    (Paceline, "http://gateway", EXAMPLES),
    (AsyncPaceline, "http://gateway", EXAMPLES),
    (Operator, URLS, OF_OPERATORS),
    (AsyncOperator, URLS, OF_OPERATORS),
]


def methods(api: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Of the client and of its groups, by their names."""
    for name in dir(type(api)):
        if not name.startswith("_") and name not in ("ask", "close"):
            yield name, getattr(api, name)
    for group, found in vars(api).items():
        if not group.startswith("_"):
            yield from ((f"{group}.{name}", getattr(found, name)) for name in dir(found) if not name.startswith("_"))


def build(kind: type[Any], where: Any, standin: Standin) -> Any:
    return kind(where, "k", transport=httpx.MockTransport(standin), sleep=Naps().sleep)


@pytest.mark.parametrize(("kind", "where", "examples"), KINDS)
def test_the_examples_are_the_methods(kind: type[Any], where: Any, examples: dict[str, Any]) -> None:
    assert {name for name, _ in methods(build(kind, where, Standin(httpx.Response(500))))} == set(examples)


@pytest.mark.parametrize(
    ("pair", "where"), [((Paceline, AsyncPaceline), "http://g"), ((Operator, AsyncOperator), URLS)]
)
def test_both_clients_take_the_same_arguments(pair: tuple[type[Any], type[Any]], where: Any) -> None:
    standin = Standin(httpx.Response(500))
    ours, theirs = (dict(methods(build(kind, where, standin))) for kind in pair)
    for name, method in ours.items():
        given, other = inspect.signature(method), inspect.signature(theirs[name])
        assert list(given.parameters.values()) == list(other.parameters.values()), name
        assert (method.__doc__ or "").strip(), f"{name} says nothing about itself"
        assert method.__doc__ == theirs[name].__doc__


@pytest.mark.parametrize(("ours", "theirs"), [(sync, aio), (sync_fleet, aio_fleet)])
def test_both_clients_are_made_of_the_same_calls(ours: ModuleType, theirs: ModuleType) -> None:
    for name, group in vars(ours).items():
        if inspect.isclass(group) and issubclass(group, blocking.Group):
            other = vars(theirs).get(name, vars(theirs).get(f"Async{name}"))
            made = {key: value.make for key, value in vars(group).items() if hasattr(value, "make")}
            assert made == {key: value.make for key, value in vars(other).items() if hasattr(value, "make")}


async def test_every_operation_for_people_has_a_method(platform: Platform) -> None:
    offered = {
        (service, method.upper(), path)
        for service in platform.services
        for path, item in (await platform.client(service).get("/openapi.json")).json()["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete") and not _is_for_workers(operation)
    }
    # One answer that is nobody's: what is asked for is all that counts here.
    standin = Standin(httpx.Response(500, json={"error": {"code": "INTERNAL", "message": ""}}))
    with build(Operator, URLS, standin) as api:
        for name, method in methods(api):
            with pytest.raises(Refused, match="INTERNAL"):
                next(method(*OF_OPERATORS[name]))
    asked_for = {(request.url.host, request.method, request.url.path) for request in standin.asked}
    reached = {
        (service, method, path)
        for service, method, path in offered
        if any((service, method) == asked[:2] and _template(path).fullmatch(asked[2]) for asked in asked_for)
    }
    assert offered - reached == set(NOT_IN_THE_CLIENT)
    known = {
        asked
        for asked in asked_for
        for service, method, path in offered
        if (service, method) == asked[:2] and _template(path).fullmatch(asked[2])
    }
    assert asked_for == known, "the client asks for what the services do not have"


def test_a_client_of_the_gateway_alone_says_who_could_ask_others() -> None:
    with (
        build(Paceline, "http://gateway", Standin(httpx.Response(500))) as api,
        pytest.raises(Misused, match="Operator"),
    ):
        api.ask(requests_fleet.fleet())


def _is_for_workers(operation: dict[str, Any]) -> bool:
    return any("workerSecret" in scheme for scheme in operation.get("security", []))


def _template(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{[^/]*?\\}", "[^/]+", re.escape(path)))
