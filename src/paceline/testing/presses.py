"""What operators press in a run, and who writes to the numbers, drawn from the seed."""

from random import Random

from paceline.policy.pacing import ALLOWED_RPM
from paceline.testing.plans import MINUTE_MS, Deed, DeedKind, JobPlan

_PACERS: tuple[dict[str, int | None], ...] = (
    {"min_delay_ms": 9_000, "max_delay_ms": 12_000},
    {"min_delay_ms": 500, "max_delay_ms": 1_500, "rpm": 20},
    {"burst_limit": 2, "burst_cooldown_ms": 15_000},
    {"burst_limit": 0},
    {"rpm": 5},
    {"min_delay_ms": None, "max_delay_ms": None},
    {"rpm": None},
    {"burst_limit": None, "burst_cooldown_ms": None},
)
_KINDS: tuple[DeedKind, ...] = (
    "pause", "resume", "stop", "start", "rpm", "rpm", "rpm", "pacer", "pacer", "pacer", "cooldown", "cooldown",
    "requeue", "cancel_queue", "guard", "pause_job", "pause_job", "resume_job", "cancel_message", "cancel_message",
    "hear", "hear",
)  # fmt: skip


def draw_deeds(rng: Random, start_ms: int, phones: int, jobs: list[JobPlan]) -> list[Deed]:
    """Mostly within the first minutes, while messages are under way; now and then much later."""
    deeds = []
    for _ in range(rng.choice([1, 3, 6, 10])):
        kind = rng.choice(_KINDS)
        late = rng.choice([4, 4, 10, 40])
        at_ms = start_ms + rng.randrange(15_000, late * MINUTE_MS)
        deeds.append(_deed(rng, kind, at_ms, phones, jobs))
    return sorted(deeds, key=lambda deed: deed.at_ms)


def _deed(rng: Random, kind: DeedKind, at_ms: int, phones: int, jobs: list[JobPlan]) -> Deed:
    phone, job = rng.randrange(phones), rng.randrange(len(jobs))
    contacts = jobs[job].contacts
    if kind == "rpm":
        return Deed(at_ms=at_ms, kind=kind, which=phone, value=rng.choice([None, *ALLOWED_RPM]))
    if kind == "pacer":
        return Deed(at_ms=at_ms, kind=kind, which=phone, value=rng.choice(_PACERS))
    if kind == "guard":
        return Deed(at_ms=at_ms, kind=kind, value=rng.random() < 0.5)
    if kind in ("pause_job", "resume_job"):
        return Deed(at_ms=at_ms, kind=kind, which=job)
    if kind == "cancel_message":
        return Deed(at_ms=at_ms, kind=kind, which=job, value=rng.randrange(len(contacts)))
    if kind == "hear":
        return Deed(at_ms=at_ms, kind=kind, which=phone, value=rng.choice(contacts))
    return Deed(at_ms=at_ms, kind=kind, which=phone)
