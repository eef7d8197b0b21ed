"""Limits beyond pace and hours on a real Redis: restrictions, the breaker, GLOBAL_RPM, a person's patience, pause,
stop."""

from typing import Any

import msgspec
import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Idle, Step, Wait
from paceline.store import keys
from paceline.store.jobs import TaskRoute
from paceline.store.scripts import ScriptConfig
from paceline.store.store import Store

from .servers import LiveServer
from .stage import DAY, HOUR, PHONE, SESSION, T0, DirectLink, Stage, recipient, value_of

OTHER, SECOND = "972500000002", "s2"
MINUTE = 60_000


def incidents(stage: Stage, kind: str) -> list[dict[str, Any]]:
    found = [msgspec.json.decode(line) for line in stage.redis.lrange(keys.incidents(), 0, -1)]
    return [incident for incident in found if incident["kind"] == kind]


def limited(server: LiveServer, **limits: int) -> Stage:
    """A stage whose scripts know a limit that is off by default."""
    stage = Stage(server.client)
    stage.store = Store(DirectLink(server.client), ScriptConfig(**limits))
    return stage


def hand_off(stage: Stage, session: str = SESSION) -> str:
    """Hands over the next task of the one number that has any."""
    (facts,) = [facts for facts in stage.look() if facts.heads]
    assert stage.apply(facts, stage.to_send(facts.heads[0], session)) == "OK"
    return facts.heads[0].task


def send_one(stage: Stage, session: str = SESSION) -> str:
    """Hands over, claims and sends what is due on that session's phone."""
    stage.hello(session=session)
    task = hand_off(stage, session)
    assert stage.claim(task, session=session).code == "OK"
    stage.sent(task)
    return task


