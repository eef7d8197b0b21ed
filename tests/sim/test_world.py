"""The whole platform in virtual time: nothing is lost, repeated, moved, too fast or sent although somebody held it.

And the judges who say so would have noticed."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing import regressions, scenario
from paceline.testing.plans import Scenario
from paceline.testing.planted import BUGS
from paceline.testing.prove import Catch, Run, catch, prove, run_scenario
from paceline.testing.report import summary, told
from paceline.testing.scenario import DRILLS
from paceline.testing.servers import private_redis
from paceline.testing.world import Limits, World

pytestmark = pytest.mark.timeout(600)
"""The planted bugs are looked for in one go, before the first of their tests."""

SEEDS, AT_LEAST, MINUTES = 2_000, 300, 3
"""As many as there is time for, on one core; on a machine that is slow or busy fewer. `make prove` runs any number."""
REGRESSIONS = regressions.kept(Path(__file__).with_name("regressions"))


def test_no_seed_breaks_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    """Crashes, lost replies, frozen processes and outages at any step break no promise that a ledger can show."""
    began = time.monotonic()
    runs = list(_while_there_is_time(prove(-len(DRILLS), SEEDS, workers=1)))
    with capsys.disabled():
        print(f"\nWorld: {summary(runs, time.monotonic() - began)}")
    assert told(runs) == []
    assert len(runs) >= len(DRILLS) + AT_LEAST
    assert sum(run.faults for run in runs) > len(runs), "the runs were too quiet to prove anything"
    assert sum(run.messages for run in runs) > len(runs)
    quiet = [plan for plan in (scenario.draw(run.seed) for run in runs) if plan.is_quiet]
    overtaking = [plan for plan in quiet if len({job.priority for job in plan.jobs}) > 1]
    assert len(overtaking) > 10, "the runs were too loud to show whose turn it was"


def _while_there_is_time(runs: Iterator[Run]) -> Iterator[Run]:
    began = time.monotonic()
    for run in runs:
        yield run
        if run.seed >= AT_LEAST and time.monotonic() - began > MINUTES * 60:
            return


@pytest.mark.parametrize("story", REGRESSIONS)
def test_a_run_that_was_red_stays_green(story: str) -> None:
    with private_redis() as redis:
        assert run_scenario(REGRESSIONS[story], redis).violations == []


def test_a_kept_scenario_is_the_one_that_was_drawn(tmp_path: Path) -> None:
    """`--keep` writes all of it down: what is read again is the same, and is named after what it found."""
    regressions.keep(7, "Somebody wrote, and nobody heard!", tmp_path)
    read: dict[str, Scenario] = regressions.kept(tmp_path)
    assert read == {"somebody wrote and nobody heard": scenario.draw(7)}


def test_the_same_seeds_give_the_same_runs() -> None:
    """A violation can be replayed: every step of a run depends on its seed alone, whatever process and whatever Redis
    it runs in."""

    def printed(hash_seed: str, seeds: str) -> str:
        command = [sys.executable, "-m", "paceline.testing", "--workers=1", f"--seeds={seeds}"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.partition("; trace ")[2].split()[0]

    assert printed("1", "10:16") == printed("2", "10:16")
    assert printed("1", "10:16") != printed("1", "11:17")
    # Many events fall due for a customer in one moment; their ids come from Redis' own clock.
    assert printed("1", "2179:2180") == printed("2", "2179:2180")


def test_a_run_that_is_cut_short_leaves_nothing_that_was_never_begun(recwarn: pytest.WarningsRecorder) -> None:
    """Whoever was to run next when it ended; Python would warn of each of them."""
    with private_redis() as redis:
        World(scenario.draw(7), redis).run(Limits(steps=1))
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


@pytest.fixture(scope="module")
def catches() -> dict[str, Catch | None]:
    return dict(zip([bug.name for bug in BUGS], catch(BUGS, hinted=True), strict=True))


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{bug.promise}: {bug.name}")
def test_a_planted_bug_is_caught(bug, catches: dict[str, Catch | None]) -> None:
    """A judge that would not see this bug could not call a run clean."""
    assert catches[bug.name] is not None, f"{bug.name} went unnoticed"
