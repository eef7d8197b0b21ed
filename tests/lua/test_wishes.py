"""wish: every answer, repeats, who may ask for what; and that a worker nobody wants gets nothing more to do."""

import json
from typing import Any

import pytest

from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Step, Wait
from paceline.store import keys

from .stage import GAP, PHONE, SESSION, T0, Stage, value_of

WISHES = ("start", "stop", "restart", "remove", "pause", "resume")


def wish(stage: Stage, what: Any, session: str = SESSION, *, reason: str = "OPERATOR", **fields: Any) -> Any:
    return value_of(stage.store.fleet.wish(session, what, reason=reason, by="k1", now_ms=stage.now, **fields))


def row(stage: Stage, session: str = SESSION) -> dict[str, str]:
    found: dict[str, str] = stage.redis.hgetall(keys.session(session))
    return found


def trail(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(fields["d"]) for _, fields in stage.redis.xrange(keys.audit())]


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.connect()
    stage.hello()
    stage.event(connection="CONNECTED", authorisation="LINKED")
    stage.now += 1_000
    return stage


class TestAnswers:
    @pytest.mark.parametrize("what", WISHES)
    def test_unknown_session(self, stage: Stage, what: str) -> None:
        assert wish(stage, what).code == "UNKNOWN_SESSION"
        assert stage.dump() == {}

    @pytest.mark.parametrize("what", ["start", "resume"])
    def test_what_is_so_already_changes_nothing(self, ready: Stage, what: str) -> None:
        before = ready.dump()
        answer = wish(ready, what)
        assert (answer.code, answer.changed, answer.generation) == ("OK", False, 1)
        assert ready.dump() == before

    @pytest.mark.parametrize("what", ["stop", "pause", "remove"])
    def test_twice_is_once(self, ready: Stage, what: str) -> None:
        assert wish(ready, what).changed
        before = ready.dump()
        ready.now += 5
        again = wish(ready, what)
        assert (again.code, again.changed) == ("OK", False)
        assert ready.dump() == before

    @pytest.mark.parametrize("what", ["start", "stop", "restart", "pause", "resume"])
    def test_what_is_on_its_way_out_takes_no_wish(self, ready: Stage, what: str) -> None:
        wish(ready, "remove")
        before = ready.dump()
        assert wish(ready, what).code == "REMOVING"
        assert ready.dump() == before

    def test_a_wish_for_another_generation_is_stale(self, ready: Stage) -> None:
        """Two watchdogs that saw the same silence restart it once."""
        assert wish(ready, "restart", reason="SILENT", generation=1).generation == 2
        before = ready.dump()
        answer = wish(ready, "restart", reason="SILENT", generation=1)
        assert (answer.code, answer.generation) == ("STALE", 2)
        assert ready.dump() == before