class TestRestriction:
    def test_a_463_locks_the_number_and_says_so(self, stage: Stage) -> None:
        """The message is given up, the number starts no new chats for the guessed time, and an incident tells."""
        _, task, _ = stage.claimed()
        stage.fail(task, code="RESTRICTED_463", lockedUntil=T0 + HOUR)
        known = stage.redis.hgetall(keys.phone(PHONE))
        assert (known["restriction"], known["restrictedUntil"]) == ("TIME_LOCKED", str(T0 + HOUR))
        assert [i["phone"] for i in incidents(stage, "PHONE_RESTRICTED")] == [PHONE]
        assert stage.redis.zscore(keys.restricted_phones(), PHONE) == T0

    def test_a_guess_does_not_change_what_is_stated(self, stage: Stage) -> None:
        """While a restriction lasts, another 463 neither prolongs it nor writes a second incident."""
        _, task, _ = stage.claimed()
        stage.redis.hset(keys.phone(PHONE), mapping={"restriction": "CAPPED", "restrictedUntil": T0 + 5})
        stage.fail(task, code="463", lockedUntil=T0 + HOUR)
        assert stage.redis.hget(keys.phone(PHONE), "restriction") == "CAPPED"
        assert incidents(stage, "PHONE_RESTRICTED") == []

    def state(
        self, stage: Stage, kind: str, until: int | None = None, at: int | None = None, session: str = SESSION
    ) -> None:
        """The platform's word."""
        stated = {"epoch": None, "at_ms": stage.now if at is None else at, "now_ms": stage.now}
        value_of(stage.store.sessions.restriction(session, kind, until, **stated))

    def restriction(self, stage: Stage) -> tuple[str | None, int]:
        known = stage.redis.hmget(keys.phone(PHONE), "restriction", "restrictedUntil")
        return known[0], int(known[1] or 0)

    def test_two_limits_have_two_ends(self, stage: Stage) -> None:
        """A lock of an hour does not make the number forget that its quota is used up for weeks, nor does its end."""
        stage.connect()
        self.state(stage, "CAPPED", T0 + 100 * HOUR)
        self.state(stage, "TIME_LOCKED", T0 + HOUR)
        assert self.restriction(stage) == ("CAPPED", T0 + 100 * HOUR)
        stage.now += 2 * HOUR
        self.state(stage, "TIME_LOCKED", T0 + HOUR)
        assert self.restriction(stage) == ("CAPPED", T0 + 100 * HOUR)
        self.state(stage, "NONE")
        assert self.restriction(stage) == (None, 0)
        assert len(incidents(stage, "PHONE_RESTRICTED")) == 2

    def test_of_two_hosts_the_one_whose_clock_is_behind_is_heard(self, stage: Stage) -> None:
        """Two clocks cannot be compared: its word was taken for an old one, and the number wrote on, or never again."""
        stage.connect()
        stage.connect("s2")
        self.state(stage, "NONE")
        stage.now += MINUTE
        self.state(stage, "TIME_LOCKED", T0 + HOUR, at=T0 - 5 * MINUTE, session="s2")
        assert self.restriction(stage) == ("TIME_LOCKED", T0 + HOUR)
        self.state(stage, "NONE", at=T0 - 6 * MINUTE, session="s2")
        assert self.restriction(stage) == ("TIME_LOCKED", T0 + HOUR), "of one session the older word is still the older"
        stage.now += MINUTE
        self.state(stage, "NONE", at=T0 - 4 * MINUTE, session="s2")
        assert self.restriction(stage) == (None, 0)

    def test_the_next_workers_first_word_is_heard_whatever_its_clock(self, stage: Stage) -> None:
        stage.connect()
        stage.hello("i1")
        self.state(stage, "NONE")
        stage.hello("i2")
        self.state(stage, "TIME_LOCKED", T0 + HOUR, at=T0 - 5 * MINUTE)
        assert self.restriction(stage) == ("TIME_LOCKED", T0 + HOUR)

    def test_the_platforms_word_replaces_our_guess(self, stage: Stage) -> None:
        """A guessed day becomes the stated hour: one incident, one count for the breaker, and what was parked for the
        day is parked for the hour."""
        _, task, _ = stage.claimed()
        stage.fail(task, code="463", lockedUntil=T0 + 24 * HOUR)
        job = stage.routed(1, first=9)
        (facts,) = stage.look()
        (head,) = facts.heads
        step = Step("park", head.entry, head.task, Reason.TIME_LOCKED, T0 + 24 * HOUR)
        stage.apply(facts, Idle(), step)
        stage.now += 50 * MINUTE
        self.state(stage, "TIME_LOCKED", T0 + HOUR)
        assert self.restriction(stage) == ("TIME_LOCKED", T0 + HOUR)
        assert stage.redis.zscore(keys.parked(PHONE), head.entry) == T0 + HOUR
        assert len(incidents(stage, "PHONE_RESTRICTED")) == 1
        assert stage.redis.zscore(keys.restricted_phones(), PHONE) == T0
        assert stage.byte(job.task_id(0)) == "p"

    def test_who_writes_to_a_locked_number_is_no_new_chat_any_more(self, stage: Stage) -> None:
        """What was parked for that person comes back at once, and nobody else's does."""
        stage.connect()
        self.state(stage, "TIME_LOCKED", T0 + HOUR)
        stage.routed(2)
        (facts,) = stage.look()
        steps = [Step("park", h.entry, h.task, Reason.TIME_LOCKED, T0 + HOUR) for h in facts.heads]
        stage.apply(facts, Idle(), *steps)
        stage.now += MINUTE
        value_of(stage.store.sessions.received(SESSION, recipient(0), at_ms=stage.now, now_ms=stage.now))
        (facts,) = stage.look()
        assert [(head.to, head.is_known) for head in facts.heads] == [(recipient(0), True)]

    def test_facts_tell_new_chats_from_known_ones(self, stage: Stage) -> None:
        """Whoever was written to before is known to that number; others are not. Asked only of one that is restricted:
        to others it makes no difference."""
        stage.connect()
        stage.routed(1)
        send_one(stage)
        stage.now += MINUTE
        stage.routed(2)
        (facts,) = stage.look()
        assert all(head.is_known for head in facts.heads)
        restricted = {"restriction": "TIME_LOCKED", "restrictedUntil": stage.now + HOUR}
        stage.set_facts(keys.phone(PHONE), **restricted)
        stage.now += 5_000
        (facts,) = stage.look()
        assert [(head.to, head.is_known) for head in facts.heads] == [(recipient(0), True), (recipient(1), False)]

    @pytest.mark.parametrize(
        ("until", "known", "code"),
        [
            pytest.param(T0 + 1, False, "RESTRICTED", id="a new chat"),
            pytest.param(T0 + 1, True, "OK", id="a known chat"),
            pytest.param(T0, False, "OK", id="its time has come"),
        ],
    )
    def test_the_claim_looks_again(self, stage: Stage, until: int, known: bool, code: str) -> None:
        """A restriction that came after the look at the gate still stops a new chat, and nothing else."""
        stage.connect()
        stage.routed(1)
        stage.hello()
        task = stage.hand_off()
        if known:
            stage.redis.zadd(keys.chats(PHONE), {recipient(0): T0})
        stage.set_facts(keys.phone(PHONE), restriction="TIME_LOCKED", restrictedUntil=until)
        assert stage.claim(task).code == code

    def test_whom_it_wrote_to_it_knows(self, stage: Stage) -> None:
        """By their messages, as long as they are kept; not whom another number wrote to, or nobody yet."""
        stage.connect()
        stage.connect("s2", "972500000002")
        stage.routed(2)
        send_one(stage)
        asked = {"phones": [PHONE, "972500000002"], "recipients": [recipient(0), recipient(1), recipient(7)]}
        assert value_of(stage.store.jobs.known_by(**asked)) == [{PHONE}, set(), set()]
        value_of(stage.store.sessions.received("s2", recipient(7), at_ms=T0, now_ms=T0))
        assert value_of(stage.store.jobs.known_by(**asked)) == [{PHONE}, set(), {"972500000002"}]
        stage.redis.delete(keys.person(recipient(0)))
        assert value_of(stage.store.jobs.known_by(**asked))[0] == set()

    def test_a_look_under_way_is_void(self, stage: Stage) -> None:
        """A restriction between the look and the hand-over: the decision does not know of it, so it is refused."""
        _, task, _ = stage.claimed()
        stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        stage.routed(1, first=50)
        (facts,) = stage.look()
        stage.fail(task, code="463", lockedUntil=T0 + HOUR)
        assert stage.apply(facts, stage.to_send(facts.heads[0])) == "STALE"

    def test_only_the_newest_chats_are_remembered(self, stage: Stage) -> None:
        """The list of people who wrote to a number is bounded; who has not written for longest is forgotten."""
        stage.connect()
        stage.redis.zadd(keys.chats(PHONE), {f"9{number:011d}": number for number in range(20_000)})
        value_of(stage.store.sessions.received(SESSION, recipient(0), at_ms=T0, now_ms=T0))
        assert stage.redis.zcard(keys.chats(PHONE)) == 20_000
        assert stage.redis.zscore(keys.chats(PHONE), recipient(0)) == T0
        assert stage.redis.zscore(keys.chats(PHONE), f"9{0:011d}") is None

    def test_how_many_are_remembered_can_be_set(self, server: LiveServer) -> None:
        stage = limited(server, chats_kept=2)
        stage.connect()
        for number in range(4):
            stage.now += 1
            value_of(stage.store.sessions.received(SESSION, recipient(number), at_ms=stage.now, now_ms=stage.now))
        assert stage.redis.zrange(keys.chats(PHONE), 0, -1) == [recipient(2), recipient(3)]


