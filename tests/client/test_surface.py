"""Nothing of the gateway is left out of the client, and both clients can do the same."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from contract.platform import Platform
from paceline.client import AsyncPaceline, Paceline, Refused, aio, sync

from .conftest import Naps
from .test_repeating import Standin

NOT_IN_THE_CLIENT = {
    ("POST", "/api/messages"): "for older clients; jobs.create",
    ("POST", "/api/send"): "for older clients; send",
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
    "keys.revoke": ("k",),
    "webhooks.create": ("http://crm",),
    "webhooks.list": (),
    "webhooks.each": (),
    "webhooks.remove": ("w",),
    "webhooks.deliveries": ("w",),
    "webhooks.each_delivery": ("w",),
    "webhooks.redrive": ("w",),
}
"""Every method, and arguments that will do."""


def methods(api: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Of the client and of its groups, by their names."""
    for name in dir(type(api)):
        if not name.startswith("_") and name not in ("ask", "close"):
            yield name, getattr(api, name)
    for group, found in vars(api).items():
        if not group.startswith("_"):
            yield from ((f"{group}.{name}", getattr(found, name)) for name in dir(found) if not name.startswith("_"))


def build(kind: type[Any], standin: Standin) -> Any:
    return kind("http://gw", "k", transport=httpx.MockTransport(standin), sleep=Naps().sleep)


@pytest.mark.parametrize("kind", [Paceline, AsyncPaceline])
def test_the_examples_are_the_methods(kind: type[Any]) -> None:
    assert {name for name, _ in methods(build(kind, Standin(httpx.Response(500))))} == set(EXAMPLES)


def test_both_clients_take_the_same_arguments() -> None:
    standin = Standin(httpx.Response(500))
    ours, theirs = (dict(methods(build(kind, standin))) for kind in (Paceline, AsyncPaceline))
    for name, method in ours.items():
        given, other = inspect.signature(method), inspect.signature(theirs[name])
        assert list(given.parameters.values()) == list(other.parameters.values()), name
        assert (method.__doc__ or "").strip(), f"{name} says nothing about itself"
        assert method.__doc__ == theirs[name].__doc__


def test_both_clients_are_made_of_the_same_calls() -> None:
    for name, group in vars(sync).items():
        if inspect.isclass(group) and issubclass(group, sync._Group):
            other = vars(aio).get(name if name != "Paceline" else "AsyncPaceline")
            made = {key: value.make for key, value in vars(group).items() if hasattr(value, "make")}
            assert made == {key: value.make for key, value in vars(other).items() if hasattr(value, "make")}


async def test_every_operation_of_the_gateway_has_a_method(platform: Platform) -> None:
    document = (await platform.gateway.get("/openapi.json")).json()
    offered = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in item
        if method in ("get", "post", "put", "patch", "delete")
    }
    # One answer that is nobody's: what is asked for is all that counts here.
    standin = Standin(httpx.Response(500, json={"error": {"code": "INTERNAL", "message": ""}}))
    with build(Paceline, standin) as api:
        for name, method in methods(api):
            with pytest.raises(Refused, match="INTERNAL"):
                next(method(*EXAMPLES[name]))
    asked_for = {(request.method, request.url.path) for request in standin.asked}
    reached = {
        (method, path)
        for method, path in offered
        if any(method == verb and _template(path).fullmatch(real) for verb, real in asked_for)
    }
    assert offered - reached == set(NOT_IN_THE_CLIENT)
    known = {real for verb, real in asked_for for method, path in offered if _template(path).fullmatch(real)}
    assert {real for _, real in asked_for} == known, "the client asks for what the gateway does not have"


def _template(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{[^/]*?\\}", "[^/]+", re.escape(path)))
