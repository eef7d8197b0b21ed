"""register_session, session_event, suppress, save_key and the plain reads beside them."""

import msgspec
import pytest

from paceline.orchestrator.days import ZONE_AGE_MS, StatsDays
from paceline.store import keys
from paceline.store.guards import ApiKeyRecord, Suppression

from .stage import PHONE, SESSION, T0, Stage, value_of


class TestRegister:
    def test_a_new_session(self, stage: Stage) -> None:
        assert stage.register(timezone="Asia/Jerusalem", tags=["a"]) == "OK"
        view = value_of(stage.store.sessions.get(SESSION, now_ms=stage.now))
        assert view is not None
        assert (view.phone, view.connection, view.authorisation, view.desired) == (
            PHONE,
            "STARTING",
            "UNLINKED",
            "running",
        )
        assert (view.epoch, view.created_at, view.timezone, view.tags) == (0, T0, "Asia/Jerusalem", ["a"])
        assert value_of(stage.store.sessions.phone_of(SESSION)) == PHONE
        assert value_of(stage.store.sessions.phone_timezone(PHONE)) == "Asia/Jerusalem"

    def test_a_timezone_that_changes_counts_within_a_minute(self, stage: Stage) -> None:
        """In Auckland it is tomorrow. The day is asked for with every proof, so the zone is remembered for a while."""
        stage.register(timezone="Pacific/Honolulu")
        days = StatsDays(stage.store, age_ms=ZONE_AGE_MS)
        honolulu = value_of(days.of(PHONE, stage.now))
        value_of(stage.store.sessions.change(SESSION, by="me", now_ms=stage.now, timezone="Pacific/Auckland"))
        assert value_of(days.of(PHONE, stage.now + ZONE_AGE_MS - 1)) == honolulu
        auckland = value_of(days.of(PHONE, stage.now + ZONE_AGE_MS))
        assert auckland == value_of(StatsDays(stage.store).of(PHONE, stage.now)) != honolulu

    def test_again_is_known_and_for_another_phone_is_taken(self, stage: Stage) -> None:
        stage.register()
        before = stage.dump()
        assert stage.register() == "EXISTS"
        assert stage.register(phone="972500000002") == "TAKEN"
        assert stage.dump() == before

    def test_one_that_is_being_removed_is_not_there_already(self, stage: Stage) -> None:
        stage.register()
        value_of(stage.store.fleet.wish(SESSION, "remove", reason="OPERATOR", by="k", now_ms=stage.now))
        before = stage.dump()
        assert stage.register() == "REMOVING"
        assert stage.register(phone="972500000002") == "TAKEN"
        assert stage.dump() == before

    def test_a_phone_has_a_limit_of_sessions(self, stage: Stage) -> None:
        assert [stage.register(f"s{number}") for number in range(4)] == ["OK"] * 4
        before = stage.dump()
        assert stage.register("s9") == "PHONE_FULL"
        assert stage.dump() == before

    def test_a_phone_is_as_old_as_its_oldest_session(self, stage: Stage) -> None:
        for number, created in enumerate([T0, T0 - 5, T0 - 1]):
            stage.register(f"s{number}", created_at_ms=created)
        assert stage.redis.hget(keys.phone(PHONE), "createdAt") == str(T0 - 5)

    def test_pages(self, stage: Stage) -> None:
        for number in range(5):
            stage.register(f"s{number}", f"97250000000{number}")
        first, cursor = value_of(stage.store.sessions.page("", 3, now_ms=stage.now))
        assert ([view.session_id for view in first], cursor) == (["s0", "s1", "s2"], "s2")
        second, cursor = value_of(stage.store.sessions.page("s2", 3, now_ms=stage.now))
        assert ([view.session_id for view in second], cursor) == (["s3", "s4"], None)
        assert value_of(stage.store.sessions.get("none", now_ms=stage.now)) is None


