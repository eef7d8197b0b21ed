"""An answer that is read slowly has its time, however long that is; one that is not read ends the connection."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from paceline.kits.http_reader import Reader


class Wire(asyncio.Transport):
    """Of which the test says how much lies in it."""

    left = 0
    limit: int | None = None
    is_aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limit = high

    def get_write_buffer_size(self) -> int:
        return self.left

    def abort(self) -> None:
        self.is_aborted = True


class Loop:
    """Time passes when the test says so."""

    def __init__(self) -> None:
        self.due: Callable[[], None] | None = None

    def call_later(self, _seconds: float, call: Callable[..., None], *given: Any) -> "Loop":
        self.due = lambda: call(*given)
        return self

    def cancel(self) -> None:
        self.due = None

    def forward(self) -> None:
        assert self.due
        due, self.due = self.due, None
        due()


def reader(wire: Wire, loop: Loop) -> Reader:
    return Reader(wire, cast("asyncio.AbstractEventLoop", loop), 30.0)


def test_who_reads_slowly_is_waited_for_and_who_stops_is_not() -> None:
    wire, loop = Wire(), Loop()
    minding = reader(wire, loop)
    wire.left = 300
    minding.expect()
    for wire.left in (200, 100):
        loop.forward()
        assert not wire.is_aborted
    loop.forward()
    assert wire.is_aborted


def test_who_has_read_all_is_waited_for_no_longer() -> None:
    wire, loop = Wire(), Loop()
    minding = reader(wire, loop)
    minding.expect()
    minding.forget()
    assert loop.due is None
    minding.forget()


def test_the_last_bytes_count_too() -> None:
    """Below a limit nobody would be told of them: neither while the connection is kept nor after it was closed."""
    wire = Wire()
    reader(wire, Loop())
    assert wire.limit == 0
