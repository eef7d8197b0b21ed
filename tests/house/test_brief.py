"""A brief request is answered without a parser, ASGI or a task, and nobody can tell; whatever is special goes the long
way."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from litestar import Response, post

from paceline import apidoc
from paceline.edge import translate
from paceline.kits.brief import Begun, Ticket, beside
from paceline.kits.http_protocol import Protocol
from paceline.kits.logging import answering, request_id
from paceline.kits.service import Service
from paceline.kits.web import AnyRequest, Problem, create_service, json_answer

from .test_http_protocol import Connection, connected


class Desk:
    """The short way of `/hot`: it answers with a ticket that the test gives out, if it is not told to."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.tickets: list[Ticket] = []
        self.waits = False
        self.ids: list[str] = []
        """What a line that is logged beside it would be said to belong to."""

    def facts(self, headers: Mapping[bytes, bytes]) -> str | None:
        return None if b"x-special" in headers else "facts"

    def begin(self, facts: str, body: bytes, id_: str) -> Begun | None:
        assert (facts, len(id_)) == ("facts", 32)
        return None if body == b'{"special":1}' else Begun(self._work(body, id_), b"x-more: 1\r\n")

    async def _work(self, body: bytes, id_: str) -> bytes:
        self.bodies.append(body)
        if self.waits:
            ticket = Ticket()
            self.tickets.append(ticket)
            return await ticket  # type: ignore[no-any-return]
        if body == b'{"problem":1}':
            raise Problem(409, "CONFLICT", "not now")
        if body == b'{"fault":1}':
            raise RuntimeError("text that must not be told")
        return b'{"short":' + await beside(self._slow(body), id_) + b"}"

    async def _slow(self, body: bytes) -> bytes:
        await asyncio.sleep(0)
        self.ids.append(request_id())
        return body


def service(desk: Desk) -> Service:
    async def answer(request: AnyRequest) -> bytes:
        return b'{"long":' + await request.body() + b"}"

    @post("/hot", status_code=200, opt={"direct": answer, "brief": desk})
    async def hot(request: AnyRequest) -> Response[bytes]:
        return json_answer(await answer(request), 200)

    return create_service(
        title="t", version="1", description="d", routes=[hot], translate=translate, reference={},
        catalogue=apidoc.CATALOGUE, security_schemes={},
    )  # fmt: skip


def asked(body: bytes, more: bytes = b"", path: bytes = b"/hot") -> bytes:
    head = b"POST %b HTTP/1.1\r\nHost: a\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (path, more, len(body)) + body


async def answers(connection: Connection, *pieces: bytes) -> bytes:
    for piece in pieces:
        await connection.send(piece)
        await asyncio.sleep(0.01)  # So that they come as pieces.
    return (await connection.answer())[1]


LONG, SHORT = b'{"long":[1]}', b'{"short":[1]}'


async def test_the_first_is_read_and_those_with_the_same_head_are_not() -> None:
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        said = [await answers(connection, asked(body)) for body in (b"[1]", b"[2]", b"[33]", b"[44]", b"[5]")]
    assert said == [b'{"long":[1]}', b'{"short":[2]}', b'{"long":[33]}', b'{"short":[44]}', b'{"short":[5]}']


@pytest.mark.parametrize(
    "special",
    [
        pytest.param(asked(b"[1]", b"X-Special: 1\r\n"), id="its handler says so"),
        pytest.param(asked(b"[1]", b"X-Request-Id: mine\r\n"), id="an id of its own"),
        pytest.param(asked(b"[1]", b"X-Forwarded-For: 10.0.0.1\r\n"), id="from behind a proxy"),
        pytest.param(asked(b"[1]", b"X-Long: %b\r\n" % (b"x" * 2_000)), id="a long head"),
    ],
)
async def test_what_is_special_goes_the_long_way_each_time(special: bytes) -> None:
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        for _ in range(2):
            await connection.send(special)
            assert await connection.answer() == (200, LONG)
    assert desk.bodies == []


async def test_a_body_that_its_handler_leaves_to_the_long_way() -> None:
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        said = [await answers(connection, asked(b'{"special":1}')) for _ in range(3)]
    assert said == [b'{"long":{"special":1}}'] * 3


async def test_pieces_go_the_long_way_and_the_next_whole_one_the_short() -> None:
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        whole = asked(b"[1]")
        said = [await answers(connection, *pieces) for pieces in ([whole], [whole[:-2], whole[-2:]], [whole], [whole])]
    assert said == [LONG, LONG, LONG, SHORT]


