"""The loop that keeps a page fresh, without the page."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from paceline.dashboard.parts import live


class FakeVisit:
    async def ended(self) -> None:
        return None

    def seen(self) -> None:
        pass


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> live.Live:
    monkeypatch.setattr(live, "Presence", lambda: SimpleNamespace(on=lambda *_: None))
    monkeypatch.setattr(live.ui, "timer", lambda *_: None)
    visit: Any = FakeVisit()
    made = live.Live(visit)
    made._presence(SimpleNamespace(args={"seen": True, "midnight": 0}))  # type: ignore[arg-type]
    return made


async def test_what_changes_while_a_part_is_asked_is_asked_at_once_after_it(loop: live.Live) -> None:
    """A filter chosen in that moment showed the rows of the old one for up to a minute."""
    chosen, shown = "old", []
    may_answer = asyncio.Event()

    async def refresh() -> None:
        asked = chosen
        await may_answer.wait()
        shown.append(asked)

    loop.add(refresh, live.Silent(), every_seconds=60)
    await loop._tick()
    await asyncio.sleep(0)
    chosen = "new"
    asking = asyncio.create_task(loop.now())
    await asyncio.sleep(0)
    may_answer.set()
    await asking
    for _ in range(2):
        await loop._tick()
        await asyncio.gather(*loop._running)
    # And then no more than every minute again.
    assert shown == ["old", "new"]
