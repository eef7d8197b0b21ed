"""A query parameter that a route does not know is refused by name, on every route of every service.

The story: `POST /v1/dead-letters/replay?jobId=J` with the body `{}` sent every dead letter again, because nobody had
heard the `jobId`.
"""

import pytest

from paceline.kits.queries import known_to

from .platform import Platform, refused
from .test_every_route import HIDDEN_ROUTES, ROUTES, Route, _params

LENIENT = {"/health", "/metrics"}
"""What probes and scrapers ask, who add parameters of their own; nothing there could be widened by one."""
OWN = {("POST", "/v1/jobs"), ("POST", "/v1/jobs/plan")}
"""They read their query themselves: it is a job's fields beside a CSV."""
STRICT = [
    route
    for route in ROUTES
    if route not in HIDDEN_ROUTES and route.path not in LENIENT and (route.method, route.path) not in OWN
]


@pytest.mark.parametrize("route", _params(STRICT))
@pytest.mark.parametrize("query", ["bogus=1", "bogus="])
async def test_an_unknown_parameter_is_refused_by_name(platform: Platform, route: Route, query: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.client(route.service).request(route.method, f"{route.filled}?{query}", json={})
    refused(answer, 400, "INVALID_REQUEST", "bogus")


@pytest.mark.parametrize("query", ["jobId=J", "jobId=", "class=transient"])
async def test_a_replay_with_its_filter_in_the_query_replays_nothing(platform: Platform, query: str) -> None:
    async with platform.nothing_stored():
        answer = await platform.gateway.post(f"/v1/dead-letters/replay?{query}", json={})
    refused(answer, 400, "INVALID_REQUEST", query.partition("=")[0])


@pytest.mark.parametrize("path", sorted(path for _, path in OWN))
@pytest.mark.parametrize("name", ["strict", "bogus"])
async def test_a_job_in_json_has_no_query(platform: Platform, path: str, name: str) -> None:
    body = {"contacts": ["972541234567"], "text": "hi"}
    refused(await platform.gateway.post(f"{path}?{name}=", json=body), 400, "INVALID_REQUEST", name)


async def test_a_known_parameter_twice_is_refused(platform: Platform) -> None:
    refused(await platform.gateway.get("/v1/jobs?tag=a&tag=b"), 400, "INVALID_REQUEST", "tag")


async def test_the_answer_says_what_is_known(platform: Platform) -> None:
    error = refused(await platform.gateway.get("/v1/jobs?status=OPEN"), 400, "INVALID_REQUEST", "status")
    assert "state, tag, acceptedBy" in error["message"]


async def test_a_long_name_is_cut_in_the_answer(platform: Platform) -> None:
    refused(await platform.gateway.get(f"/v1/backlog?{'x' * 5000}=1"), 400, "INVALID_REQUEST", "x" * 64)


@pytest.mark.parametrize("service", ["gateway", "dispatcher", "orchestrator"])
@pytest.mark.parametrize("path", sorted(LENIENT))
async def test_probes_may_add_what_they_like(platform: Platform, service: str, path: str) -> None:
    assert (await platform.client(service).get(f"{path}?probe=lb-1")).status_code == 200


@pytest.mark.parametrize("service", ["gateway", "dispatcher", "orchestrator"])
async def test_what_is_known_is_what_the_document_lists(platform: Platform, service: str) -> None:
    document = (await platform.client(service).get("/openapi.json")).json()
    application = platform.services[service]
    for route in application.litestar.routes:
        for handler in getattr(route, "route_handlers", ()):
            for method in handler.http_methods - {"OPTIONS"}:
                listed = document["paths"].get(route.path_format, {}).get(method.lower(), {}).get("parameters", ())
                names = {one["name"] for one in listed if one["in"] == "query"}
                assert handler.opt.get("any_query") or names == set(known_to(handler)), f"{method} {route.path}"
