"""give_command and end_command: every answer, repeats, validity, and that a code is kept no longer than it is good."""

import json
from typing import Any

import pytest

from paceline.store import keys
from paceline.store.wishes import Secret

from .stage import PHONE, SESSION, Stage, value_of

VALID = 120_000


@pytest.fixture
def unlinked(stage: Stage) -> Stage:
    """A worker that shows a code."""
    stage.register()
    stage.hello()
    qr = Secret("the-code", stage.now + 20_000)
    stage.event(connection="SCAN_QR", authorisation="UNLINKED", qr=qr, epoch=1)
    stage.now += 1_000
    return stage


@pytest.fixture
def linked(stage: Stage) -> Stage:
    stage.register()
    stage.hello()
    stage.event(connection="CONNECTED", authorisation="LINKED", epoch=1)
    stage.now += 1_000
    return stage


def give(stage: Stage, kind: Any, command: str = "c1") -> Any:
    return value_of(
        stage.store.fleet.give_command(
            SESSION, kind, command_id=command, until_ms=stage.now + VALID, by="k1", now_ms=stage.now
        )
    )


def end(stage: Stage, command: str = "c1", *, ok: bool = True, **fields: Any) -> str:
    return value_of(stage.store.fleet.end_command(SESSION, command, ok=ok, now_ms=stage.now, **fields)).code


def row(stage: Stage) -> dict[str, str]:
    found: dict[str, str] = stage.redis.hgetall(keys.session(SESSION))
    return found


def opened(stage: Stage, **fields: Any) -> list[tuple[str, str]]:
    answer = value_of(stage.store.outbox.open_claim(SESSION, 1, now_ms=stage.now, **fields))
    assert answer.code == "OK"
    return [(command.id, command.kind) for command in answer.commands]


class TestGiving:
    def test_unknown(self, stage: Stage) -> None:
        assert give(stage, "pair").code == "UNKNOWN_SESSION"
        assert end(stage) == "UNKNOWN_SESSION"
        assert stage.dump() == {}

    @pytest.mark.parametrize("kind", ["pair", "scan", "logout"])
    @pytest.mark.parametrize(
        ("state", "code"),
        [
            ({"removing": "1"}, "REMOVING"),
            ({"desired": "stopped"}, "NOT_RUNNING"),
            ({"connection": "FAILED"}, "NOT_RUNNING"),
        ],
    )
    def test_refused(self, linked: Stage, kind: str, state: dict[str, str], code: str) -> None:
        linked.redis.hset(keys.session(SESSION), mapping=state)
        before = linked.dump()
        assert give(linked, kind).code == code
        assert linked.dump() == before

    def test_linked_or_not(self, linked: Stage) -> None:
        assert [give(linked, kind).code for kind in ("pair", "scan", "logout")] == ["LINKED", "LINKED", "OK"]
        linked.redis.hset(keys.session(SESSION), "authorisation", "UNLINKED")
        assert give(linked, "logout").code == "NOT_LINKED"

    def test_asked_again_it_is_the_same_command(self, unlinked: Stage) -> None:
        first = give(unlinked, "pair")
        unlinked.now += VALID - 1
        before = unlinked.dump()
        again = give(unlinked, "pair", "c2")
        assert (again.code, again.id, again.until) == ("AGAIN", "c1", first.until)
        assert unlinked.dump() == before
        unlinked.now += 1
        assert give(unlinked, "pair", "c3").id == "c3"

    def test_the_worker_hears_of_it_until_it_ended_or_is_too_old(self, unlinked: Stage) -> None:
        """At every claim and at hello; not after its time; the number of commands is bounded by their kinds."""
        give(unlinked, "pair")
        unlinked.now += 5
        give(unlinked, "scan", "c2")
        assert opened(unlinked) == [("c1", "pair"), ("c2", "scan")]
        assert opened(unlinked, commands_only=True) == [("c1", "pair"), ("c2", "scan")]
        assert [command.id for command in unlinked.hello().commands] == ["c1", "c2"]
        end(unlinked)
        assert opened(unlinked) == [("c2", "scan")]
        unlinked.now += VALID
        assert opened(unlinked) == []

    @pytest.mark.parametrize("asks", ["claim", "commands", "hello"])
    def test_one_whose_time_is_over_ends(self, unlinked: Stage, asks: str) -> None:
        """It stayed there, so that every look found something waiting and a long poll was asked again each second."""
        give(unlinked, "pair")
        unlinked.now += VALID
        assert value_of(unlinked.store.outbox.waiting([SESSION])) == [SESSION]
        if asks == "hello":
            assert unlinked.hello().commands == []
        else:
            assert opened(unlinked, commands_only=asks == "commands") == []
        assert value_of(unlinked.store.outbox.waiting([SESSION])) == []
        last = json.loads(row(unlinked)["lastCommand"])
        assert (last["id"], last["kind"], last["ok"], last["error"]) == ("c1", "pair", False, "EXPIRED")
        facts = [json.loads(fields["d"]) for _, fields in unlinked.redis.xrange(keys.audit())]
        assert (facts[-1]["action"], facts[-1]["status"], facts[-1]["command"]) == ("pair", "EXPIRED", "c1")

    def test_no_new_message_beside_a_command(self, linked: Stage) -> None:
        linked.routed(1)
        linked.hand_off()
        give(linked, "logout")
        answer = linked.open()
        assert (answer.task, len(answer.commands)) == (None, 1)

    def test_one_that_takes_only_commands_gets_no_task(self, linked: Stage) -> None:
        linked.routed(1)
        linked.hand_off()
        answer = value_of(linked.store.outbox.open_claim(SESSION, 1, now_ms=linked.now, commands_only=True))
        assert (answer.code, answer.task) == ("OK", None)

    @pytest.mark.parametrize("wish", ["stop", "remove"])
    def test_whoever_is_told_to_go_is_told_nothing_else(self, linked: Stage, wish: Any) -> None:
        give(linked, "logout")
        value_of(linked.store.fleet.wish(SESSION, wish, reason="OPERATOR", by="k", now_ms=linked.now))
        assert not linked.redis.exists(keys.session_commands(SESSION))


