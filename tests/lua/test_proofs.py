"""A proof that a message went out is a fact, whoever brings it, however late; it is counted once."""

import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Idle, Step
from paceline.store import keys

from .stage import DAY, GAP, HOUR, PHONE, SESSION, T0, Stage, recipient, value_of


def stat(stage: Stage, name: str) -> str | None:
    return stage.redis.get(keys.session_stats(SESSION, DAY, name))  # type: ignore[return-value]


def repeated(stage: Stage, task: str, proof: str = "sent") -> None:
    before = stage.dump()
    assert stage.sent(task, proof).code == "REPEAT"
    assert stage.dump() == before


def test_sent(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.now += 3_000
    assert stage.sent(task).state == "S"
    message = stage.message(task)
    assert message["sentAt"] == str(T0 + 3_000)
    assert stage.sends()[-1][1] == T0 + 3_000
    assert "unsettled" not in stage.pacer()
    assert stage.redis.exists(keys.processing(SESSION), keys.deadlines()) == 0
    assert stage.redis.get(keys.task_status(task)) == "SENT"
    assert stage.sticky(recipient(0))[0] == PHONE
    assert (stat(stage, "sent"), stage.run(job)["state"]) == ("1", "DONE")
    (done,) = stage.events("JOB_DONE", job)
    assert (done["sent"], done["total"], done["state"]) == (1, 1, "DONE")
    stage.adds_up(job)
    repeated(stage, task)


def test_receipts_move_forward_only(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    assert [stage.sent(task, proof).state for proof in ("sent", "delivered", "read")] == ["S", "D", "R"]
    for proof in ("sent", "delivered", "read"):
        repeated(stage, task, proof)
    assert [stat(stage, name) for name in ("sent", "delivered", "read")] == ["1", "1", "1"]
    assert {"sentAt", "deliveredAt", "readAt"} <= set(stage.message(task))
    stage.adds_up(job)


@pytest.mark.parametrize("first", ["delivered", "read"])
def test_a_receipt_before_the_workers_word_is_the_word(stage: Stage, first: str) -> None:
    job, task, _ = stage.claimed()
    stage.sent(task, first)
    assert (stat(stage, "sent"), stat(stage, first)) == ("1", "1")
    assert "unsettled" not in stage.pacer()
    repeated(stage, task)
    stage.adds_up(job)


def test_from_an_old_epoch(stage: Stage) -> None:
    job, task, token = stage.claimed()
    stage.hello("i2")
    assert stage.sent(task).code == "OK"
    assert stage.retry(task, token=token, epoch=2).code == "STALE"
    stage.adds_up(job)


def test_while_a_retry_is_queued_cancels_it(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.retry(task, pinned=True)
    stage.sent(task)
    assert stage.redis.exists(keys.task_retry()) == 0
    assert not {"waitReason", "waitUntil", "errorCode", "retryMember"} & set(stage.message(task))
    stage.now += HOUR
    assert stage.release().released == 0
    repeated(stage, task)
    stage.adds_up(job)


def test_while_the_retry_lies_in_the_queue(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.retry(task, at=T0, pinned=True)
    stage.release()
    stage.sent(task)
    stage.now += GAP.ms
    (facts,) = stage.look()
    assert facts.heads[0].state == "S"
    assert stage.apply(facts, stage.to_send(facts.heads[0])) == "NOT_WAITING"
    (facts,) = stage.look()
    stage.apply(facts, Idle(), Step("drop", facts.heads[0].entry, task))
    assert (stage.queue(), stage.byte(task)) == ([], "S")
    stage.adds_up(job)


def test_while_the_retry_is_handed_over(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.retry(task, at=T0, pinned=True)
    stage.release()
    stage.now += GAP.ms
    stage.hand_off()
    stage.sent(task)
    assert stage.redis.exists(keys.outbox(SESSION), keys.deadlines()) == 0
    assert "unsettled" not in stage.pacer()
    assert stage.claim(task).code == "GONE"
    stage.adds_up(job)


def test_while_parked(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.retry(task, at=T0, pinned=True)
    stage.release()
    stage.now += GAP.ms
    (facts,) = stage.look()
    stage.apply(facts, Idle(), Step("park", facts.heads[0].entry, task, Reason.NOT_CONNECTED, T0 + HOUR))
    stage.sent(task)
    stage.now = T0 + HOUR
    (facts,) = stage.look()
    assert (facts.heads, stage.byte(task)) == ((), "S")
    stage.adds_up(job)


def test_after_the_lease_ended_does_not_stamp_the_phone_twice(stage: Stage) -> None:
    job, task, _ = stage.claimed()
    stage.now += 120_000
    stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
    sends = stage.sends()
    stage.now += 1_000
    stage.sent(task)
    assert stage.sends() == sends
    assert stage.redis.exists(keys.processing(SESSION)) == 0
    stage.adds_up(job)


def test_does_not_free_the_phone_of_another_task(stage: Stage) -> None:
    _, task, _ = stage.claimed()
    stage.routed(1, first=1)
    stage.now += 120_000
    stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
    stage.now += 10_000
    other = stage.hand_off()
    stage.sent(task)
    assert stage.pacer()["unsettled"] == other


class TestCorrection:
    def test_after_failed_unknown(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.fail(task, code="UNKNOWN_OUTCOME")
        assert stage.run(job)["state"] == "DONE_WITH_ERRORS"
        assert stage.sent(task).state == "S"
        (event,) = stage.events("JOB_CORRECTED", job)
        assert (event["from"], event["to"]) == ("F", "S")
        assert "errorCode" not in stage.message(task)
        assert stage.redis.get(keys.task_status(task)) == "SENT"
        stage.adds_up(job)
        repeated(stage, task)

    def test_after_cancel(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task, pinned=True)
        stage.cancel(job)
        stage.sent(task)
        assert (stage.byte(task), stage.run(job)["state"]) == ("S", "CANCELED")
        assert len(stage.events("JOB_CORRECTED", job)) == 1
        stage.now += HOUR
        stage.release()
        assert stage.queue() == []
        stage.adds_up(job)

    def test_a_canceled_hand_over_frees_its_phone(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(1)
        task = stage.hand_off()
        stage.cancel(job)
        stage.sent(task)
        assert "unsettled" not in stage.pacer()
        assert stage.redis.exists(keys.outbox(SESSION)) == 0
        stage.adds_up(job)

    def test_in_a_job_that_still_runs_puts_no_ttl_on_its_counters(self, stage: Stage) -> None:
        """The counters of a long job would vanish after a day and start again from nothing."""
        stage.connect()
        job = stage.routed(2)
        stage.hello()
        task = stage.hand_off()
        stage.claim(task)
        stage.fail(task, code="UNKNOWN_OUTCOME")
        stage.sent(task)
        assert not any(key.startswith("job:stats") for key in stage.with_ttl())
        stage.adds_up(job)

    def test_after_the_counters_were_freed_does_not_bring_them_back(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.fail(task, code="UNKNOWN_OUTCOME")
        stage.redis.delete(*(f"job:stats:{job.job_id}:{name}" for name in ("total", "open", "sent", "failed")))
        assert stage.sent(task).code == "OK"
        assert not stage.redis.exists(keys.job_sent(job.job_id), keys.job_failed(job.job_id))
        assert len(stage.events("JOB_DONE", job)) == 1


class TestTheDayOfASession:
    """What a session sent today is remembered with its number and written with others: no count may be lost for it."""

    def prove(self, stage: Stage, *tasks: str, day: str = DAY) -> None:
        orders = [
            {"task": task, "outcome": "sent", "whatsappId": "x", "statsDay": day, "now": stage.now} for task in tasks
        ]
        value_of(stage.caller.rows("prove_sent", orders=orders))

    def test_one_by_one_and_together(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(5)
        for index in range(2):
            stage.now += 5_000
            task = stage.hand_off()
            assert task == job.task_id(index)
            self.prove(stage, task)
        assert stat(stage, "sent") == "2"
        stage.now += 5_000
        task = stage.hand_off()
        self.prove(stage, task, task)
        assert stat(stage, "sent") == "3"

    def test_late_proofs_of_several_in_one_call(self, stage: Stage) -> None:
        """Their number is busy with none of them any more."""
        stage.connect()
        job = stage.routed(3)
        tasks = []
        for index in range(3):
            stage.now += 130_000
            tasks.append(stage.hand_off())
            stage.hello(f"i{index}")
            stage.claim(tasks[-1], epoch=index + 1)
            stage.settle(tasks[-1], "unknown", from_="c", reason="LEASE_ENDED")
        self.prove(stage, *tasks)
        assert (stage.states(job), stat(stage, "sent")) == ("SSS", "3")

    def test_another_day_and_the_first_one_again(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        for day, index in ((DAY, 0), ("2025-10-10", 1), (DAY, 2)):
            stage.now += 5_000
            assert stage.hand_off() == job.task_id(index)
            self.prove(stage, job.task_id(index), day=day)
        assert stat(stage, "sent") == "2"
        assert stage.redis.get(keys.session_stats(SESSION, "2025-10-10", "sent")) == "1"


def test_a_correction_counts_what_nobody_had_counted_and_ends_with_the_others(stage: Stage) -> None:
    """A job of which nothing went out has no such count yet; it must not stay behind when the others go."""
    job, task, _ = stage.claimed()
    stage.fail(task)
    assert not stage.redis.exists(keys.job_sent(job.job_id))
    stage.sent(task)
    stage.adds_up(job)
    assert 0 < stage.redis.ttl(keys.job_sent(job.job_id)) <= stage.redis.ttl(keys.job_total(job.job_id))
