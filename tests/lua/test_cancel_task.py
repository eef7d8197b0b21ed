"""cancel_task: one message stops, wherever it waits, and leaves nothing behind."""

from typing import Any

import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Idle, Step
from paceline.store import keys

from .stage import DAY, GAP, HOUR, PHONE, T0, Stage, recipient, value_of

OTHER = "972500000002"


def cancel(stage: Stage, task: str, phone: str | None = PHONE) -> dict[str, Any]:
    return stage.call("cancel_task", task=task, phone=phone, now=stage.now)  # type: ignore[no-any-return]


def park(stage: Stage, *indexes: int) -> None:
    (facts,) = stage.look()
    heads = [facts.heads[i] for i in indexes]
    stage.apply(facts, Idle(), *[Step("park", h.entry, h.task, Reason.RECIPIENT_HOURS, T0 + HOUR) for h in heads])


def nowhere(stage: Stage, task: str) -> None:
    """Nothing that waits names the task any more."""
    dump = stage.dump()
    dump.pop(keys.dead_letters(), None)
    waiting = {key: value for key, (value, _) in dump.items() if key.startswith(("queue:", "session:outbox"))}
    assert task not in str(waiting), waiting


def repeated(stage: Stage, task: str, state: str = "X") -> None:
    before = stage.dump()
    assert cancel(stage, task) == {"code": "ENDED", "state": state}
    assert stage.dump() == before


class TestWhereItWaits:
    @pytest.mark.parametrize("priority", [1, 2, 3])
    def test_in_the_queue(self, stage: Stage, priority: int) -> None:
        stage.connect()
        job = stage.routed(3, priority=priority)
        task = job.task_id(1)
        assert cancel(stage, task) == {"code": "OK", "state": "X"}
        assert stage.states(job) == "rXr"
        nowhere(stage, task)
        assert stage.redis.hgetall(keys.job_routes(job.job_id)) == {"0": PHONE, "2": PHONE}
        stage.adds_up(job)
        repeated(stage, task)
        assert stage.hand_off() == job.task_id(0)

    def test_before_it_has_a_phone(self, stage: Stage) -> None:
        """The router finds it ended, and goes on with the others."""
        stage.connect()
        job = stage.accept(3)
        task = job.task_id(1)
        assert cancel(stage, task, None) == {"code": "OK", "state": "X"}
        stage.adds_up(job)
        stage.turn()
        assert stage.route(job).code == "OK"
        assert stage.states(job) == "rXr"
        nowhere(stage, task)
        assert "phone" not in stage.message(task)

    def test_the_last_one_without_a_phone_closes_its_job(self, stage: Stage) -> None:
        job = stage.accept(1)
        assert cancel(stage, job.task_id(0), None)["code"] == "OK"
        assert stage.redis.hget(keys.job_run(job.job_id), "state") == "DONE"
        assert cancel(stage, job.task_id(0), None) == {"code": "ENDED", "state": "X"}

    def test_without_a_phone_means_one_that_has_none(self, stage: Stage) -> None:
        """It got its phone since the caller looked: nothing is done, and the caller looks again."""
        job = stage.routed(1)
        before = stage.dump()
        assert cancel(stage, job.task_id(0), None)["code"] == "UNKNOWN"
        assert stage.dump() == before

    def test_its_neighbour_in_name_stays(self, stage: Stage) -> None:
        """1 is the beginning of 10."""
        job = stage.routed(11)
        cancel(stage, job.task_id(1))
        assert stage.states(job) == "rXrrrrrrrrr"
        assert job.task_id(10) in stage.queue()

    def test_parked(self, stage: Stage) -> None:
        job = stage.routed(2)
        park(stage, 0, 1)
        task = job.task_id(0)
        assert cancel(stage, task)["code"] == "OK"
        nowhere(stage, task)
        assert stage.redis.zcard(keys.parked(PHONE)) == 1
        assert not {"waitReason", "waitUntil"} & set(stage.message(task))
        assert stage.redis.ttl(keys.message(task)) == stage.config.message_ttl
        repeated(stage, task)
        stage.adds_up(job)

    def test_scheduled(self, stage: Stage) -> None:
        job, _ = stage.send(send_at=T0 + HOUR)
        kept, _ = stage.send(recipient(2), send_at=T0 + HOUR)
        assert cancel(stage, job.task_id(0))["code"] == "OK"
        nowhere(stage, job.task_id(0))
        assert (stage.redis.zcard(keys.scheduled()), stage.redis.scard(keys.singles(PHONE))) == (1, 1)
        repeated(stage, job.task_id(0))
        stage.now += HOUR
        stage.release()
        assert stage.queue() == [kept.task_id(0)]

    def test_a_single_send_canceled_as_a_job_gives_its_place_back(self, stage: Stage) -> None:
        """It lies among the scheduled ones until its time, but nobody waits for it."""
        job, _ = stage.send(send_at=T0 + HOUR)
        value_of(stage.store.jobs.cancel(job.job_id, now_ms=stage.now))
        assert stage.redis.exists(keys.singles(PHONE)) == 0
        stage.now += HOUR
        stage.release()
        assert (stage.queue(), stage.redis.zcard(keys.scheduled())) == ([], 0)

    def test_a_single_send_gives_its_place_back(self, stage: Stage) -> None:
        job, _ = stage.send()
        cancel(stage, job.task_id(0))
        assert stage.redis.exists(keys.singles(PHONE)) == 0
        nowhere(stage, job.task_id(0))
        assert stage.run(job)["state"] == "DONE"
        stage.adds_up(job)

    def test_waiting_for_its_retry(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task)
        assert cancel(stage, task) == {"code": "OK", "state": "X"}
        nowhere(stage, task)
        assert "retryMember" not in stage.message(task)
        repeated(stage, task)
        stage.adds_up(job)

    def test_in_the_queue_for_its_retry(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task, at=T0)
        stage.release()
        assert stage.queue() == [task]
        assert cancel(stage, task)["code"] == "OK"
        nowhere(stage, task)
        stage.adds_up(job)

    def test_one_that_may_have_gone_out_ends_failed(self, stage: Stage) -> None:
        """`canceled` says that it was not sent."""
        job, task, _ = stage.claimed()
        stage.retry(task, pinned=True)
        assert cancel(stage, task) == {"code": "OK", "state": "F"}
        assert stage.message(task)["errorCode"] == "UNKNOWN_OUTCOME"
        assert stage.redis.llen(keys.dead_letters()) == 1
        nowhere(stage, task)
        repeated(stage, task, "F")
        stage.adds_up(job)

    def test_handed_over_it_is_cleared_at_the_next_claim(self, stage: Stage) -> None:
        """As after cancel_job: the number is busy with it until then, and gets its unit back."""
        stage.connect()
        job = stage.routed(2)
        stage.hello()
        task = stage.hand_off()
        assert cancel(stage, task) == {"code": "OK", "state": "X"}
        assert stage.claim(task).code == "ENDED"
        assert stage.open().task.state == "X"
        stage.settle(task, "cleared", from_="X")
        assert (stage.pacer().get("unsettled"), stage.pacer()["capUsed"]) == (None, "0")
        nowhere(stage, task)
        repeated(stage, task)
        stage.now += GAP.ms
        assert stage.hand_off() == job.task_id(1)
        stage.adds_up(job)

    def test_before_it_has_a_number_only_for_the_one_its_job_names(self, stage: Stage) -> None:
        """The router passes it over."""
        job = stage.accept(2, phone=PHONE)
        assert cancel(stage, job.task_id(0), OTHER) == {"code": "UNKNOWN"}
        assert cancel(stage, job.task_id(0))["code"] == "OK"
        repeated(stage, job.task_id(0))
        stage.turn()
        assert stage.route(job).cursor == 2
        assert (stage.states(job), stage.queue()) == ("Xr", [job.task_id(1)])

    def test_of_a_paused_job(self, stage: Stage) -> None:
        job = stage.routed(2)
        stage.call("pause_job", job=job.job_id, now=stage.now)
        cancel(stage, job.task_id(0))
        assert stage.run(job)["state"] == "PAUSED"
        cancel(stage, job.task_id(1))
        assert stage.run(job)["state"] == "DONE"
        stage.adds_up(job)


