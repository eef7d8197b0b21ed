"""next_job, route_chunk, yield_job, fail_job, cancel_job: jobs take turns, and two routers never route a task twice."""

import msgspec
import pytest

from paceline.domain.states import Byte
from paceline.store import keys
from paceline.store.jobs import TaskRoute

from .stage import PHONE, T0, Stage, recipient, value_of

OTHER = "972500000002"


def yield_turn(stage: Stage, job_id: str, cursor: int, reason: str, next_at: int) -> str:
    call = stage.store.jobs.yield_turn(job_id, cursor, reason=reason, next_at_ms=next_at, now_ms=stage.now)
    return value_of(call)


class TestNextJob:
    def test_nothing_to_do(self, stage: Stage) -> None:
        turn = stage.turn()
        assert (turn.code, turn.next_at) == ("NONE", None)
        assert stage.dump() == {}

    def test_gives_a_job_under_a_lease(self, stage: Stage) -> None:
        job = stage.accept(3)
        turn = stage.turn()
        assert (turn.code, turn.job, turn.state, turn.cursor) == ("OK", job.job_id, "QUEUED", 0)
        again = stage.turn()
        assert (again.code, again.next_at) == ("NONE", T0 + 5_000)
        stage.now += 5_000
        assert stage.turn().job == job.job_id

    def test_priorities_are_taken_first(self, stage: Stage) -> None:
        low, high = stage.accept(1), stage.accept(1, first=1, priority=2)
        assert {stage.turn().job, stage.turn().job} == {low.job_id, high.job_id}
        assert stage.turn().code == "NONE"

    def test_an_id_nobody_can_read_is_put_aside_with_an_incident(self, stage: Stage) -> None:
        stage.redis.lpush(keys.gateway_jobs(), "rubbish")
        turn = stage.turn()
        assert (turn.code, turn.job) == ("BROKEN", "rubbish")
        assert stage.turn().code == "NONE"
        assert msgspec.json.decode(stage.redis.lindex(keys.incidents(), 0))["kind"] == "JOB_MALFORMED"

    def test_a_job_without_numbers_comes_back_at_its_time(self, stage: Stage) -> None:
        job = stage.accept(1)
        stage.turn()
        assert yield_turn(stage, job.job_id, 0, "NO_SESSIONS_AVAILABLE", T0 + 10_000) == "OK"
        assert (stage.turn().code, stage.turn().next_at) == ("NONE", T0 + 10_000)
        stage.now = T0 + 10_000
        assert stage.turn().job == job.job_id

    def test_jobs_take_turns(self, stage: Stage) -> None:
        jobs = [stage.accept(10, first=10 * i) for i in range(3)]
        cursors = {job.job_id: 0 for job in jobs}
        order = []
        for _ in range(9):
            stage.now += 1
            turn = stage.turn()
            job = next(job for job in jobs if job.job_id == turn.job)
            order.append(jobs.index(job))
            cursors[job.job_id] = stage.route(job, cursors[job.job_id], cursors[job.job_id] + 2).cursor
        assert sorted(order[:3]) == sorted(order[3:6]) == sorted(order[6:]) == [0, 1, 2]

    def test_jobs_that_wait_for_room_share_it(self, stage: Stage) -> None:
        """Whoever looks first takes what room there is. With waits of their own, one job starved behind the other."""
        jobs = [stage.accept(50), stage.accept(50, first=50)]
        cursors = {job.job_id: 0 for job in jobs}
        for _ in range(10):
            room = 1
            while (turn := stage.turn()).code == "OK":
                job = next(job for job in jobs if job.job_id == turn.job)
                if room:
                    room -= 1
                    cursors[turn.job] = stage.route(job, turn.cursor, turn.cursor + 1).cursor
                else:
                    own_wait = 700 if job is jobs[0] else 900
                    yield_turn(stage, turn.job, turn.cursor, "WAITING_FOR_ROOM", stage.now + own_wait)
            stage.now = turn.next_at
        assert list(cursors.values()) == [5, 5]

    def test_a_job_whose_number_rests_holds_up_no_other(self, stage: Stage) -> None:
        resting, other = stage.accept(1), stage.accept(1, first=50)
        for job, wait in ((resting, 600_000), (other, 1_000)):
            stage.turn()
            yield_turn(stage, job.job_id, 0, "WAITING_FOR_ROOM", stage.now + wait)
        assert stage.redis.zscore(keys.jobs_active(), other.job_id) == stage.now + 1_000
        assert stage.redis.zscore(keys.jobs_active(), resting.job_id) == stage.now + 600_000


