"""Errands beside a loop: one at a time under a name, so many at once, and none that fails in silence."""

import asyncio

import pytest
from structlog.testing import capture_logs

from paceline.kits.errands import Errands


async def test_it_comes_back_at_once_and_the_name_is_busy_until_the_work_is_done() -> None:
    errands, go_on = Errands(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()

    await errands.run("a", work)
    assert errands.busy == {"a"}
    with pytest.raises(ValueError, match="a"):
        await errands.run("a", work)
    go_on.set()
    await errands.settled()
    assert errands.busy == frozenset()


async def test_only_so_many_run_at_once() -> None:
    errands, go_on, running, most = Errands(at_once=2), asyncio.Event(), 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go_on.wait()
        running -= 1

    for name in "abcde":
        await errands.run(name, work)
    await asyncio.sleep(0)
    go_on.set()
    await errands.settled()
    assert (most, running) == (2, 0)


async def test_one_that_fails_is_logged_and_its_name_is_free_again() -> None:
    errands = Errands()

    async def work() -> None:
        raise RuntimeError("canary")

    with capture_logs() as logs:
        await errands.run("a", work)
        await errands.settled()
    assert [(line["event"], line["errand"]) for line in logs] == [("errand failed", "a")]
    assert errands.busy == frozenset()


async def test_closed_it_ends_what_is_under_way() -> None:
    errands = Errands()
    await errands.run("a", asyncio.Event().wait)  # type: ignore[arg-type]
    await errands.close()
    assert errands.busy == frozenset()