async def test_more_than_one_at_once_are_answered_in_their_order() -> None:
    """Two in one packet are no brief request, nor is one that comes with the beginning of the next."""
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        first, second = asked(b"[1]"), asked(b"[2]")
        assert await answers(connection, first) == LONG
        assert await answers(connection, first + second) == LONG
        assert (await connection.answer())[1] == b'{"long":[2]}'
        assert await answers(connection, first + second[:20], second[20:]) == LONG
        assert (await connection.answer())[1] == b'{"long":[2]}'
        assert await answers(connection, second) == b'{"long":[2]}'
        assert await answers(connection, second) == b'{"short":[2]}'


async def test_one_that_comes_while_a_brief_one_is_answered_waits_for_it() -> None:
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        await answers(connection, asked(b"[1]"))
        desk.waits = True
        await connection.send(asked(b"[1]"))
        await asyncio.sleep(0.05)
        await connection.send(asked(b"[2]"))
        await asyncio.sleep(0.05)
        assert desk.bodies == [b"[1]"]
        desk.tickets[0].set_result(b'"first"')
        assert [(await connection.answer())[1] for _ in range(2)] == [b'"first"', b'{"long":[2]}']


@pytest.mark.parametrize(
    ("body", "status", "code"), [(b'{"problem":1}', 409, b"CONFLICT"), (b'{"fault":1}', 500, b"INTERNAL")]
)
async def test_errors_are_answered_in_the_same_shape(body: bytes, status: int, code: bytes) -> None:
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        await answers(connection, asked(body))
        await connection.send(asked(body))
        head = await connection.word()
        assert int(head.split()[1]) == status
        assert all(line in head for line in (b"x-request-id: ", b"x-content-type-options: nosniff", b"x-more: 1"))
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        content = await connection.bytes_of(length)
        assert b'"code":"%b"' % code in content
        assert b"must not be told" not in content
        # The connection is as good as it was.
        assert await answers(connection, asked(b"[1]")) == LONG


async def test_a_caller_that_goes_away_meanwhile_is_answered_by_nobody() -> None:
    desk, told = Desk(), []
    app = service(desk)
    app.watch_with(lambda *about: told.append(about[:3]))
    async with connected(app, Protocol) as connection:
        await answers(connection, asked(b"[1]"))
        desk.waits = True
        await connection.send(asked(b"[1]"))
        await asyncio.sleep(0.05)
        connection.close()
        await asyncio.sleep(0.05)
        desk.tickets[0].set_result(b"{}")
    assert told == [("POST", "/hot", 200)] * 2


async def test_a_process_that_ends_says_so_with_its_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, opened = Desk(), []
    made = Protocol.connection_made
    monkeypatch.setattr(Protocol, "connection_made", lambda self, way: opened.append(self) or made(self, way))
    async with connected(service(desk), Protocol) as connection:
        await answers(connection, asked(b"[1]"))
        desk.waits = True
        await connection.send(asked(b"[1]"))
        await asyncio.sleep(0.05)
        opened[0].shutdown()
        desk.tickets[0].set_result(b"{}")
        assert b"\r\nconnection: close\r\n" in await connection.word()
        assert await connection.rest() == b"{}"


async def test_lines_about_a_brief_request_have_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stepped by whoever answers its tickets, in the midst of another request."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr("paceline.kits.service.log.log", lambda _level, _event, **about: lines.append(about))
    monkeypatch.setattr("paceline.kits.service._lines.isEnabledFor", lambda _level: True)
    desk = Desk()
    async with connected(service(desk), Protocol) as connection:
        await answers(connection, asked(b"[1]"))
        with answering("another"):
            await connection.send(asked(b"[1]"))
            head = await connection.word()
    (given,) = [line.partition(b": ")[2].decode() for line in head.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert (desk.ids, lines[1]["request_id"]) == ([given], given)


async def test_heads_are_forgotten_before_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.kits.service.HEADS_KEPT", 3)
    app = service(Desk())
    async with connected(app, Protocol) as connection:
        for size in range(1, 9):
            await answers(connection, asked(b"1" * size))
            assert len(app.heads) <= 3


async def test_a_ticket_that_was_answered_before_it_is_awaited() -> None:
    async def asks() -> Any:
        ticket: Any = Ticket()
        ticket.set_result(1)
        return await ticket

    with pytest.raises(StopIteration) as end:
        asks().send(None)
    assert end.value.value == 1


async def test_what_is_done_beside_hands_on_its_error() -> None:
    async def fails() -> Any:
        raise Problem(409, "CONFLICT", "no")

    work: Any = beside(fails(), "id")
    ticket = work.send(None)
    found = asyncio.get_running_loop().create_future()
    ticket.resume = lambda: found.set_result(None)
    await found
    with pytest.raises(Problem):
        work.send(None)
