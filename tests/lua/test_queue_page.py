"""queue_page: a phone's queue in the order it will go, page by page, while it changes; looking changes nothing."""

from typing import Any

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Idle, Step
from paceline.store import keys
from paceline.store.queues import QueueMark, QueuePage

from .stage import GAP, HOUR, PHONE, T0, Stage, recipient, value_of


def page(stage: Stage, after: QueueMark | None = None, limit: int = 100) -> QueuePage:
    before = stage.dump()
    found = value_of(stage.store.queues.page(PHONE, after, limit))
    assert stage.dump() == before
    return found


def tasks(found: QueuePage) -> list[str]:
    return [item.task for item in found.items]


def pages(stage: Stage, limit: int, between: Any = lambda: None) -> list[str]:
    """All pages after each other; something may happen in between."""
    found = page(stage, None, limit)
    seen = tasks(found)
    while found.next is not None:
        assert len(seen) < 1_000
        between()
        found = page(stage, found.next, limit)
        seen += tasks(found)
    return seen


def park(stage: Stage, until: dict[int, int]) -> None:
    (facts,) = stage.look()
    heads = [(facts.heads[i], at) for i, at in until.items()]
    steps = [Step("park", head.entry, head.task, Reason.RECIPIENT_HOURS, at) for head, at in heads]
    stage.apply(facts, Idle(), *steps)


def test_nothing_waits(stage: Stage) -> None:
    found = page(stage)
    assert (found.items, found.total, found.parked, found.scheduled, found.next) == ([], 0, 0, 0, None)


def test_priorities_first_then_first_come_then_what_is_parked(stage: Stage) -> None:
    stage.connect()
    low = stage.routed(3)
    park(stage, {0: T0 + HOUR})
    middle, high = stage.routed(1, first=10, priority=2), stage.routed(2, first=20, priority=3)
    found = page(stage)
    assert tasks(found) == [
        high.task_id(0), high.task_id(1), middle.task_id(0), low.task_id(1), low.task_id(2), low.task_id(0),
    ]  # fmt: skip
    assert [item.position for item in found.items] == [0, 1, 2, 3, 4, None]
    assert [item.priority for item in found.items] == [3, 3, 2, 1, 1, 1]
    assert (found.total, found.parked) == (6, 1)
    last = found.items[-1]
    assert (last.state, last.to, last.expires_at) == ("p", recipient(0), low.expires_at(0))
    assert last.known == {"waitReason": "RECIPIENT_HOURS", "waitUntil": str(T0 + HOUR)}


def test_pages_join_without_gap_or_repeat(stage: Stage) -> None:
    stage.connect()
    low = stage.routed(8)
    park(stage, {0: T0 + 2 * HOUR, 1: T0 + HOUR, 2: T0 + HOUR, 3: T0 + HOUR})
    stage.routed(3, first=20, priority=3)
    whole = tasks(page(stage))
    assert len(whole) == 11
    assert whole[-1] == low.task_id(0)
    for limit in range(1, 13):
        assert pages(stage, limit) == whole


def test_what_leaves_meanwhile_makes_nobody_be_skipped(stage: Stage) -> None:
    """The cursor is a place in the order, not a count from the head."""
    stage.connect()
    stage.hello()
    job = stage.routed(6)

    def one_is_sent() -> None:
        stage.now += GAP.ms
        if stage.queue():
            task = stage.hand_off()
            stage.claim(task)
            stage.sent(task)

    assert pages(stage, 2, one_is_sent) == [job.task_id(i) for i in range(6)]


def test_nor_does_the_waking_of_sleepers(stage: Stage) -> None:
    """A page ended among those parked for one hour; they all wake before the next page is asked for."""
    stage.connect()
    job = stage.routed(4)
    park(stage, {0: T0 + HOUR, 1: T0 + HOUR, 2: T0 + 2 * HOUR, 3: T0 + 3 * HOUR})
    first = page(stage, None, 1)
    stage.now = T0 + HOUR
    stage.look()
    assert tasks(page(stage, first.next, 10)) == [job.task_id(2), job.task_id(3)]


def test_what_was_canceled_with_its_job_is_not_shown(stage: Stage) -> None:
    gone, kept = stage.routed(2), stage.routed(1, first=5)
    stage.cancel(gone)
    found = page(stage)
    assert tasks(found) == [kept.task_id(0)]
    assert found.total == 3
    assert pages(stage, 1) == [kept.task_id(0)]


def test_a_paused_job_is_marked(stage: Stage) -> None:
    held, free = stage.routed(1), stage.routed(1, first=5)
    stage.call("pause_job", job=held.job_id, now=stage.now)
    assert {item.task: item.job_paused for item in page(stage).items} == {
        held.task_id(0): True, free.task_id(0): False,
    }  # fmt: skip


def test_single_sends_for_later_are_counted(stage: Stage) -> None:
    stage.send(send_at=T0 + HOUR)
    stage.send(recipient(2))
    found = page(stage)
    assert (found.scheduled, found.total) == (1, 1)


def test_what_its_number_and_the_fleet_wait_for_comes_with_it(stage: Stage) -> None:
    stage.redis.hset(keys.phone(PHONE), "timezone", "UTC")
    stage.set_pacer(waitReason="DAILY_CAP", waitUntil=T0 + HOUR)
    stage.redis.hset(keys.fleet(), mapping={"paused": 1})
    found = page(stage)
    assert found.phone == {"waitReason": "DAILY_CAP", "waitUntil": str(T0 + HOUR), "timezone": "UTC"}
    assert found.fleet == {"paused": "1"}
