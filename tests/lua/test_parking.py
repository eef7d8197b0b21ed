"""Parking and release_due: what waits for its own time comes back in the order in which it first came."""

from paceline.dispatcher.pacer import TICK_MS, Pacer
from paceline.domain.reasons import Reason
from paceline.kits.rng import new_rng
from paceline.policy.dispatch import Idle, Step, Wait
from paceline.policy.facts import Rules
from paceline.policy.trust import parse
from paceline.settings import read_policy
from paceline.store import keys

from .stage import GAP, HOUR, PHONE, T0, Stage, recipient, value_of

RULES = Rules(parse(read_policy("demo")))


def park(stage: Stage, until: dict[int, int]) -> None:
    """Parks the heads with those numbers until those times."""
    (facts,) = stage.look()
    steps = [
        Step("park", facts.heads[i].entry, facts.heads[i].task, Reason.RECIPIENT_HOURS, at) for i, at in until.items()
    ]
    assert stage.apply(facts, Wait(stage.now + 1, Reason.IN_TURN), *steps) == "OK"


def drain(stage: Stage) -> list[int]:
    """Sends everything that may go now; the indexes in order."""
    order = []
    while stage.queue() or stage.look():
        stage.now += GAP.ms
        task = stage.hand_off()
        stage.sent(task)
        order.append(int(task.split(":")[1]))
    return order


