"""settle_task but for proofs: every outcome, what it frees, and that nothing is settled twice or by the wrong one."""

from typing import Any

import msgspec
import pytest

from paceline.domain.states import TERMINAL
from paceline.store import keys

from .stage import DAY, HOUR, PHONE, SESSION, T0, Stage

RETURNED = {"from_": "cu", "unitBack": True, "reason": "GIVEN_BACK"}


def settled_twice(stage: Stage, task: str, outcome: str, **facts: Any) -> Any:
    """Settles, and again: the second call must change nothing."""
    answer = stage.settle(task, outcome, **facts)
    before = stage.dump()
    assert stage.settle(task, outcome, **facts).code in ("STALE", "REPEAT")
    assert stage.dump() == before
    return answer


class TestRefusals:
    @pytest.mark.parametrize("task", ["nothing:0", "nonsense", "a:b"])
    def test_unknown_tasks(self, stage: Stage, task: str) -> None:
        assert stage.sent(task).code == "UNKNOWN_TASK"
        assert stage.settle(task, "returned", **RETURNED).code == "UNKNOWN_TASK"
        assert stage.dump() == {}

    def test_an_index_beyond_the_job(self, stage: Stage) -> None:
        job = stage.accept(1)
        before = stage.dump()
        assert stage.sent(job.task_id(1)).code == "UNKNOWN_TASK"
        assert stage.dump() == before

    @pytest.mark.parametrize("outcome", ["returned", "retry", "failed", "unknown"])
    def test_a_word_for_another_claim_state_or_epoch(self, stage: Stage, outcome: str) -> None:
        _, task, token = stage.claimed()
        facts = {"reason": "r", "code": "c", "message": "m", "at": T0}
        before = stage.dump()
        for wrong in (
            {"from_": "h"},
            {"from_": "cu", "token": token + 1},
            {"from_": "cu", "token": token, "epoch": 0},
            {"from_": "c", "overdue": True},
        ):
            answer = stage.settle(task, outcome, **facts, **wrong)
            assert (answer.code, answer.state) == ("STALE", "c"), wrong
        assert stage.dump() == before

    def test_an_old_instance_has_no_word_but_the_newest_has(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        stage.hello("i2")
        assert stage.settle(task, "returned", token=token, epoch=1, **RETURNED).code == "STALE"
        assert stage.settle(task, "returned", token=token, epoch=2, crash=True, **RETURNED).code == "OK"
        assert stage.message(task)["crashes"] == "1"


class TestReturned:
    def test_unclaimed_goes_back_to_the_head_as_if_nothing_was(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(2)
        task = stage.hand_off()
        stage.now += 60_000
        facts = {"from_": "h", "overdue": True, "unitBack": True, "reason": "NOT_CLAIMED"}
        assert settled_twice(stage, task, "returned", **facts).state == "r"
        assert (stage.states(job), stage.queue()) == ("rr", [job.task_id(0), job.task_id(1)])
        assert stage.pacer()["capUsed"] == "0"
        assert "unsettled" not in stage.pacer()
        assert stage.due_at() == stage.now
        assert stage.redis.exists(keys.outbox(SESSION), keys.deadlines()) == 0
        assert stage.hand_off() == task

    def test_claimed_and_untouched_counts_no_attempt(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        assert settled_twice(stage, task, "returned", token=token, epoch=1, **RETURNED).state == "r"
        assert stage.message(task)["attempts"] == "0"
        assert stage.redis.exists(keys.processing(SESSION)) == 0

    def test_a_withdrawal_does_not_hit_a_newer_hand_over(self, stage: Stage) -> None:
        """The sweeper was slow: its task was withdrawn and handed over again meanwhile."""
        stage.connect()
        stage.routed(1)
        task = stage.hand_off()
        stage.now += 60_000
        facts = {"from_": "h", "overdue": True, "unitBack": True, "reason": "NOT_CLAIMED"}
        stage.settle(task, "returned", **facts)
        stage.hand_off()
        assert stage.settle(task, "returned", **facts).code == "STALE"
        assert stage.byte(task) == "h"

    def test_takes_back_the_doubt_it_raised_itself(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        stage.now += 120_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        assert stage.message(task)["maybeSent"] == "1"
        stage.settle(task, "returned", token=token, **RETURNED)
        assert not {"maybeSent", "maybeSentToken", "pinned"} & set(stage.message(task))
        assert stage.queue() == [task]

    def test_keeps_the_doubt_of_an_earlier_claim(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        stage.retry(task, at=T0, pinned=True)
        stage.release()
        stage.now += 10_000
        stage.hand_off()
        token = stage.claim(task).token
        assert stage.settle(task, "returned", token=token, **RETURNED).state == "t"
        assert stage.message(task)["maybeSent"] == "1"
        assert stage.message(task)["pinned"] == SESSION


class TestRetry:
    def test_waits_for_its_time_and_frees_the_phone(self, stage: Stage) -> None:
        job, task, token = stage.claimed()
        stage.routed(1, first=1)
        facts = {"code": "SEND_FAILED", "message": "no", "onWire": True, "unitBack": True, "at": T0 + 60_000}
        assert settled_twice(stage, task, "retry", from_="cu", token=token, epoch=1, **facts).state == "t"
        message = stage.message(task)
        assert (message["errorCode"], message["failures"], message["waitUntil"]) == (
            "SEND_FAILED",
            "1",
            str(T0 + 60_000),
        )
        assert stage.sends()[-1][1] == T0
        assert (stage.pacer()["capUsed"], "unsettled" in stage.pacer()) == ("0", False)
        assert msgspec.json.decode(stage.redis.lindex(keys.incidents(), 0))["kind"] == "SEND_FAILED"
        stage.adds_up(job)

    def test_a_rate_limit_cools_the_phone_down(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        stage.retry(task, code="RATE_LIMIT", cooldownUntil=T0 + HOUR)
        assert stage.redis.hget(keys.phone(PHONE), "cooldownUntil") == str(T0 + HOUR)

    def test_a_refusal_after_an_ended_lease_takes_back_the_doubt(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        stage.now += 120_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        stage.retry(task, token=token)
        assert "maybeSent" not in stage.message(task)

    def test_the_history_tells_all_attempts_and_is_bounded(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        for _ in range(45):
            stage.retry(task, at=stage.now)
            stage.release()
            stage.now += 10_000
            stage.hand_off()
            stage.claim(task)
        lines = stage.message(task)["history"].split("\n")
        assert len(lines) == 40
        assert msgspec.json.decode(lines[-1])["code"] == "SEND_FAILED"


class TestFailed:
    def test_ends_with_a_dead_letter(self, stage: Stage) -> None:
        job, task, token = stage.claimed()
        facts = {"code": "NOT_ON_WHATSAPP", "message": "no", "onWire": True, "statsDay": DAY}
        assert settled_twice(stage, task, "failed", from_="cu", token=token, epoch=1, **facts).state == "F"
        letter = msgspec.json.decode(stage.redis.lindex(keys.dead_letters(), 0))
        assert (letter["taskId"], letter["code"], letter["attempts"]) == (task, "NOT_ON_WHATSAPP", 1)
        assert stage.redis.llen(keys.dead_letters()) == 1
        assert stage.redis.get(keys.task_status(task)) == "FAILED"
        assert stage.redis.get(keys.session_stats(SESSION, DAY, "failed")) == "1"
        assert stage.run(job)["state"] == "DONE_WITH_ERRORS"
        assert stage.redis.ttl(keys.message(task)) == stage.config.message_ttl
        stage.adds_up(job)

    def test_from_the_gate(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(1)
        task = stage.hand_off()
        facts = {"code": "NO_COMMON_HOURS", "message": "refused at the gate", "reason": "NO_COMMON_HOURS"}
        assert settled_twice(stage, task, "failed", from_="h", unitBack=True, **facts).state == "F"
        assert stage.pacer()["capUsed"] == "0"
        stage.adds_up(job)


class TestUnknown:
    def test_frees_the_phone_but_stays_in_the_workers_hands(self, stage: Stage) -> None:
        job, task, token = stage.claimed()
        other = stage.routed(1, first=1)
        stage.now += 120_000
        facts = {"from_": "c", "overdue": True, "reason": "LEASE_ENDED"}
        assert settled_twice(stage, task, "unknown", **facts).state == "u"
        assert stage.redis.lrange(keys.processing(SESSION), 0, -1) == [task]
        assert [(held.task, held.token) for held in stage.open().pending] == [(task, token)]
        assert stage.sends()[-1][1] == stage.now
        assert stage.pacer()["capUsed"] == "1"
        stage.now += 10_000
        assert stage.hand_off() == other.task_id(0)
        stage.adds_up(job)

    def test_a_lease_that_ended_and_the_next_instances_word_are_one_crash(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        stage.now += 120_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        stage.hello("i2")
        stage.retry(task, token=token, epoch=2, crash=True, pinned=True, code="UNKNOWN_OUTCOME")
        assert stage.message(task)["crashes"] == "1"

    def test_a_lease_that_ended_on_a_slow_host_is_no_crash(self, stage: Stage) -> None:
        """Three of them made a healthy message POISON, although the worker that gave it back each time never died."""
        _, task, token = stage.claimed()
        stage.now += 120_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        stage.settle(task, "returned", token=token, epoch=1, crash=False, **RETURNED)
        assert stage.message(task).get("crashes", "0") == "0"

    def test_the_end_of_its_validity_bounds_the_wait(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.now += 120_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        stage.now = T0 + 86_400_000
        assert [found.state for found in stage.overdue().tasks] == ["u"]
        facts = {"from_": "u", "overdue": True, "code": "UNKNOWN_OUTCOME", "message": "nobody knows"}
        assert settled_twice(stage, task, "failed", **facts).state == "F"
        assert stage.redis.exists(keys.processing(SESSION)) == 0
        stage.adds_up(job)

    def test_a_settled_word_after_the_lease_ended_still_counts(self, stage: Stage) -> None:
        job, task, token = stage.claimed()
        stage.now += 120_000
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        sends = stage.sends()
        assert stage.fail(task, token=token, epoch=1).state == "F"
        assert stage.sends() == sends
        stage.adds_up(job)


class TestGate:
    @pytest.mark.parametrize(("outcome", "byte"), [("expired", "E"), ("suppressed", "O")])
    def test_an_end_at_the_gate(self, stage: Stage, outcome: str, byte: str) -> None:
        stage.connect()
        job = stage.routed(1)
        task = stage.hand_off()
        assert settled_twice(stage, task, outcome, from_="h", unitBack=True, reason="WHY").state == byte
        assert (stage.pacer()["capUsed"], stage.message(task)["errorCode"]) == ("0", "WHY")
        assert stage.redis.exists(keys.outbox(SESSION), keys.deadlines()) == 0
        stage.adds_up(job)

    @pytest.mark.parametrize(("until", "parked"), [(T0 + HOUR, T0 + HOUR), (T0 + 48 * HOUR, T0 + 24 * HOUR)])
    def test_parked_at_the_gate_but_not_beyond_its_validity(self, stage: Stage, until: int, parked: int) -> None:
        stage.connect()
        stage.routed(1)
        task = stage.hand_off()
        facts = {"from_": "h", "unitBack": True, "reason": "RECIPIENT_HOURS", "untilMs": until}
        assert settled_twice(stage, task, "parked", **facts).state == "p"
        assert stage.due_at() == parked
        stage.now = parked
        (facts_then,) = stage.look()
        assert facts_then.heads[0].task == task


class TestCleared:
    @pytest.fixture
    def canceled(self, stage: Stage) -> tuple[Stage, str]:
        stage.connect()
        stage.set_pacer(capDay=DAY, capUsed=5)
        job = stage.routed(1)
        stage.routed(1, first=1)
        task = stage.hand_off()
        stage.cancel(job)
        return stage, task

    def test_what_a_canceled_hand_over_holds_is_freed_once(self, canceled: tuple[Stage, str]) -> None:
        """Two claims find it canceled at once; the day's unit must not come back twice."""
        stage, task = canceled
        assert stage.pacer()["capUsed"] == "6"
        assert stage.settle(task, "cleared", from_=TERMINAL).state == "X"
        assert (stage.pacer()["capUsed"], "unsettled" in stage.pacer()) == ("5", False)
        assert stage.redis.exists(keys.outbox(SESSION), keys.deadlines()) == 0
        assert stage.due_at() == T0
        assert stage.redis.ttl(keys.message(task)) == stage.config.message_ttl
        before = stage.dump()
        stage.settle(task, "cleared", from_=TERMINAL)
        assert stage.dump() == before

    def test_by_the_sweeper_if_nobody_claims(self, canceled: tuple[Stage, str]) -> None:
        stage, task = canceled
        assert stage.settle(task, "cleared", from_=TERMINAL, overdue=True).code == "STALE"
        stage.now += 60_000
        assert [(found.task, found.state) for found in stage.overdue().tasks] == [(task, "X")]
        assert stage.settle(task, "cleared", from_=TERMINAL, overdue=True).code == "OK"
        assert stage.settle(task, "cleared", from_=TERMINAL, overdue=True).code == "STALE"
        assert stage.pacer()["capUsed"] == "5"

    def test_not_into_another_day(self, canceled: tuple[Stage, str]) -> None:
        stage, task = canceled
        stage.set_pacer(capDay="2025-10-10", capUsed=3)
        stage.settle(task, "cleared", from_=TERMINAL)
        assert stage.pacer()["capUsed"] == "3"


def test_a_rolling_minute_of_sends_is_kept_and_no_more(stage: Stage) -> None:
    stage.connect()
    stage.routed(120)
    for _ in range(60):
        stage.sent(stage.hand_off(cap=None))
        stage.now += 5_000
    sends = [at for _, at in stage.sends()]
    assert len(sends) == 32
    assert sends == sorted(sends)
    for _ in range(50):
        stage.redis.zadd(keys.due(), {PHONE: stage.now})
        stage.sent(stage.hand_off(cap=None))
        stage.now += 500
    assert len(stage.sends()) >= 50
