"""cancel_queue and cancel_retries: all that waits for a number ends, in batches, and nothing vanishes."""

from random import Random
from typing import Any

import msgspec
import pytest

from paceline.domain.jobs import Job
from paceline.domain.reasons import Reason
from paceline.domain.states import TERMINAL
from paceline.policy.dispatch import Step, Wait
from paceline.store import keys, operators

from .servers import LiveServer
from .stage import GAP, HOUR, PHONE, SESSION, T0, Stage, recipient, value_of
from .walk import PHONES, Walk

OTHER = "972500000002"


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.connect()
    stage.hello()
    return stage


def cancel(stage: Stage, phone: str = PHONE) -> Any:
    return value_of(stage.store.operators.cancel_queue(SESSION, phone, by="k", now_ms=stage.now))


def incidents(stage: Stage) -> list[dict[str, Any]]:
    return [line for line in value_of(stage.store.operators.incidents()) if line["kind"] == "QUEUE_CANCELED"]


def parked(stage: Stage, *numbers: int, until: int = T0 + HOUR) -> None:
    (facts,) = stage.look()
    steps = [Step("park", facts.heads[n].entry, facts.heads[n].task, Reason.RECIPIENT_HOURS, until) for n in numbers]
    stage.apply(facts, Wait(stage.now + 1, Reason.IN_TURN), *steps)
    stage.now += 1


def retrying(stage: Stage, **facts: Any) -> tuple[Job, str]:
    """A job of one whose message waits for its next try."""
    job = stage.routed(1, first=stage.redis.dbsize())
    task = stage.hand_off()
    stage.claim(task)
    stage.retry(task, at=T0 + HOUR, **facts)
    stage.now += GAP.ms
    return job, task


def maybe_sent(stage: Stage) -> tuple[Job, str]:
    return retrying(stage, pinned=True, unitBack=None)


