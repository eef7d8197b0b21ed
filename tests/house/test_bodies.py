"""What a body may cost while it comes in: time, room in memory, and no unpacking."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from paceline.kits.bodies import FREE_BYTES, Bodies, BodyLimits
from paceline.kits.problem import Problem

SOON = BodyLimits(piece_seconds=0.02, room_bytes=1_000_000)


def scope(method: str = "POST", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"method": method, "headers": named}


class Caller:
    """Sends these pieces, then nothing more; or hangs up."""

    def __init__(self, *pieces: bytes, is_whole: bool = False, hangs_up: bool = False) -> None:
        self._pieces = list(pieces)
        self._is_whole = is_whole
        self._hangs_up = hangs_up
        self.asked = 0

    async def __call__(self) -> Any:
        self.asked += 1
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or not self._is_whole}
        if self._hangs_up:
            return {"type": "http.disconnect"}
        return await asyncio.Event().wait()


async def read(bodies: Bodies, asked: dict[str, Any], caller: Any) -> int:
    """The whole body, as a handler reads it; its size."""
    with bodies.reading(asked, caller) as receive:
        size, more = 0, True
        while more:
            message: Any = await receive()
            size, more = size + len(message["body"]), message["more_body"]
        return size


async def refused(bodies: Bodies, asked: dict[str, Any], caller: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        await read(bodies, asked, caller)
    assert bodies._held == 0
    return caught.value


async def test_a_body_comes_through_as_it_is() -> None:
    assert await read(Bodies(SOON), scope(), Caller(b"ab", b"c", is_whole=True)) == 3


@pytest.mark.parametrize("pieces", [(), (b"ab",)], ids=["nothing comes", "no more comes"])
async def test_a_body_that_does_not_come_is_a_408_that_ends_the_connection(pieces: tuple[bytes, ...]) -> None:
    problem = await refused(Bodies(SOON), scope(), Caller(*pieces))
    assert (problem.status, problem.code, problem.closes) == (408, "BODY_TIMEOUT", True)


async def test_one_that_comes_drop_by_drop_has_an_end_too() -> None:
    """Each piece is in time, and there is always another one."""

    async def drops() -> Any:
        await asyncio.sleep(0.001)
        return {"type": "http.request", "body": b"x", "more_body": True}

    problem = await refused(Bodies(SOON), scope(), drops)
    assert problem.code == "BODY_TIMEOUT"


async def test_who_hangs_up_in_the_middle_is_no_fault_of_ours() -> None:
    assert (await refused(Bodies(SOON), scope(), Caller(b"ab", hangs_up=True))).status == 400


async def test_after_the_body_its_caller_is_waited_for_without_end() -> None:
    """A long poll waits for its caller to hang up; that has no timeout."""
    with Bodies(SOON).reading(scope(), Caller(b"{}", is_whole=True)) as receive:
        await receive()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receive(), 5 * SOON.piece_seconds)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_request_that_has_no_body_is_left_alone(method: str) -> None:
    caller = Caller()
    with Bodies(SOON).reading(scope(method, content_encoding="gzip"), caller) as receive:
        assert receive is caller


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "br", "deflate", "zstd", "gzip, identity", "x"])
async def test_a_packed_body_is_a_415_before_any_of_it_is_read(encoding: str) -> None:
    caller = Caller(b"x", is_whole=True)
    problem = await refused(Bodies(SOON), scope(content_encoding=encoding), caller)
    assert (problem.status, problem.code, caller.asked) == (415, "UNSUPPORTED_ENCODING", 0)


@pytest.mark.parametrize("encoding", ["identity", " Identity ", ""])
async def test_a_body_that_says_it_is_not_packed_is_read(encoding: str) -> None:
    assert await read(Bodies(SOON), scope(content_encoding=encoding), Caller(b"{}", is_whole=True)) == 2


class TestRoom:
    LARGE = 600_000
    """Two of them do not fit."""

    @pytest.fixture
    async def bodies(self) -> AsyncIterator[Bodies]:
        """With one large body under way."""
        bodies = Bodies(SOON)
        with bodies.reading(scope(content_length=str(self.LARGE)), Caller(b"x")) as receive:
            await receive()
            yield bodies

    async def ask(self, bodies: Bodies, asked: dict[str, Any], *pieces: bytes) -> str:
        try:
            await read(bodies, asked, Caller(*pieces, is_whole=True))
        except Problem as problem:
            return problem.code if (problem.status, problem.retry_after_seconds) == (503, 2) else f"odd: {problem}"
        return "read"

    async def test_a_second_is_refused_by_what_it_announces(self, bodies: Bodies) -> None:
        assert await self.ask(bodies, scope(content_length=str(self.LARGE)), b"x") == "BODIES_FULL"

    async def test_or_by_what_has_come_if_it_announces_nothing(self, bodies: Bodies) -> None:
        assert await self.ask(bodies, scope(), *[b"x" * 100_000] * 6) == "BODIES_FULL"

    async def test_or_if_it_says_less_than_it_sends(self, bodies: Bodies) -> None:
        assert await self.ask(bodies, scope(content_length="5"), *[b"x" * 100_000] * 6) == "BODIES_FULL"

    async def test_small_ones_are_always_read(self, bodies: Bodies) -> None:
        bodies._held = SOON.room_bytes
        assert await self.ask(bodies, scope(content_length=str(FREE_BYTES)), b"x" * FREE_BYTES) == "read"

    async def test_what_a_refused_one_held_is_given_back(self, bodies: Bodies) -> None:
        before = bodies._held
        await self.ask(bodies, scope(), *[b"x" * 100_000] * 6)
        assert bodies._held == before

    async def test_one_alone_is_read_however_large(self) -> None:
        """Its route has the limit; refused here it would be refused for ever."""
        bodies = Bodies(BodyLimits(room_bytes=100_000))
        assert await self.ask(bodies, scope(content_length=str(self.LARGE)), b"x" * self.LARGE) == "read"

    async def test_what_goes_straight_to_the_disk_takes_no_room(self, bodies: Bodies) -> None:
        class Handler:
            opt = {"streams": True}

        asked = {**scope(content_length=str(self.LARGE), content_type="image/png"), "route_handler": Handler}
        assert await self.ask(bodies, asked, b"x" * self.LARGE) == "read"
        asked = {**scope(content_type="multipart/form-data; boundary=b"), "route_handler": Handler}
        assert await self.ask(bodies, asked, b"x" * self.LARGE) == "BODIES_FULL"
