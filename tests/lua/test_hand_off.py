"""claim_due and hand_off: one looks at a phone, one task at a time is handed over, what changed is refused."""

import msgspec
import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Decision, Idle, Step, Wait
from paceline.policy.pacing import Gap
from paceline.store import keys

from .stage import DAY, GAP, HOUR, PHONE, SESSION, T0, Stage, heard, recipient, value_of

OTHER = "972500000002"


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.connect()
    return stage


class TestClaimDue:
    def test_nothing_is_due(self, stage: Stage) -> None:
        answer = value_of(stage.store.pacers.claim_due(now_ms=stage.now, lease_ms=5_000, limit=10))
        assert (answer.code, answer.phones, answer.next_at) == ("OK", [], None)

    def test_facts(self, ready: Stage) -> None:
        ready.set_facts(keys.session(SESSION), rpm=5)
        job = ready.routed(10)
        ready.suppress(recipient(1))
        (facts,) = ready.look()
        assert [head.task for head in facts.heads] == [job.task_id(i) for i in range(8)]
        assert [head.suppressed for head in facts.heads[:3]] == [False, True, False]
        assert (facts.phone, facts.version, facts.more, facts.rpm_override) == (PHONE, facts.version, True, 5)
        assert facts.created_at == T0
        assert [(s.id, s.connection, s.last_seen_ms) for s in facts.sessions] == [(SESSION, "CONNECTED", T0)]
        head = facts.heads[0]
        assert (head.to, head.state, head.expires_at) == (recipient(0), "r", job.expires_at(0))

    def test_a_brief_look_ends_with_the_first_that_may_go(self, ready: Stage) -> None:
        """What cannot go is shown with it, so that it costs no look of its own."""
        job = ready.routed(10)
        ready.suppress(recipient(0), recipient(1))
        (facts,) = ready.brief_look()
        assert [head.task for head in facts.heads] == [job.task_id(i) for i in range(3)]
        assert facts.more

    def test_a_brief_look_shows_all_where_the_last_one_found_none(self, ready: Stage) -> None:
        """The first task may go as far as a script can tell; that its recipient sleeps only the policy knows."""
        ready.routed(10)
        (facts,) = ready.brief_look()
        assert len(facts.heads) == 1
        ready.apply(facts, Wait(ready.now, Reason.IN_TURN))
        (facts,) = ready.brief_look()
        assert len(facts.heads) == 8

    def test_the_last_task_has_none_behind_it(self, ready: Stage) -> None:
        ready.routed(1)
        (facts,) = ready.brief_look()
        assert (len(facts.heads), facts.more) == (1, False)

    def test_a_look_is_a_lease(self, ready: Stage) -> None:
        ready.routed(1)
        assert len(ready.look()) == 1
        assert ready.look() == []
        ready.now += 5_000
        assert len(ready.look()) == 1

    def test_the_highest_priority_comes_first(self, ready: Stage) -> None:
        low, high = ready.routed(1), ready.routed(1, first=1, priority=3)
        (facts,) = ready.look()
        assert [head.task for head in facts.heads] == [high.task_id(0)]
        assert facts.more
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "OK"
        ready.sent(high.task_id(0))
        ready.now += GAP.ms
        assert ready.hand_off() == low.task_id(0)

    def test_no_more_than_the_limit(self, stage: Stage) -> None:
        for number in range(3):
            stage.routed(1, first=number, phone=f"97250000000{number}")
        assert (len(stage.look(2)), len(stage.look(2))) == (2, 1)

    def test_what_ended_deep_in_the_queue_is_shown_until_it_is_ended(self, stage: Stage) -> None:
        """A dispatcher that dies between looking and applying must not hide an expired task for ever."""
        stage.routed(20)
        short = stage.routed(1, first=20, validity_seconds=60)
        stage.routed(5, first=21)
        stage.now += 60_000
        for _ in range(2):
            (facts,) = stage.look()
            assert [head.task for head in facts.heads[8:]] == [short.task_id(0)]
            stage.now += 5_000
        (facts,) = stage.look()
        step = Step("expire", facts.heads[8].entry, facts.heads[8].task, Reason.EXPIRED)
        stage.apply(facts, Wait(stage.now + HOUR, Reason.NOT_CONNECTED), step)
        assert stage.states(short) == "E"
        (facts,) = stage.look()
        assert len(facts.heads) == 8
        stage.apply(facts, Wait(stage.now + HOUR, Reason.NOT_CONNECTED))
        assert stage.due_at() == stage.now + HOUR

    def test_a_new_task_with_a_short_validity_ends_in_time_on_a_phone_that_waits(self, stage: Stage) -> None:
        stage.routed(1)
        (facts,) = stage.look()
        stage.apply(facts, Wait(T0 + 8 * HOUR, Reason.QUIET_HOURS))
        stage.routed(1, first=1, validity_seconds=60)
        assert stage.due_at() == T0 + 60_000


