"""Operators' decisions about the fleet and about one number: each return code, and that saying it twice is once."""

from typing import Any

import msgspec
import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Wait
from paceline.policy.pacing import PacerFields
from paceline.store import keys
from paceline.store.operators import Operators

from .stage import GAP, HOUR, PHONE, SESSION, T0, Stage, heard, value_of

OTHER = "972500000002"
LIST_NAMED = "outbox:s1"
"""As a session id it would name the key of an outbox, which is a list."""


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.connect()
    stage.hello()
    return stage


def operators(stage: Stage) -> Operators:
    return stage.store.operators


def incidents(stage: Stage, kind: str) -> list[dict[str, Any]]:
    found = value_of(operators(stage).incidents())
    return [{k: v for k, v in line.items() if k != "kind"} for line in found if line["kind"] == kind]


class TestStopAndStart:
    def say(self, stage: Stage, stopped: bool) -> Any:
        return value_of(operators(stage).stop(stopped, by="k", now_ms=stage.now))

    def test_a_first_boot_runs(self, stage: Stage) -> None:
        state = value_of(operators(stage).fleet())
        assert (state.stopped, state.paused, state.reason, state.since) == (False, False, None, None)

    def test_each_change_is_one_incident(self, stage: Stage) -> None:
        answers = [self.say(stage, stopped) for stopped in (False, True, True, False, False)]
        assert [(a.changed, a.stopped) for a in answers] == [
            (False, False), (True, True), (False, True), (True, False), (False, False),
        ]  # fmt: skip
        assert incidents(stage, "FLEET_STOPPED") == [{"at": T0, "by": "k"}]
        assert incidents(stage, "FLEET_STARTED") == [{"at": T0, "by": "k"}]
        assert not stage.redis.exists(keys.fleet())

    def test_while_stopped_nothing_is_routed_looked_at_handed_over_or_released(self, ready: Stage) -> None:
        ready.routed(2)
        (facts,) = ready.look()
        ready.send("972540000009", send_at=T0 + 1)
        ready.accept(1, first=50)
        self.say(ready, True)
        assert ready.apply(facts, ready.to_send(facts.heads[0])) != "OK"
        ready.now += HOUR
        assert ready.look() == []
        assert ready.turn().code == "NONE"
        assert ready.release().released == 0

    def test_starting_wakes_routers_and_pacers(self, stage: Stage) -> None:
        assert set(heard(stage.redis, lambda: self.say(stage, False))) == {"jobs", "due"}
        assert heard(stage.redis, lambda: self.say(stage, True)) == []


class TestPauseAndResume:
    def say(self, stage: Stage, paused: bool) -> Any:
        return value_of(operators(stage).pause(paused, by="k", now_ms=stage.now))

    def test_paused_by_hand(self, stage: Stage) -> None:
        state = self.say(stage, True)
        assert (state.changed, state.paused, state.reason, state.since) == (True, True, "OPERATOR", T0)
        stage.now += 1
        again = self.say(stage, True)
        assert (again.changed, again.paused, again.since) == (False, True, T0)
        assert incidents(stage, "FLEET_PAUSED") == [{"at": T0, "by": "k", "reason": "OPERATOR"}]

    def test_a_tripped_breaker_keeps_its_reason_until_it_is_resumed(self, stage: Stage) -> None:
        stage.redis.hset(keys.fleet(), mapping={"paused": 1, "pausedReason": "BREAKER", "pausedAt": 5})
        stage.redis.zadd(keys.restricted_phones(), {"1": T0, "2": T0, "3": T0})
        assert self.say(stage, True).reason == "BREAKER"
        state = self.say(stage, False)
        assert (state.changed, state.paused, state.reason, state.since) == (True, False, None, None)
        # It counts from nothing again, or the next restricted number would stop everything at once.
        assert not stage.redis.exists(keys.restricted_phones(), keys.fleet())
        assert incidents(stage, "FLEET_RESUMED") == [{"at": T0, "by": "k", "reason": "BREAKER"}]

    def test_resuming_what_runs_is_no_incident(self, stage: Stage) -> None:
        assert not self.say(stage, False).changed
        assert stage.dump() == {}

    def test_stopped_and_paused_do_not_touch_each_other(self, stage: Stage) -> None:
        value_of(operators(stage).stop(True, by="k", now_ms=T0))
        self.say(stage, True)
        assert value_of(operators(stage).stop(False, by="k", now_ms=T0)).paused
        assert not self.say(stage, False).stopped


