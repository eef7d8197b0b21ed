"""A hot route answers as any other does: the framework in between makes no difference a caller could see."""

import asyncio
from typing import Any

import httpx
import pytest
from litestar import Response, post

from paceline import apidoc
from paceline.domain.errors import Unauthorized
from paceline.edge import translate
from paceline.kits.bodies import FREE_BYTES
from paceline.kits.headers import header
from paceline.kits.http_protocol import Protocol
from paceline.kits.service import Service
from paceline.kits.web import MEGABYTE, AnyRequest, Problem, create_service, json_answer, read_body

from .test_http_protocol import connected


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


def service() -> Service:
    return create_service(
        title="t", version="1", description="d", routes=[hot, plain], translate=translate, reference={},
        catalogue=apidoc.CATALOGUE, security_schemes={},
    )  # fmt: skip


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
    headers = {"X-API-KEY": "good", "X-Request-Id": "same", **sent.get("headers", {})}
    asked = {"method": "POST", **sent, "headers": headers}
    transport = httpx.ASGITransport(app=service())
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        directly, plainly = [await client.request(url=path, **asked) for path in ("/hot", "/plain")]
    assert directly.status_code == status
    assert (directly.status_code, directly.content) == (plainly.status_code, plainly.content)
    assert sorted(directly.headers.items()) == sorted(plainly.headers.items())


HEAD = b"POST %b HTTP/1.1\r\nHost: a\r\nX-API-KEY: good\r\nX-Request-Id: same\r\nContent-Type: application/json\r\n"
GOOD, LARGE = b"{}", b'{"%b": 1}' % (b"a" * 2 * FREE_BYTES)

CHUNKS = [HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n", b"1\r\n}\r\n0\r\n\r\n"]


def sized(body: bytes, more: bytes = b"") -> list[bytes]:
    return [HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body), body]


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        pytest.param([b"".join(sized(GOOD))], 200, id="at once"),
        pytest.param(sized(GOOD), 200, id="the body later"),
        pytest.param(sized(LARGE), 200, id="a large body"),
        pytest.param(CHUNKS, 200, id="chunks"),
        pytest.param(sized(GOOD, b"Content-Encoding: gzip\r\n"), 415, id="packed"),
        pytest.param([b"".join(sized(GOOD, b"Connection: close\r\n"))], 200, id="the last one"),
        pytest.param([b"".join(sized(b'{"problem": 1}'))], 409, id="a problem"),
    ],
)
async def test_both_ways_answer_alike_on_the_wire(pieces: list[bytes], status: int) -> None:
    """A body that is at hand is not waited for, and the answer is one write; nobody can tell."""
    answers = []
    for path in (b"/hot", b"/plain"):
        async with connected(service(), Protocol) as connection:
            for piece in pieces:
                await connection.send(piece.replace(b"%b", path))
                await asyncio.sleep(0.02)  # So that they come as pieces; if they do not, the test is only weaker.
            head = await connection.word()
            length = int(dict(_headers(head))[b"content-length"])
            answers.append((head.split()[1], sorted(_headers(head)), await connection.bytes_of(length)))
    assert answers[0] == answers[1]
    assert int(answers[0][0]) == status


def _headers(head: bytes) -> list[tuple[bytes, bytes]]:
    pairs = [tuple(line.split(b": ", 1)) for line in head.split(b"\r\n")[1:] if line]
    return [(name, value) for name, value in pairs if name != b"date"]