class TestBreaker:
    def restrict(self, stage: Stage, number: int) -> None:
        stage.connect(f"s{number}", f"97250000000{number}")
        stage.event(f"s{number}", connection="FAILED", quarantine="BANNED_403")

    def test_three_within_an_hour_stop_everything(self, stage: Stage) -> None:
        """The third number restricted within an hour pauses the fleet, once, and names them."""
        for number in (1, 2):
            self.restrict(stage, number)
            stage.now += HOUR // 2
        assert stage.redis.hget(keys.fleet(), "paused") is None
        self.restrict(stage, 3)
        assert stage.redis.hmget(keys.fleet(), "paused", "pausedReason") == ["1", "BREAKER"]
        self.restrict(stage, 4)
        (tripped,) = incidents(stage, "FLEET_BREAKER")
        assert tripped["phones"] == ["972500000001", "972500000002", "972500000003"]

    def test_three_over_a_longer_time_do_not(self, stage: Stage) -> None:
        """The first has fallen out of the hour by the time the third comes."""
        for number in (1, 2, 3):
            self.restrict(stage, number)
            stage.now += HOUR // 2 + 1
        assert stage.redis.hget(keys.fleet(), "paused") is None

    def test_one_number_again_and_again_is_one(self, stage: Stage) -> None:
        """A banned number that says so a second time is not a second number."""
        for _ in range(4):
            self.restrict(stage, 1)
            stage.now += 1
        assert stage.redis.zcard(keys.restricted_phones()) == 1
        assert stage.redis.hget(keys.fleet(), "paused") is None