class TestEnding:
    @pytest.mark.parametrize("command", ["other", "c1"])
    def test_told_again_or_never_given_it_changes_nothing(self, linked: Stage, command: str) -> None:
        give(linked, "logout")
        if command == "c1":
            end(linked)
        before = linked.dump()
        assert end(linked, command) == "OK"
        assert linked.dump() == before

    def test_a_logout_an_operator_asked_for_is_no_alarm(self, linked: Stage) -> None:
        """LOGGED_OUT and stopped; no quarantine, no incident, nothing for the breaker to count."""
        give(linked, "logout")
        end(linked)
        known = row(linked)
        assert (known["connection"], known["authorisation"], known["desired"]) == ("STOPPED", "LOGGED_OUT", "stopped")
        assert linked.redis.hget(keys.phone(PHONE), "quarantined") is None
        assert not linked.redis.exists(keys.restricted_phones())
        assert value_of(linked.store.operators.incidents()) == []

    def test_a_logout_nobody_asked_for_is(self, linked: Stage) -> None:
        give(linked, "logout")
        linked.event(
            connection="FAILED", authorisation="LOGGED_OUT", quarantine="LOGGED_OUT", failed="LOGGED_OUT", epoch=1
        )
        assert linked.redis.hget(keys.phone(PHONE), "quarantined") == "1"
        assert linked.redis.zcard(keys.restricted_phones()) == 1

    def test_after_a_logout_a_start_links_anew(self, linked: Stage) -> None:
        give(linked, "logout")
        end(linked)
        answer = value_of(linked.store.fleet.wish(SESSION, "start", reason="OPERATOR", by="k", now_ms=linked.now))
        assert (answer.changed, answer.generation) == (True, 2)
        known = row(linked)
        assert (known["connection"], known["authorisation"], known["desired"]) == ("STARTING", "UNLINKED", "running")

    def test_a_logout_that_was_carried_out_is_one_however_late_we_hear_of_it(self, linked: Stage) -> None:
        """Its worker ended the link in time and could not say so in time."""
        give(linked, "logout")
        linked.now += VALID
        assert opened(linked) == []
        end(linked)
        known = row(linked)
        assert (known["connection"], known["authorisation"], known["desired"]) == ("STOPPED", "LOGGED_OUT", "stopped")
        before = linked.dump()
        end(linked)
        assert linked.dump() == before

    def test_a_late_end_does_not_end_the_next_command(self, unlinked: Stage) -> None:
        give(unlinked, "pair")
        unlinked.now += VALID
        opened(unlinked, commands_only=True)
        give(unlinked, "pair", "c2")
        end(unlinked, ok=False, error="why")
        assert opened(unlinked, commands_only=True) == [("c2", "pair")]

    def test_a_refused_logout_leaves_all_as_it_is(self, linked: Stage) -> None:
        give(linked, "logout")
        end(linked, ok=False, error="why")
        known = row(linked)
        assert (known["connection"], known["authorisation"], known["desired"]) == ("CONNECTED", "LINKED", "running")
        last = json.loads(known["lastCommand"])
        assert (last["id"], last["kind"], last["ok"], last["error"]) == ("c1", "logout", False, "why")

    def test_every_command_and_its_end_are_in_the_trail_and_no_code_is(self, unlinked: Stage) -> None:
        give(unlinked, "pair")
        end(unlinked, pairing=Secret("ABCD-EFGH", unlinked.now + 60_000))
        trail = [fields["d"] for _, fields in unlinked.redis.xrange(keys.audit())]
        assert [json.loads(fact)["action"] for fact in trail] == ["create", "pair", "pair"]
        assert "ABCD" not in "".join(trail)


