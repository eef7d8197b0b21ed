"""A look over many phones goes by one text for each (`facts_text`). Whoever changes what it tells drops it: after every
verb that does, the next look sees what is so now."""

from collections.abc import Callable
from typing import Any

import pytest

from paceline.policy.facts import PhoneFacts
from paceline.store import keys

from .invariants import FACTS, SESSION_FACTS
from .stage import HOUR, PHONE, SESSION, T0, Stage, value_of

SAID: dict[str, Any] = {"by": "k", "now_ms": T0}


def pacing(stage: Stage) -> None:
    value_of(stage.store.operators.set_pacer(SESSION, set_={"minDelayMs": 9_000}, remove=[], **SAID))


def override(stage: Stage) -> None:
    value_of(stage.store.operators.set_rpm(SESSION, 5, exceeds_trust=False, **SAID))


def guard(stage: Stage) -> None:
    seen = value_of(stage.store.pacers.look(PHONE, now_ms=T0))
    assert seen is not None
    code = value_of(stage.store.operators.guard_change(seen.facts, 10, "why", setting=True, now_ms=T0))
    assert code == "OK"


def cooldown(stage: Stage) -> None:
    task = stage.hand_off()
    stage.hello()
    stage.claim(task)
    stage.retry(task, cooldownUntil=T0 + HOUR)


def cooldown_cleared(stage: Stage) -> None:
    stage.set_facts(keys.phone(PHONE), cooldownUntil=T0 + HOUR)
    look(stage)
    value_of(stage.store.operators.clear_cooldown(SESSION, **SAID))


def restricted(stage: Stage) -> None:
    value_of(stage.store.sessions.restriction(SESSION, "CAPPED", T0 + HOUR, epoch=None, at_ms=T0, now_ms=T0))


def lifted(stage: Stage) -> None:
    restricted(stage)
    look(stage)
    value_of(stage.store.sessions.restriction(SESSION, "NONE", None, epoch=None, at_ms=T0, now_ms=T0))


def quarantined(stage: Stage) -> None:
    stage.event(connection="FAILED", quarantine="BANNED_403")


def restored(stage: Stage) -> None:
    stage.set_facts(keys.phone(PHONE), quarantined=1)
    look(stage)
    value_of(stage.store.operators.requeue(SESSION, liveness_ms=60_000, **SAID))


def wished(wish: str) -> Callable[[Stage], None]:
    def change(stage: Stage) -> None:
        if wish == "resume":
            wished("pause")(stage)
            look(stage)
        value_of(stage.store.fleet.wish(SESSION, wish, reason="OPERATOR", **SAID))

    return change


def disconnected(stage: Stage) -> None:
    stage.event(connection="RECONNECTING")


def changed(stage: Stage) -> None:
    value_of(stage.store.sessions.change(SESSION, created_at_ms=T0 - HOUR, timezone="Europe/Paris", tags=None, **SAID))


def second_session(stage: Stage) -> None:
    stage.register("s2", created_at_ms=T0 - HOUR)


def inherited(stage: Stage) -> None:
    override(stage)
    look(stage)
    stage.register("s2")


def believed(stage: Stage) -> None:
    disconnected(stage)
    stage.hello()
    look(stage)
    stage.now += 11_000
    stage.open()


CHANGES = [
    pacing, override, guard, cooldown, cooldown_cleared, restricted, lifted, quarantined, restored, disconnected,
    changed, second_session, inherited, believed, *map(wished, ("pause", "resume", "stop")),
]  # fmt: skip
NAMES = [*[change.__name__ for change in CHANGES[:-3]], "pause", "resume", "stop"]


LOOKS: list[PhoneFacts] = []


def look(stage: Stage) -> PhoneFacts:
    """As the pacer does, whatever the phone waits for."""
    stage.redis.zadd(keys.due(), {PHONE: stage.now})
    LOOKS[:] = stage.brief_look()
    (facts,) = LOOKS
    stage.redis.zadd(keys.due(), {PHONE: stage.now})
    return facts


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_the_next_look_sees_what_changed(stage: Stage, change: Callable[[Stage], None]) -> None:
    stage.connect()
    stage.routed(3)
    look(stage)
    change(stage)
    (before,) = LOOKS
    now = look(stage)
    fresh = value_of(stage.store.pacers.look(PHONE, now_ms=stage.now))
    assert fresh is not None
    seen = {"sessions", "created_at", "timezone", "rpm_override", "rpm_changed_at", "pacer", "restriction",
            "restricted_until", "cooldown_until", "quarantined"}  # fmt: skip
    assert {name: getattr(now, name) for name in seen} == {name: getattr(fresh.facts, name) for name in seen}
    assert any(getattr(now, name) != getattr(before, name) for name in seen), "nothing changed"


def test_what_is_told_of_a_phone_is_all_that_policies_read(stage: Stage) -> None:
    """Every field of it, and of its session, makes a difference to a look."""
    stage.connect()
    stage.routed(1)
    given = {"timezone": "Asia/Tokyo", "restriction": "CAPPED", "quarantined": "1"}
    stage.set_facts(keys.phone(PHONE), **{name: given.get(name, T0 + place) for place, name in enumerate(FACTS)})
    told = {"connection": "STARTING", "paused": "1", "rpm": "3", "rpmSource": "manual"}
    assert set(told) == set(SESSION_FACTS)
    stage.set_facts(keys.session(SESSION), **told)
    facts = look(stage)
    assert (facts.created_at, facts.timezone, facts.rpm_changed_at) == (T0, "Asia/Tokyo", T0 + 2)
    assert (facts.restriction, facts.restricted_until, facts.cooldown_until) == ("CAPPED", T0 + 4, T0 + 5)
    assert (facts.quarantined, facts.rpm_override, facts.rpm_source) == (True, 3, "manual")
    assert facts.pacer.min_delay_ms == T0 + 7
    assert facts.pacer.rpm == T0 + 11
    (session,) = facts.sessions
    assert (session.connection, session.paused, session.last_seen_ms) == ("STARTING", True, T0)


def test_several_sessions_are_heard_of_each_at_its_time(stage: Stage) -> None:
    stage.connect()
    stage.now += 5
    stage.connect("s2", PHONE)
    stage.routed(1)
    assert [(s.id, s.last_seen_ms) for s in look(stage).sessions] == [(SESSION, T0), ("s2", T0 + 5)]
