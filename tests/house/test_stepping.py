"""Loops that step: they sleep until the step's own time, a wake-up comes earlier, and an absent store is waited for."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from paceline.kits.stepping import Bell, keep_listening, keep_stepping


class Away(Exception):
    pass


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.at_ms = 0

    def now_ms(self) -> int:
        return self.at_ms

    async def sleep_ms(self, ms: int) -> None:
        self.at_ms += ms
        await asyncio.sleep(0)


async def run(loop: "asyncio.Future[None]", until: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        await until.wait()
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


async def test_a_step_that_is_due_at_once_is_called_again_at_once() -> None:
    """Work that is left does not wait for a bell, and others get their turn in between."""
    calls, done = [], asyncio.Event()

    async def step(now_ms: int) -> int | None:
        calls.append(now_ms)
        if len(calls) == 100:
            done.set()
        return now_ms

    loop = asyncio.ensure_future(keep_stepping(step, Clock(), asyncio.Event(), idle_ms=60_000, expected=Away))
    await run(loop, done)
    assert len(calls) >= 100


async def test_the_bell_wakes_a_loop_that_sleeps() -> None:
    bell, calls, slept, woken = Bell(), 0, asyncio.Event(), asyncio.Event()

    async def step(now_ms: int) -> int | None:
        nonlocal calls
        calls += 1
        (slept if calls == 1 else woken).set()
        return now_ms + 3_600_000

    event = bell.listener("jobs")
    loop = asyncio.ensure_future(keep_stepping(step, Clock(), event, idle_ms=3_600_000, expected=Away))
    await slept.wait()
    bell.ring("due")
    await asyncio.sleep(0)
    assert calls == 1
    bell.ring("jobs")
    await run(loop, woken)
    assert calls == 2


async def test_a_ring_during_a_step_is_not_lost() -> None:
    """Something became due while the step looked: it looks again before it sleeps."""
    bell, calls, done = Bell(), 0, asyncio.Event()
    event = bell.listener("due")

    async def step(_now_ms: int) -> int | None:
        nonlocal calls
        calls += 1
        if calls == 1:
            bell.ring("due")
        else:
            done.set()
        return None

    loop = asyncio.ensure_future(keep_stepping(step, Clock(), event, idle_ms=3_600_000, expected=Away))
    await run(loop, done)


async def test_an_absent_store_is_tried_again_at_the_idle_pace(capsys: pytest.CaptureFixture[str]) -> None:
    """Told once, not at every try; a ringing bell does not turn it into a busy loop."""
    clock, bell, calls, done = Clock(), asyncio.Event(), [], asyncio.Event()

    async def step(now_ms: int) -> int | None:
        calls.append(now_ms)
        bell.set()
        if len(calls) < 5:
            raise Away("gone")
        done.set()
        return now_ms + 60_000

    loop = asyncio.ensure_future(keep_stepping(step, clock, bell, idle_ms=1_000, expected=Away))
    await run(loop, done)
    assert calls[:5] == [0, 1_000, 2_000, 3_000, 4_000]
    assert capsys.readouterr().out.count("the store is away") == 1


async def test_another_error_ends_the_loop_for_its_supervisor() -> None:
    async def step(_now_ms: int) -> int | None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await keep_stepping(step, Clock(), asyncio.Event(), idle_ms=1_000, expected=Away)


async def test_a_line_that_breaks_is_opened_again() -> None:
    """Wake-ups go on after the store was away."""
    opened, rung, done = 0, [], asyncio.Event()

    async def line() -> AsyncIterator[str]:
        nonlocal opened
        opened += 1
        yield f"topic-{opened}"
        if opened == 3:
            done.set()
        raise Away("cut")

    loop = asyncio.ensure_future(keep_listening(line, rung.append, Clock(), idle_ms=1_000, expected=Away))
    await run(loop, done)
    assert rung[:3] == ["topic-1", "topic-2", "topic-3"]
