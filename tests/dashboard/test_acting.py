"""An action and what the operator is told of it, without a browser."""

from typing import Any

import pytest

from paceline.client import NotFound, PacelineError, Unreachable
from paceline.dashboard.parts import acting


class FakeLive:
    looks = 0

    async def now(self) -> None:
        self.looks += 1


class FakeVisitor:
    ended: str | None = None


class FakeVisit:
    def __init__(self) -> None:
        self.live = FakeLive()
        self.visitor = FakeVisitor()


@pytest.fixture
def visit() -> Any:
    return FakeVisit()


async def failing(error: Exception) -> None:
    raise error


async def test_after_a_logout_in_another_tab_an_action_leads_to_the_door(visit: Any) -> None:
    """The logout closes the connections, which the HTTP client says with a RuntimeError."""
    visit.visitor.ended = "logout"
    assert await acting.act(visit, failing(RuntimeError("the client has been closed"))) is None
    assert visit.live.looks == 1


async def test_a_fault_of_our_own_is_not_taken_for_a_logout(visit: Any) -> None:
    with pytest.raises(RuntimeError):
        await acting.act(visit, failing(RuntimeError("something else")))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Unreachable("no answer from x", maybe_done=False), "no answer from x. It was not done."),
        (
            Unreachable("no answer from x", maybe_done=True),
            "no answer from x. It may have been done all the same: look before you press again.",
        ),
        (NotFound("x", 404, "UNKNOWN_SESSION", "there is no such session"), "there is no such session"),
    ],
    ids=["never arrived", "answer lost", "refused"],
)
async def test_an_action_that_failed_says_whether_it_was_done(
    visit: Any, monkeypatch: pytest.MonkeyPatch, error: PacelineError, words: str
) -> None:
    """It promised to ask again, which only the panels do."""
    told: list[str] = []
    monkeypatch.setattr(acting, "notify", lambda message, **_: told.append(message))
    assert await acting.act(visit, failing(error)) is None
    assert told == [words]
