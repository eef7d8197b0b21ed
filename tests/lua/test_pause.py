"""pause_job and resume_job: what no worker has claimed waits, and comes back in its old order."""

import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Idle, Step, Wait
from paceline.store import keys

from .stage import GAP, HOUR, PHONE, T0, Stage, recipient, value_of

OTHER = "972500000002"
LATER = 600_000


def pause(stage: Stage, job_id: str) -> dict[str, object]:
    return stage.call("pause_job", job=job_id, now=stage.now)  # type: ignore[no-any-return]


def resume(stage: Stage, job_id: str, *, tasks: int = 5_000, entries: int = 20_000) -> dict[str, object]:
    return stage.call("resume_job", job=job_id, now=stage.now, tasks=tasks, entries=entries)  # type: ignore[no-any-return]


def park_held(stage: Stage) -> None:
    """What the dispatcher does with the tasks of a paused job that come to the head."""
    for facts in stage.look():
        held = [head for head in facts.heads if head.job_paused]
        steps = [Step("park", head.entry, head.task, Reason.JOB_PAUSED, stage.now + LATER) for head in held]
        final = Wait(stage.now + 1, Reason.IN_TURN) if facts.more or len(held) < len(facts.heads) else Idle()
        assert stage.apply(facts, final, *steps) == "OK"