class TestRaces:
    def test_a_dispatcher_that_looked_before_hands_the_next_one_over(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(2)
        (facts,) = stage.look()
        cancel(stage, job.task_id(0))
        assert stage.apply(facts, stage.to_send(facts.heads[0])) == "NOT_WAITING"
        assert stage.hand_off() == job.task_id(1)

    def test_or_parks_nothing(self, stage: Stage) -> None:
        job = stage.routed(1)
        (facts,) = stage.look()
        cancel(stage, job.task_id(0))
        head = facts.heads[0]
        stage.apply(facts, Idle(), Step("park", head.entry, head.task, Reason.RECIPIENT_HOURS, T0 + HOUR))
        nowhere(stage, job.task_id(0))
        assert stage.states(job) == "X"

    def test_a_proof_that_comes_later_is_believed(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task)
        cancel(stage, task)
        stage.prove(task, "delivered", stats_day=DAY)
        assert stage.states(job) == "D"
        stage.adds_up(job)
        assert cancel(stage, task) == {"code": "ENDED", "state": "D"}


class TestRefusals:
    @pytest.mark.parametrize("byte", ["c", "u"])
    def test_a_worker_holds_it(self, stage: Stage, byte: str) -> None:
        _, task, _ = stage.claimed()
        if byte == "u":
            stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        before = stage.dump()
        assert cancel(stage, task) == {"code": "CLAIMED", "state": byte}
        assert stage.dump() == before

    def test_it_has_ended(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        stage.sent(task)
        repeated(stage, task, "S")

    def test_it_ended_with_its_job_before_it_had_a_number(self, stage: Stage) -> None:
        job = stage.accept(1)
        stage.cancel(job)
        repeated(stage, job.task_id(0))

    def test_it_lies_in_another_numbers_queue(self, stage: Stage) -> None:
        queued = stage.routed(1)
        before = stage.dump()
        assert cancel(stage, queued.task_id(0), OTHER) == {"code": "UNKNOWN"}
        assert stage.dump() == before
        park(stage, 0)
        assert cancel(stage, queued.task_id(0), OTHER) == {"code": "UNKNOWN"}
        assert stage.states(queued) == "p"

    def test_it_has_no_number_yet(self, stage: Stage) -> None:
        job = stage.accept(1)
        before = stage.dump()
        assert cancel(stage, job.task_id(0)) == {"code": "UNKNOWN"}
        assert stage.dump() == before

    @pytest.mark.parametrize("task", ["J:0", "{job}:1", "{job}", "", "{job}:x"])
    def test_there_is_none(self, stage: Stage, task: str) -> None:
        job = stage.routed(1)
        before = stage.dump()
        assert cancel(stage, task.format(job=job.job_id)) == {"code": "UNKNOWN"}
        assert stage.dump() == before
