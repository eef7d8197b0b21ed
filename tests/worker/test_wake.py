"""Sleep that is cut short by a notification is still ended by a cancellation, whenever that comes."""

import asyncio

import pytest

from paceline.worker.main import AsyncioWake


@pytest.mark.parametrize("later", range(6))
async def test_a_cancellation_right_after_a_notification_is_not_lost(later: int) -> None:
    """`wait_for` of Python 3.11 forgets one that comes when its event has just happened: a worker that was told to stop
    at such a moment went on posting for ever, and was killed after its ten seconds of grace."""
    wake, rounds = AsyncioWake(), 0

    async def work() -> None:
        nonlocal rounds
        while True:
            await wake.wait_ms(60_000)
            rounds += 1

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    wake.notify()
    for _ in range(later):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=1)
    assert task in done
    assert task.cancelled()
    assert rounds <= 1


async def test_it_sleeps_no_longer_than_it_was_told() -> None:
    await AsyncioWake().wait_ms(1)