class TestEffects:
    def test_stop(self, ready: Stage) -> None:
        wish(ready, "stop")
        known = row(ready)
        assert (known["desired"], known["connection"], known["generation"]) == ("stopped", "STOPPED", "1")
        assert ready.redis.get(keys.session_status(SESSION)) == "STOPPED"

    def test_start_after_stop_is_a_new_worker(self, ready: Stage) -> None:
        wish(ready, "stop")
        ready.redis.hset(keys.session(SESSION), mapping={"starts": 3, "notBefore": T0 * 2, "failedReason": "X"})
        assert wish(ready, "start").generation == 2
        known = row(ready)
        assert (known["desired"], known["connection"], known["restartReason"]) == ("running", "STARTING", "OPERATOR")
        assert not {"starts", "notBefore", "failedReason"} & set(known)

    def test_the_fleet_healing_itself_does_not_forget_how_often_it_tried(self, ready: Stage) -> None:
        ready.redis.hset(keys.session(SESSION), "starts", 3)
        assert wish(ready, "restart", reason="CRASHED").code == "OK"
        assert (row(ready)["starts"], row(ready)["restartReason"]) == ("3", "CRASHED")

    @pytest.mark.parametrize(
        "state", [{"connection": "FAILED"}, {"authorisation": "LOGGED_OUT"}, {"desired": "stopped"}]
    )
    def test_only_a_person_starts_what_is_over(self, ready: Stage, state: dict[str, str]) -> None:
        ready.redis.hset(keys.session(SESSION), mapping=state)
        before = ready.dump()
        assert wish(ready, "restart", reason="SILENT").code == "NOT_WANTED"
        assert ready.dump() == before
        assert wish(ready, "restart").code == "OK"
        assert row(ready)["desired"] == "running"

    def test_only_a_person_restarts_a_quarantined_number(self, ready: Stage) -> None:
        ready.redis.hset(keys.phone(PHONE), "quarantined", 1)
        assert wish(ready, "restart", reason="PROXY_BAD").code == "QUARANTINED"
        assert wish(ready, "restart").code == "OK"
        assert ready.redis.hget(keys.phone(PHONE), "quarantined") == "1"

    @pytest.mark.parametrize("authorisation", ["LOGGED_OUT", "LINK_BLOCKED"])
    def test_whoever_was_logged_out_links_anew(self, ready: Stage, authorisation: str) -> None:
        ready.redis.hset(keys.session(SESSION), "authorisation", authorisation)
        assert wish(ready, "start").changed
        assert row(ready)["authorisation"] == "UNLINKED"

    def test_a_restart_keeps_the_link(self, ready: Stage) -> None:
        wish(ready, "restart")
        assert row(ready)["authorisation"] == "LINKED"

    def test_every_change_is_in_the_trail_with_who_asked(self, ready: Stage) -> None:
        for what in ("pause", "resume", "restart", "stop", "start", "remove"):
            wish(ready, what)
        facts = trail(ready)[1:]
        assert [fact["action"] for fact in facts] == ["pause", "resume", "restart", "stop", "start", "remove"]
        assert {(fact["by"], fact["sessionId"], fact["phone"]) for fact in facts} == {("k1", SESSION, PHONE)}


class TestWorkerNobodyWants:
    def test_it_gets_no_task_and_no_new_hello(self, ready: Stage) -> None:
        ready.routed(1)
        ready.hand_off()
        wish(ready, "stop")
        assert value_of(ready.store.outbox.open_claim(SESSION, 1, now_ms=ready.now)).code == "NOT_WANTED"
        assert value_of(ready.store.outbox.hello(SESSION, "other", "j", now_ms=ready.now)).code == "NOT_WANTED"

    @pytest.mark.parametrize("what", ["stop", "restart"])
    def test_what_it_has_not_claimed_goes_back_at_once(self, ready: Stage, what: str) -> None:
        ready.routed(1)
        task = ready.hand_off()
        assert value_of(ready.store.outbox.overdue(now_ms=ready.now, limit=10)).tasks == []
        wish(ready, what)
        assert [one.task for one in value_of(ready.store.outbox.overdue(now_ms=ready.now, limit=10)).tasks] == [task]

    def test_what_it_holds_keeps_its_lease(self, ready: Stage) -> None:
        ready.routed(1)
        ready.claim(ready.hand_off())
        wish(ready, "stop")
        assert value_of(ready.store.outbox.overdue(now_ms=ready.now, limit=10)).tasks == []

    def test_one_that_is_replaced_may_not_come_back(self, ready: Stage) -> None:
        """Managed workers: the runner begins another; the old one's hello must not take the session back."""
        instance = row(ready)["instanceId"]
        ready.redis.hset(keys.session(SESSION), "wantedInstance", instance)
        wish(ready, "restart")
        assert value_of(ready.store.outbox.open_claim(SESSION, 1, now_ms=ready.now)).code == "NOT_WANTED"
        assert value_of(ready.store.outbox.hello(SESSION, instance, "j", now_ms=ready.now)).code == "NOT_WANTED"
        ready.redis.hset(keys.session(SESSION), "wantedInstance", "next")
        assert value_of(ready.store.outbox.hello(SESSION, "next", "j", now_ms=ready.now)).epoch == 2
        assert value_of(ready.store.outbox.open_claim(SESSION, 2, now_ms=ready.now)).code == "OK"

    def test_one_that_somebody_else_runs_goes_on_after_a_new_hello(self, ready: Stage) -> None:
        """Runner `external`: nobody begins another worker, so the restart is the worker's own."""
        instance = row(ready)["instanceId"]
        wish(ready, "restart")
        assert value_of(ready.store.outbox.open_claim(SESSION, 1, now_ms=ready.now)).code == "NOT_WANTED"
        epoch = value_of(ready.store.outbox.hello(SESSION, instance, "j", now_ms=ready.now)).epoch
        assert value_of(ready.store.outbox.open_claim(SESSION, epoch, now_ms=ready.now)).code == "OK"

    @pytest.mark.parametrize("what", ["stop", "restart", "remove"])
    def test_its_late_words_do_not_bring_the_session_back(self, ready: Stage, what: str) -> None:
        """Stop while starting: CONNECTED is on its way when the wish comes."""
        wish(ready, what)
        expected = row(ready)["connection"]
        ready.now += 1_000
        ready.event(connection="CONNECTED", authorisation="LINKED", epoch=1, event="{}")
        assert row(ready)["connection"] == expected
        assert ready.redis.llen(keys.session_events(SESSION)) == 1