class TestGlobalRpm:
    def fleet(self, server: LiveServer) -> Stage:
        stage = limited(server, global_rpm=1)
        for session, phone, first in ((SESSION, PHONE, 0), (SECOND, OTHER, 10)):
            stage.connect(session, phone)
            stage.routed(2, phone=phone, first=first)
            stage.hello(session=session)
        return stage

    def try_both(self, stage: Stage) -> dict[str, str]:
        sessions = {PHONE: SESSION, OTHER: SECOND}
        return {
            facts.phone: stage.apply(facts, stage.to_send(facts.heads[0], sessions[facts.phone]))
            for facts in stage.look()
            if facts.heads
        }

    def test_one_at_a_time_whoever_it_is(self, server: LiveServer) -> None:
        """Two numbers that are due in the same look: the first takes the fleet's slot, the other is told to wait."""
        stage = self.fleet(server)
        assert sorted(self.try_both(stage).values()) == ["GLOBAL", "OK"]

    def test_unsettled_counts_until_it_is_settled_and_then_a_minute(self, server: LiveServer) -> None:
        """As long as nobody knows when it went out it blocks; afterwards for a minute from when we heard of it."""
        stage = self.fleet(server)
        first = next(phone for phone, code in self.try_both(stage).items() if code == "OK")
        task, session = stage.pacer(first)["unsettled"], {PHONE: SESSION, OTHER: SECOND}[first]
        stage.claim(task, session=session)
        stage.now += 5 * MINUTE
        assert set(self.try_both(stage).values()) == {"GLOBAL"}
        stage.sent(task)
        stage.now += MINUTE
        assert set(self.try_both(stage).values()) == {"GLOBAL"}
        stage.now += 1_001
        assert "OK" in self.try_both(stage).values()

    def test_what_did_not_go_out_frees_its_place(self, server: LiveServer) -> None:
        """A hand-over that nobody claimed gives the fleet's slot back at once."""
        stage = self.fleet(server)
        first = next(phone for phone, code in self.try_both(stage).items() if code == "OK")
        stage.settle(stage.pacer(first)["unsettled"], "returned", from_="h", unitBack=True, reason="NOT_CLAIMED")
        assert stage.redis.zcard(keys.fleet_sends()) == 0

    def test_who_waited_longest_goes_first(self, server: LiveServer) -> None:
        """Three numbers under a ceiling of two: each gets its share. Ordered by digits alone the last would starve."""
        stage = limited(server, global_rpm=2)
        sessions = {f"97250000000{number}": f"s{number}" for number in (1, 2, 3)}
        for number, (phone, session) in enumerate(sessions.items()):
            stage.connect(session, phone)
            stage.routed(40, phone=phone, first=100 * number)
            stage.hello(session=session)
        sent = dict.fromkeys(sessions, 0)
        for _ in range(30 * 60):
            for facts in stage.look():
                if facts.heads and stage.apply(facts, stage.to_send(facts.heads[0], sessions[facts.phone])) == "OK":
                    task = facts.heads[0].task
                    stage.claim(task, session=sessions[facts.phone])
                    stage.sent(task)
                    sent[facts.phone] += 1
            stage.now += 1_000
        assert sum(sent.values()) >= 56
        assert min(sent.values()) >= 14, sent
        assert stage.redis.zcard(keys.fleet_waiting()) <= 3

    def test_a_place_in_the_line_is_given_up(self, server: LiveServer) -> None:
        """A number that waits for something else by now does not hold up those behind it."""
        stage = self.fleet(server)
        waiting = next(phone for phone, code in self.try_both(stage).items() if code == "GLOBAL")
        assert stage.redis.zrange(keys.fleet_waiting(), 0, -1) == [waiting]
        stage.now += MINUTE
        for facts in stage.look():
            stage.apply(facts, Wait(stage.now + HOUR, Reason.QUIET_HOURS))
        assert stage.redis.zcard(keys.fleet_waiting()) == 0

    def test_a_number_without_work_leaves_the_line(self, server: LiveServer) -> None:
        """An operator canceled its queue: nobody looks at it again, and its place would be taken for ever."""
        stage = self.fleet(server)
        waiting = next(phone for phone, code in self.try_both(stage).items() if code == "GLOBAL")
        session = {PHONE: SESSION, OTHER: SECOND}[waiting]
        value_of(stage.store.operators.cancel_queue(session, waiting, by="k", now_ms=stage.now))
        assert stage.redis.zcard(keys.fleet_waiting()) == 0

    def test_a_number_that_cannot_be_read_leaves_the_line(self, server: LiveServer) -> None:
        stage = self.fleet(server)
        waiting = next(phone for phone, code in self.try_both(stage).items() if code == "GLOBAL")
        stage.redis.rpush(keys.queue(waiting), "not JSON")
        stage.now += MINUTE
        stage.look()
        assert stage.redis.zcard(keys.fleet_waiting()) == 0

    def test_the_facts_say_when(self, server: LiveServer) -> None:
        """The policy reads the time from which the fleet may send again."""
        stage = self.fleet(server)
        self.try_both(stage)
        stage.now += 10_000
        assert {facts.global_free_at for facts in stage.look()} == {stage.now + 1_000}


