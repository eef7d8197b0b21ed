"""stage_chunk, accept_job, accept_send: what is accepted is whole, once, and has no TTL."""

from typing import Any

import msgspec
import pytest
import redis

from paceline.domain.jobs import Contact, encode_contact
from paceline.store import keys
from paceline.store.jobs import Idem
from paceline.store.scripts import CHUNK, PERSON_KEPT

from .stage import PHONE, T0, Stage, recipient, value_of

CONTACTS = [Contact(recipient(i)) for i in range(2 * CHUNK + 1)]


def test_staged_contacts_are_freed_if_the_job_never_comes(stage: Stage) -> None:
    assert value_of(stage.store.jobs.stage("J", CONTACTS)) == 3
    assert stage.with_ttl() == {keys.job_contacts("J", chunk) for chunk in range(3)}


def test_an_accepted_job_is_whole_and_has_no_ttl(stage: Stage) -> None:
    job = stage.accept(len(CONTACTS))
    assert stage.with_ttl() == set()
    assert stage.states(job) == "q" * job.total
    assert stage.stats(job) == {"total": job.total, "open": job.total, "sent": 0, "failed": 0}
    assert stage.redis.lrange(keys.gateway_jobs(), 0, -1) == [job.job_id]
    assert stage.events("JOB_ACCEPTED", job)[0]["total"] == job.total
    assert value_of(stage.store.jobs.get(job.job_id)) == job
    assert value_of(stage.store.jobs.contacts(job.job_id, CHUNK - 1, 10)) == CONTACTS[CHUNK - 1 : CHUNK]


@pytest.mark.parametrize("priority", [2, 3])
def test_higher_priorities_go_to_the_priority_list(stage: Stage, priority: int) -> None:
    job = stage.accept(1, priority=priority)
    assert stage.redis.lrange(keys.priority_jobs(), 0, -1) == [job.job_id]
    assert stage.redis.llen(keys.gateway_jobs()) == 0


def test_accepting_twice_changes_nothing(stage: Stage) -> None:
    job = stage.accept(3)
    before = stage.dump()
    assert value_of(stage.store.jobs.accept(job, 1, now_ms=stage.now)) == "EXISTS"
    assert stage.dump() == before


def test_staging_again_after_the_commit_does_not_touch_the_job(stage: Stage) -> None:
    """A gateway that was cut off and goes on late would put a TTL on the contacts of a job its successor committed."""
    job = stage.accept(3)
    before = stage.dump()
    value_of(stage.store.jobs.stage(job.job_id, CONTACTS[:3]))
    assert stage.dump() == before


def test_a_job_whose_chunk_is_gone_is_not_accepted(stage: Stage) -> None:
    job = stage.new_job(len(CONTACTS))
    value_of(stage.store.jobs.stage(job.job_id, CONTACTS))
    stage.redis.delete(keys.job_contacts(job.job_id, 1))
    before = stage.dump()
    assert value_of(stage.store.jobs.accept(job, 3, now_ms=stage.now)) == "INCOMPLETE"
    assert stage.dump() == before


def test_contacts_with_fields_come_back_as_they_were(stage: Stage) -> None:
    contact = Contact("972541234567", vars={"name": "דנה"}, client_ref="7", timezone="Asia/Jerusalem")
    value_of(stage.store.jobs.stage("J", [contact, CONTACTS[0]]))
    assert value_of(stage.store.jobs.contacts("J", 0, 10)) == [contact, CONTACTS[0]]