class TestWaking:
    def test_only_the_phone_that_comes_first_wakes_anybody(self, stage: Stage) -> None:
        """A dispatcher sleeps until the first score; what is scored behind it is found then."""
        for number in (1, 2):
            stage.connect(f"s{number}", f"97250000000{number}")
        words = heard(stage.redis, lambda: stage.routed(1, phone="972500000001"))
        assert "due" in words
        stage.now += 1_000
        words = heard(stage.redis, lambda: stage.routed(1, first=1, phone="972500000002"))
        assert "due" not in words
        assert len(stage.look()) == 2

    def test_a_rest_that_ends_before_all_others_wakes_the_dispatcher(self, stage: Stage) -> None:
        for number in (1, 2):
            stage.connect(f"s{number}", f"97250000000{number}")
            stage.routed(2, first=10 * number, phone=f"97250000000{number}")
        facts, other = stage.look()
        stage.apply(other, Wait(stage.now + HOUR, Reason.NOT_CONNECTED))
        stage.apply(facts, stage.to_send(facts.heads[0]))
        assert heard(stage.redis, lambda: stage.sent(facts.heads[0].task)) == ["due"]


class TestSend:
    def test_moves_the_task_to_the_outbox(self, ready: Stage) -> None:
        job = ready.routed(2)
        task = ready.hand_off()
        assert (task, ready.states(job)) == (job.task_id(0), "hr")
        assert ready.outbox() == [task]
        assert ready.redis.zscore(keys.deadlines(), task) == T0 + 60_000
        assert ready.due_at() is None
        pacer = ready.pacer()
        assert (pacer["unsettled"], pacer["capDay"], pacer["capUsed"]) == (task, DAY, "1")
        assert ready.message(task)["sessionId"] == SESSION
        assert ready.redis.hgetall(keys.job_routes(job.job_id)) == {"1": PHONE}
        assert not any(key.startswith(("queue:", "session:", "message:", "outbox:")) for key in ready.with_ttl())

    def test_many_phones_in_one_call_each_on_its_own(self, stage: Stage) -> None:
        """One that is refused keeps nobody else from sending, and all that were handed a task are told of at once."""
        phones = {f"97250000000{number}": f"s{number}" for number in range(3)}
        for phone, session in phones.items():
            stage.connect(session, phone)
            stage.routed(1, first=int(phone[-1]), phone=phone)
        looks = stage.look()
        stage.suppress(recipient(1))
        decided = [(facts, Decision(stage.to_send(facts.heads[0], phones[facts.phone]))) for facts in looks]

        def act() -> None:
            codes = value_of(stage.store.pacers.hand_off(decided, now_ms=stage.now, handoff_ttl_ms=60_000))
            assert codes == ["OK", "SUPPRESSED", "OK"]

        assert heard(stage.redis, act) == ["outbox:s0,s2"]
        assert [stage.redis.llen(keys.outbox(session)) for session in phones.values()] == [1, 0, 1]
        assert stage.redis.zcard(keys.deadlines()) == 2
        assert stage.redis.zrange(keys.due(), 0, -1) == [looks[1].phone]

    def test_twice_is_stale(self, ready: Stage) -> None:
        ready.routed(2)
        (facts,) = ready.look()
        final = ready.to_send(facts.heads[0])
        assert ready.apply(facts, final) == "OK"
        before = ready.dump()
        assert ready.apply(facts, final) == "STALE"
        assert ready.dump() == before

    def test_of_two_dispatchers_the_later_look_counts(self, ready: Stage) -> None:
        ready.routed(2)
        (old,) = ready.look()
        ready.now += 5_000
        (new,) = ready.look()
        before = ready.dump()
        assert ready.apply(old, ready.to_send(old.heads[0])) == "STALE"
        assert ready.dump() == before
        assert ready.apply(new, ready.to_send(new.heads[0])) == "OK"

    def test_a_clock_that_went_back_hands_nothing_over(self, ready: Stage) -> None:
        job = ready.routed(2)
        ready.hand_off()
        ready.sent(job.task_id(0))
        ready.now += GAP.ms
        (facts,) = ready.look()
        ready.now = T0 - 1
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "CLOCK_BACK"
        assert ready.due_at() == T0
        assert ready.states(job) == "Sr"
        before = ready.dump()
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "CLOCK_BACK"
        assert ready.dump() == before

    def test_refused_while_the_fleet_is_paused(self, ready: Stage) -> None:
        job = ready.routed(1)
        (facts,) = ready.look()
        ready.redis.hset(keys.fleet(), "paused", 1)
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "PAUSED"
        assert (ready.states(job), ready.due_at()) == ("r", T0 + 1_000)

    def test_refused_while_another_is_unsettled(self, ready: Stage) -> None:
        job = ready.routed(2)
        ready.hand_off()
        ready.redis.zadd(keys.due(), {PHONE: T0})
        (facts,) = ready.look()
        assert facts.unsettled == job.task_id(0)
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "UNSETTLED"
        assert ready.states(job) == "hr"
        assert ready.pacer()["capUsed"] == "1"

    def test_refused_when_another_came_before_it(self, ready: Stage) -> None:
        """A task comes back to the head (the worker of an ended lease gave it back) between look and hand-off."""
        job = ready.routed(2)
        ready.hello()
        first = ready.hand_off()
        ready.claim(first, lease=1_000)
        ready.now += 60_000
        ready.settle(first, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
        ready.now += 60_000
        (facts,) = ready.look()
        ready.settle(first, "returned", from_="cu", unitBack=True, reason="GIVEN_BACK")
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "STALE"
        assert ready.states(job) == "rr"
        assert ready.queue() == [first, job.task_id(1)]
        assert ready.hand_off() == first

    def test_refused_when_another_stands_at_the_head(self, ready: Stage) -> None:
        job = ready.routed(2)
        (facts,) = ready.look()
        ready.redis.lmove(keys.queue(PHONE), keys.queue(PHONE), "LEFT", "RIGHT")
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "HEAD_CHANGED"
        assert (ready.states(job), ready.queue()) == ("rr", [job.task_id(1), job.task_id(0)])
        assert ready.outbox() == []
        assert ready.hand_off() == job.task_id(1)

    def test_refused_when_nothing_is_left(self, ready: Stage) -> None:
        ready.routed(1)
        (facts,) = ready.look()
        ready.redis.delete(keys.queue(PHONE))
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "HEAD_CHANGED"
        assert not ready.redis.exists(keys.queue(PHONE), keys.outbox(SESSION))

    def test_what_came_meanwhile_with_little_time_left_is_looked_at_now(self, ready: Stage) -> None:
        """Its end stands as the phone's next look; it would be the first, and too late."""
        ready.routed(2)
        (facts,) = ready.look()
        ready.now += 2
        ready.send(recipient(9), validity_seconds=3, priority=3)
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "STALE"
        assert ready.due_at() == ready.now
        (facts,) = ready.look()
        assert facts.heads[0].to == recipient(9)

    def test_refused_when_somebody_looked_later(self, ready: Stage) -> None:
        ready.routed(1)
        (first,) = ready.look()
        ready.now += 5_000
        (second,) = ready.look()
        assert ready.apply(first, ready.to_send(first.heads[0])) == "STALE"
        assert ready.apply(second, ready.to_send(second.heads[0])) == "OK"

    def test_refused_when_its_job_is_no_longer_kept(self, ready: Stage) -> None:
        """Nobody could tell what became of it, and the number would wait for that for ever."""
        job = ready.routed(1)
        (facts,) = ready.look()
        ready.redis.delete(keys.job(job.job_id), keys.job_states(job.job_id))
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "NOT_WAITING"
        (facts,) = ready.look()
        assert [head.state for head in facts.heads] == [""]

    def test_refused_when_canceled_between_look_and_hand_off(self, ready: Stage) -> None:
        job = ready.routed(1)
        (facts,) = ready.look()
        ready.cancel(job)
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "NOT_WAITING"
        assert (ready.states(job), ready.redis.llen(keys.outbox(SESSION))) == ("X", 0)
        (facts,) = ready.look()
        assert facts.heads[0].state == "X"
        assert ready.apply(facts, Idle(), Step("drop", facts.heads[0].entry, facts.heads[0].task)) == "OK"
        assert (ready.queue(), ready.due_at()) == ([], None)

    def test_refused_when_suppressed_between_look_and_hand_off(self, ready: Stage) -> None:
        job = ready.routed(1)
        (facts,) = ready.look()
        ready.suppress(recipient(0))
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "SUPPRESSED"
        assert ready.states(job) == "r"
        (facts,) = ready.look()
        assert facts.heads[0].suppressed

    def test_the_cap_is_never_overshot(self, ready: Stage) -> None:
        job = ready.routed(3)
        for _ in range(2):
            ready.sent(ready.hand_off(cap=2))
            ready.now += GAP.ms
        (facts,) = ready.look()
        assert ready.apply(facts, ready.to_send(facts.heads[0], cap=2)) == "CAP"
        assert (ready.pacer()["capUsed"], ready.states(job)) == ("2", "SSr")
        ready.now += 1_000
        (facts,) = ready.look()
        assert ready.apply(facts, ready.to_send(facts.heads[0], cap=2, day="2025-10-10")) == "OK"
        assert (ready.pacer()["capDay"], ready.pacer()["capUsed"]) == ("2025-10-10", "1")

    def test_a_day_further_than_this_one_keeps_counting(self, ready: Stage) -> None:
        ready.set_pacer(capDay="2025-10-10", capUsed=5)
        ready.routed(1)
        (facts,) = ready.look()
        assert ready.apply(facts, ready.to_send(facts.heads[0], cap=5)) == "CAP"
        ready.now += 1_000
        ready.hand_off(cap=6)
        assert (ready.pacer()["capDay"], ready.pacer()["capUsed"]) == ("2025-10-10", "6")

    def test_the_other_phones_work_is_not_touched(self, ready: Stage) -> None:
        ready.connect("s2", OTHER)
        ready.routed(1)
        other = ready.routed(1, first=1, phone=OTHER)
        facts = {f.phone: f for f in ready.look()}
        assert ready.apply(facts[PHONE], ready.to_send(facts[PHONE].heads[0])) == "OK"
        assert ready.states(other) == "r"
        assert ready.apply(facts[OTHER], ready.to_send(facts[OTHER].heads[0], "s2")) == "OK"


class TestWaitAndIdle:
    def test_a_wait_is_visible_and_keeps_its_gap(self, ready: Stage) -> None:
        ready.routed(1)
        (facts,) = ready.look()
        assert ready.apply(facts, Wait(T0 + 9_000, Reason.PACING, Gap(9_000, "k"))) == "OK"
        assert ready.due_at() == T0 + 9_000
        assert (ready.pacer()["waitReason"], ready.pacer()["waitUntil"]) == ("PACING", str(T0 + 9_000))
        assert (ready.pacer()["gapMs"], ready.pacer()["gapKey"]) == ("9000", "k")
        assert ready.apply(facts, Wait(T0 + 1, Reason.PACING)) == "STALE"

    def test_a_number_that_connects_meanwhile_does_not_sleep_on(self, ready: Stage) -> None:
        """CONNECTED comes between a look that saw no session and the wait that follows from it."""
        ready.event(connection="RECONNECTING")
        ready.routed(1)
        (facts,) = ready.look()
        ready.event(connection="CONNECTED")
        ready.apply(facts, Wait(T0 + 60_000, Reason.NOT_CONNECTED))
        assert ready.due_at() == T0

    def test_idle_leaves_the_due_list(self, ready: Stage) -> None:
        (facts,) = ready.look()
        assert (facts.heads, facts.more) == ((), False)
        assert ready.apply(facts, Idle()) == "OK"
        assert ready.due_at() is None

    def test_a_push_between_look_and_idle_is_not_forgotten(self, ready: Stage) -> None:
        (facts,) = ready.look()
        ready.routed(1)
        assert ready.apply(facts, Idle()) == "STALE"
        assert ready.due_at() == T0


class TestSteps:
    @pytest.mark.parametrize(
        ("kind", "reason", "byte"),
        [("expire", Reason.EXPIRED, "E"), ("suppress", Reason.SUPPRESSED, "O"), ("fail", Reason.NO_COMMON_HOURS, "F")],
    )
    def test_a_task_that_does_not_go_ends_visibly(self, ready: Stage, kind: str, reason: Reason, byte: str) -> None:
        job, _ = ready.send()
        (facts,) = ready.look()
        step = Step(kind, facts.heads[0].entry, facts.heads[0].task, reason)
        assert ready.apply(facts, Idle(), step) == "OK"
        assert (ready.states(job), ready.queue(), ready.due_at()) == (byte, [], None)
        message = ready.message(job.task_id(0))
        assert (message["errorCode"], message["endedAt"]) == (reason, str(T0))
        assert ready.redis.ttl(keys.message(job.task_id(0))) == ready.config.message_ttl
        assert ready.redis.exists(keys.singles(PHONE), keys.job_routes(job.job_id)) == 0
        assert ready.redis.llen(keys.dead_letters()) == int(byte == "F")
        ready.adds_up(job)

    def test_several_steps_and_a_send_are_one_call(self, ready: Stage) -> None:
        job = ready.routed(4)
        (facts,) = ready.look()
        heads = facts.heads
        steps = [
            Step("expire", heads[0].entry, heads[0].task, Reason.EXPIRED),
            Step("park", heads[1].entry, heads[1].task, Reason.RECIPIENT_HOURS, T0 + HOUR),
        ]
        assert ready.apply(facts, ready.to_send(heads[2]), *steps) == "OK"
        assert ready.states(job) == "Ephr"

    def test_a_step_on_a_task_that_left_meanwhile_does_nothing(self, ready: Stage) -> None:
        job = ready.routed(2)
        (facts,) = ready.look()
        ready.redis.lrem(keys.queue(PHONE), 0, facts.heads[0].entry)
        step = Step("expire", facts.heads[0].entry, facts.heads[0].task, Reason.EXPIRED)
        ready.apply(facts, Idle(), step)
        assert ready.states(job) == "rr"

    def test_a_dropped_messages_record_is_freed_in_time(self, ready: Stage) -> None:
        """Canceled after an attempt: its record exists, and nobody else comes by to give it a TTL."""
        job, task, _ = ready.claimed()
        ready.retry(task, at=T0)
        ready.release()
        ready.cancel(job)
        ready.now += GAP.ms
        (facts,) = ready.look()
        ready.apply(facts, Idle(), Step("drop", facts.heads[0].entry, task))
        assert ready.redis.ttl(keys.message(task)) == ready.config.message_ttl


def test_every_phone_is_on_some_page_of_the_fleet(stage: Stage) -> None:
    for number in range(7):
        stage.now += 1
        stage.register(f"s{number}", f"97250000000{number}")
    stage.routed(3, phone="972500000004")
    stage.routed(2, first=3, phone="972500000004", priority=3)
    stage.redis.sadd(keys.singles("972500000002"), "J:0")
    before = stage.dump()
    phones = value_of(stage.store.pacers.fleet(page=3))
    assert [phone.facts.phone for phone in phones] == [f"97250000000{number}" for number in range(7)]
    assert phones[4].queued == (3, 0, 2)
    assert [phone.singles for phone in phones] == [0, 0, 1, 0, 0, 0, 0]
    assert (phones[4].ahead_of(1), phones[4].ahead_of(2), phones[4].ahead_of(3)) == (5, 2, 2)
    assert stage.dump() == before


def test_queue_lengths(stage: Stage) -> None:
    stage.accept(1)
    named = [("gateway", "LLEN", keys.gateway_jobs()), ("retry", "ZCARD", keys.jobs_retry())]
    assert value_of(stage.store.pacers.queue_status(named)) == {"gateway": 1, "retry": 0}


def test_a_handed_over_task_keeps_its_entry(stage: Stage) -> None:
    stage.connect()
    job = stage.routed(1)
    (entry,) = stage.redis.lrange(keys.queue(PHONE), 0, -1)
    assert stage.message(stage.hand_off())["entry"] == entry
    assert msgspec.json.decode(entry)[2] == job.expires_at(0)