class TestLookAtAll:
    def test_phones_that_wait_are_due_now_in_pages(self, stage: Stage) -> None:
        phones = {f"9725{number:08d}": T0 + number * 1_000 for number in range(7)}
        stage.redis.zadd(keys.due(), phones)
        assert stage.call("look_at_all", now=T0, limit=3) == {"code": "OK", "more": True}
        assert stage.redis.zcount(keys.due(), T0, T0) == 4
        assert stage.call("look_at_all", now=T0, limit=3)["more"]
        assert not stage.call("look_at_all", now=T0, limit=3)["more"]
        assert set(stage.redis.zrange(keys.due(), 0, -1, withscores=True)) == {(phone, T0) for phone in phones}

    def test_it_ends_although_phones_go_on_waiting(self, stage: Stage) -> None:
        stage.redis.zadd(keys.due(), {f"{number}": T0 + HOUR for number in range(2_500)})
        value_of(operators(stage).look_at_all(now_ms=T0))
        assert stage.redis.zcount(keys.due(), T0, T0) == 2_500

    def test_a_look_that_saw_the_fleet_paused_puts_nothing_to_sleep(self, ready: Stage) -> None:
        """The pacer looked before the resume and says "wait" after it: the phone would sleep for another minute."""
        ready.routed(1)
        ready.redis.hset(keys.fleet(), "paused", 1)
        (facts,) = ready.look()
        value_of(operators(ready).pause(False, by="k", now_ms=T0))
        value_of(operators(ready).look_at_all(now_ms=T0))
        assert ready.apply(facts, Wait(T0 + 60_000, Reason.FLEET_PAUSED)) == "STALE"
        assert ready.due_at() == T0

    def test_it_wakes_the_pacers(self, stage: Stage) -> None:
        assert heard(stage.redis, lambda: value_of(operators(stage).look_at_all(now_ms=T0))) == ["due"]


class TestLooking:
    def test_parked_are_counted_over_pages(self, stage: Stage) -> None:
        for number in range(3):
            phone = f"97250000000{number}"
            stage.register(f"s{number}", phone)
            for i in range(number):
                stage.redis.zadd(keys.parked(phone), {f"e{i}": 1})
        assert stage.call("count_parked", offset=0, limit=2) == {"code": "OK", "parked": 1, "phones": 2}
        assert value_of(operators(stage).parked()) == 3

    def test_a_watched_phone_tells_its_queues_and_what_was_written_about_its_wait(self, ready: Stage) -> None:
        job = ready.routed(2)
        ready.routed(1, first=5, priority=3)
        (facts,) = ready.look()
        ready.apply(facts, Wait(T0 + 9_000, Reason.COOLDOWN))
        ready.redis.zadd(keys.parked(PHONE), {msgspec.json.encode(["x:1", "1"]).decode(): T0 + 7})
        ready.redis.hset(keys.message("x:1"), "waitReason", "RECIPIENT_HOURS")
        before = ready.dump()
        (seen,) = value_of(operators(ready).watch([PHONE, "972599999999"]))
        assert ready.dump() == before
        assert (seen.facts.phone, seen.queued, seen.queue_len, seen.parked) == (PHONE, (2, 0, 1), 3, 1)
        assert (seen.wait_reason, seen.wait_until) == ("COOLDOWN", T0 + 9_000)
        assert (seen.parked_reason, seen.parked_until) == ("RECIPIENT_HOURS", T0 + 7)
        assert job.total == 2

    def test_a_session_that_only_looks_like_one_has_no_phone(self, ready: Stage) -> None:
        ready.redis.lpush(keys.outbox(SESSION), "t")
        assert value_of(operators(ready).phone_of(SESSION)) == PHONE
        assert value_of(operators(ready).phone_of("nobody")) is None
        assert value_of(operators(ready).phone_of(LIST_NAMED)) is None

    def test_the_last_minute_counts_sixty_seconds(self, ready: Stage) -> None:
        """What was refused went over the wire, too, and is no message that was sent."""
        wire = [(T0 - 60_000, "s"), (T0 - 59_999, "s"), (T0 - 5, "x"), (T0, "s")]
        ready.set_pacer(sends="".join(f"{at}{at}{how}" for at, how in wire), sentBy=SESSION)
        ready.redis.hset(keys.pacer(PHONE), "failed:s2", f"{T0 - 60_000},{T0}")
        first, second = value_of(operators(ready).last_minute([(SESSION, PHONE), ("s2", PHONE)], now_ms=T0))
        assert (first.sent, first.routed, first.failed) == (2, 2, 0)
        assert (second.sent, second.routed, second.failed) == (0, 1, 1)
        assert value_of(operators(ready).last_minute([], now_ms=T0)) == []

    def test_two_sessions_of_a_number_have_a_minute_each(self, ready: Stage) -> None:
        ready.connect("s2", PHONE)
        ready.routed(4)
        for number, session in enumerate((SESSION, "s2", "s2", SESSION)):
            ready.now = T0 + number * GAP.ms
            task = ready.hand_off(session)
            if number < 3:
                ready.sent(task)
        minutes = value_of(operators(ready).last_minute([(SESSION, PHONE), ("s2", PHONE)], now_ms=ready.now))
        # The last one is in the first one's hands.
        assert [(one.sent, one.routed) for one in minutes] == [(1, 2), (2, 2)]


