"""Quiet runs: one seed in twenty draws several jobs of different priorities and no trouble at all. Only where nothing
else holds a message up can a judge say whose turn it was."""

from random import Random

import msgspec

from paceline.testing.drilling import EARLY, drill, plain_job
from paceline.testing.plans import BURSTY, FAST, GROWING, JobPlan, Scenario

SHARE = 0.05


def is_drawn(seed: int) -> bool:
    """From a source of its own: all other seeds stay as they were."""
    return Random(f"quiet {seed}").random() < SHARE


def draw_quiet(seed: int) -> Scenario:
    rng = Random(f"quiet run {seed}")
    priorities = rng.choice([(1, 2), (1, 3), (2, 3), (1, 2, 3)])
    jobs = [_job(rng, number, rng.choice(priorities)) for number in range(rng.randint(1, 3))]
    # Whatever was drawn, there is something that waits long, and something that overtakes it.
    jobs = [_job(rng, 8, priorities[0], waits=True), *jobs, _job(rng, 9, priorities[-1])]
    policy = rng.choice([FAST, BURSTY, GROWING])
    return drill(-seed, policy, jobs, start_ms=EARLY, phones=rng.choice([1, 1, 2]))


def _job(rng: Random, number: int, priority: int, *, waits: bool = False) -> JobPlan:
    at_ms = EARLY if waits else EARLY + rng.randrange(10_000, 120_000)
    delay_ms = 0 if waits else rng.choice([0, 0, 30_000])
    job = plain_job(f"job-{number}", at_ms, 30 if waits else rng.randint(1, 8), priority, delay_ms=delay_ms)
    # Nobody is in two jobs: a chat stays with its number.
    return msgspec.structs.replace(job, contacts=[f"9725{number}{to[5:]}" for to in job.contacts])