class TestQueues:
    def test_an_idle_phone_has_nothing_to_cancel(self, ready: Stage) -> None:
        before = ready.dump(ignore=("version",))
        done = cancel(ready)
        assert (done.canceled, done.failed, done.open) == (0, 0, 0)
        assert {key for key in ready.dump() if key not in before} == set()
        assert incidents(ready) == []

    def test_all_three_queues_of_this_phone_and_of_no_other(self, ready: Stage) -> None:
        jobs = [ready.routed(2, first=10 * priority, priority=priority) for priority in (1, 2, 3)]
        other = ready.routed(2, first=90, phone=OTHER)
        done = cancel(ready)
        assert (done.canceled, done.failed, done.open) == (6, 0, 0)
        for job in jobs:
            assert ready.states(job) == "XX"
            assert not ready.redis.exists(keys.job_routes(job.job_id))
            ready.adds_up(job)
        assert ready.states(other) == "rr"
        assert not ready.redis.exists(keys.queue(PHONE), keys.queue_p2(PHONE), keys.queue_p3(PHONE))
        assert ready.due_at() is None
        (line,) = incidents(ready)
        assert line == {
            "kind": "QUEUE_CANCELED", "at": T0, "phone": PHONE, "sessionId": SESSION, "by": "k", "canceled": 6,
            "failed": 0,
        }  # fmt: skip

    def test_twice_is_once(self, ready: Stage) -> None:
        ready.routed(3)
        cancel(ready)
        before = ready.dump()
        assert cancel(ready).canceled == 0
        assert ready.dump() == before

    def test_a_job_goes_on_with_what_was_not_in_the_queue(self, ready: Stage) -> None:
        job = ready.accept(5)
        ready.turn()
        ready.route(job, 0, 3)
        assert cancel(ready).canceled == 3
        assert ready.states(job) == "XXXqq"
        ready.adds_up(job)
        ready.route(job, 3)
        assert ready.states(job) == "XXXrr"

    def test_in_batches_with_one_incident(self, ready: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(operators, "CANCEL_BATCH", 4)
        low, high = ready.routed(6), ready.routed(5, first=10, priority=2)
        done = cancel(ready)
        assert (done.canceled, done.more) == (11, False)
        assert (ready.states(low), ready.states(high)) == ("XXXXXX", "XXXXX")
        assert [line["canceled"] for line in incidents(ready)] == [11]

    def test_what_comes_while_it_runs_is_not_meant(self, ready: Stage) -> None:
        """A router goes on filling: without a bound a job of a week would be canceled a batch at a time."""
        job = ready.routed(3)
        first = ready.call("cancel_queue", phone=PHONE, session=SESSION, by="k", limit=2, canceled=0, failed=0, now=T0)
        assert (first["more"], first["canceled"]) == (True, 2)
        later = ready.routed(3, first=10)
        rest = ready.call(
            "cancel_queue",
            phone=PHONE,
            session=SESSION,
            by="k",
            limit=9,
            canceled=2,
            failed=0,
            upTo=first["upTo"],
            now=T0,
        )
        assert (rest["more"], rest["canceled"]) == (False, 3)
        assert (ready.states(job), ready.states(later)) == ("XXX", "rrr")
        assert ready.due_at() == T0

    def test_what_had_ended_before_only_leaves_the_queue(self, ready: Stage) -> None:
        job = ready.routed(3)
        ready.cancel(job)
        assert cancel(ready).canceled == 0
        assert ready.queue() == []
        assert incidents(ready) == []
        ready.adds_up(job)

    def test_a_look_under_way_hands_nothing_over(self, ready: Stage) -> None:
        job = ready.routed(2)
        (facts,) = ready.look()
        cancel(ready)
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "STALE"
        assert ready.states(job) == "XX"


class TestSingles:
    def test_waiting_and_scheduled_ones_end_and_make_room(self, ready: Stage) -> None:
        now, _ = ready.send(recipient(1))
        later, _ = ready.send(recipient(2), send_at=T0 + HOUR)
        same_time, _ = ready.send(recipient(3), OTHER, send_at=T0 + HOUR)
        assert cancel(ready).canceled == 2
        assert [ready.states(job) for job in (now, later, same_time)] == ["X", "X", "s"]
        assert not ready.redis.exists(keys.singles(PHONE))
        assert ready.redis.zcard(keys.scheduled()) == 1
        for job in (now, later):
            ready.adds_up(job)
        ready.now += HOUR
        assert ready.release().released == 1
        assert ready.states(later) == "X"

    def test_one_whose_member_cannot_be_found_ends_all_the_same(self, ready: Stage) -> None:
        later, _ = ready.send(recipient(2), send_at=T0 + HOUR)
        (member,) = ready.redis.zrange(keys.scheduled(), 0, -1)
        ready.redis.zadd(keys.scheduled(), {member: T0 + 2 * HOUR})
        assert cancel(ready).canceled == 1
        ready.now += 2 * HOUR
        ready.release()
        assert (ready.states(later), ready.queue()) == ("X", [])


class TestParked:
    def test_parked_ones_end(self, ready: Stage) -> None:
        job = ready.routed(3)
        parked(ready, 0, 1)
        assert ready.states(job) == "ppr"
        assert cancel(ready).canceled == 3
        assert ready.states(job) == "XXX"
        assert not ready.redis.exists(keys.parked(PHONE), keys.job_routes(job.job_id))
        message = ready.message(job.task_id(0))
        assert "waitReason" not in message
        assert ready.redis.ttl(keys.message(job.task_id(0))) > 0
        assert ready.due_at() is None
        ready.adds_up(job)


class TestOutbox:
    def test_what_no_worker_has_claimed_ends_and_frees_its_phone_when_it_is_cleared(self, ready: Stage) -> None:
        job = ready.routed(1)
        task = ready.hand_off()
        done = cancel(ready)
        assert (done.canceled, done.open) == (1, 0)
        assert ready.states(job) == "X"
        assert ready.pacer()["unsettled"] == task
        opened = ready.open()
        assert opened.task.state == "X"
        ready.settle(task, "cleared", from_=TERMINAL)
        assert "unsettled" not in ready.pacer()
        assert ready.pacer()["capUsed"] == "0"
        assert not ready.redis.exists(keys.outbox(SESSION), keys.deadlines())
        ready.adds_up(job)

    def test_without_a_worker_the_sweeper_clears_it(self, ready: Stage) -> None:
        ready.routed(1)
        task = ready.hand_off()
        cancel(ready)
        ready.now += 60_000
        (found,) = ready.overdue().tasks
        assert (found.task, found.state) == (task, "X")
        ready.settle(task, "cleared", from_=TERMINAL, overdue=True)
        assert "unsettled" not in ready.pacer()

    def test_a_claim_that_was_looked_up_before_finds_it_ended(self, ready: Stage) -> None:
        ready.routed(1)
        task = ready.hand_off()
        ready.open()
        cancel(ready)
        assert ready.claim(task).code == "ENDED"

    def test_one_on_its_way_by_post_ends_too(self, ready: Stage) -> None:
        ready.routed(1)
        (facts,) = ready.look()
        decision = ready.to_send(facts.heads[0])
        task = facts.heads[0].task
        assert ready.apply(facts, decision) == "OK"
        ready.redis.lrem(keys.outbox(SESSION), 0, task)
        ready.redis.zadd(keys.handing(), {task: T0})
        ready.redis.hset(keys.message(task), "handing", 1)
        assert cancel(ready).canceled == 1
        assert ready.call("enqueue_outbox", session=SESSION, task=task, now=T0)["code"] == "GONE"

    def test_what_a_worker_holds_is_left_to_it_and_counted(self, ready: Stage) -> None:
        job = ready.routed(2)
        task = ready.hand_off()
        ready.claim(task)
        done = cancel(ready)
        assert (done.canceled, done.open) == (1, 1)
        assert ready.states(job) == "cX"
        ready.sent(task)
        assert ready.states(job) == "SX"
        ready.adds_up(job)

    def test_what_comes_back_to_the_queue_afterwards_waits_again(self, ready: Stage) -> None:
        """An operator canceled what waited then; the job itself was not canceled."""
        job = ready.routed(1)
        task = ready.hand_off()
        token = ready.claim(task).token
        cancel(ready)
        ready.settle(task, "returned", from_="c", token=token, unitBack=True, reason="GIVEN_BACK")
        assert ready.states(job) == "r"
        assert cancel(ready).canceled == 1


class TestRetries:
    def test_those_of_this_phone_end_and_no_others(self, ready: Stage) -> None:
        job, task = retrying(ready)
        strange = msgspec.json.encode({"sessionId": "s9", "phone": OTHER, "task": "x:0"}).decode()
        ready.redis.zadd(keys.task_retry(), {strange: T0})
        done = cancel(ready)
        assert (done.canceled, done.failed) == (1, 0)
        assert ready.states(job) == "X"
        assert ready.redis.zrange(keys.task_retry(), 0, -1) == [strange]
        assert "retryMember" not in ready.message(task)
        assert ready.redis.ttl(keys.message(task)) > 0
        ready.adds_up(job)

    def test_one_that_may_have_gone_out_is_not_called_canceled(self, ready: Stage) -> None:
        job, task = maybe_sent(ready)
        other, _ = retrying(ready)
        done = cancel(ready)
        assert (done.canceled, done.failed) == (1, 1)
        assert (ready.states(job), ready.states(other)) == ("F", "X")
        assert ready.message(task)["errorCode"] == "UNKNOWN_OUTCOME"
        (letter,) = ready.redis.lrange(keys.dead_letters(), 0, -1)
        assert msgspec.json.decode(letter)["taskId"] == task
        (line,) = incidents(ready)
        assert (line["canceled"], line["failed"]) == (1, 1)
        ready.adds_up(job)

    @pytest.mark.parametrize("released", [False, True], ids=["in the retry queue", "back in the phone's queue"])
    def test_wherever_it_waits(self, ready: Stage, released: bool) -> None:
        job, _ = maybe_sent(ready)
        if released:
            ready.now = T0 + HOUR
            ready.release()
        assert (cancel(ready).failed, ready.states(job)) == (1, "F")

    def test_handed_over_again_and_not_claimed(self, ready: Stage) -> None:
        job, _ = maybe_sent(ready)
        ready.now = T0 + HOUR
        ready.release()
        ready.hand_off()
        assert (cancel(ready).failed, ready.states(job)) == (1, "F")

    def test_a_long_list_of_retries_is_read_in_pages(self, ready: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(operators, "CANCEL_BATCH", 10)
        job = ready.routed(1)
        _, task = retrying(ready)
        strange = {
            msgspec.json.encode({"sessionId": "s9", "phone": OTHER, "task": f"x:{n}"}).decode(): T0 for n in range(400)
        }
        ready.redis.zadd(keys.task_retry(), strange)
        done = cancel(ready)
        assert done.canceled == 2
        assert ready.redis.zcard(keys.task_retry()) == 400
        assert (ready.byte(task), ready.states(job)) == ("X", "X")


def test_everything_at_once_ends_and_adds_up(ready: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task in every place there is, three to a batch."""
    monkeypatch.setattr(operators, "CANCEL_BATCH", 3)
    doubtful, _ = maybe_sent(ready)
    again, _ = retrying(ready)
    held = ready.routed(1, first=300)
    ready.claim(ready.hand_off())
    ready.settle(held.task_id(0), "unknown", from_="c", reason="LEASE_ENDED")
    ready.now += GAP.ms
    job = ready.routed(8, first=400)
    parked(ready, 0, 1)
    ready.hand_off()
    single, _ = ready.send(recipient(501), send_at=T0 + HOUR)
    assert ready.states(job) == "pphrrrrr"
    done = cancel(ready)
    assert (done.canceled, done.failed, done.open) == (10, 1, 1)
    assert (ready.states(job), ready.states(held)) == ("X" * 8, "u")
    for each in (doubtful, again, held, job, single):
        ready.adds_up(each)
    assert [(line["canceled"], line["failed"]) for line in incidents(ready)] == [(10, 1)]
    assert not ready.redis.exists(keys.singles(PHONE), keys.parked(PHONE), keys.queue(PHONE), keys.task_retry())


class OperatorWalk(Walk):
    """Everybody who calls the store, and an operator who cancels a number's queue now and then."""

    def step(self, rng: Random) -> None:
        if rng.random() < 0.05:
            phone = rng.choice(PHONES)
            before = {task: byte for job in self.jobs for task, byte in self._bytes(job)}
            cancel(self.stage, phone)
            after = {task: byte for job in self.jobs for task, byte in self._bytes(job)}
            changed = {(before[task], after[task]) for task in before if before[task] != after[task]}
            assert changed <= {(old, new) for old in "rspth" for new in "XF"}
            waits = [queue(phone) for queue in (keys.queue, keys.queue_p2, keys.queue_p3, keys.parked)]
            assert not self.stage.redis.exists(*waits)
            self.check()
        super().step(rng)

    def _bytes(self, job: Job) -> list[tuple[str, str]]:
        return [(job.task_id(index), byte) for index, byte in enumerate(self.stage.states(job))]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_else_happens_nothing_is_lost_and_the_sums_add_up(server: LiveServer, seed: int) -> None:
    walk, rng = OperatorWalk(server.client), Random(seed)
    for _ in range(120):
        walk.step(rng)