class TestWhoSent:
    def sends(self, stage: Stage, *sessions: str) -> dict[str, int]:
        stage.connect("s2", PHONE)
        stage.routed(len(sessions))
        for session in sessions:
            stage.now += GAP.ms
            stage.sent(stage.hand_off(session))
        both = [(SESSION, PHONE), ("s2", PHONE)]
        found = value_of(operators(stage).last_minute(both, now_ms=stage.now))
        return {session: minute.sent for (session, _), minute in zip(both, found, strict=True)}

    def test_the_first_keeps_what_it_sent_when_another_sends(self, ready: Stage) -> None:
        assert self.sends(ready, *[SESSION] * 5, "s2") == {SESSION: 5, "s2": 1}

    def test_after_a_while_of_one_alone_its_name_is_enough_again(self, ready: Stage) -> None:
        """As many names as sends are kept; the text must not grow."""
        assert self.sends(ready, SESSION, "s2", *[SESSION] * 40)["s2"] == 0
        assert ready.pacer()["sentBy"] == SESSION


@pytest.mark.parametrize("session", ["nobody", LIST_NAMED])
def test_an_unknown_session_changes_nothing(ready: Stage, session: str) -> None:
    ready.redis.lpush(keys.outbox(SESSION), "t")
    before = ready.dump()
    said, verbs = {"by": "k", "now_ms": T0}, operators(ready)
    for answer in (
        verbs.set_pacer(session, set_={"rpm": 5}, remove=[], **said),  # type: ignore[arg-type]
        verbs.set_rpm(session, 5, exceeds_trust=False, **said),  # type: ignore[arg-type]
        verbs.clear_cooldown(session, **said),  # type: ignore[arg-type]
        verbs.requeue(session, liveness_ms=60_000, **said),  # type: ignore[arg-type]
    ):
        assert value_of(answer).code == "UNKNOWN_SESSION"
    assert ready.dump() == before


class TestPacer:
    def say(self, stage: Stage, *remove: str, **set_: int) -> Any:
        return value_of(operators(stage).set_pacer(SESSION, set_=set_, remove=remove, by="k", now_ms=stage.now))

    def kept(self, stage: Stage) -> PacerFields:
        (seen,) = value_of(operators(stage).watch([PHONE]))
        return seen.facts.pacer

    def test_fields_are_kept_changed_and_forgotten_one_by_one(self, ready: Stage) -> None:
        answer = self.say(ready, minDelayMs=1_000, burstLimit=0)
        assert (answer.code, answer.phone, answer.changed) == ("OK", PHONE, True)
        assert self.kept(ready) == PacerFields(min_delay_ms=1_000, burst_limit=0)
        self.say(ready, "burstLimit", maxDelayMs=2_000, rpm=5)
        assert self.kept(ready) == PacerFields(min_delay_ms=1_000, max_delay_ms=2_000, rpm=5)
        assert incidents(ready, "PACER_CHANGED") == [
            {
                "at": T0, "phone": PHONE, "sessionId": SESSION, "by": "k",
                "from": {"minDelayMs": 1_000, "burstLimit": 0},
                "to": {"minDelayMs": 1_000, "maxDelayMs": 2_000, "rpm": 5},
            },
            {
                "at": T0, "phone": PHONE, "sessionId": SESSION, "by": "k", "from": {},
                "to": {"minDelayMs": 1_000, "burstLimit": 0},
            },
        ]  # fmt: skip
        self.say(ready, "minDelayMs", "maxDelayMs", "rpm")
        assert self.kept(ready) == PacerFields()

    def test_the_same_again_is_no_change(self, ready: Stage) -> None:
        self.say(ready, rpm=5)
        before = ready.dump()
        assert not self.say(ready, "minDelayMs", rpm=5).changed
        assert ready.dump() == before

    @pytest.mark.parametrize(
        ("kept", "remove", "set_"),
        [
            pytest.param({}, [], {"minDelayMs": 2, "maxDelayMs": 1}, id="both at once"),
            pytest.param({"maxDelayMs": 1}, [], {"minDelayMs": 2}, id="over what is kept"),
            pytest.param({"minDelayMs": 2}, [], {"maxDelayMs": 1}, id="under what is kept"),
        ],
    )
    def test_a_window_that_is_inverted_is_refused_whole(
        self, ready: Stage, kept: dict[str, int], remove: list[str], set_: dict[str, int]
    ) -> None:
        if kept:
            self.say(ready, **kept)
        before = ready.dump()
        answer = self.say(ready, *remove, burstLimit=3, **set_)
        assert (answer.code, answer.min_delay_ms, answer.max_delay_ms) == ("INVERTED", 2, 1)
        assert ready.dump() == before

    def test_forgetting_one_end_lets_the_other_be_set(self, ready: Stage) -> None:
        self.say(ready, maxDelayMs=1)
        assert self.say(ready, "maxDelayMs", minDelayMs=2).code == "OK"

    def test_a_look_under_way_is_void_and_the_next_is_now(self, ready: Stage) -> None:
        ready.routed(1)
        (facts,) = ready.look()
        self.say(ready, rpm=2)
        assert ready.due_at() == T0
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "STALE"