class TestSingleSend:
    def test_goes_straight_into_the_queue(self, stage: Stage) -> None:
        job, answer = stage.send()
        assert (answer.code, answer.position) == ("OK", 0)
        assert stage.queue() == [job.task_id(0)]
        assert stage.due_at() == stage.now
        assert stage.states(job) == "r"
        assert stage.run(job)["state"] == "ROUTED"
        assert stage.redis.smembers(keys.singles(PHONE)) == {job.task_id(0)}
        assert stage.with_ttl() == {keys.sticky("972540000001"), keys.person("972540000001")}

    def test_a_persons_list_forgets_what_is_forgotten_elsewhere(self, stage: Stage) -> None:
        first, _ = stage.send()
        stage.now += stage.config.job_ttl * 1_000
        second, _ = stage.send()
        person = keys.person("972540000001")
        assert stage.redis.zrange(person, 0, -1) == [first.task_id(0), second.task_id(0)]
        stage.now += stage.config.message_ttl * 1_000
        third, _ = stage.send()
        assert stage.redis.zrange(person, 0, -1) == [second.task_id(0), third.task_id(0)]

    def test_says_how_many_go_before_it(self, stage: Stage) -> None:
        for priority, position in [(1, 0), (1, 1), (3, 0), (2, 1), (1, 4)]:
            assert stage.send(priority=priority)[1].position == position

    def test_waits_for_its_time(self, stage: Stage) -> None:
        job, answer = stage.send(send_at=T0 + 1)
        assert (answer.code, stage.states(job), stage.queue()) == ("OK", "s", [])
        ((member, score),) = stage.redis.zrange(keys.scheduled(), 0, -1, withscores=True)
        assert (msgspec.json.decode(member)["task"], score) == (job.task_id(0), T0 + 1)

    def test_a_time_that_has_come_is_now(self, stage: Stage) -> None:
        job, _ = stage.send(send_at=T0)
        assert stage.states(job) == "r"

    def test_twice_is_once(self, stage: Stage) -> None:
        job, _ = stage.send()
        before = stage.dump()
        again = stage.store.jobs.accept_send(job, Contact("972540000001"), PHONE, now_ms=stage.now)
        assert value_of(again).code == "EXISTS"
        assert stage.dump() == before

    def test_a_phone_has_a_limit_of_them(self, stage: Stage) -> None:
        stage.redis.sadd(keys.singles(PHONE), *range(999))
        assert stage.send()[1].code == "OK"
        before = stage.dump()
        assert stage.send()[1].code == "QUEUE_FULL"
        assert stage.dump() == before
        assert stage.send(phone="972500000002")[1].code == "OK"

    def test_an_ended_one_counts_no_more(self, stage: Stage) -> None:
        stage.connect()
        job, _ = stage.send()
        stage.hand_off()
        assert stage.redis.exists(keys.singles(PHONE)) == 0
        stage.sent(job.task_id(0))
        stage.adds_up(job)


class TestIdempotency:
    def begin(
        self, stage: Stage, body: str = "b", job: str = "J1", *, holder: str = "one", is_free: bool = False
    ) -> tuple[str, str, str]:
        begun = value_of(
            stage.store.guards.begin("k", "i", body, job, now_ms=stage.now, holder=holder, is_free=is_free)
        )
        return begun.code, begun.job, begun.answer

    def end(self, stage: Stage, job: str, answer: str | None) -> None:
        value_of(stage.store.guards.end("k", "i", job, answer=answer))

    def test_the_first_begins_and_others_wait(self, stage: Stage) -> None:
        assert self.begin(stage) == ("NEW", "J1", "")
        before = stage.dump()
        assert self.begin(stage, job="J2") == ("IN_FLIGHT", "", "")
        assert self.begin(stage, body="other") == ("OTHER_BODY", "", "")
        assert stage.dump() == before
        assert stage.with_ttl() == {keys.idempotency("k", "i")}

    def test_a_repeat_gets_the_first_answer(self, stage: Stage) -> None:
        self.begin(stage)
        self.end(stage, "J1", "{}")
        before = stage.dump()
        self.end(stage, "J1", "{}")
        self.end(stage, "J1", None)
        assert self.begin(stage, job="J2") == ("DONE", "", "{}")
        assert self.begin(stage, body="other") == ("OTHER_BODY", "", "")
        assert stage.dump() == before

    def test_a_refused_request_is_forgotten(self, stage: Stage) -> None:
        self.begin(stage)
        self.end(stage, "J1", None)
        assert self.begin(stage, body="other", job="J2") == ("NEW", "J2", "")

    def test_a_dead_holders_job_is_handed_on_once(self, stage: Stage) -> None:
        self.begin(stage)
        stage.now += 30_000
        assert self.begin(stage, job="J2") == ("NEW", "J1", "")
        assert self.begin(stage, job="J3") == ("IN_FLIGHT", "", "")

    def test_nobody_waits_until_a_clock_that_was_set_back_has_caught_up(self, stage: Stage) -> None:
        """Its holder died before; told 409 for as long as the clock was set back, no client repeats."""
        self.begin(stage)
        stage.now -= 29_000
        assert self.begin(stage, job="J2") == ("IN_FLIGHT", "", "")
        stage.now -= 3_600_000
        assert self.begin(stage, job="J3") == ("NEW", "J1", "")

    def test_what_its_holder_does_not_work_at_is_handed_on_at_once(self, stage: Stage) -> None:
        self.begin(stage)
        assert self.begin(stage, job="J2", holder="another", is_free=True) == ("IN_FLIGHT", "", "")
        assert self.begin(stage, body="other", is_free=True) == ("OTHER_BODY", "", "")
        stage.now += 5
        assert self.begin(stage, job="J3", is_free=True) == ("NEW", "J1", "")
        assert self.begin(stage, job="J4") == ("IN_FLIGHT", "", "")

    def test_somebody_elses_request_is_not_ended(self, stage: Stage) -> None:
        self.begin(stage)
        before = stage.dump()
        assert stage.call("end_idempotent", key=keys.idempotency("k", "i"), job="J9", answer="{}") == {"code": "OTHER"}
        assert stage.dump() == before

    def test_after_a_day_the_key_is_free_whatever_redis_still_holds(self, stage: Stage) -> None:
        self.begin(stage)
        self.end(stage, "J1", "{}")
        stage.now += 86_400_000
        assert self.begin(stage, body="other", job="J2") == ("NEW", "J2", "")

    @pytest.mark.parametrize("single", [False, True], ids=["job", "send"])
    def test_accepting_writes_the_answer_in_the_same_step(self, stage: Stage, single: bool) -> None:
        job = stage.new_job(1)
        self.begin(stage, job=job.job_id)
        idem = Idem(keys.idempotency("k", "i"), "{}")
        if single:
            value_of(stage.store.jobs.accept_send(job, CONTACTS[0], PHONE, now_ms=stage.now, idem=idem))
        else:
            value_of(stage.store.jobs.stage(job.job_id, CONTACTS[:1]))
            value_of(stage.store.jobs.accept(job, 1, now_ms=stage.now, idem=idem))
        assert self.begin(stage, job="J2") == ("DONE", "", "{}")

    def test_a_key_that_was_freed_meanwhile_does_not_come_back_for_ever(self, stage: Stage) -> None:
        job = stage.new_job(1)
        value_of(stage.store.jobs.stage(job.job_id, CONTACTS[:1]))
        idem = Idem(keys.idempotency("k", "i"), "{}")
        value_of(stage.store.jobs.accept(job, 1, now_ms=stage.now, idem=idem))
        assert stage.redis.exists(keys.idempotency("k", "i")) == 0