class TestRouteChunk:
    def test_moves_tasks_into_queues_and_the_cursor_past_them(self, stage: Stage) -> None:
        job = stage.accept(3)
        stage.turn()
        assert stage.route(job, 0, 2).cursor == 2
        assert (stage.states(job), stage.run(job)["state"]) == ("rrq", "ROUTING")
        assert stage.queue() == [job.task_id(0), job.task_id(1)]
        assert stage.due_at() == T0
        assert stage.route(job, 2, 3).cursor == 3
        assert (stage.states(job), stage.run(job)["state"]) == ("rrr", "ROUTED")
        assert stage.redis.zcard(keys.jobs_active()) == 0
        assert stage.redis.hgetall(keys.job_routes(job.job_id)) == {"0": PHONE, "1": PHONE, "2": PHONE}

    def test_the_second_of_two_routers_changes_nothing(self, stage: Stage) -> None:
        job = stage.accept(3)
        stage.turn()
        stage.route(job, 0, 2)
        before = stage.dump()
        assert stage.route(job, 0, 2, phone=OTHER).code == "STALE"
        assert stage.route(job, 1, 2).code == "STALE"
        assert stage.dump() == before

    def test_stops_where_a_contact_was_bound_meanwhile(self, stage: Stage) -> None:
        """Two jobs write to the same person at once: the second decides again, seeing the first one's choice."""
        first = stage.accept(1, first=1)
        second = stage.accept(2, first=0)
        stage.turn()
        stage.route(first)
        answer = stage.route(second, phone=OTHER)
        assert (answer.code, answer.cursor) == ("OK", 1)
        assert stage.states(second) == "rq"
        knowing = [TaskRoute(1, to=recipient(1), phone=OTHER, seen=PHONE, expires_at=second.expires_at(1))]
        assert value_of(stage.store.jobs.route(second, 1, knowing, now_ms=stage.now)).cursor == 2
        assert stage.sticky(recipient(1))[0] == OTHER

    def test_a_person_who_wrote_to_a_number_stays_with_it(self, stage: Stage) -> None:
        stage.redis.set(keys.sticky(recipient(0)), f"{OTHER} {T0} {T0}")
        job = stage.accept(1, phone=PHONE)
        stage.turn()
        task = TaskRoute(0, to=recipient(0), phone=PHONE, seen=OTHER, expires_at=job.expires_at(0))
        assert value_of(stage.store.jobs.route(job, 0, [task], now_ms=stage.now)).cursor == 1
        assert stage.sticky(recipient(0)) == [OTHER, str(T0), str(T0)]

    def test_tasks_that_end_at_routing_close_the_job(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.turn()
        ends = [TaskRoute(0, ends=Byte.EXPIRED), TaskRoute(1, ends=Byte.SUPPRESSED)]
        assert value_of(stage.store.jobs.route(job, 0, ends, now_ms=stage.now)).cursor == 2
        assert (stage.states(job), stage.run(job)["state"]) == ("EO", "DONE_WITH_ERRORS")
        assert stage.redis.zcard(keys.jobs_active()) == 0
        stage.adds_up(job)
        before = stage.dump()
        assert value_of(stage.store.jobs.route(job, 0, ends, now_ms=stage.now)).code == "STALE"
        assert value_of(stage.store.jobs.route(job, 2, [], now_ms=stage.now)).code == "CLOSED"
        assert stage.dump() == before

    def test_a_canceled_job_takes_no_more(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.turn()
        stage.cancel(job)
        assert stage.route(job).code == "CLOSED"
        assert (stage.states(job), stage.queue()) == ("XX", [])

    def test_a_message_proven_sent_is_passed_over(self, stage: Stage) -> None:
        """A Redis restored from yesterday meets today's receipts."""
        job = stage.accept(2)
        stage.sent(job.task_id(0), "delivered")
        stage.turn()
        assert stage.route(job).cursor == 2
        assert (stage.states(job), stage.queue()) == ("Dr", [job.task_id(1)])
        stage.adds_up(job)


class TestYield:
    def test_waits_visibly(self, stage: Stage) -> None:
        job = stage.accept(1)
        stage.turn()
        assert yield_turn(stage, job.job_id, 0, "WAITING_FOR_ROOM", T0 + 500) == "OK"
        run = stage.run(job)
        assert (run["waitReason"], run["waitUntil"], run["state"]) == ("WAITING_FOR_ROOM", str(T0 + 500), "QUEUED")
        assert stage.turn().next_at == T0 + 500
        before = stage.dump()
        yield_turn(stage, job.job_id, 0, "WAITING_FOR_ROOM", T0 + 500)
        assert stage.dump() == before

    def test_no_numbers_is_a_last_error_until_it_goes_on(self, stage: Stage) -> None:
        job = stage.accept(1)
        stage.turn()
        yield_turn(stage, job.job_id, 0, "NO_SESSIONS_AVAILABLE", T0 + 10_000)
        assert stage.run(job)["lastError"] == "NO_SESSIONS_AVAILABLE"
        assert stage.redis.zscore(keys.jobs_retry(), job.job_id) == T0 + 10_000
        stage.connect()
        stage.turn()
        stage.route(job)
        assert not {"lastError", "waitReason", "waitUntil"} & set(stage.run(job))

    def test_refusals_change_nothing(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.turn()
        stage.route(job, 0, 1)
        before = stage.dump()
        assert yield_turn(stage, job.job_id, 0, "WAITING_FOR_ROOM", T0 + 500) == "STALE"
        assert yield_turn(stage, "nothing", 0, "WAITING_FOR_ROOM", T0 + 500) == "STALE"
        assert stage.dump() == before
        stage.cancel(job)
        before = stage.dump()
        assert yield_turn(stage, job.job_id, 1, "WAITING_FOR_ROOM", T0 + 500) == "CLOSED"
        assert stage.dump() == before


class TestFailJob:
    def test_ends_everything_visibly_and_once(self, stage: Stage) -> None:
        job = stage.accept(3)
        stage.turn()
        stage.route(job, 0, 1)
        value_of(stage.store.jobs.fail(job.job_id, "malformed", now_ms=stage.now))
        run = stage.run(job)
        assert (stage.states(job), run["state"], run["lastError"]) == ("FFF", "FAILED", "malformed")
        assert stage.events("JOB_DONE", job)[0]["state"] == "FAILED"
        stage.adds_up(job)
        before = stage.dump()
        value_of(stage.store.jobs.fail(job.job_id, "malformed", now_ms=stage.now))
        assert stage.dump() == before

    def test_does_not_touch_a_job_that_ended(self, stage: Stage) -> None:
        _, task, _ = stage.claimed()
        stage.sent(task)
        before = stage.dump()
        assert stage.call("fail_job", job=task.split(":")[0], reason="late", now=stage.now) == {"code": "CLOSED"}
        assert stage.dump() == before

    def test_gone(self, stage: Stage) -> None:
        assert stage.call("fail_job", job="J", reason="r", now=stage.now) == {"code": "GONE"}
        assert stage.dump() == {}

    def test_one_in_a_workers_hands_ends_by_the_workers_word(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(2)
        stage.hello()
        task = stage.hand_off()
        stage.claim(task)
        value_of(stage.store.jobs.fail(job.job_id, "malformed", now_ms=stage.now))
        assert (stage.states(job), stage.events("JOB_DONE", job)) == ("cF", [])
        stage.sent(task)
        assert (stage.states(job), stage.run(job)["state"]) == ("SF", "FAILED")
        stage.adds_up(job)


class TestCancel:
    def test_stops_what_no_worker_claimed(self, stage: Stage) -> None:
        stage.connect()
        job = stage.routed(3)
        stage.hello()
        task = stage.hand_off()
        stage.claim(task)
        answer = stage.cancel(job)
        assert (answer.code, answer.canceled, answer.open) == ("OK", 2, 1)
        assert (stage.states(job), stage.run(job)["state"]) == ("cXX", "CANCELED")
        stage.adds_up(job)
        stage.sent(task)
        assert stage.run(job)["state"] == "CANCELED"
        stage.adds_up(job)

    def test_twice_changes_nothing(self, stage: Stage) -> None:
        job = stage.routed(3)
        stage.cancel(job)
        before = stage.dump()
        answer = stage.cancel(job)
        assert (answer.code, answer.canceled, answer.open) == ("OK", 0, 0)
        assert stage.dump() == before

    def test_an_ended_job_stays_as_it_ended(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.sent(task)
        before = stage.dump()
        answer = stage.cancel(job)
        assert (answer.code, answer.state) == ("CLOSED", "DONE")
        assert stage.dump() == before

    def test_gone(self, stage: Stage) -> None:
        assert stage.call("cancel_job", job="J", now=stage.now) == {"code": "GONE"}

    def test_before_its_first_turn(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.cancel(job)
        turn = stage.turn()
        assert (turn.code, turn.state) == ("OK", "CANCELED")
        assert stage.route(job).code == "CLOSED"
        assert stage.turn().code == "NONE"
        stage.adds_up(job)

    @pytest.mark.parametrize("outcome", ["returned", "retry"])
    @pytest.mark.parametrize("byte", ["c", "u"])
    def test_what_comes_back_from_a_worker_afterwards_is_not_sent(self, stage: Stage, outcome: str, byte: str) -> None:
        """It was claimed when the job was canceled, and then given back untouched: nothing may go out any more."""
        job, task, token = stage.claimed()
        if byte == "u":
            stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        stage.cancel(job)
        if outcome == "retry":
            stage.retry(task, token=token)
        else:
            stage.settle(task, "returned", from_="cu", token=token, unitBack=True, reason="GIVEN_BACK")
        assert (stage.byte(task), stage.queue(), stage.redis.zcard(keys.task_retry())) == ("X", [], 0)
        assert stage.redis.ttl(keys.message(task)) > 0
        stage.adds_up(job)

    def test_one_that_may_have_gone_out_does_not_end_canceled(self, stage: Stage) -> None:
        """`canceled` says that it was not sent."""
        job, task, _ = stage.claimed()
        stage.retry(task, pinned=True)
        stage.cancel(job)
        assert (stage.byte(task), stage.message(task)["errorCode"]) == ("F", "UNKNOWN_OUTCOME")
        assert stage.redis.llen(keys.dead_letters()) == 1
        assert stage.redis.ttl(keys.message(task)) > 0
        stage.adds_up(job)
        before = stage.dump()
        stage.cancel(job)
        assert stage.dump() == before

    def test_nor_does_one_whose_doubt_comes_after_the_cancel(self, stage: Stage) -> None:
        job, task, _ = stage.claimed()
        stage.cancel(job)
        stage.retry(task, pinned=True)
        assert (stage.byte(task), stage.redis.zcard(keys.task_retry())) == ("F", 0)
        stage.adds_up(job)

    def test_its_stats_live_as_long_as_configured(self, stage: Stage) -> None:
        job = stage.routed(1)
        stage.cancel(job)
        assert stage.redis.ttl(keys.job_total(job.job_id)) == stage.config.stats_ttl
        assert stage.redis.ttl(keys.job(job.job_id)) == stage.config.job_ttl
        assert stage.redis.ttl(keys.job_contacts(job.job_id, 0)) == stage.config.job_ttl