class TestFrequency:
    def crowd(self, server: LiveServer) -> Stage:
        stage = limited(server, frequency_cap=1, frequency_window=HOUR)
        for session, phone in ((SESSION, PHONE), (SECOND, OTHER)):
            stage.connect(session, phone)
            stage.hello(session=session)
        return stage

    def test_a_repeat_that_nobody_claimed_leaves_the_try_before_counted(self, server: LiveServer) -> None:
        """The first try may have gone out; that its repeat did not says nothing about it."""
        stage = limited(server, frequency_cap=1, frequency_window=HOUR)
        _, task, token = stage.claimed()
        stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        stage.retry(task, pinned=True, unitBack=None, token=token)
        stage.now += MINUTE
        stage.release()
        [facts] = stage.look()
        assert stage.apply(facts, stage.to_send(facts.heads[0])) == "OK"
        stage.settle(task, "returned", from_="h", unitBack=True, reason="NOT_CLAIMED")
        assert stage.redis.zrange(keys.recipient_sends(recipient(0)), 0, -1) == [task]

    def test_two_numbers_cannot_both_write_to_one_person(self, server: LiveServer) -> None:
        """Both looked before either handed over; the second hand-over is refused."""
        stage = self.crowd(server)
        stage.send(recipient(0), PHONE)
        stage.send(recipient(0), OTHER)
        one, other = stage.look()
        sessions = {PHONE: SESSION, OTHER: SECOND}
        assert stage.apply(one, stage.to_send(one.heads[0], sessions[one.phone])) == "OK"
        assert stage.apply(other, stage.to_send(other.heads[0], sessions[other.phone])) == "FREQUENCY"

    def test_the_facts_say_until_when(self, server: LiveServer) -> None:
        """From the confirmed send on, for the setting's time; a message does not stand in its own way."""
        stage = self.crowd(server)
        stage.routed(1)
        send_one(stage)
        sent_at = stage.now
        stage.now += MINUTE
        stage.routed(2)
        (facts,) = [facts for facts in stage.look() if facts.heads]
        assert [head.frequency_free_at for head in facts.heads] == [sent_at + HOUR, 0]
        stage.apply(facts, Idle())
        stage.now = sent_at + HOUR
        assert {head.frequency_free_at for facts in stage.look() for head in facts.heads} == {0}

    def test_what_did_not_go_out_does_not_count(self, server: LiveServer) -> None:
        """A refused send, a withdrawn or canceled hand-over takes nothing from the person's share."""
        stage = self.crowd(server)
        stage.routed(1)
        task = hand_off(stage)
        assert stage.redis.zscore(keys.recipient_sends(recipient(0)), f"h:{task}") == stage.now
        stage.settle(task, "returned", from_="h", unitBack=True, reason="NOT_CLAIMED")
        assert stage.redis.exists(keys.recipient_sends(recipient(0))) == 0

    def test_a_lease_that_ended_and_nothing_sent_after_all(self, server: LiveServer) -> None:
        """The doubt is taken back, and with it the count."""
        stage = self.crowd(server)
        stage.routed(1)
        task = hand_off(stage)
        token = stage.claim(task).token
        stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        stage.settle(task, "returned", from_="cu", token=token, unitBack=True, reason="GIVEN_BACK")
        assert stage.redis.exists(keys.recipient_sends(recipient(0))) == 0

    def test_what_is_only_handed_over_is_looked_at_again_soon(self, server: LiveServer) -> None:
        """It may turn out not to have gone; a message must not wait a day for that."""
        stage = self.crowd(server)
        stage.send(recipient(0), PHONE)
        stage.send(recipient(0), OTHER)
        one, other = stage.look()
        stage.apply(one, stage.to_send(one.heads[0], {PHONE: SESSION, OTHER: SECOND}[one.phone]))
        stage.apply(other, Wait(stage.now, Reason.IN_TURN))
        (again,) = [facts for facts in stage.look() if facts.heads]
        assert again.heads[0].frequency_free_at == stage.now + MINUTE

    def test_what_may_have_gone_out_counts(self, server: LiveServer) -> None:
        """Unknown is not "no"."""
        stage = self.crowd(server)
        stage.routed(1)
        task = hand_off(stage)
        stage.claim(task)
        stage.now += MINUTE
        stage.settle(task, "unknown", from_="c", reason="LEASE_ENDED")
        assert stage.redis.zscore(keys.recipient_sends(recipient(0)), task) == stage.now