def _removed(stage: Stage, session: str) -> None:
    stage.call("wish", session=session, wish="remove", reason="OPERATOR", by="k", now=stage.now)
    assert stage.call("finish_removal", session=session, now=stage.now)["code"] == "OK"


def _override(stage: Stage) -> tuple[int | None, str]:
    facts = value_of(stage.store.pacers.look(PHONE, now_ms=stage.now)).facts
    return facts.rpm_override, facts.rpm_source


def test_an_override_outlives_the_session_it_was_set_at(stage: Stage) -> None:
    """It is the phone's: a second device gets it, and so does the first one after the last was removed."""
    stage.connect("one")
    value_of(operators(stage).set_rpm("one", 2, exceeds_trust=False, by="k", now_ms=stage.now))
    stage.connect("two")
    _removed(stage, "one")
    assert _override(stage) == (2, "manual")
    _removed(stage, "two")
    stage.connect("three")
    assert _override(stage) == (2, "manual")
    assert stage.redis.get(keys.session_rpm("three")) == "2"
    value_of(operators(stage).set_rpm("three", None, exceeds_trust=False, by="k", now_ms=stage.now))
    stage.connect("four")
    assert _override(stage) == (None, "")


class TestRpm:
    def say(self, stage: Stage, rpm: int | None, session: str = SESSION, *, exceeds: bool = False) -> Any:
        given = {"exceeds_trust": exceeds, "by": "k", "now_ms": stage.now}
        return value_of(operators(stage).set_rpm(session, rpm, **given))  # type: ignore[arg-type]

    def test_it_stands_at_all_sessions_of_the_phone_and_at_no_other(self, ready: Stage) -> None:
        ready.connect("s2")
        ready.connect("s3", OTHER)
        answer = self.say(ready, 5, exceeds=True)
        assert (answer.code, answer.phone, answer.changed) == ("OK", PHONE, True)
        assert ready.redis.mget([keys.session_rpm(s) for s in ("s1", "s2", "s3")]) == ["5", "5", None]
        assert ready.redis.mget([keys.session_rpm_source(s) for s in ("s1", "s2")]) == ["manual", "manual"]
        assert ready.redis.hget(keys.phone(PHONE), "rpmChangedAt") == str(T0)
        assert incidents(ready, "RPM_OVERRIDE") == [
            {
                "at": T0, "phone": PHONE, "sessionId": SESSION, "from": None, "to": 5, "by": "k", "exceedsTrust": True,
            }
        ]  # fmt: skip

    def test_null_removes_it_everywhere(self, ready: Stage) -> None:
        ready.connect("s2")
        self.say(ready, 5)
        assert self.say(ready, None, "s2").changed
        assert not ready.redis.exists(
            *[key(s) for s in ("s1", "s2") for key in (keys.session_rpm, keys.session_rpm_source)]
        )
        assert (incidents(ready, "RPM_OVERRIDE")[0]["from"], incidents(ready, "RPM_OVERRIDE")[0]["to"]) == (5, None)
        before = ready.dump()
        assert not self.say(ready, None).changed
        assert ready.dump() == before

    def test_the_same_again_is_no_change_but_taking_over_smartguards_is(self, ready: Stage) -> None:
        ready.redis.mset({keys.session_rpm(SESSION): 5, keys.session_rpm_source(SESSION): "smartguard"})
        assert self.say(ready, 5).changed
        before = ready.dump()
        assert not self.say(ready, 5).changed
        assert ready.dump() == before
        assert ready.redis.get(keys.session_rpm_source(SESSION)) == "manual"

    def test_a_session_that_came_later_has_it_too(self, ready: Stage) -> None:
        self.say(ready, 5)
        ready.connect("s2")
        assert not self.say(ready, 5).changed
        assert ready.redis.get(keys.session_rpm("s2")) == "5"

    def test_a_look_under_way_is_void(self, ready: Stage) -> None:
        ready.routed(1)
        (facts,) = ready.look()
        self.say(ready, 2)
        assert ready.due_at() == T0
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "STALE"


