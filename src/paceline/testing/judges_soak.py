"""What must hold every evening of a soak: the books balance, and no number was faster than it may be."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from paceline.domain.states import CLOSED_JOB_STATES
from paceline.store import keys
from paceline.testing.world import World

_WAITING = (
    keys.scheduled(), keys.jobs_active(), keys.jobs_retry(), keys.task_retry(), keys.deadlines(), keys.handing(),
)  # fmt: skip


def balance(world: World, day: int) -> Iterator[str]:
    """The day's job has ended, and what it says was sent is what WhatsApp has, each once."""
    [job_id] = world.ids_of(world.scenario.jobs[day])
    view = world.ask(lambda store: store.jobs.view(job_id))[0]
    times = Counter(line.task_id for book in world.ledgers.values() for line in book.lines if not line.repeat)
    ours = {task for task in times if task.startswith(f"{job_id}:")}
    progress, out = view.progress, sum(view.progress[part] for part in ("sent", "delivered", "read"))
    ends = out + sum(progress[part] for part in ("failed", "expired", "canceled", "suppressed"))
    if view.run["state"] not in CLOSED_JOB_STATES or ends != progress["total"] or progress["total"] != view.job.total:
        yield f"day {day + 1}: {job_id} is {view.run['state']} with {progress}"
    if max(times.values(), default=0) > 1:
        yield f"day {day + 1}: {sum(count > 1 for count in times.values())} messages under another id"
    # One of which nobody could tell may have gone out.
    if not out <= len(ours) <= out + progress["failed"]:
        yield f"day {day + 1}: {out} are called sent, WhatsApp has {len(ours)}"
    done = [event for event in world.ask(lambda store: store.jobs.events(2_000))[0] if event["jobId"] == job_id]
    if sum(event["event"] == "JOB_DONE" for event in done) != 1:
        yield f"day {day + 1}: JOB_DONE {done}"
    left = world.redis.read(*[("ZCARD", key) for key in _WAITING])
    if any(left):
        yield f"day {day + 1}: something is left: {dict(zip(_WAITING, left, strict=True))}"


def pace(world: World) -> Iterator[str]:
    level = world.scenario.policy.levels[-1]
    shortest_ms = int((level.delay_ms or (0, 0))[0] * (1 - world.scenario.policy.jitter))
    times: dict[str, list[int]] = defaultdict(list)
    for book in world.ledgers.values():
        for line in book.lines:
            times[world.outside.phone_of[line.session_id]].append(line.at)
    for phone, sends in times.items():
        shortest = min((later - earlier for earlier, later in pairwise(sorted(sends))), default=shortest_ms)
        if shortest < shortest_ms or len(sends) > (level.daily_cap or len(sends)):
            yield f"{phone}: {len(sends)} sends, {shortest} ms between two of them"
