"""No route of any service answers anybody who may not ask: walked from the applications' own routes, so that a new one
cannot be forgotten.

A route is open (and listed here), a worker's (it wants the session's secret) or guarded (it wants a key with a scope).
"""

import re
from typing import Any, NamedTuple

import pytest

from paceline.edge import SCOPES, digest
from paceline.kits.secrets import derive
from paceline.store.guards import ApiKeyRecord

from .platform import ADMIN_KEY, NOON, SESSION, WEBHOOK_SECRET, Platform, refused

OPEN = {"/health", "/docs", "/openapi.json"}
"""What tells nothing about anybody: is it working, and how is it used."""
HIDDEN = "/.openapi"
"""The framework's own pages, which are not there."""
WORKER = re.compile(r"/api/worker/|/api/webhook$")
# Which session it is stands in the path, the body or the query.
WORKER_BODY = {"sessionId": SESSION, "event": "PING", "timestamp": 1, "eventId": "e"}


class Route(NamedTuple):
    service: str
    method: str
    path: str
    scope: str | None
    """Of the guard it has; None if it has none."""
    instead: str | None = None
    """Another scope that will do as well."""

    @property
    def filled(self) -> str:
        """The path with something for each parameter; the session is one that exists."""
        return re.sub(r"\{[^}]*\}", lambda part: SESSION if "session" in part[0] else "1", self.path)


def routes() -> list[Route]:
    """Every method of every path. OPTIONS is the framework's: it names the methods of a path."""
    platform = Platform("unix:///nowhere/redis.sock")
    return [
        Route(service, method, route.path_format, *_scopes(handler)[:2])
        for service, application in platform.services.items()
        for route in application.litestar.routes
        for handler in getattr(route, "route_handlers", ())
        for method in sorted(handler.http_methods)
        if method != "OPTIONS"
    ]


def _scopes(handler: Any) -> tuple[str | None, ...]:
    found = [guard.required_scopes for guard in handler.guards or () if hasattr(guard, "required_scopes")]
    assert all(len(scopes) <= 2 for scopes in found), "Route has room for a scope and one instead"
    return found[0] if found else (None,)


def _params(chosen: list[Route]) -> list[Any]:
    return [pytest.param(route, id=f"{route.service} {route.method} {route.path}") for route in chosen]


ROUTES = routes()
WORKERS = [route for route in ROUTES if WORKER.match(route.path)]
HIDDEN_ROUTES = [route for route in ROUTES if route.path.startswith(HIDDEN)]
GUARDED = [route for route in ROUTES if route not in [*WORKERS, *HIDDEN_ROUTES] and route.path not in OPEN]

LIVE, EXPIRED, REVOKED = "walk-live-key-canary", "walk-expired-key-canary", "walk-revoked-key-canary"


async def save(platform: Platform, key: str, scopes: list[str], **fields: int) -> None:
    await platform.store.guards.save_key(ApiKeyRecord(key, digest(key.encode()), scopes, **fields))  # type: ignore[arg-type]


def test_the_walk_sees_all_three_services() -> None:
    """If routes were found in another way one day, an empty walk would prove nothing."""
    assert {route.service for route in GUARDED} == {"gateway", "dispatcher", "orchestrator"}
    assert len(GUARDED) > 30
    assert len(WORKERS) > 5


def test_what_is_neither_open_nor_a_workers_has_a_guard() -> None:
    assert [route for route in GUARDED if route.scope not in SCOPES] == []
    assert [route for route in ROUTES if route not in GUARDED and route.scope is not None] == []


@pytest.mark.parametrize("route", _params(HIDDEN_ROUTES))
async def test_what_is_hidden_is_not_there_for_anybody(platform: Platform, route: Route) -> None:
    refused(await platform.client(route.service).request(route.method, route.filled), 404, "NOT_FOUND")


@pytest.mark.parametrize("service", ["gateway", "dispatcher", "orchestrator"])
async def test_the_document_lists_nothing_the_walk_leaves_out_and_marks_what_needs_a_key(
    platform: Platform, service: str
) -> None:
    document = (await platform.client(service).get("/openapi.json")).json()
    listed = {
        (method.upper(), path): operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    walked = {(route.method, route.path): route for route in ROUTES if route.service == service}
    assert listed.keys() <= walked.keys()
    marked = {asked for asked, operation in listed.items() if {"apiKey": []} in operation.get("security", ())}
    assert marked == {asked for asked in listed if walked[asked].scope is not None}


@pytest.mark.parametrize("route", _params(GUARDED))
async def test_only_a_live_key_with_the_scope_is_let_in(platform: Platform, route: Route) -> None:
    """No key, a wrong, an expired and a revoked one, a worker's secret: 401. Every scope but the one: 403. Nothing is
    stored."""
    await save(platform, EXPIRED, list(SCOPES), expires_at=NOON)
    await save(platform, REVOKED, list(SCOPES), revoked_at=NOON - 1)
    await save(platform, LIVE, [scope for scope in SCOPES if scope not in (route.scope, route.instead, "admin")])
    attempts: dict[str, dict[str, str]] = {
        "no key": {},
        "an empty key": {"X-API-KEY": "", "Authorization": "Bearer "},
        "a wrong key": {"X-API-KEY": ADMIN_KEY + "x"},
        "an expired key": {"X-API-KEY": EXPIRED},
        "a revoked key": {"Authorization": f"Bearer {REVOKED}"},
        "a worker's secret": {"X-Webhook-Secret": derive(WEBHOOK_SECRET, SESSION)},
        "a key without the scope": {"X-API-KEY": LIVE},
    }
    client = platform.client(route.service)
    client.headers.pop("X-API-KEY")
    async with platform.nothing_stored():
        answers = {
            kind: await client.request(route.method, route.filled, headers=headers)
            for kind, headers in attempts.items()
        }
    assert {kind: answer.status_code for kind, answer in answers.items()} == {
        **dict.fromkeys(attempts, 401),
        "a key without the scope": 403,
    }
    forbidden = refused(answers.pop("a key without the scope"), 403, "FORBIDDEN")
    assert forbidden["details"] == {"scope": route.scope}
    for answer in answers.values():
        refused(answer, 401, "UNAUTHORIZED")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("route", _params(WORKERS))
async def test_only_its_own_secret_lets_a_worker_in(platform: Platform, route: Route) -> None:
    await platform.register()
    attempts: dict[str, dict[str, str]] = {
        "no secret": {},
        "a wrong secret": {"X-Webhook-Secret": "wrong"},
        "another session's secret": {"X-Webhook-Secret": derive(WEBHOOK_SECRET, "s2")},
        "the secret all are derived from": {"X-Webhook-Secret": WEBHOOK_SECRET},
        "an admin's key": {"X-API-KEY": ADMIN_KEY},
    }
    platform.orchestrator.headers.pop("X-API-KEY")
    query = {"sessionId": SESSION} if route.path.startswith("/api/worker/media/") else {}
    where: dict[str, Any] = {"params": query, "json": WORKER_BODY}
    async with platform.nothing_stored():
        answers = {
            kind: await platform.orchestrator.request(route.method, route.filled, headers=headers, **where)
            for kind, headers in attempts.items()
        }
    assert {kind: answer.status_code for kind, answer in answers.items()} == dict.fromkeys(attempts, 401)
    for answer in answers.values():
        refused(answer, 401, "UNAUTHORIZED")