def test_a_message_can_be_looked_at_from_the_first_moment(stage: Stage) -> None:
    job = stage.accept(2)
    view = value_of(stage.store.jobs.message(job.task_id(1)))
    assert view is not None
    assert (view.byte, view.contact.to, view.phone, view.known) == ("q", recipient(1), None, {})
    assert value_of(stage.store.jobs.message(job.task_id(2))) is None
    assert value_of(stage.store.jobs.message("nonsense")) is None
    whole = value_of(stage.store.jobs.view(job.job_id))
    assert whole is not None
    assert whole.progress["queued"] == 2
    assert encode_contact(view.contact) == recipient(1)


def order(stage: Stage, number: int, **fields: Any) -> dict[str, Any]:
    """One of several in a call of accept_send."""
    job = stage.new_job(1, single=True)
    return {
        "job": job.job_id, "json": "{}", "phone": PHONE, "to": recipient(number), "expiresAt": stage.now + 1_000,
        "priority": 1, "limit": 10, "now": stage.now, **fields,
    }  # fmt: skip


def accepted(stage: Stage, *orders: dict[str, Any]) -> list[Any]:
    answers = value_of(stage.caller.rows("accept_send", orders=list(orders)))
    return [answer if answer.startswith("!") else msgspec.json.decode(answer) for answer in answers]


class TestSeveralSendsInOneCall:
    def test_each_is_whole_however_many_there_are(self, stage: Stage) -> None:
        orders = [order(stage, number) for number in range(5)]
        assert [answer["position"] for answer in accepted(stage, *orders)] == [0, 1, 2, 3, 4]
        together = {name: value for name, value in stage.dump().items() if not name.startswith("jobs:")}
        stage.redis.flushall()
        for one in orders:
            accepted(stage, one)
        assert {name: value for name, value in stage.dump().items() if not name.startswith("jobs:")} == together

    def test_two_for_one_person_are_both_in_their_list(self, stage: Stage) -> None:
        """Before the call nothing was stored of them; for the second something is."""
        first, second = order(stage, 1), order(stage, 1, phone="972540000099")
        accepted(stage, first, second)
        person = stage.redis.zrange(keys.person(recipient(1)), 0, -1)
        assert person == sorted([f"{first['job']}:0", f"{second['job']}:0"])
        assert stage.sticky(recipient(1))[0] == "972540000099"

    def test_a_person_who_talks_with_a_number_stays_with_it_whatever_the_others_are(self, stage: Stage) -> None:
        """Nobody said that they are bound: it is found out. A warm chat is not taken from its number."""
        stage.redis.set(keys.sticky(recipient(1)), f"1 {stage.now} {stage.now}")
        accepted(stage, order(stage, 1), order(stage, 2))
        assert stage.sticky(recipient(1))[0] == "1"
        assert stage.sticky(recipient(2))[0] == PHONE
        assert stage.redis.ttl(keys.sticky(recipient(1))) == -1

    def test_a_persons_list_stays_bounded_also_for_who_is_not_bound(self, stage: Stage) -> None:
        old = {f"OLD{number}:0": number for number in range(PERSON_KEPT)}
        stage.redis.zadd(keys.person(recipient(1)), old)
        accepted(stage, order(stage, 1), order(stage, 2))
        assert stage.redis.zcard(keys.person(recipient(1))) <= PERSON_KEPT

    def test_one_that_fails_is_not_half_stored_and_the_others_are_whole(self, stage: Stage) -> None:
        stage.redis.set(keys.queue("972540000098"), "no list")
        orders = [order(stage, 1), order(stage, 2, phone="972540000098"), order(stage, 3)]
        answers = accepted(stage, *orders)
        assert [answer if isinstance(answer, dict) else answer[0] for answer in answers] == [
            {"code": "OK", "position": 0}, "!", {"code": "OK", "position": 1},
        ]  # fmt: skip
        there = [stage.redis.exists(keys.job(one["job"]), keys.job_states(one["job"])) for one in orders]
        assert there == [2, 0, 2]

    def test_what_all_share_cannot_be_written_and_no_job_is_missing_in_its_queue(self, stage: Stage) -> None:
        stage.redis.set(keys.due(), "no zset")
        orders = [order(stage, number) for number in (1, 2)]
        with pytest.raises(redis.ResponseError):
            accepted(stage, *orders)
        assert stage.queue() == [f"{one['job']}:0" for one in orders]
        assert [stage.redis.get(keys.job_states(one["job"])) for one in orders] == ["r", "r"]

    def test_jobs_that_are_gone_leave_the_list_with_many_that_arrive(self, stage: Stage) -> None:
        for batch in range(60):
            stage.now += 977
            orders = [order(stage, number, limit=10_000) for number in range(8)]
            accepted(stage, *orders)
            stage.redis.delete(*[keys.job(one["job"]) for one in orders])
            assert batch < 20 or stage.redis.zcard(keys.jobs_index()) < 200


