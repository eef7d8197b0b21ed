"""SmartGuard's scripts: one ticker however many ask, and a change that names what it was decided on."""

from typing import Any

import pytest

from paceline.policy.facts import PhoneFacts
from paceline.store import keys

from .stage import PHONE, SESSION, T0, Stage, value_of

TICK = 10_000


@pytest.fixture
def ready(stage: Stage) -> Stage:
    stage.connect()
    return stage


def tick(stage: Stage, *, setting: bool = True) -> tuple[str, int | None]:
    answer = value_of(stage.store.operators.guard_tick(tick_ms=TICK, setting=setting, now_ms=stage.now))
    return answer.code, answer.next_at


def toggle(stage: Stage, enabled: bool, *, setting: bool = True) -> bool:
    return value_of(stage.store.operators.toggle_guard(enabled, setting=setting, by="k", now_ms=stage.now))


def status(stage: Stage, *, setting: bool = True) -> Any:
    return value_of(stage.store.operators.guard_status(setting=setting))


def facts_of(stage: Stage, phone: str = PHONE) -> PhoneFacts:
    (seen,) = value_of(stage.store.operators.watch([phone]))
    return seen.facts


def change(stage: Stage, seen: PhoneFacts, rpm: int | None, *, setting: bool = True) -> str:
    return value_of(stage.store.operators.guard_change(seen, rpm, "why", setting=setting, now_ms=stage.now))


def incidents(stage: Stage, kind: str) -> list[dict[str, Any]]:
    return [line for line in value_of(stage.store.operators.incidents()) if line["kind"] == kind]


class TestTick:
    def test_one_in_each_interval(self, stage: Stage) -> None:
        assert tick(stage) == ("OK", T0 + TICK)
        assert tick(stage) == ("WAIT", T0 + TICK)
        stage.now += TICK - 1
        assert tick(stage) == ("WAIT", T0 + TICK)
        stage.now += 1
        assert tick(stage) == ("OK", T0 + 2 * TICK)
        assert status(stage).last_tick == T0 + TICK

    def test_a_tick_of_a_clock_that_was_wrong_is_not_waited_for(self, stage: Stage) -> None:
        stage.now += 10 * TICK
        tick(stage)
        stage.now = T0
        assert tick(stage) == ("OK", T0 + TICK)

    def test_off_by_setting_or_by_an_operator_whose_word_counts_more(self, stage: Stage) -> None:
        assert tick(stage, setting=False) == ("OFF", None)
        toggle(stage, True, setting=False)
        assert tick(stage, setting=False)[0] == "OK"
        toggle(stage, False)
        stage.now += TICK
        assert tick(stage) == ("OFF", None)

    def test_it_rests_while_the_fleet_is_stopped(self, stage: Stage) -> None:
        value_of(stage.store.operators.stop(True, by="k", now_ms=T0))
        assert tick(stage) == ("STOPPED", None)
        value_of(stage.store.operators.stop(False, by="k", now_ms=T0))
        assert tick(stage)[0] == "OK"


class TestToggle:
    def test_an_incident_only_when_it_changed(self, stage: Stage) -> None:
        assert [toggle(stage, enabled) for enabled in (True, False, False, True)] == [False, True, False, True]
        assert [line["enabled"] for line in incidents(stage, "SMART_GUARD_TOGGLE")] == [True, False]
        assert incidents(stage, "SMART_GUARD_TOGGLE")[0]["by"] == "k"

    def test_the_setting_counts_until_somebody_says_otherwise(self, stage: Stage) -> None:
        assert (status(stage).enabled, status(stage, setting=False).enabled) == (True, False)
        assert (status(stage).last_tick, status(stage).last_action_at) == (None, None)
        assert toggle(stage, True, setting=False)
        assert status(stage, setting=False).enabled