class TestPause:
    def test_holds_the_job_and_says_what_waits(self, stage: Stage) -> None:
        stage.connect()
        job = stage.accept(4)
        stage.turn()
        stage.route(job, 0, 3)
        stage.hello()
        stage.claim(stage.hand_off())
        assert pause(stage, job.job_id) == {
            "code": "OK", "state": "PAUSED", "pausedAt": T0, "waiting": 3, "claimed": 1,
        }  # fmt: skip
        run = stage.run(job)
        assert (run["state"], run["pausedAt"], run["waitReason"]) == ("PAUSED", str(T0), "JOB_PAUSED")
        assert stage.redis.zcard(keys.jobs_active()) == 0
        stage.adds_up(job)

    def test_says_so_once(self, stage: Stage) -> None:
        job = stage.routed(2)
        first = pause(stage, job.job_id)
        before = stage.dump()
        stage.now += 5_000
        assert pause(stage, job.job_id) == first
        assert stage.dump() == before
        assert [event["at"] for event in stage.events("JOB_PAUSED", job)] == [T0]

    def test_a_job_that_waits_for_a_number_waits_for_the_caller_instead(self, stage: Stage) -> None:
        job = stage.accept(1)
        stage.turn()
        value_of(
            stage.store.jobs.yield_turn(
                job.job_id, 0, reason="NO_SESSIONS_AVAILABLE", next_at_ms=T0 + 10_000, now_ms=stage.now
            )
        )
        pause(stage, job.job_id)
        assert stage.redis.zcard(keys.jobs_retry()) == 0
        assert not {"lastError", "waitUntil"} & set(stage.run(job))
        stage.connect()
        stage.now += 10_000
        assert stage.turn().code == "NONE"

    def test_gone(self, stage: Stage) -> None:
        assert pause(stage, "J") == {"code": "GONE"}
        assert stage.dump() == {}

    def test_an_ended_job_stays_as_it_ended(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.sent(task)
        before = stage.dump()
        assert pause(stage, job.job_id) == {"code": "CLOSED", "state": "DONE"}
        assert stage.dump() == before

    @pytest.mark.parametrize("end", ["CANCELED", "FAILED"])
    def test_nor_is_one_brought_back_that_was_stopped_while_a_worker_holds_some_of_it(
        self, stage: Stage, end: str
    ) -> None:
        """It has no end yet; a pause and a resume must not undo the stop."""
        stage.connect()
        job = stage.routed(2)
        stage.hello()
        stage.claim(stage.hand_off())
        if end == "CANCELED":
            stage.cancel(job)
        else:
            value_of(stage.store.jobs.fail(job.job_id, "malformed", now_ms=stage.now))
        before = stage.dump()
        assert pause(stage, job.job_id) == {"code": "CLOSED", "state": end}
        assert resume(stage, job.job_id) == {"code": "CLOSED", "state": end}
        assert stage.dump() == before


class TestWhileItIsPaused:
    def test_before_its_first_turn_it_gets_none(self, stage: Stage) -> None:
        job = stage.accept(1)
        pause(stage, job.job_id)
        assert stage.turn().code == "NONE"
        assert resume(stage, job.job_id)["state"] == "QUEUED"
        assert stage.turn().job == job.job_id

    def test_a_resume_before_the_router_ever_saw_it_gives_one_turn(self, stage: Stage) -> None:
        """It lies in the list of new jobs and in the round; that is one job all the same."""
        job = stage.accept(1)
        pause(stage, job.job_id)
        resume(stage, job.job_id)
        assert stage.turn().job == job.job_id
        assert stage.turn().code == "NONE"

    def test_a_router_that_holds_the_turn_routes_nothing_more(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.turn()
        pause(stage, job.job_id)
        before = stage.dump()
        assert stage.route(job).code == "CLOSED"
        again = stage.store.jobs.yield_turn(
            job.job_id, 0, reason="WAITING_FOR_ROOM", next_at_ms=T0 + 500, now_ms=stage.now
        )
        assert value_of(again) == "CLOSED"
        assert stage.dump() == before

    def test_the_same_router_may_go_on_after_a_resume(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.turn()
        pause(stage, job.job_id)
        resume(stage, job.job_id)
        assert stage.route(job).cursor == 2
        assert stage.states(job) == "rr"

    def test_a_dispatcher_that_looked_before_hands_nothing_over(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(1)
        (facts,) = stage.look()
        pause(stage, job.job_id)
        assert stage.apply(facts, stage.to_send(facts.heads[0])) != "OK"
        assert stage.states(job) == "r"
        stage.adds_up(job)

    def test_what_was_handed_over_is_not_given_to_the_worker(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(1)
        stage.hello()
        task = stage.hand_off()
        opened = stage.open()
        pause(stage, job.job_id)
        assert stage.open().task.job_paused
        assert not opened.task.job_paused
        assert stage.claim(task).code == "PAUSED"
        assert stage.states(job) == "h"

    def test_and_is_given_if_the_job_is_resumed_in_time(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(1)
        stage.hello()
        task = stage.hand_off()
        pause(stage, job.job_id)
        resume(stage, job.job_id)
        assert stage.claim(task).code == "OK"

    def test_it_can_be_canceled(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        pause(stage, job.job_id)
        park_held(stage)
        assert stage.cancel(job).canceled == 3
        assert (stage.states(job), stage.run(job)["state"]) == ("XXX", "CANCELED")
        assert "waitReason" not in stage.run(job)
        stage.adds_up(job)

    def test_it_closes_when_its_last_message_ends(self, stage: Stage) -> None:
        """The one in a worker's hands is proven sent, the other expires; a pause keeps no job open."""
        stage.connect()
        job = stage.routed(2)
        stage.hello()
        task = stage.hand_off()
        stage.claim(task)
        pause(stage, job.job_id)
        stage.sent(task)
        assert stage.run(job)["state"] == "PAUSED"
        stage.now += 90_000_000
        (facts,) = stage.look()
        stage.apply(facts, Idle(), Step("expire", facts.heads[0].entry, facts.heads[0].task, Reason.EXPIRED))
        run = stage.run(job)
        assert (stage.states(job), run["state"], "waitReason" in run) == ("SE", "DONE_WITH_ERRORS", False)
        stage.adds_up(job)
        assert resume(stage, job.job_id) == {"code": "CLOSED", "state": "DONE_WITH_ERRORS"}

    def test_another_job_on_the_same_number_goes_on(self, stage: Stage) -> None:
        stage.connect()
        held, other = stage.routed(2), stage.routed(1, first=5)
        pause(stage, held.job_id)
        park_held(stage)
        stage.now += 1
        assert stage.hand_off() == other.task_id(0)


class TestResume:
    @pytest.mark.parametrize(("routed", "state"), [(0, "QUEUED"), (1, "ROUTING"), (3, "ROUTED")])
    def test_goes_on_where_it_stood(self, stage: Stage, routed: int, state: str) -> None:
        job = stage.accept(3)
        stage.turn()
        if routed:
            stage.route(job, 0, routed)
        pause(stage, job.job_id)
        stage.now += 1_000
        assert resume(stage, job.job_id) == {"code": "OK", "state": state, "released": 0}
        run = stage.run(job)
        assert (run["state"], "pausedAt" in run, "waitReason" in run) == (state, False, False)
        at = stage.redis.zscore(keys.jobs_active(), job.job_id)
        assert at == (None if state == "ROUTED" else stage.now)
        assert [event["at"] for event in stage.events("JOB_RESUMED", job)] == [stage.now]

    def test_twice_is_not_paused(self, stage: Stage) -> None:
        job = stage.routed(1)
        pause(stage, job.job_id)
        resume(stage, job.job_id)
        before = stage.dump()
        assert resume(stage, job.job_id) == {"code": "NOT_PAUSED", "state": "ROUTED"}
        assert stage.dump() == before

    def test_gone(self, stage: Stage) -> None:
        assert resume(stage, "J") == {"code": "GONE"}
        assert stage.dump() == {}

    def test_what_the_pause_parked_is_back_at_once_in_its_order(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        pause(stage, job.job_id)
        park_held(stage)
        assert (stage.states(job), stage.queue()) == ("ppp", [])
        stage.now += 60_000
        assert resume(stage, job.job_id)["released"] == 3
        assert stage.due_at() == stage.now
        (facts,) = stage.look()
        assert [(head.task, head.job_paused) for head in facts.heads] == [(job.task_id(i), False) for i in range(3)]
        assert stage.states(job) == "rrr"

    def test_what_sleeps_for_another_reason_sleeps_on(self, stage: Stage) -> None:
        """Its own recipient's night, and another paused job on the same number."""
        stage.connect()
        job, other = stage.routed(2), stage.routed(1, first=5)
        pause(stage, job.job_id)
        pause(stage, other.job_id)
        (facts,) = stage.look()
        reasons = [Reason.RECIPIENT_HOURS, Reason.JOB_PAUSED, Reason.JOB_PAUSED]
        steps = [
            Step("park", head.entry, head.task, reason, T0 + HOUR)
            for head, reason in zip(facts.heads, reasons, strict=True)
        ]
        stage.apply(facts, Idle(), *steps)
        stage.now += 1_000
        assert resume(stage, job.job_id)["released"] == 1
        (facts,) = stage.look()
        assert [head.task for head in facts.heads] == [job.task_id(1)]
        assert stage.redis.zcard(keys.parked(PHONE)) == 2

    def test_a_retry_that_was_parked_is_a_retry_again(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.retry(task, at=T0)
        stage.release()
        pause(stage, job.job_id)
        stage.now += GAP.ms
        park_held(stage)
        resume(stage, job.job_id)
        stage.look()
        assert (stage.states(job), stage.queue()) == ("t", [task])

    def test_a_dispatcher_that_looked_before_parks_nothing(self, stage: Stage) -> None:
        """It saw the job paused and is about to park its next task for ten minutes; that look is void."""
        stage.connect()
        job = stage.routed(9)
        pause(stage, job.job_id)
        park_held(stage)
        stage.now += 1
        (facts,) = stage.look()
        resume(stage, job.job_id)
        step = Step("park", facts.heads[0].entry, facts.heads[0].task, Reason.JOB_PAUSED, stage.now + LATER)
        assert stage.apply(facts, Idle(), step) == "STALE"
        assert stage.states(job)[8] == "r"

    def test_a_busy_number_takes_them_up_when_it_is_free(self, stage: Stage) -> None:
        stage.connect()
        job, other = stage.routed(1), stage.routed(1, first=5)
        pause(stage, job.job_id)
        (facts,) = stage.look()
        first, second = facts.heads
        stage.hello()
        stage.apply(facts, stage.to_send(second), Step("park", first.entry, first.task, Reason.JOB_PAUSED, T0 + HOUR))
        stage.claim(other.task_id(0))
        resume(stage, job.job_id)
        assert stage.due_at() is None
        stage.sent(other.task_id(0))
        stage.now += GAP.ms
        (facts,) = stage.look()
        assert [head.task for head in facts.heads] == [job.task_id(0)]

    def test_several_numbers(self, stage: Stage) -> None:
        stage.connect()
        stage.connect("s2", OTHER)
        job = stage.accept(4)
        stage.turn()
        stage.route(job, 0, 2)
        stage.route(job, 2, 4, phone=OTHER)
        pause(stage, job.job_id)
        park_held(stage)
        stage.now += 60_000
        assert resume(stage, job.job_id)["released"] == 4
        assert {facts.phone: len(facts.heads) for facts in stage.look()} == {PHONE: 2, OTHER: 2}

    def test_beyond_the_limits_the_rest_waits_for_the_dispatchers_look(self, stage: Stage) -> None:
        """No call may hold up Redis; what it leaves comes back at its own time."""
        stage.connect()
        stage.connect("s2", OTHER)
        job = stage.accept(4)
        stage.turn()
        stage.route(job, 0, 2)
        stage.route(job, 2, 4, phone=OTHER)
        pause(stage, job.job_id)
        park_held(stage)
        stage.now += 60_000
        assert resume(stage, job.job_id, tasks=2)["released"] == 2
        assert [facts.phone for facts in stage.look() if facts.heads] == [PHONE]
        stage.now = T0 + LATER
        assert {facts.phone for facts in stage.look() if facts.heads} >= {OTHER}
        assert stage.states(job) == "rrrr"

    def test_no_more_entries_are_read_than_allowed(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        pause(stage, job.job_id)
        park_held(stage)
        assert resume(stage, job.job_id, entries=1)["released"] == 1

    def test_it_can_be_paused_again(self, stage: Stage) -> None:
        job = stage.routed(1)
        for _ in range(2):
            stage.now += 1
            pause(stage, job.job_id)
            resume(stage, job.job_id)
        assert len(stage.events("JOB_PAUSED", job)) == len(stage.events("JOB_RESUMED", job)) == 2


def test_a_paused_person_is_nobody_elses_business(stage: Stage) -> None:
    """Another job writes to the same person from the same number meanwhile."""
    stage.connect()
    held = stage.routed(1)
    pause(stage, held.job_id)
    park_held(stage)
    other, _ = stage.send(recipient(0))
    stage.now += 1
    assert stage.hand_off() == other.task_id(0)
