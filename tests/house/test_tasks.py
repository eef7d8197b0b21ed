"""Supervised tasks: a failure is logged and survived, a stop is complete."""

import asyncio

import pytest

from paceline.kits.tasks import Backoff, Supervisor

from .support import until


async def test_a_loop_that_raises_is_started_again() -> None:
    runs: list[int] = []

    async def loop() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError("planted")

    async with Supervisor(first_pause_ms=1) as tasks:
        tasks.start("flaky", loop)
        await until(lambda: len(runs) == 3)


async def test_stop_waits_until_the_loops_have_cleaned_up() -> None:
    events: list[str] = []

    async def loop() -> None:
        events.append("started")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            events.append("cleaned up")

    tasks = Supervisor()
    tasks.start("waiting", loop)
    await until(lambda: events)
    await tasks.stop()
    assert events == ["started", "cleaned up"]


async def test_a_loop_that_will_not_stop_does_not_hold_up_the_rest() -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    tasks = Supervisor(grace_ms=20)
    tasks.start("stubborn", stubborn)
    await asyncio.sleep(0)
    await tasks.stop()
    release.set()


async def test_two_tasks_of_one_name_are_refused() -> None:
    async with Supervisor() as tasks:
        tasks.start("only one", asyncio.Event().wait)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="only one"):
            tasks.start("only one", asyncio.Event().wait)  # type: ignore[arg-type]


def test_pauses_grow_to_the_cap_and_start_over_after_a_long_life() -> None:
    backoff = Backoff(first_ms=200, max_ms=5_000, healthy_after_ms=30_000)
    assert [backoff.after_life_of(10) for _ in range(7)] == [200, 400, 800, 1_600, 3_200, 5_000, 5_000]
    assert backoff.after_life_of(30_000) == 200
    assert max(backoff.after_life_of(0) for _ in range(1_000)) == 5_000