class TestChange:
    def test_it_stands_at_all_sessions_with_its_source(self, ready: Stage) -> None:
        ready.connect("s0")
        assert change(ready, facts_of(ready), 15) == "OK"
        facts = facts_of(ready)
        assert (facts.rpm_override, facts.rpm_source, facts.rpm_changed_at) == (15, "smartguard", T0)
        assert ready.redis.mget([keys.session_rpm(s) for s in ("s0", SESSION)]) == ["15", "15"]
        assert status(ready).last_action_at == T0
        (line,) = incidents(ready, "SMART_GUARD_RPM_CHANGE")
        assert line == {
            "kind": "SMART_GUARD_RPM_CHANGE", "at": T0, "phone": PHONE, "sessionId": "s0", "from": None, "to": 15,
            "reason": "why",
        }  # fmt: skip

    def test_removed(self, ready: Stage) -> None:
        change(ready, facts_of(ready), 15)
        ready.now += 1
        assert change(ready, facts_of(ready), None) == "OK"
        facts = facts_of(ready)
        assert (facts.rpm_override, facts.rpm_source, facts.rpm_changed_at) == (None, "", T0 + 1)
        assert not ready.redis.exists(keys.session_rpm(SESSION), keys.session_rpm_source(SESSION))
        line = incidents(ready, "SMART_GUARD_RPM_CHANGE")[0]
        assert (line["from"], line["to"]) == (15, None)

    def test_of_two_tickers_the_second_is_stale(self, ready: Stage) -> None:
        seen = facts_of(ready)
        assert change(ready, seen, 15) == "OK"
        before = ready.dump()
        assert change(ready, seen, 15) == "STALE"
        assert ready.dump() == before

    def test_an_override_that_went_and_came_again_is_another(self, ready: Stage) -> None:
        change(ready, facts_of(ready), 15)
        seen = facts_of(ready)
        ready.now += 1
        change(ready, seen, None)
        change(ready, facts_of(ready), 15)
        assert change(ready, seen, 10) == "STALE"

    @pytest.mark.parametrize("rpm", [None, 15, 5], ids=["removes", "repeats", "lowers"])
    def test_an_operator_who_was_quicker_wins(self, ready: Stage, rpm: int | None) -> None:
        change(ready, facts_of(ready), 15)
        seen = facts_of(ready)
        ready.now += 1
        value_of(ready.store.operators.set_rpm(SESSION, rpm, exceeds_trust=False, by="k", now_ms=ready.now))
        before = ready.dump()
        assert change(ready, seen, 10) == "STALE"
        assert ready.dump() == before

    def test_an_operators_word_is_not_touched_even_if_it_was_seen(self, ready: Stage) -> None:
        value_of(ready.store.operators.set_rpm(SESSION, 15, exceeds_trust=False, by="k", now_ms=T0))
        assert change(ready, facts_of(ready), 10) == "STALE"
        ready.redis.delete(keys.session_rpm_source(SESSION))
        assert change(ready, facts_of(ready), 10) == "STALE", "an override of another tool is an operator's too"

    def test_nor_is_a_rate_in_the_numbers_own_fields(self, ready: Stage) -> None:
        value_of(ready.store.operators.set_pacer(SESSION, set_={"rpm": 5}, remove=[], by="k", now_ms=T0))
        assert change(ready, facts_of(ready), 15) == "STALE"

    def test_switched_off_or_stopped_meanwhile(self, ready: Stage) -> None:
        seen = facts_of(ready)
        assert change(ready, seen, 15, setting=False) == "OFF"
        toggle(ready, False)
        assert change(ready, seen, 15) == "OFF"
        toggle(ready, True)
        value_of(ready.store.operators.stop(True, by="k", now_ms=T0))
        assert change(ready, seen, 15) == "OFF"
        assert incidents(ready, "SMART_GUARD_RPM_CHANGE") == []

    def test_a_phone_that_is_gone_is_stale(self, ready: Stage) -> None:
        assert change(ready, PhoneFacts(phone="972599999999", version=0), 15) == "STALE"

    def test_a_look_only_if_it_got_faster(self, ready: Stage) -> None:
        def looked(rpm: int | None) -> bool:
            ready.redis.delete(keys.due())
            ready.now += 1
            assert change(ready, facts_of(ready), rpm) == "OK"
            return ready.due_at() is not None

        assert [looked(rpm) for rpm in (15, 10, 15, None)] == [False, False, True, True]