class TestPausedAndStopped:
    def test_a_paused_job_is_refused_at_every_gate(self, stage: Stage) -> None:
        """Between look and hand-over, and between hand-over and claim."""
        stage.connect()
        stage.hello()
        job = stage.routed(2)
        (facts,) = stage.look()
        stage.redis.hset(keys.job_run(job.job_id), "state", "PAUSED")
        assert stage.apply(facts, stage.to_send(facts.heads[0])) == "JOB_PAUSED"
        (facts,) = stage.look()
        assert [head.job_paused for head in facts.heads] == [True, True]
        stage.redis.hset(keys.job_run(job.job_id), "state", "ROUTED")
        assert stage.apply(facts, stage.to_send(facts.heads[0])) == "OK"
        stage.redis.hset(keys.job_run(job.job_id), "state", "PAUSED")
        assert stage.open().task.job_paused
        assert stage.claim(facts.heads[0].task).code == "PAUSED"

    def test_a_paused_jobs_messages_still_expire(self, stage: Stage) -> None:
        """What lies at the cursor of a paused job ends with its validity, and the job with it."""
        job = stage.accept(3, validity_seconds=60)
        value_of(stage.store.queues.pause_job(job.job_id, now_ms=stage.now))
        assert stage.turn().code == "NONE"
        stage.now += MINUTE
        turn = stage.turn()
        assert (turn.code, turn.state) == ("OK", "PAUSED")
        routes = [TaskRoute(0, to=recipient(0), phone=PHONE, expires_at=job.expires_at(0))]
        assert value_of(stage.store.jobs.route(job, 0, routes, now_ms=stage.now)).code == "CLOSED"
        ended = [TaskRoute(index, ends="E") for index in range(2)]
        assert value_of(stage.store.jobs.route(job, 0, ended, now_ms=stage.now)).cursor == 2
        assert (stage.states(job), stage.run(job)["state"]) == ("EEq", "PAUSED")
        assert stage.turn().cursor == 2
        value_of(stage.store.jobs.route(job, 2, [TaskRoute(2, ends="E")], now_ms=stage.now))
        assert stage.run(job)["state"] == "DONE_WITH_ERRORS"
        stage.adds_up(job)
        assert stage.turn().code == "NONE"

    def test_a_paused_job_gets_no_turn(self, stage: Stage) -> None:
        """Neither when it comes new from the gateway nor while a router holds its turn."""
        job = stage.accept(3)
        stage.redis.hset(keys.job_run(job.job_id), "state", "PAUSED")
        assert stage.turn().code == "NONE"
        other = stage.accept(3, first=10)
        assert stage.turn().job == other.job_id
        stage.redis.hset(keys.job_run(other.job_id), "state", "PAUSED")
        assert stage.route(other).code == "CLOSED"

    def test_stopped_dispatchers_do_nothing(self, stage: Stage) -> None:
        """No turn, no look, no release, and a decision made before is refused; started again all goes on."""
        stage.connect()
        stage.routed(2)
        (facts,) = stage.look()
        stage.accept(1, first=20)
        stage.send(recipient(40), send_at=T0 + 1)
        stage.redis.hset(keys.fleet(), "stopped", 1)
        assert stage.apply(facts, stage.to_send(facts.heads[0])) == "STOPPED"
        stage.now += MINUTE
        assert (stage.turn().code, stage.look(), stage.release().released) == ("NONE", [], 0)
        stage.redis.hdel(keys.fleet(), "stopped")
        assert stage.turn().code == "OK"
        assert stage.release().released == 1
        assert len(stage.look()) == 1

    @pytest.mark.parametrize("field", ["quarantined", "cooldownUntil"])
    def test_a_number_put_to_rest_after_the_gate_is_not_given_its_task(self, stage: Stage, field: str) -> None:
        """The claim itself looks again at what happened to the number."""
        stage.connect()
        stage.routed(1)
        stage.hello()
        task = stage.hand_off()
        stage.redis.hset(keys.phone(PHONE), field, 1 if field == "quarantined" else T0 + 1)
        assert stage.claim(task).code == "PAUSED"