class TestPausing:
    def test_the_look_under_way_is_void(self, ready: Stage) -> None:
        """A dispatcher that saw the session unpaused must not hand it a task."""
        ready.routed(1)
        (facts,) = ready.look()
        wish(ready, "pause")
        assert ready.apply(facts, ready.to_send(facts.heads[0])) == "STALE"
        (facts,) = ready.look()
        assert [session.paused for session in facts.sessions] == [True]

    def test_what_was_handed_over_is_not_given(self, ready: Stage) -> None:
        ready.routed(1)
        task = ready.hand_off()
        wish(ready, "pause")
        opened = ready.open()
        assert opened.task is not None
        assert opened.task.session_paused
        assert ready.claim(task).code == "PAUSED"
        wish(ready, "resume")
        assert ready.claim(task).code == "OK"

    def test_resuming_looks_at_once(self, ready: Stage) -> None:
        ready.routed(2)
        wish(ready, "pause")
        (facts,) = ready.look()
        step = Step("park", facts.heads[0].entry, facts.heads[0].task, Reason.SESSION_PAUSED, ready.now + 30_000)
        ready.apply(facts, Wait(ready.now + 60_000, Reason.SESSION_PAUSED), step)
        ready.redis.zadd(keys.jobs_retry(), {"J": ready.now + 9_000})
        ready.now += 5
        wish(ready, "resume")
        assert (ready.due_at(), ready.redis.zscore(keys.jobs_retry(), "J")) == (ready.now, ready.now)
        (facts,) = ready.look()
        assert len(facts.heads) == 2, "what was put aside for the pause is back"

    def test_it_is_an_incident_with_who_did_it(self, ready: Stage) -> None:
        wish(ready, "pause")
        lines = [line for line in value_of(ready.store.operators.incidents()) if line["kind"] == "SESSION_PAUSED"]
        assert [(line["sessionId"], line["by"]) for line in lines] == [(SESSION, "k1")]


class TestRemoving:
    def test_with_messages_waiting_it_is_refused(self, ready: Stage) -> None:
        ready.routed(3)
        before = ready.dump()
        answer = wish(ready, "remove")
        assert (answer.code, answer.waiting) == ("TASKS_WAITING", 3)
        assert ready.dump() == before

    def test_what_is_tried_again_waits_too(self, ready: Stage) -> None:
        ready.routed(1)
        task = ready.hand_off()
        ready.claim(task)
        ready.settle(task, "retry", from_="c", at=T0 + 60_000, code="c", message="m", onWire=True)
        assert wish(ready, "remove").waiting == 1

    def test_by_force_the_messages_stay_with_the_number(self, ready: Stage) -> None:
        ready.routed(3)
        assert wish(ready, "remove", force=True).code == "OK"
        assert row(ready)["removing"] == "1"
        assert ready.redis.llen(keys.queue(PHONE)) == 3

    def test_of_two_sessions_one_may_go(self, ready: Stage) -> None:
        ready.register("s2")
        ready.routed(3)
        assert wish(ready, "remove", "s2").code == "OK"
        # The other is the last one now, although the first is not gone yet.
        assert wish(ready, "remove").code == "TASKS_WAITING"

    def test_what_a_worker_holds_is_waited_for(self, ready: Stage) -> None:
        ready.register("s2")
        ready.routed(1)
        ready.claim(ready.hand_off())
        assert wish(ready, "remove").code == "TASKS_WAITING"
        ready.now += GAP.ms
