"""Loops that share a step: what comes within a few milliseconds is done by one of them; behind, all go on."""

import asyncio

import pytest

from paceline.kits.stepping import in_turn

NOW, REST = 1_800_000_000_000, 8


class Steps:
    """What each step returns, in turn; None stands for `at once`."""

    def __init__(self, *returned: int | None) -> None:
        self.left = list(returned)
        self._turn = in_turn(self._step, REST)

    async def _step(self, now_ms: int) -> int | None:
        # The other loops have their turn while this one waits.
        await asyncio.sleep(0)
        found = self.left.pop(0)
        return now_ms if found is None else found

    async def at(self, *times: int) -> list[int | None]:
        return list(await asyncio.gather(*[self._turn(at) for at in times]))


async def test_loops_that_wake_together_step_once() -> None:
    steps = Steps(NOW + REST, NOW + 60_000)
    assert await steps.at(NOW, NOW, NOW + 1) == [NOW + REST] * 3
    assert steps.left == [NOW + 60_000]
    assert await steps.at(NOW + REST) == [NOW + 60_000]


async def test_behind_all_of_them_go_on() -> None:
    steps = Steps(None, None, NOW + 9, NOW + 9)
    assert await steps.at(NOW) == [NOW]
    assert await steps.at(NOW, NOW + 1, NOW + 1) == [NOW, NOW + 9, NOW + 9]
    assert await steps.at(NOW + 2) == [NOW + 1 + REST]


async def test_one_that_fails_does_not_keep_the_others_from_trying() -> None:
    steps = Steps()
    with pytest.raises(IndexError):
        await steps.at(NOW)
    steps.left = [NOW + 20]
    assert await steps.at(NOW + 1) == [NOW + REST]
    assert await steps.at(NOW + REST) == [NOW + 20]


@pytest.mark.parametrize("back_ms", [REST + 1, 3_600_000])
async def test_a_clock_that_was_set_back_is_not_waited_for(back_ms: int) -> None:
    steps = Steps(NOW + REST, NOW)
    await steps.at(NOW)
    assert await steps.at(NOW - back_ms) == [NOW]