class TestSomebodyUnseen:
    def test_on_the_list_nothing_is_stored(self, stage: Stage) -> None:
        stage.suppress(recipient(1))
        before = stage.dump()
        assert accepted(stage, order(stage, 1, isUnseen=True)) == [{"code": "SUPPRESSED"}]
        assert stage.dump() == before

    def test_written_to_by_a_number_it_is_told_and_nothing_stored(self, stage: Stage) -> None:
        stage.redis.set(keys.sticky(recipient(1)), f"1 {stage.now}")
        before = stage.dump()
        answers = accepted(stage, order(stage, 1, isUnseen=True))
        assert answers == [{"code": "BOUND", "phone": "1", "at": str(stage.now)}]
        assert stage.dump() == before

    def test_the_others_of_the_call_are_accepted(self, stage: Stage) -> None:
        stage.suppress(recipient(1))
        stage.redis.set(keys.sticky(recipient(2)), f"1 {stage.now}")
        orders = [order(stage, number, isUnseen=True) for number in (1, 2, 3, 3)]
        # The last is bound by the one before it.
        assert [answer["code"] for answer in accepted(stage, *orders)] == ["SUPPRESSED", "BOUND", "OK", "BOUND"]
        assert stage.queue() == [f"{orders[2]['job']}:0"]

    def test_twice_in_one_call_the_second_is_told_of_the_first(self, stage: Stage) -> None:
        """Nothing was stored of them before the call, so nobody looked but for this."""
        orders = [order(stage, 1, isUnseen=True), order(stage, 1, isUnseen=True)]
        assert [answer["code"] for answer in accepted(stage, *orders)] == ["OK", "BOUND"]

    @pytest.mark.parametrize("is_unseen", [True, None], ids=["unseen", "looked up"])
    def test_whatever_else_stands_there_binds_nobody_and_is_replaced(
        self, stage: Stage, is_unseen: bool | None
    ) -> None:
        """A damaged text, and a value of another type, as it was written before this was a text."""
        stage.redis.hset(keys.sticky(recipient(1)), "phone", "1")
        stage.redis.set(keys.sticky(recipient(2)), "1")
        orders = [order(stage, number, isUnseen=is_unseen, isBound=not is_unseen) for number in (1, 2)]
        assert [answer["code"] for answer in accepted(stage, *orders)] == ["OK", "OK"]
        assert stage.sticky(recipient(1)) == stage.sticky(recipient(2)) == [PHONE, str(stage.now)]
        assert stage.redis.ttl(keys.sticky(recipient(1))) > 0


def test_one_for_later_binds_its_person_when_it_comes(stage: Stage) -> None:
    """What was bound when it was accepted is forgotten by then; 24 hours count from the last send."""
    stage.connect()
    stage.hello()
    _, answer = stage.send(recipient(1), send_at=T0 + 20 * 86_400_000, validity_seconds=86_400 * 30)
    assert answer.code == "OK"
    stage.redis.delete(keys.sticky(recipient(1)))
    stage.now = T0 + 20 * 86_400_000
    stage.release()
    task = stage.hand_off()
    stage.sent(task)
    assert stage.sticky(recipient(1))[1] == str(stage.now)