class TestCodes:
    def test_a_pairing_code_is_there_until_its_end(self, unlinked: Stage) -> None:
        give(unlinked, "pair")
        end(unlinked, pairing=Secret("ABCD-EFGH", unlinked.now + 60_000))
        shown = value_of(unlinked.store.fleet.pairing(SESSION, now_ms=unlinked.now))
        assert shown == Secret("ABCD-EFGH", unlinked.now + 60_000)
        assert 0 < unlinked.redis.pttl(keys.session_pairing(SESSION)) <= 60_000
        assert value_of(unlinked.store.fleet.pairing(SESSION, now_ms=unlinked.now + 60_000)) is None

    def test_a_new_try_forgets_the_code_of_the_last(self, unlinked: Stage) -> None:
        give(unlinked, "pair")
        end(unlinked, pairing=Secret("ABCD-EFGH", unlinked.now + 60_000))
        give(unlinked, "pair", "c2")
        assert value_of(unlinked.store.fleet.pairing(SESSION, now_ms=unlinked.now)) is None

    def test_a_qr_code_is_there_until_its_end(self, unlinked: Stage) -> None:
        shown = value_of(unlinked.store.fleet.qr(SESSION, now_ms=unlinked.now))
        assert shown is not None
        assert shown.value == "the-code"
        assert 0 < unlinked.redis.pttl(keys.session_qr(SESSION)) <= 20_000
        assert value_of(unlinked.store.fleet.qr(SESSION, now_ms=shown.until)) is None

    @pytest.mark.parametrize("how", ["connected", "stopped", "restarted"])
    def test_codes_are_gone_once_they_are_used_or_nobody_shows_them(self, unlinked: Stage, how: str) -> None:
        give(unlinked, "pair")
        end(unlinked, pairing=Secret("ABCD-EFGH", unlinked.now + 60_000))
        wishes: dict[str, Any] = {"stopped": "stop", "restarted": "restart"}
        if how == "connected":
            unlinked.event(connection="CONNECTED", authorisation="LINKED", epoch=1)
        else:
            value_of(unlinked.store.fleet.wish(SESSION, wishes[how], reason="OPERATOR", by="k", now_ms=unlinked.now))
        assert not unlinked.redis.exists(keys.session_qr(SESSION), keys.session_pairing(SESSION))

    def test_a_code_of_a_worker_that_was_replaced_is_not_shown(self, unlinked: Stage) -> None:
        value_of(unlinked.store.fleet.wish(SESSION, "restart", reason="OPERATOR", by="k", now_ms=unlinked.now))
        late = Secret("late", unlinked.now + 20_000)
        unlinked.event(connection="SCAN_QR", authorisation="UNLINKED", qr=late, epoch=1)
        assert value_of(unlinked.store.fleet.qr(SESSION, now_ms=unlinked.now)) is None
