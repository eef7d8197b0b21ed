"""What a run has beyond its messages, drawn from sources of its own: so everything else of a seed stays as it was."""

from random import Random

import msgspec

from paceline.policy.trust import DAY_MS
from paceline.testing.plans import HOUR_MS, MINUTE_MS, Around, Deed, DeedKind, JobPlan, Receiver

CONFIRMATION = "You will not hear from us again."


def draw_around(seed: int, start_ms: int) -> Around:
    rng = Random(f"around {seed}")
    return Around(
        late_words=rng.choice([0.0, 0.0, 0.05, 0.3]),
        confirmation=rng.choice(["", CONFIRMATION]),
        bad_files=rng.choice([0.0, 0.1, 0.3]),
        receiver=_receiver(rng, start_ms) if rng.random() < 0.25 else None,
        provisioned=(provisioned := rng.random() < 0.3),
        # At least as many places as a run has sessions.
        proxies=rng.choice([0, 3, 4, 6]) if provisioned else 0,
        skew_ms=Random(f"skew {seed}").choice([0, 0, 0, 2_000, 5 * MINUTE_MS]),
        restarts=not provisioned and Random(f"restarts {seed}").random() < 0.25,
    )


def _receiver(rng: Random, start_ms: int) -> Receiver:
    """Mostly there; some are away for minutes, some for a weekend."""
    away_ms = rng.choice([0, 0, 20 * MINUTE_MS, 5 * HOUR_MS, 2 * DAY_MS])
    trouble = rng.choice([0.0, 0.05, 0.2])
    # Away for long and failing afterwards, it could use up all tries.
    fails = 0.0 if away_ms > HOUR_MS else trouble
    return Receiver(down=(start_ms + rng.randrange(5 * MINUTE_MS), away_ms), fails=fails, forgets=trouble)


def draw_fleet(seed: int, start_ms: int, phones: int, around: Around) -> list[Deed]:
    """Proxies that die and come back, workers that hang or are restarted by hand."""
    rng = Random(f"fleet {seed}")
    deeds = []
    for _ in range(rng.choice([1, 3, 6]) if around.provisioned else 0):
        at_ms = start_ms + rng.randrange(20_000, 10 * MINUTE_MS)
        kind: DeedKind = rng.choice(["hang", "restart_session", "proxy_bad", "proxy_bad"])
        if kind == "hang":
            deeds.append(Deed(at_ms=at_ms, kind=kind, which=rng.randrange(phones), value=3 * HOUR_MS))
        elif kind == "restart_session":
            deeds.append(Deed(at_ms=at_ms, kind=kind, which=rng.randrange(phones)))
        elif around.proxies:
            which = rng.randrange(around.proxies)
            back_ms = at_ms + rng.choice([10_000, 5 * MINUTE_MS, 3 * HOUR_MS])
            deeds += [Deed(at_ms=at_ms, kind=kind, which=which), Deed(at_ms=back_ms, kind="proxy_ok", which=which)]
    return deeds


def with_files(seed: int, jobs: list[JobPlan]) -> list[JobPlan]:
    """Now and then a job sends a file; a single send cannot."""
    rng = Random(f"files {seed}")
    return [
        msgspec.structs.replace(job, file=f"file of {job.name}") if rng.random() < 0.12 and not job.single else job
        for job in jobs
    ]


def draw_jumps(seed: int, start_ms: int) -> list[Deed]:
    """Somebody sets the clock forward, by minutes or by more than a day, or back."""
    rng = Random(f"clock {seed}")
    at_ms = start_ms + rng.randrange(20_000, 6 * MINUTE_MS)
    ms = rng.choice([2 * MINUTE_MS, HOUR_MS, 25 * HOUR_MS])
    kind = rng.random()
    if kind < 0.1:
        return [Deed(at_ms=at_ms, kind="clock", value=ms)]
    back_ms = rng.choice([5_000, 2 * MINUTE_MS, HOUR_MS, HOUR_MS])
    return [Deed(at_ms=at_ms, kind="clock", value=-back_ms)] if kind < 0.2 else []


def draw_stop_words(seed: int, start_ms: int, phones: int, jobs: list[JobPlan]) -> list[Deed]:
    """People who had enough, of those who are written to; some say it twice, some to another number."""
    rng = Random(f"stop words {seed}")
    people = [to for job in jobs for to in job.contacts]
    deeds = []
    for _ in range(rng.choice([0, 0, 0, 1, 2, 4])):
        at_ms, who = start_ms + rng.randrange(15_000, 6 * MINUTE_MS), rng.choice(people)
        text = rng.choice(["stop", "STOP.", "unsubscribe", "הסר", "when do you stop by?"])
        for _ in range(rng.choice([1, 1, 2])):
            deeds.append(Deed(at_ms=at_ms, kind="stop_word", which=rng.randrange(phones), value=(who, text)))
    return deeds
