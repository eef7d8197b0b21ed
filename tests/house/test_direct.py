"""A hot route answers as any other does: the framework in between makes no difference a caller could see."""

from typing import Any

import httpx
import pytest
from litestar import Response, post

from paceline import apidoc
from paceline.domain.errors import Unauthorized
from paceline.edge import translate
from paceline.kits.headers import header
from paceline.kits.web import MEGABYTE, AnyRequest, Problem, create_service, json_answer, read_body


def guard(connection: Any, _handler: Any) -> None:
    if header(connection.scope, b"x-api-key") != "good":
        raise Unauthorized("UNAUTHORIZED", "no")


async def answer(request: AnyRequest) -> bytes:
    body = await read_body(request, dict[str, int])
    if body.get("problem"):
        raise Problem(409, "CONFLICT", "not now")
    if body.get("fault"):
        raise RuntimeError("text that must not be told")
    return b'{"ok":true}'


@post("/hot", status_code=200, guards=[guard], opt={"direct": answer})
async def hot(request: AnyRequest) -> Response[bytes]:
    return json_answer(await answer(request), 200)


@post("/plain", status_code=200, guards=[guard])
async def plain(request: AnyRequest) -> Response[bytes]:
    return json_answer(await answer(request), 200)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param({"json": {}}, 200, id="good"),
        pytest.param({"json": {}, "headers": {"X-API-KEY": "bad"}}, 401, id="refused by its guard"),
        pytest.param({"json": {"problem": 1}}, 409, id="a problem"),
        pytest.param({"json": {"fault": 1}}, 500, id="a fault of ours"),
        pytest.param({"content": b"{", "headers": {"Content-Type": "application/json"}}, 400, id="no JSON"),
        pytest.param({"content": b"hello"}, 415, id="no JSON by its type"),
        pytest.param({"json": {"a" * MEGABYTE: 1}}, 413, id="too large"),
        pytest.param({"json": {}, "method": "GET"}, 405, id="another method"),
        pytest.param({"json": {}, "method": "OPTIONS"}, 204, id="what may be asked"),
    ],
)
async def test_both_ways_answer_alike(sent: dict[str, Any], status: int) -> None:
    service = create_service(
        title="t", version="1", description="d", routes=[hot, plain], translate=translate, reference={},
        catalogue=apidoc.CATALOGUE, security_schemes={},
    )  # fmt: skip
    headers = {"X-API-KEY": "good", "X-Request-Id": "same", **sent.get("headers", {})}
    asked = {"method": "POST", **sent, "headers": headers}
    transport = httpx.ASGITransport(app=service)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        directly, plainly = [await client.request(url=path, **asked) for path in ("/hot", "/plain")]
    assert directly.status_code == status
    assert (directly.status_code, directly.content) == (plainly.status_code, plainly.content)
    assert sorted(directly.headers.items()) == sorted(plainly.headers.items())
