"""The loops of a dispatcher: what falls due within a few milliseconds is served by one of them; behind, all go on."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from paceline.dispatcher.pacer import BATCH, TICK_MS, Pacer
from paceline.kits.rng import new_rng
from paceline.policy.facts import Rules
from paceline.policy.trust import parse
from paceline.settings import read_policy
from paceline.store.pacers import Due

RULES = Rules(parse(read_policy("demo")))
NOW = 1_800_000_000_000
EMPTY, SOME, FULL = Due("OK", next_at=NOW + 60_000), Due("OK", taken=3), Due("OK", taken=BATCH)


class Looks:
    """What each look finds, in turn."""

    def __init__(self, *found: Due) -> None:
        self.found = list(found)
        self.pacer = Pacer(SimpleNamespace(pacers=self), RULES, new_rng(1), handoff_ttl_ms=1)  # type: ignore[arg-type]

    async def claim_due(self, **_: Any) -> Due:
        # The other loops have their turn while this one waits for Redis.
        await asyncio.sleep(0)
        return self.found.pop(0)

    async def steps(self, *times: int) -> list[int | None]:
        return list(await asyncio.gather(*[self.pacer.step(at) for at in times]))


async def test_loops_that_wake_together_look_once() -> None:
    looks = Looks(SOME, EMPTY)
    assert await looks.steps(NOW, NOW, NOW + 1) == [NOW + TICK_MS] * 3
    assert looks.found == [EMPTY]
    assert await looks.steps(NOW + TICK_MS) == [EMPTY.next_at]


async def test_behind_all_of_them_look() -> None:
    looks = Looks(FULL, FULL, SOME, SOME)
    assert await looks.steps(NOW) == [NOW]
    assert await looks.steps(NOW, NOW + 1, NOW + 1) == [NOW, NOW + 1 + TICK_MS, NOW + 1 + TICK_MS]
    assert await looks.steps(NOW + 2) == [NOW + 1 + TICK_MS]


@pytest.mark.parametrize("back_ms", [TICK_MS + 1, 3_600_000])
async def test_a_clock_that_was_set_back_is_not_waited_for(back_ms: int) -> None:
    looks = Looks(SOME, SOME)
    await looks.steps(NOW)
    assert await looks.steps(NOW - back_ms) == [NOW - back_ms + TICK_MS]
