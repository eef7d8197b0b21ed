"""What was sent is forgotten when its time is over, all that came in one settling together, and never sooner."""

from paceline.dispatcher.scheduler import FORGET_BATCH, FORGET_MS, Scheduler
from paceline.domain.ids import whatsapp_id
from paceline.store import keys

from .stage import DAY, PHONE, SESSION, T0, Stage, value_of

KEPT_MS = 30 * 86_400_000


def sent(stage: Stage, count: int = 3) -> list[str]:
    """A job whose messages were proven sent in one call."""
    stage.connect()
    job = stage.routed(count)
    tasks = [job.task_id(index) for index in range(count)]
    orders = [
        {"task": task, "outcome": "sent", "whatsappId": whatsapp_id(task), "statsDay": DAY, "now": stage.now}
        for task in tasks
    ]
    value_of(stage.caller.rows("prove_sent", orders=orders))
    return tasks


def forget(stage: Stage, limit: int = 100) -> bool:
    return value_of(stage.store.pacers.release_due(now_ms=stage.now, limit=100, forget=limit)).forgets


def left(stage: Stage, tasks: list[str]) -> int:
    return stage.redis.exists(*[key(task) for task in tasks for key in (keys.message, keys.task_status)])


def test_messages_and_what_others_read_of_them_go_at_their_time(stage: Stage) -> None:
    tasks = sent(stage)
    stage.now = T0 + KEPT_MS - 1
    forget(stage)
    assert left(stage, tasks) == 6
    stage.now += 1
    assert value_of(stage.store.pacers.release_due(now_ms=stage.now, limit=100)).forgets is False
    assert left(stage, tasks) == 6
    forget(stage)
    assert left(stage, tasks) == 0
    assert not stage.redis.exists(keys.messages_ended())
    assert not forget(stage)


def test_a_day_of_a_session_goes_too(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.sent(task)
    assert 0 < stage.redis.pttl(keys.session_stats(SESSION, DAY, "sent")) <= KEPT_MS


def test_a_receipt_that_comes_after_it_was_forgotten_has_an_end_of_its_own(stage: Stage) -> None:
    (task,) = sent(stage, 1)
    stage.now = T0 + KEPT_MS
    forget(stage)
    assert stage.sent(task, "read").state == "R"
    assert stage.redis.ttl(keys.message(task)) > 0


def test_so_much_at_once_and_the_rest_with_the_next(stage: Stage) -> None:
    for _ in range(3):
        stage.now += 1
        sent(stage, 1)
    stage.now = T0 + KEPT_MS + 10
    assert [forget(stage, 2), forget(stage, 2)] == [True, False]
    assert not stage.redis.exists(keys.messages_ended())


def test_it_goes_on_while_the_dispatchers_rest(stage: Stage) -> None:
    tasks = sent(stage)
    stage.redis.hset(keys.fleet(), "stopped", 1)
    stage.now = T0 + KEPT_MS
    forget(stage)
    assert left(stage, tasks) == 0


def test_the_scheduler_looks_once_a_minute_until_all_is_forgotten(stage: Stage) -> None:
    for _ in range(FORGET_BATCH + 1):
        stage.now += 1
        sent(stage, 1)
    now = T0 + KEPT_MS + 100
    scheduler = Scheduler(stage.store)
    seen = []
    for at in (now, now + 1, now + 2):
        value_of(scheduler.step(at))
        seen.append(stage.redis.zcard(keys.messages_ended()))
    assert seen == [1, 0, 0]
    stage.now = now - KEPT_MS + 3
    sent(stage, 1)
    value_of(scheduler.step(now + FORGET_MS))
    assert stage.redis.zcard(keys.messages_ended()) == 1
    value_of(scheduler.step(now + FORGET_MS + 1))
    assert stage.redis.zcard(keys.messages_ended()) == 0


def test_what_is_left_to_forget_is_the_next_step(stage: Stage) -> None:
    """A busy fleet settles more in a second than one step forgets: it must not wait for a second then."""
    for _ in range(FORGET_BATCH + 1):
        stage.now += 1
        sent(stage, 1)
    now = T0 + KEPT_MS + 100
    scheduler = Scheduler(stage.store)
    assert [value_of(scheduler.step(now)), value_of(scheduler.step(now))] == [now, None]


def test_one_that_had_failed_is_kept_from_its_proof_on(stage: Stage) -> None:
    """It had a TTL from its failure; it went out today, and is known for as long as all that did."""
    _, task, _ = stage.claimed()
    stage.fail(task)
    assert stage.redis.ttl(keys.message(task)) > 0
    stage.sent(task)
    assert stage.redis.ttl(keys.message(task)) == -1
    stage.now += KEPT_MS
    forget(stage)
    assert left(stage, [task]) == 0


def test_nobody_but_time_forgets_a_message_that_waits(stage: Stage) -> None:
    """Given up once, it may still be proven: what is dropped is what was proven, not what the list once named."""
    _, task, _ = stage.claimed()
    stage.retry(task, at=T0 + KEPT_MS)
    stage.now = T0 + KEPT_MS + 1
    forget(stage)
    assert stage.byte(task) == "t"
    assert stage.message(task)["phone"] == PHONE
