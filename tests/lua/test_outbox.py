"""hello, open_claim, claim_outbox, extend_lease, overdue: one worker holds a task, by newest epoch and token."""

import pytest

from paceline.store import keys

from .stage import DAY, PHONE, SESSION, T0, Stage, recipient, value_of


@pytest.fixture
def handed(stage: Stage) -> tuple[Stage, str]:
    """A task in the outbox of a session whose worker has said hello (epoch 1)."""
    stage.connect()
    stage.routed(2)
    stage.hello()
    return stage, stage.hand_off()


class TestHello:
    def test_the_first_instance_gets_the_first_epoch(self, stage: Stage) -> None:
        stage.register()
        answer = stage.hello()
        assert (answer.code, answer.epoch, answer.phone, answer.pending, answer.lost) == ("OK", 1, PHONE, [], [])

    def test_the_same_instance_keeps_its_epoch_and_a_new_one_takes_over(self, stage: Stage) -> None:
        stage.register()
        stage.hello("i1")
        before = stage.dump()
        assert stage.hello("i1").epoch == 1
        assert stage.dump() == before
        assert stage.hello("i2").epoch == 2
        assert stage.hello("i1").epoch == 3

    def test_unknown_session(self, stage: Stage) -> None:
        assert stage.hello().code == "UNKNOWN_SESSION"
        assert stage.dump() == {}

    def test_an_instance_that_is_not_wanted(self, stage: Stage) -> None:
        stage.register()
        stage.redis.hset(keys.session(SESSION), "wantedInstance", "i2")
        before = stage.dump()
        assert stage.hello("i1").code == "NOT_WANTED"
        assert stage.dump() == before
        assert stage.hello("i2").code == "OK"

    @pytest.mark.parametrize("left", ["i2", ""], ids=["begun before", "given back"])
    def test_where_somebody_else_starts_them_any_instance_is_welcome(self, stage: Stage, left: str) -> None:
        """What another runner had begun before means nothing any more."""
        stage.register()
        stage.redis.hset(keys.session(SESSION), "wantedInstance", left)
        assert stage.hello("i1", any_instance=True).code == "OK"
        assert stage.hello("i3", any_instance=True).epoch == 2

    def test_what_an_earlier_instance_held_is_asked_of_the_next(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        answer = stage.hello("i2")
        (held,) = answer.pending
        assert (answer.epoch, answer.lost) == (2, [])
        assert (held.task, held.token, held.to, held.epoch, held.state) == (task, token, recipient(0), 1, "c")

    def test_with_another_journal_nobody_can_answer(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        answer = stage.hello("i2", journal="j2")
        assert (answer.pending, [held.task for held in answer.lost]) == ([], [task])
        # Repeated because the answer was lost: the same again, until it is settled.
        assert [held.task for held in stage.hello("i2", journal="j2").lost] == [task]


class TestOpenClaim:
    def test_all_that_the_gate_reads(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        opened = stage.open()
        assert (opened.code, opened.pending) == ("OK", [])
        assert (opened.task.task, opened.task.to, opened.task.state) == (task, recipient(0), "h")
        assert (opened.task.send_after, opened.task.day, opened.task.expires_at) == (T0, DAY, T0 + 86_400_000)
        assert (opened.task.suppressed, opened.task.maybe_sent) == (False, False)
        assert (opened.facts.phone, opened.facts.unsettled) == (PHONE, task)
        stage.suppress(recipient(0))
        assert stage.open().task.suppressed

    def test_an_empty_outbox(self, stage: Stage) -> None:
        stage.register()
        stage.hello()
        opened = stage.open()
        assert (opened.code, opened.pending, opened.task, opened.facts) == ("OK", [], None, None)

    def test_looking_changes_nothing_but_the_time_it_was_seen(self, handed: tuple[Stage, str]) -> None:
        stage, _ = handed
        before = stage.dump(ignore=("lastSeen", "claimedAt"))
        stage.now += 1_000
        stage.open()
        assert stage.dump(ignore=("lastSeen", "claimedAt")) == before
        assert stage.redis.hget(keys.session(SESSION), "lastSeen") == str(T0 + 1_000)

    def test_refusals(self, stage: Stage) -> None:
        assert stage.open().code == "UNKNOWN_SESSION"
        stage.register()
        stage.hello("i1")
        stage.hello("i2")
        before = stage.dump()
        assert stage.open(1).code == "STALE_EPOCH"
        assert stage.dump() == before

    def test_what_it_holds_comes_before_anything_new(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        opened = stage.open()
        assert [(held.task, held.token, held.state) for held in opened.pending] == [(task, token, "c")]
        assert opened.task is None


class TestClaim:
    def test_gives_the_task_under_a_lease_and_a_token(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        answer = stage.claim(task)
        assert (answer.code, answer.token, answer.attempt, answer.resend) == ("OK", 1, 1, False)
        assert stage.byte(task) == "c"
        assert stage.redis.lrange(keys.processing(SESSION), 0, -1) == [task]
        assert stage.redis.llen(keys.outbox(SESSION)) == 0
        assert stage.redis.zscore(keys.deadlines(), task) == T0 + 120_000

    def test_of_two_calls_only_one_gets_it(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        stage.claim(task)
        before = stage.dump()
        assert stage.claim(task).code == "GONE"
        assert stage.dump() == before

    def test_an_old_epoch_gets_nothing(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        stage.hello("i2")
        before = stage.dump()
        assert stage.claim(task, 1).code == "STALE_EPOCH"
        assert stage.dump() == before
        assert stage.claim(task, 2).code == "OK"

    def test_suppressed_between_hand_off_and_claim(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        stage.suppress(recipient(0))
        before = stage.dump()
        assert stage.claim(task).code == "SUPPRESSED"
        assert stage.dump() == before

    def test_paused_between_hand_off_and_claim(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        stage.redis.hset(keys.fleet(), "paused", 1)
        before = stage.dump()
        assert stage.claim(task).code == "PAUSED"
        assert stage.dump() == before

    def test_canceled_between_hand_off_and_claim(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        stage.redis.set(keys.job_states(task.split(":")[0]), "Xr")
        before = stage.dump()
        assert stage.claim(task).code == "ENDED"
        assert stage.dump() == before

    def test_withdrawn_between_look_and_claim(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        stage.now += 60_000
        stage.settle(task, "returned", from_="h", overdue=True, unitBack=True, reason="NOT_CLAIMED")
        before = stage.dump()
        assert stage.claim(task).code == "GONE"
        assert stage.dump() == before

    def test_withdrawn_and_handed_over_anew_between_look_and_claim(self, handed: tuple[Stage, str]) -> None:
        """The gate looked at the hand-over before, whose time to send was an earlier one."""
        stage, task = handed
        seen = stage.open().times.handed_off_at
        stage.now += 60_001
        stage.settle(task, "returned", from_="h", overdue=True, unitBack=True, reason="NOT_CLAIMED")
        assert stage.hand_off() == task
        assert stage.claim(task, handed_off_at=seen).code == "GONE"
        assert stage.claim(task, handed_off_at=stage.open().times.handed_off_at).code == "OK"

    def test_tokens_only_rise_and_a_doubt_is_told(self, stage: Stage) -> None:
        _, task, first = stage.claimed()
        stage.retry(task, at=T0, pinned=True, unitBack=None)
        stage.release()
        stage.now += 10_000
        assert stage.look()[0].heads[0].pinned == SESSION
        stage.now += 5_000
        stage.hand_off()
        answer = stage.claim(task)
        assert (answer.attempt, answer.resend) == (2, True)
        assert answer.token > first


class TestExtend:
    def extend(self, stage: Stage, task: str, token: int, epoch: int = 1, lease: int = 120_000) -> tuple[str, int]:
        call = stage.store.outbox.extend(
            SESSION, epoch, task, token, lease_ms=lease, longest_ms=600_000, now_ms=stage.now
        )
        answer = value_of(call)
        return answer.code, answer.lease_until

    def test_holds_on_up_to_a_limit_from_the_claim(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        stage.now += 100_000
        assert self.extend(stage, task, token) == ("OK", T0 + 220_000)
        before = stage.dump()
        assert self.extend(stage, task, token) == ("OK", T0 + 220_000)
        assert stage.dump() == before
        stage.now = T0 + 599_000
        assert self.extend(stage, task, token) == ("OK", T0 + 600_000)
        assert stage.redis.zscore(keys.deadlines(), task) == T0 + 600_000

    def test_never_shortens_what_the_worker_was_told(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        assert self.extend(stage, task, token, lease=1_000) == ("OK", T0 + 120_000)

    def test_not_its_own_any_more(self, stage: Stage) -> None:
        _, task, token = stage.claimed()
        before = stage.dump()
        assert self.extend(stage, task, token + 1)[0] == "STALE"
        assert self.extend(stage, task, token, epoch=0)[0] == "STALE"
        assert self.extend(stage, "nothing:0", token)[0] == "STALE"
        assert stage.dump() == before
        stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        assert self.extend(stage, task, token)[0] == "STALE"
        stage.hello("i2")
        assert self.extend(stage, task, token)[0] == "STALE"


class TestOverdue:
    def test_nothing(self, stage: Stage) -> None:
        answer = stage.overdue()
        assert (answer.code, answer.tasks, answer.next_at) == ("OK", [], None)

    def test_a_hand_over_nobody_claimed(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        answer = stage.overdue()
        assert (answer.tasks, answer.next_at) == ([], T0 + 60_000)
        stage.now += 60_000
        before = stage.dump()
        (found,) = stage.overdue().tasks
        assert (found.task, found.state, found.session, found.phone) == (task, "h", SESSION, PHONE)
        assert stage.dump() == before

    def test_a_lease_that_ended_and_then_its_validity(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        stage.now += 120_000
        assert [found.state for found in stage.overdue().tasks] == ["c"]
        stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        assert (stage.overdue().tasks, stage.overdue().next_at) == ([], T0 + 86_400_000)


def test_sessions_with_something_in_their_outbox(handed: tuple[Stage, str]) -> None:
    stage, _ = handed
    assert value_of(stage.store.outbox.waiting([SESSION, "s2"])) == [SESSION]


def test_facts_of_a_message(stage: Stage) -> None:
    _, task, token = stage.claimed()
    facts = value_of(stage.store.outbox.facts(task))
    assert (facts.attempts, facts.failures, facts.crashes, facts.epoch, facts.token) == (1, 0, 0, 1, token)
    assert (facts.session_id, facts.phone) == (SESSION, PHONE)
    assert value_of(stage.store.outbox.facts("none:0")).session_id is None