class TestParking:
    def test_a_parked_task_does_not_hold_up_those_behind_it(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        park(stage, {0: T0 + HOUR})
        assert stage.states(job) == "prr"
        assert stage.message(job.task_id(0))["waitReason"] == "RECIPIENT_HOURS"
        stage.now += 1
        assert stage.hand_off() == job.task_id(1)

    def test_it_returns_to_the_head_at_its_time(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        park(stage, {0: T0 + HOUR, 1: T0 + HOUR})
        stage.now = T0 + HOUR
        (facts,) = stage.look()
        assert [head.task for head in facts.heads] == [job.task_id(i) for i in range(3)]
        assert stage.states(job) == "rrr"

    def test_it_returns_without_its_note_when_nothing_else_waits(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(1)
        park(stage, {0: T0 + HOUR})
        stage.set_pacer(parkedAt="")
        stage.now = T0 + HOUR
        assert stage.hand_off() == job.task_id(0)

    def test_an_idle_phone_wakes_for_its_first_parked_task(self, stage: Stage) -> None:
        stage.routed(1)
        park(stage, {0: T0 + HOUR})
        stage.now += 1
        (facts,) = stage.look()
        stage.apply(facts, Idle())
        assert stage.due_at() == T0 + HOUR

    def test_a_waiting_phone_wakes_for_it_too(self, stage: Stage) -> None:
        """Its time may be the end of its validity, which must not be noticed only when the phone opens."""
        stage.routed(2)
        park(stage, {0: T0 + HOUR})
        stage.now += 1
        (facts,) = stage.look()
        stage.apply(facts, Wait(T0 + 9 * HOUR, Reason.QUIET_HOURS))
        assert stage.due_at() == T0 + HOUR

    def test_first_come_first_served_through_parking(self, stage: Stage) -> None:
        """Parked until different times while the number cannot send: they still go in the order they came."""
        stage.connect()
        job = stage.routed(6)
        park(stage, {0: T0 + HOUR, 1: T0 + 2 * HOUR, 3: T0 + HOUR, 4: T0 + 3 * HOUR})
        for hours in (1, 2, 3):
            stage.now = T0 + hours * HOUR
            (facts,) = stage.look()
            stage.apply(facts, Wait(T0 + (hours + 1) * HOUR, Reason.NOT_CONNECTED))
        assert stage.states(job) == "rrrrrr"
        stage.now = T0 + 4 * HOUR
        assert drain(stage) == [0, 1, 2, 3, 4, 5]

    def test_a_returned_task_does_not_overtake_an_earlier_one(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        stage.hello()
        park(stage, {0: T0 + 1_000})
        stage.now += 1
        task = stage.hand_off()
        stage.claim(task, lease=500)
        stage.now += 10_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        stage.now += GAP.ms
        (facts,) = stage.look()
        assert [head.task for head in facts.heads] == [job.task_id(0), job.task_id(2)]
        stage.settle(task, "returned", from_="u", unitBack=True, reason="GIVEN_BACK")
        assert stage.queue() == [job.task_id(i) for i in range(3)]

    def test_priorities_keep_their_lists(self, stage: Stage) -> None:
        stage.connect()
        low, high = stage.routed(2), stage.routed(2, first=2, priority=3)
        park(stage, {0: T0 + HOUR})
        stage.now = T0 + HOUR
        (facts,) = stage.look()
        assert [head.task for head in facts.heads] == [high.task_id(0), high.task_id(1)]
        assert stage.queue() == [low.task_id(0), low.task_id(1)]

    def test_canceled_while_parked(self, stage: Stage) -> None:
        stage.connect()
        job, _ = stage.send()
        park(stage, {0: T0 + HOUR})
        stage.cancel(job)
        stage.now = T0 + HOUR
        (facts,) = stage.look()
        assert (facts.heads, stage.queue(), stage.states(job)) == ((), [], "X")
        assert stage.redis.exists(keys.parked(PHONE), keys.singles(PHONE)) == 0
        assert stage.redis.ttl(keys.message(job.task_id(0))) == stage.config.message_ttl

    def test_one_that_had_an_attempt_is_a_retry_again(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task, at=T0)
        stage.release()
        stage.now += GAP.ms
        park(stage, {0: T0 + HOUR})
        assert stage.states(job) == "p"
        stage.now = T0 + HOUR
        stage.look()
        assert (stage.states(job), stage.queue()) == ("t", [task])

    def test_parking_twice_is_stale(self, stage: Stage) -> None:
        stage.routed(1)
        (facts,) = stage.look()
        step = Step("park", facts.heads[0].entry, facts.heads[0].task, Reason.RECIPIENT_HOURS, T0 + HOUR)
        stage.apply(facts, Idle(), step)
        before = stage.dump()
        assert stage.apply(facts, Idle(), step) == "STALE"
        assert stage.dump() == before


class TestRelease:
    def test_nothing_waits(self, stage: Stage) -> None:
        answer = stage.release()
        assert (answer.code, answer.released, answer.next_at) == ("OK", 0, None)

    def test_a_scheduled_send_joins_the_tail_at_its_time(self, stage: Stage) -> None:
        later, _ = stage.send(send_at=T0 + HOUR)
        first = stage.routed(1)
        assert stage.release().next_at == T0 + HOUR
        stage.now = T0 + HOUR
        answer = stage.release()
        assert (answer.released, answer.next_at) == (1, None)
        assert stage.queue() == [first.task_id(0), later.task_id(0)]
        before = stage.dump()
        assert stage.release().released == 0
        assert stage.dump() == before

    def test_a_canceled_one_is_dropped(self, stage: Stage) -> None:
        job, _ = stage.send(send_at=T0 + HOUR)
        stage.cancel(job)
        stage.now = T0 + HOUR
        stage.release()
        assert (stage.queue(), stage.redis.exists(keys.singles(PHONE)), stage.redis.zcard(keys.scheduled())) == (
            [],
            0,
            0,
        )

    def test_a_retry_returns_to_the_head_at_its_time(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        other = stage.routed(1, first=5)
        stage.retry(task)
        assert (stage.states(job), stage.release().next_at) == ("t", T0 + 60_000)
        assert stage.message(task)["waitReason"] == "RETRY"
        stage.now += 60_000
        assert stage.release().released == 1
        assert stage.queue() == [task, other.task_id(0)]
        assert not {"waitReason", "waitUntil", "retryMember"} & set(stage.message(task))
        before = stage.dump()
        assert stage.release().released == 0
        assert stage.dump() == before
        assert stage.hand_off() == task

    def test_a_canceled_retry_is_dropped_and_its_record_freed_in_time(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task)
        stage.cancel(job)
        stage.now += 60_000
        stage.release()
        assert (stage.queue(), stage.redis.zcard(keys.task_retry())) == ([], 0)
        assert stage.redis.ttl(keys.message(task)) == stage.config.message_ttl

    def test_no_more_than_the_limit_at_once(self, stage: Stage) -> None:
        for number in range(5):
            stage.send(recipient(number), send_at=T0 + 1)
        stage.now += 1
        assert [stage.release(2).released for _ in range(4)] == [2, 2, 1, 0]


def test_numbers_that_were_put_back_for_too_much_at_once_come_next(stage: Stage) -> None:
    """Hundreds of tasks return at once, and the others taken with that number wait: for the next look, not for the end
    of a lease that nobody holds any more."""
    phones = [f"97254000000{number}" for number in range(3)]
    for number, phone in enumerate(phones):
        stage.connect(f"s{number}", phone)
        job = stage.routed(500, phone=phone, first=500 * number)
        for entry in stage.redis.lrange(keys.queue(phone), 0, -1):
            stage.redis.zadd(keys.parked(phone), {entry: stage.now + 1_000})
        stage.redis.set(keys.job_states(job.job_id), "p" * 500)
        stage.redis.delete(keys.queue(phone))
        stage.set_pacer(phone, parkedAt=stage.now + 1_000)
        stage.redis.zadd(keys.due(), {phone: stage.now + 1_000})
    stage.now += 1_000
    pacer = Pacer(stage.store, RULES, new_rng(1), handoff_ttl_ms=60_000)
    for _ in range(8):
        next_at = value_of(pacer.step(stage.now))
        if pacer.handed_off == len(phones):
            return
        assert next_at is not None
        assert next_at <= stage.now + TICK_MS
        stage.now = max(stage.now, next_at)
    raise AssertionError(f"{pacer.handed_off} of {len(phones)} had their turn")
