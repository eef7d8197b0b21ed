"""What a run has beyond its messages, drawn from sources of its own: so everything else of a seed stays as it was."""

from random import Random

from paceline.policy.trust import DAY_MS
from paceline.testing.plans import HOUR_MS, MINUTE_MS, Around, Deed, JobPlan, Receiver

CONFIRMATION = "You will not hear from us again."


def draw_around(seed: int, start_ms: int) -> Around:
    rng = Random(f"around {seed}")
    return Around(
        late_words=rng.choice([0.0, 0.0, 0.05, 0.3]),
        confirmation=rng.choice(["", CONFIRMATION]),
        receiver=_receiver(rng, start_ms) if rng.random() < 0.25 else None,
    )


def _receiver(rng: Random, start_ms: int) -> Receiver:
    """Mostly there; some are away for minutes, some for a weekend."""
    away_ms = rng.choice([0, 0, 20 * MINUTE_MS, 5 * HOUR_MS, 2 * DAY_MS])
    trouble = rng.choice([0.0, 0.05, 0.2])
    # Away for long and failing afterwards, it could use up all tries.
    fails = 0.0 if away_ms > HOUR_MS else trouble
    return Receiver(down=(start_ms + rng.randrange(5 * MINUTE_MS), away_ms), fails=fails, forgets=trouble)


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