class TestWhatIsCounted:
    def test_sends_and_failures_of_the_last_minute(self, stage: Stage) -> None:
        """Sent, handed over and failed are counted per session for a minute; a recipient's own fault is counted there
        and not held against the number."""
        stage.connect()
        stage.hello()
        stage.routed(3)
        send_one(stage)
        for code, own in (("SEND_FAILED", False), ("NOT_ON_WHATSAPP", True)):
            stage.now += 10_000
            task = stage.hand_off()
            stage.claim(task)
            stage.fail(task, code=code, recipientOnly=own)
        (minute,) = value_of(stage.store.operators.last_minute([(SESSION, PHONE)], now_ms=stage.now))
        assert (minute.sent, minute.routed, minute.failed) == (1, 3, 2)
        told = {name: stage.redis.get(keys.metric(SESSION, name)) for name in ("sent60s", "routed60s", "failed60s")}
        assert told == {"sent60s": "1", "routed60s": "1", "failed60s": "2"}
        look = value_of(stage.store.pacers.look(PHONE, now_ms=stage.now))
        assert look is not None
        assert look.facts.failures == (T0 + 10_000,)

    def test_a_cooldown_writes_an_incident(self, stage: Stage) -> None:
        """Whoever looks at the incidents sees which number rests, and until when."""
        _, task, _ = stage.claimed()
        stage.retry(task, code="RATE_LIMIT", cooldownUntil=T0 + HOUR)
        (incident,) = incidents(stage, "PHONE_COOLDOWN")
        assert (incident["phone"], incident["until"], incident["code"]) == (PHONE, T0 + HOUR, "RATE_LIMIT")

    def test_delivery_time_is_summed(self, stage: Stage) -> None:
        """From the confirmed send to the first receipt; read without delivered counts as both."""
        _, task, _ = stage.claimed()
        stage.sent(task)
        stage.now += 4_000
        stage.sent(task, "read")
        stage.sent(task, "delivered")
        names = ("sent", "delivered", "read", "deliveryMs")
        assert [stage.redis.get(keys.session_stats(SESSION, DAY, name)) for name in names] == ["1", "1", "1", "4000"]

    def test_a_look_changes_nothing(self, stage: Stage) -> None:
        """`explain` may be asked as often as anybody likes."""
        stage.connect()
        stage.routed(3)
        before = stage.dump()
        seen = value_of(stage.store.pacers.look(PHONE, now_ms=stage.now))
        assert seen is not None
        assert [head.task for head in seen.facts.heads] == stage.queue()
        assert (stage.dump(), value_of(stage.store.pacers.look("1", now_ms=stage.now))) == (before, None)


def test_a_wait_for_the_fleet_is_visible(server: LiveServer) -> None:
    """The number that was refused says why it waits."""
    fleet = TestGlobalRpm()
    stage = fleet.fleet(server)
    waiting = next(phone for phone, code in fleet.try_both(stage).items() if code == "GLOBAL")
    assert stage.pacer(waiting)["waitReason"] == Reason.GLOBAL_LIMIT