class TestCooldown:
    def say(self, stage: Stage) -> Any:
        return value_of(operators(stage).clear_cooldown(SESSION, by="k", now_ms=stage.now))

    def test_cleared_once(self, ready: Stage) -> None:
        ready.routed(1)
        ready.redis.hset(keys.phone(PHONE), "cooldownUntil", T0 + HOUR)
        (facts,) = ready.look()
        ready.apply(facts, Wait(T0 + HOUR, Reason.COOLDOWN))
        assert self.say(ready).changed
        assert ready.due_at() == T0
        (facts,) = ready.look()
        assert facts.cooldown_until == 0
        assert not self.say(ready).changed
        assert incidents(ready, "COOLDOWN_CLEARED") == [
            {"at": T0, "phone": PHONE, "sessionId": SESSION, "by": "k", "until": T0 + HOUR}
        ]

    def test_one_that_is_over_is_not_cleared(self, ready: Stage) -> None:
        ready.redis.hset(keys.phone(PHONE), "cooldownUntil", T0)
        assert not self.say(ready).changed
        assert incidents(ready, "COOLDOWN_CLEARED") == []

    def test_what_the_platform_laid_on_it_and_a_quarantine_stay(self, ready: Stage) -> None:
        laid = {"restriction": "CAPPED", "restrictedUntil": str(T0 + HOUR), "quarantined": "1"}
        ready.redis.hset(keys.phone(PHONE), mapping={**laid, "cooldownUntil": T0 + HOUR})
        assert self.say(ready).changed
        assert laid.items() <= ready.redis.hgetall(keys.phone(PHONE)).items()  # type: ignore[union-attr]


class TestRequeue:
    def say(self, stage: Stage, session: str = SESSION) -> Any:
        return value_of(operators(stage).requeue(session, liveness_ms=60_000, by="k", now_ms=stage.now))

    def banned(self, stage: Stage) -> None:
        stage.routed(3)
        (facts,) = stage.look()
        stage.event(connection="FAILED", authorisation="LOGGED_OUT", quarantine="banned")
        stage.apply(facts, Wait(T0 + HOUR, Reason.QUARANTINED))

    def test_only_once_it_is_connected_again(self, ready: Stage) -> None:
        self.banned(ready)
        before = ready.dump()
        assert self.say(ready).code == "NOT_RESTORED"
        assert ready.dump() == before
        ready.now += 1
        ready.event(connection="CONNECTED")
        assert ready.look()[0].quarantined, "the word CONNECTED alone lifts nothing"
        answer = self.say(ready)
        assert (answer.code, answer.changed, answer.waiting, answer.phone) == ("OK", True, 3, PHONE)
        assert ready.due_at() == ready.now
        assert not ready.look()[0].quarantined
        assert incidents(ready, "QUEUE_REQUEUED") == [
            {"at": T0 + 1, "phone": PHONE, "sessionId": SESSION, "by": "k", "waiting": 3}
        ]

    def test_twice_is_once(self, ready: Stage) -> None:
        self.banned(ready)
        ready.now += 1
        ready.event(connection="CONNECTED")
        self.say(ready)
        before = ready.dump()
        answer = self.say(ready)
        assert (answer.code, answer.changed, answer.waiting) == ("OK", False, 3)
        assert ready.dump() == before

    def test_the_word_connected_of_a_session_that_is_silent_is_none(self, ready: Stage) -> None:
        self.banned(ready)
        ready.connect("s2")
        ready.now += 60_000
        assert self.say(ready).code == "OK"
        ready.redis.hset(keys.phone(PHONE), "quarantined", 1)
        ready.now += 1
        assert self.say(ready).code == "NOT_RESTORED"

    def test_the_queue_goes_on_in_its_order_on_the_same_phone(self, ready: Stage) -> None:
        self.banned(ready)
        order = ready.queue()
        ready.now += 1
        ready.event(connection="CONNECTED")
        self.say(ready)
        for task in order:
            assert ready.hand_off() == task
            ready.claim(task)
            ready.sent(task)
            ready.now += GAP.ms