class TestEvents:
    def test_unknown_session(self, stage: Stage) -> None:
        assert stage.event(connection="CONNECTED").code == "UNKNOWN_SESSION"
        assert stage.dump() == {}

    def test_connected_wakes_the_phone_and_jobs_that_found_none(self, stage: Stage) -> None:
        stage.register()
        stage.redis.zadd(keys.jobs_retry(), {"J": T0 + 10_000})
        answer = stage.event(connection="CONNECTED", authorisation="LINKED", event="{}")
        assert (answer.code, answer.phone) == ("OK", PHONE)
        assert stage.redis.hmget(keys.session(SESSION), "connection", "authorisation") == ["CONNECTED", "LINKED"]
        assert stage.redis.get(keys.session_status(SESSION)) == "CONNECTED"
        assert (stage.due_at(), stage.redis.zscore(keys.jobs_retry(), "J")) == (T0, T0)

    def test_late_words_do_not_undo_newer_ones(self, stage: Stage) -> None:
        stage.connect()
        stage.event(at=T0 - 1, connection="RECONNECTING", authorisation="UNLINKED")
        assert stage.redis.hget(keys.session(SESSION), "connection") == "CONNECTED"
        stage.event(at=T0 + 1, connection="RECONNECTING")
        assert stage.redis.hget(keys.session(SESSION), "connection") == "RECONNECTING"

    def test_a_phone_that_is_busy_is_not_made_due(self, stage: Stage) -> None:
        stage.connect()
        stage.routed(2)
        stage.hand_off()
        stage.event(connection="CONNECTED")
        assert stage.due_at() is None

    def test_a_ban_quarantines_the_phone_with_one_incident(self, stage: Stage) -> None:
        stage.connect()
        for _ in range(2):
            stage.event(connection="FAILED", authorisation="LOGGED_OUT", quarantine="BANNED_403")
        assert stage.redis.hget(keys.phone(PHONE), "quarantined") == "1"
        kinds = [msgspec.json.decode(line)["kind"] for line in stage.redis.lrange(keys.incidents(), 0, -1)]
        assert kinds == ["SESSION_QUARANTINED"]
        view = value_of(stage.store.sessions.get(SESSION, now_ms=stage.now))
        assert view is not None
        assert view.restriction == "QUARANTINED"

    def test_a_ping_is_a_sign_of_life_and_nothing_else(self, stage: Stage) -> None:
        stage.connect()
        before = stage.dump(ignore=("lastSeen",))
        stage.now += 1_000
        stage.event()
        assert stage.dump(ignore=("lastSeen",)) == before
        assert stage.redis.hget(keys.session(SESSION), "lastSeen") == str(T0 + 1_000)

    def test_the_history_is_bounded(self, stage: Stage) -> None:
        stage.register()
        for number in range(205):
            stage.event(event=f'{{"n":{number}}}')
        lines = stage.redis.lrange(keys.session_events(SESSION), 0, -1)
        assert (len(lines), lines[0]) == (200, '{"n":204}')


class TestSuppressions:
    def item(self, to: str) -> Suppression:
        return Suppression(to, T0, "asked", "api")

    def test_add_list_remove(self, stage: Stage) -> None:
        guards = stage.store.guards
        assert value_of(guards.suppress([self.item("3"), self.item("1"), self.item("2")])) == 3
        before = stage.dump()
        assert value_of(guards.suppress([self.item("1")])) == 0
        assert stage.dump() == before
        assert value_of(guards.suppressed(["1", "9", "3"])) == {"1", "3"}
        assert [found.to for found in value_of(guards.suppressions("", 2))[0]] == ["1", "2"]
        assert [found.to for found in value_of(guards.suppressions("2", 2))[0]] == ["3"]
        assert value_of(guards.unsuppress("2", by="k", now_ms=T0))
        before = stage.dump()
        assert not value_of(guards.unsuppress("2", by="k", now_ms=T0))
        assert stage.dump() == before
        assert stage.with_ttl() == set()

    def test_many_at_once(self, stage: Stage) -> None:
        people = [f"9725{number:08d}" for number in range(2_500)]
        assert value_of(stage.store.guards.suppress([self.item(to) for to in people])) == 2_500
        assert value_of(stage.store.guards.suppressed([*people, "1"])) == set(people)
        assert value_of(stage.store.guards.suppressed([])) == set()


def test_api_keys(stage: Stage) -> None:
    record = ApiKeyRecord("k1", "digest", ["send", "read"])
    value_of(stage.store.guards.save_key(record))
    before = stage.dump()
    value_of(stage.store.guards.save_key(record))
    assert stage.dump() == before
    assert value_of(stage.store.guards.api_keys()) == [record]


@pytest.mark.parametrize(("limit", "short"), [(0, False), (10**12, False), (1, True)])
def test_memory_is_short_above_four_fifths(stage: Stage, limit: int, short: bool) -> None:
    stage.redis.config_set("maxmemory", limit)
    try:
        assert value_of(stage.store.guards.memory_is_short()) is short
    finally:
        stage.redis.config_set("maxmemory", 0)
