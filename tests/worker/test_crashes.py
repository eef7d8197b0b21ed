"""Crashes between any two awaits, and lost requests and answers, judged by the ledger alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.kits import failpoint
from paceline.worker.book import Intent, Outcome, Result
from paceline.worker.journal import MemoryJournal

from .stage import NAP_MS, Lossy, Theatre

TASKS = [f"01JB0000000000000000000000:{index}" for index in range(2)]

BEHAVIOURS: dict[str, dict[str, Any]] = {
    "healthy": {},
    "no-receipts": {"delivered_ratio": 0.0},
    "lost-acks": {"lose_ack_every": 2, "delivered_ratio": 0.0},
    "disconnects-after": {"disconnect_after": 0.5},
    "disconnects-before": {"disconnect_every": 2},
    "refusals": {"rate_limit_every": 2},
    "no-dedupe": {"dedupe": False, "delivered_ratio": 0.0},
}


def theatre_with_tasks(behaviour: str, on_unknown: str) -> Theatre:
    theatre = Theatre(on_unknown=on_unknown, step_ms=NAP_MS, **BEHAVIOURS[behaviour])
    for task_id in TASKS:
        theatre.orchestrator.add(task_id)
    return theatre


def steps_of_a_whole_life(behaviour: str, on_unknown: str) -> int:
    theatre = theatre_with_tasks(behaviour, on_unknown)
    theatre.start(stepped=True)
    steps = 0
    while not theatre.orchestrator.settled:
        theatre.stage.step()
        steps += 1
    return steps


def finish(theatre: Theatre) -> None:
    theatre.start()
    assert theatre.play(within_ms=3_600_000), "a task never came to an end"
    theatre.check_ledger()
    assert all(task.state == "sent" or task.errors for task in theatre.orchestrator.tasks.values())


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_crash_between_any_two_awaits_neither_loses_nor_repeats(behaviour: str, on_unknown: str) -> None:
    """For every step k: dropped there and started anew, each task ends once, under one id, repeated only after a
    recorded unknown outcome and never with `hold`."""
    for k in range(steps_of_a_whole_life(behaviour, on_unknown)):
        theatre = theatre_with_tasks(behaviour, on_unknown)
        theatre.start(stepped=True)
        for _ in range(k):
            theatre.stage.step()
        theatre.crash()
        finish(theatre)


@settings(max_examples=150, deadline=None)
@given(
    behaviour=st.sampled_from(sorted(BEHAVIOURS)),
    on_unknown=st.sampled_from(["resend", "hold"]),
    lives=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 200_000)), max_size=5),
    requests=st.frozensets(st.integers(0, 40), max_size=8),
    answers=st.frozensets(st.integers(0, 40), max_size=8),
)
def test_many_crashes_and_a_lossy_line_neither_lose_nor_repeat(
    behaviour: str,
    on_unknown: str,
    lives: list[tuple[int, int]],
    requests: frozenset[int],
    answers: frozenset[int],
) -> None:
    """Any number of crashes with any time between them, on a line that loses requests and answers."""
    theatre = theatre_with_tasks(behaviour, on_unknown)
    theatre.line = lambda protocol: Lossy(protocol, requests=requests, answers=answers)
    for steps, away_ms in lives:
        theatre.start(stepped=True)
        for _ in range(steps):
            theatre.stage.step()
        theatre.crash()
        theatre.clock.ms += away_ms
    finish(theatre)


class Crash(BaseException):
    """Stands for SIGKILL: nothing in the worker may catch it."""


@pytest.mark.parametrize(
    ("name", "lines_at_crash"),
    [("claimed-not-sent", 0), ("intent-written", 0), ("sent-not-reported", 1), ("reported-not-acked", 1)],
)
@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_crash_at_each_failpoint(name: str, lines_at_crash: int, on_unknown: str) -> None:
    """Every failpoint is passed where its name says, and a crash there does no harm."""
    theatre = theatre_with_tasks("healthy", on_unknown)
    theatre.start()

    def die(passed: str) -> None:
        if passed == name:
            raise Crash

    failpoint.set_hook(die)
    try:
        with pytest.raises(Crash):
            theatre.play()
    finally:
        failpoint.set_hook(None)
    assert len(theatre.ledger.lines) == lines_at_crash
    theatre.crash()
    finish(theatre)
    if name != "intent-written":
        # There alone nobody can know; everywhere else the journal or a receipt does.
        assert all(task.unknown_at_ms == [] for task in theatre.orchestrator.tasks.values())


class ForgetfulJournal(MemoryJournal):
    """Planted bug: the intent never reaches the disk."""

    async def intend(self, intent: Intent) -> None:
        self._write(intent, durable=False)

    async def conclude(self, result: Result) -> None:
        self._write(result, durable=False)


class RashJournal(MemoryJournal):
    """Planted bug: an open outcome is written down as not sent."""

    async def intend(self, intent: Intent) -> None:
        await super().intend(intent)
        self._write(Result(intent.task_id, Outcome.NOT_SENT, intent.at), durable=True)


@pytest.mark.parametrize("planted", [ForgetfulJournal, RashJournal])
def test_the_checker_sees_a_planted_bug(planted: type[MemoryJournal]) -> None:
    """A worker that forgets what it intended is caught: the green tests above mean something."""
    caught = 0
    for k in range(steps_of_a_whole_life("no-receipts", "hold")):
        theatre = theatre_with_tasks("no-receipts", "hold")
        theatre.journal_type = planted
        theatre.start(stepped=True)
        for _ in range(k):
            theatre.stage.step()
        theatre.crash()
        try:
            finish(theatre)
        except AssertionError:
            caught += 1
    assert caught
