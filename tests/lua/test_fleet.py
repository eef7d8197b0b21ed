"""begin_start, release_session, finish_removal and mark_proxy: every answer, repeats, and who keeps what."""

from typing import Any

import msgspec
import pytest

from paceline.domain.profiles import Profile
from paceline.store import keys
from paceline.store.fleet import AllocationLimits, Begun

from .stage import PHONE, SESSION, T0, Stage, value_of

OTHER = "972500000002"
URLS = [f"http://user{number}:canary-password@h{number}.example:8080" for number in range(1, 5)]


def pool(stage: Stage, count: int = 2) -> None:
    value_of(stage.store.inventory.add_proxies(URLS[:count], limit=100, by="k", now_ms=stage.now))


def profiles(stage: Stage, *given: Profile) -> None:
    value_of(stage.store.inventory.add_profiles(given, limit=100, by="k", now_ms=stage.now))


def wanting(stage: Stage, *sessions: str, phone: str = PHONE) -> None:
    """Sessions that need a proxy."""
    for session in sessions:
        assert stage.register(session, phone, limit=9, direct=False) == "OK"


def begin(
    stage: Stage, session: str = SESSION, *, generation: int = 1, instance: str = "", proxy: int = 4, phone: int = 4
) -> Begun:
    return value_of(
        stage.store.fleet.begin_start(
            session,
            generation=generation,
            instance=instance or f"i-{session}-{generation}",
            limits=AllocationLimits(proxy, phone),
            now_ms=stage.now,
        )
    )


def release(stage: Stage, session: str = SESSION, **which: Any) -> Any:
    return value_of(stage.store.fleet.release(session, now_ms=stage.now, **which))


def mark(stage: Stage, proxy: str, state: Any = "BAD") -> Any:
    return value_of(stage.store.fleet.mark_proxy(proxy, state, reason="timed out", by="watchdog", now_ms=stage.now))


def row(stage: Stage, session: str = SESSION) -> dict[str, str]:
    return stage.redis.hgetall(keys.session(session))


def incidents(stage: Stage, kind: str) -> list[dict[str, Any]]:
    found = [msgspec.json.decode(line) for line in stage.redis.lrange(keys.incidents(), 0, -1)]
    return [incident for incident in found if incident["kind"] == kind]


def bindings(stage: Stage) -> list[tuple[str, str]]:
    found = [
        msgspec.json.decode(fields["d"]) for _, fields in stage.redis.xrange(keys.audit()) if fields["k"] == "BINDING"
    ]
    return [(fact["action"], fact.get("reason", "")) for fact in found]


class TestBegin:
    def test_it_takes_a_proxy_and_a_place_and_says_who_is_wanted(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begun = begin(stage)
        assert (begun.code, begun.proxy, begun.proxy_id, begun.profile) == ("OK", URLS[0], "p1", "")
        known = row(stage)
        assert (known["wantedInstance"], known["startedAt"], known["proxy"]) == ("i-s1-1", str(T0), URLS[0])
        assert known["connection"] == "STARTING"
        assert stage.redis.hgetall(keys.proxy_active()) == {URLS[0]: "1"}
        assert stage.redis.hgetall(keys.phone_active()) == {PHONE: "1"}
        assert stage.redis.hgetall(keys.sticky_proxy()) == {PHONE: URLS[0]}
        assert bindings(stage) == [("PROXY_TAKEN", "FIRST")]

    def test_the_same_instance_again_gets_the_same_and_changes_nothing(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        first = begin(stage)
        before = stage.dump()
        again = begin(stage)
        assert (again.code, again.proxy, again.proxy_id) == ("AGAIN", first.proxy, first.proxy_id)
        assert stage.dump() == before

    def test_another_instance_keeps_the_places_and_is_counted_once(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        assert begin(stage, instance="next").proxy == URLS[0]
        assert stage.redis.hgetall(keys.proxy_active()) == {URLS[0]: "1"}
        assert stage.redis.hgetall(keys.phone_active()) == {PHONE: "1"}
        assert len(bindings(stage)) == 1

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            pytest.param({"desired": "stopped"}, "NOT_WANTED", id="stopped"),
            pytest.param({"removing": "1"}, "NOT_WANTED", id="being removed"),
            pytest.param({"connection": "FAILED"}, "NOT_WANTED", id="failed"),
            pytest.param({"generation": "2"}, "STALE", id="another generation"),
        ],
    )
    def test_who_is_not_wanted_gets_nothing(self, stage: Stage, fields: dict[str, str], code: str) -> None:
        pool(stage)
        wanting(stage, SESSION)
        stage.redis.hset(keys.session(SESSION), mapping=fields)
        before = stage.dump()
        assert begin(stage).code == code
        assert stage.dump() == before

    def test_an_unknown_session_is_not_wanted(self, stage: Stage) -> None:
        assert begin(stage, "nobody").code == "NOT_WANTED"
        assert stage.dump() == {}

    def test_an_empty_pool_means_waiting_and_is_told_once(self, stage: Stage) -> None:
        wanting(stage, SESSION)
        assert begin(stage).code == "NO_PROXY"
        assert begin(stage, instance="other").code == "NO_PROXY"
        known = row(stage)
        assert known["waitReason"] == "NO_PROXY"
        assert "holds" not in known
        assert [(told["sessionId"], told["reason"]) for told in incidents(stage, "SESSION_WAITING")] == [
            (SESSION, "NO_PROXY")
        ]
        pool(stage)
        assert begin(stage).code == "OK"
        assert "waitReason" not in row(stage)

    def test_the_trail_names_the_worker_that_took_it_and_the_one_that_gave_it_back(self, stage: Stage) -> None:
        """What a worker took stood under the one before it."""
        pool(stage)
        wanting(stage, SESSION)
        begin(stage, instance="first")
        value_of(stage.store.fleet.release(SESSION, now_ms=stage.now))
        begin(stage, instance="second")
        facts = [msgspec.json.decode(fields["d"]) for _, fields in stage.redis.xrange(keys.audit())]
        assert [(fact["action"], fact["instance"]) for fact in facts if fact["action"].startswith("PROXY_")] == [
            ("PROXY_TAKEN", "first"), ("PROXY_RELEASED", "first"), ("PROXY_TAKEN", "second")
        ]  # fmt: skip

    def test_whoever_is_stopped_waits_for_nothing(self, stage: Stage) -> None:
        """A stopped session went on saying that it waits, and its next wait was told to nobody."""
        wanting(stage, SESSION)
        assert begin(stage).code == "NO_PROXY"
        for what in ("stop", "start"):
            value_of(stage.store.fleet.wish(SESSION, what, reason="OPERATOR", by="k1", now_ms=stage.now))
            assert "waitReason" not in row(stage)
        assert begin(stage, generation=2).code == "NO_PROXY"
        assert len(incidents(stage, "SESSION_WAITING")) == 2

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"direct": True}, id="asked for"),
            pytest.param({}, id="a simulated one that says nothing"),
        ],
    )
    def test_a_direct_session_takes_no_proxy_but_a_place_on_its_phone(
        self, stage: Stage, fields: dict[str, bool]
    ) -> None:
        pool(stage)
        stage.register(**fields)
        begun = begin(stage)
        assert (begun.code, begun.proxy, begun.proxy_id) == ("OK", "", "")
        assert stage.redis.hgetall(keys.phone_active()) == {PHONE: "1"}
        assert stage.redis.hgetall(keys.proxy_active()) == {}

    def test_another_driver_that_says_nothing_never_goes_out_directly(self, stage: Stage) -> None:
        stage.register(driver="baileys")
        assert begin(stage).code == "NO_PROXY"

    def test_a_phone_has_a_limit_of_workers(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, "a", "b", "c")
        assert [begin(stage, session, phone=2).code for session in "abc"] == ["OK", "OK", "PHONE_FULL"]
        before = stage.dump()
        assert begin(stage, "c", phone=2).code == "PHONE_FULL"
        assert row(stage, "c")["waitReason"] == "PHONE_FULL"
        assert [told["sessionId"] for told in incidents(stage, "SESSION_WAITING")] == ["c"]
        assert stage.dump() == before
        release(stage, "a")
        assert begin(stage, "c", phone=2).code == "OK"

    def test_phones_spread_over_the_least_loaded(self, stage: Stage) -> None:
        pool(stage, 3)
        for number in range(6):
            wanting(stage, f"s{number}", phone=f"97250000000{number}")
        given = [begin(stage, f"s{number}").proxy_id for number in range(6)]
        assert sorted(given) == ["p1", "p1", "p2", "p2", "p3", "p3"]
        assert len(set(given[:3])) == 3

    def test_a_phone_keeps_its_proxy_over_stop_and_start(self, stage: Stage) -> None:
        pool(stage, 3)
        wanting(stage, SESSION)
        begin(stage)
        release(stage)
        # Somebody else makes it the most loaded of all.
        wanting(stage, "x", "y", phone=OTHER)
        stage.redis.hset(keys.sticky_proxy(), OTHER, URLS[0])
        begin(stage, "x")
        assert begin(stage, instance="i2").proxy_id == "p1"
        assert bindings(stage)[-1] == ("PROXY_TAKEN", "STICKY")

    def test_a_full_proxy_is_replaced_unless_the_phone_itself_is_on_it(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, "a", "b", "c")
        assert [begin(stage, session, proxy=2).proxy_id for session in "abc"] == ["p1", "p1", "p2"]
        assert stage.redis.hget(keys.sticky_proxy(), PHONE) == URLS[0]
        wanting(stage, "x", phone=OTHER)
        stage.redis.hset(keys.sticky_proxy(), OTHER, URLS[0])
        assert begin(stage, "x", proxy=2).proxy_id == "p2"
        assert stage.redis.hget(keys.sticky_proxy(), OTHER) == URLS[1]
        assert bindings(stage)[-1] == ("PROXY_TAKEN", "STICKY_FULL")

    def test_a_smaller_limit_holds_from_the_next_start_and_throws_nobody_out(self, stage: Stage) -> None:
        pool(stage, 1)
        wanting(stage, "a", "b", "c")
        begin(stage, "a")
        begin(stage, "b")
        assert stage.redis.smembers(keys.proxies_available()) == {URLS[0]}
        assert begin(stage, "a", instance="i2", proxy=1).code == "OK"
        assert stage.redis.smembers(keys.proxies_available()) == set()
        assert begin(stage, "c", proxy=1).code == "NO_PROXY"

    def test_a_worker_that_speaks_already_is_adopted_as_it_stands(self, stage: Stage) -> None:
        stage.register()
        stage.hello("running")
        stage.event(connection="CONNECTED", authorisation="LINKED")
        assert begin(stage, instance="running").code == "OK"
        assert row(stage)["connection"] == "CONNECTED"
        assert begin(stage, instance="another").code == "OK"
        assert row(stage)["connection"] == "STARTING"

    def test_with_after_of_two_who_decided_on_the_same_facts_one_begins(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        given: Any = {"generation": 1, "limits": AllocationLimits(), "now_ms": T0, "after": ""}
        codes = [
            value_of(stage.store.fleet.begin_start(SESSION, instance=instance, **given)).code
            for instance in ("i1", "i2")
        ]
        assert codes == ["OK", "STALE"]


class TestRelease:
    def test_it_gives_back_once(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        assert release(stage).released
        before = stage.dump()
        assert not release(stage).released
        assert stage.dump() == before
        assert stage.redis.hgetall(keys.proxy_active()) == stage.redis.hgetall(keys.phone_active()) == {}
        assert bindings(stage) == [("PROXY_TAKEN", "FIRST"), ("PROXY_RELEASED", "STOPPED")]
        assert row(stage)["proxy"] == ""

    def test_the_word_about_an_old_worker_takes_nothing_from_the_next(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage, instance="old")
        begin(stage, instance="new")
        before = stage.dump()
        assert release(stage, instance="old").code == "STALE"
        assert release(stage, generation=7).code == "STALE"
        assert stage.dump() == before
        assert release(stage, instance="new", generation=1).released

    def test_nobody_knows_the_session(self, stage: Stage) -> None:
        assert release(stage, "nobody").code == "UNKNOWN_SESSION"

    def test_an_instance_that_comes_late_is_not_wanted(self, stage: Stage) -> None:
        stage.register()
        begin(stage, instance="i1")
        release(stage)
        assert stage.hello("i1").code == "NOT_WANTED"

    def test_one_that_somebody_else_started_is_left_alone(self, stage: Stage) -> None:
        """Runner external begins nothing; any instance may say hello."""
        stage.register()
        assert not release(stage).released
        assert stage.hello("any").code == "OK"


class TestRemoval:
    def removing(self, stage: Stage) -> Any:
        stage.redis.hset(keys.session(SESSION), "removing", 1)
        return self.finish(stage)

    def finish(self, stage: Stage) -> Any:
        return value_of(stage.store.fleet.finish_removal(SESSION, now_ms=stage.now))

    def test_nothing_of_the_session_is_left_and_its_places_and_profile_are_free(self, stage: Stage) -> None:
        pool(stage)
        profiles(stage, Profile("f1", "line"))
        wanting(stage, SESSION)
        assert begin(stage).profile == "f1"
        stage.event(event="{}", connection="CONNECTED")
        assert self.removing(stage).code == "OK"
        assert self.finish(stage).code == "GONE"
        assert not [key for key in stage.dump() if key.startswith("session:")]
        assert stage.redis.smembers(keys.sessions()) == stage.redis.smembers(keys.phone_sessions(PHONE)) == set()
        assert stage.redis.hgetall(keys.proxy_active()) == stage.redis.hgetall(keys.phone_active()) == {}
        assert stage.redis.smembers(keys.profiles_available()) == {"f1"}
        assert stage.redis.smembers(keys.profiles_used()) == set()
        assert [action for action, _ in bindings(stage)][-3:] == [
            "PROXY_RELEASED",
            "PROFILE_RELEASED",
            "SESSION_REMOVED",
        ]

    def test_what_nobody_asked_to_remove_stays(self, stage: Stage) -> None:
        stage.register()
        before = stage.dump()
        assert self.finish(stage).code == "NOT_REMOVING"
        assert stage.dump() == before

    @pytest.mark.parametrize("claimed", [False, True], ids=["handed over", "claimed"])
    def test_messages_its_worker_held_end_first(self, stage: Stage, claimed: bool) -> None:
        """No worker will ever speak for them: their time is over now, not when their lease or validity ends."""
        stage.connect()
        stage.routed(1)
        stage.hello()
        task = stage.hand_off()
        if claimed:
            stage.claim(task)
        assert (self.removing(stage).code, self.finish(stage).tasks) == ("BUSY", 1)
        assert [overdue.task for overdue in stage.overdue().tasks] == [task]
        if claimed:
            stage.settle(task, "unknown", from_="c", overdue=True, reason="LEASE_ENDED")
            assert self.finish(stage).code == "BUSY"
            assert [overdue.state for overdue in stage.overdue().tasks] == ["u"]
            stage.settle(task, "failed", from_="u", overdue=True, code="UNKNOWN_OUTCOME", message="m", statsDay="d")
        else:
            stage.settle(task, "returned", from_="h", overdue=True, unitBack=True, reason="NOT_CLAIMED")
        assert self.finish(stage).code == "OK"

    def test_registered_anew_it_gives_no_epoch_that_was_given_before(self, stage: Stage) -> None:
        """It began at 1 again, and a worker of the one before could claim and give back what the new one had."""
        stage.register()
        given = {stage.hello(instance).epoch for instance in ("i1", "i2")}
        self.removing(stage)
        stage.register()
        assert [stage.open(epoch).code for epoch in given] == ["STALE_EPOCH", "STALE_EPOCH"]
        assert stage.hello("i1").epoch > max(given)

    def test_what_its_worker_was_told_goes_with_it(self, stage: Stage) -> None:
        """A logout that nobody heard was given to the next session of that name."""
        stage.register()
        told = stage.call("give_command", session=SESSION, id="c1", kind="pair", by="k", now=T0, until=T0 + 120_000)
        assert told["code"] == "OK"
        self.removing(stage)
        stage.register()
        assert stage.hello().commands == []


def test_a_worker_that_is_gone_takes_no_memory(stage: Stage) -> None:
    """A stopped session went on showing what its worker had taken; a measurement may also come late."""
    wanting(stage, SESSION)
    pool(stage)
    begin(stage)
    value_of(stage.store.watch.usage({SESSION: (1_000, 2.0)}, now_ms=stage.now))
    assert row(stage)["memoryBytes"] == "1000"
    release(stage)
    value_of(stage.store.watch.usage({SESSION: (1_000, 2.0)}, now_ms=stage.now))
    assert {"memoryBytes", "cpuMs", "usageAt"} & row(stage).keys() == set()


class TestMark:
    def test_bad_moves_each_session_once_and_the_next_start_takes_another(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, "a", "b")
        begin(stage, "a")
        begin(stage, "b")
        marked = mark(stage, "p1")
        assert (marked.code, marked.changed, marked.moved, marked.kept) == ("OK", True, ["a", "b"], [])
        before = stage.dump()
        again = mark(stage, "p1")
        assert (again.changed, again.moved) == (False, [])
        assert stage.dump() == before
        known = row(stage, "a")
        assert (known["generation"], known["restartReason"], known["proxy"]) == ("2", "PROXY_BAD", URLS[0])
        assert stage.redis.smembers(keys.proxies_bad()) == {URLS[0]}
        assert stage.redis.smembers(keys.proxies_available()) == {URLS[1]}
        assert stage.redis.get(keys.proxy_status(URLS[0])) == "BAD"
        assert begin(stage, "a", generation=1).code == "STALE"
        assert [begin(stage, session, generation=2).proxy_id for session in "ab"] == ["p2", "p2"]
        assert stage.redis.hgetall(keys.sticky_proxy()) == {PHONE: URLS[1]}
        assert stage.redis.hgetall(keys.proxy_active()) == {URLS[1]: "2"}
        assert stage.redis.hgetall(keys.phone_active()) == {PHONE: "2"}

    @pytest.mark.parametrize("is_gone", [False, True], ids=["its worker was there", "its worker was gone"])
    def test_a_ban_between_a_mark_and_the_next_start_keeps_the_address(self, stage: Stage, is_gone: bool) -> None:
        """The mark made the phone forget its proxy. Banned a moment later and restarted by an operator, it came back
        from another address (I10)."""
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        assert mark(stage, "p1").moved == [SESSION]
        if is_gone:
            release(stage)
        stage.event(quarantine="BANNED_403")
        if not is_gone:
            release(stage)
        assert begin(stage, instance="i2", generation=2).code == "NO_PROXY"
        mark(stage, "p1", state="OK")
        assert begin(stage, instance="i3", generation=2).proxy_id == "p1"

    def test_what_is_told_names_the_proxy_without_its_credentials(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        mark(stage, "p1")
        (told,) = incidents(stage, "PROXY_BAD")
        assert (told["proxyId"], told["proxy"], told["reason"], told["by"], told["moved"]) == (
            "p1", "h1.example", "timed out", "watchdog", 1,
        )  # fmt: skip
        streams = [stage.redis.xrange(key) for key in (keys.audit(), keys.incident_stream(), keys.events())]
        assert "canary-password" not in f"{streams}{stage.redis.lrange(keys.incidents(), 0, -1)}"

    def test_a_ban_moves_nothing(self, stage: Stage) -> None:
        """A banned number's session keeps even a bad proxy, and gets no other by a restart (I10)."""
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        stage.event(quarantine="BANNED_403")
        marked = mark(stage, "p1")
        assert (marked.moved, marked.kept) == ([], [SESSION])
        assert row(stage).get("generation") == "1"
        assert stage.redis.hget(keys.sticky_proxy(), PHONE) == URLS[0]
        assert begin(stage, instance="i2").code == "NO_PROXY"
        assert stage.redis.hget(keys.sticky_proxy(), PHONE) == URLS[0]
        stage.redis.hdel(keys.phone(PHONE), "quarantined")
        assert begin(stage, instance="i3").proxy_id == "p2"

    def test_who_is_banned_no_longer_is_moved_by_the_next_mark(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        stage.event(quarantine="BANNED_403")
        mark(stage, "p1")
        stage.redis.hdel(keys.phone(PHONE), "quarantined")
        assert mark(stage, "p1").moved == [SESSION]

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"desired": "stopped"}, id="stopping"),
            pytest.param({"removing": "1"}, id="being removed"),
            pytest.param({"connection": "FAILED"}, id="failed"),
        ],
    )
    def test_who_is_to_stop_anyway_is_not_restarted(self, stage: Stage, fields: dict[str, str]) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        stage.redis.hset(keys.session(SESSION), mapping=fields)
        assert mark(stage, "p1").moved == []
        assert row(stage)["generation"] == "1"

    def test_without_another_the_session_waits_and_holds_nothing(self, stage: Stage) -> None:
        pool(stage, 1)
        wanting(stage, SESSION)
        begin(stage)
        mark(stage, "p1")
        assert begin(stage, generation=2).code == "NO_PROXY"
        assert stage.redis.hgetall(keys.proxy_active()) == stage.redis.hgetall(keys.phone_active()) == {}

    def test_good_again_is_given_out_again_with_what_it_still_carries(self, stage: Stage) -> None:
        pool(stage, 1)
        wanting(stage, SESSION)
        begin(stage)
        mark(stage, "p1")
        assert mark(stage, "p1", "OK").changed
        assert not mark(stage, "p1", "OK").changed
        assert stage.redis.zscore(keys.proxies_load(), URLS[0]) == 1
        assert stage.redis.smembers(keys.proxies_bad()) == set()
        assert begin(stage, generation=2).proxy_id == "p1"
        assert stage.redis.hgetall(keys.proxy_active()) == {URLS[0]: "1"}
        assert len(incidents(stage, "PROXY_OK")) == 1

    @pytest.mark.parametrize("proxy", ["p9", "", "1", "p", "p1x", URLS[0], "p-1", "p+inf"])
    def test_nobody_knows_the_proxy(self, stage: Stage, proxy: str) -> None:
        pool(stage)
        before = stage.dump()
        assert mark(stage, proxy).code == "UNKNOWN_PROXY"
        assert stage.dump() == before


class TestAskedFor:
    """What a registration asks for."""

    def test_a_named_proxy_becomes_the_phones(self, stage: Stage) -> None:
        pool(stage)
        assert stage.register(proxy="p2", direct=False) == "OK"
        assert begin(stage).proxy_id == "p2"

    def test_a_phone_keeps_its_proxy_unless_that_is_bad(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        release(stage)
        assert stage.register("second", proxy="p2") == "PROXY_STICKY"
        mark(stage, "p1")
        assert stage.register("second", proxy="p2") == "OK"
        assert begin(stage).proxy_id == "p2"

    def test_a_banned_phone_gets_no_other_proxy_by_registering_again(self, stage: Stage) -> None:
        pool(stage)
        wanting(stage, SESSION)
        begin(stage)
        stage.event(quarantine="BANNED_403")
        assert stage.register("second", proxy="p2") == "PROXY_STICKY"
        assert stage.register("second", direct=True) == "PROXY_STICKY"
        mark(stage, "p1")
        assert stage.register("second", proxy="p2") == "PROXY_STICKY"
        assert stage.register("second", direct=False) == "OK"

    def test_a_profile_becomes_the_sessions_settings(self, stage: Stage) -> None:
        profiles(
            stage,
            Profile("f1", "{}", True, display_name="Ada", timezone="Asia/Jerusalem", tags=["vip"], created_at=T0 - 5),
        )
        assert stage.register(profile="f1") == "OK"
        known = row(stage)
        assert (known["profile"], known["displayName"], known["tags"], known["createdAt"]) == (
            "f1", "Ada", '["vip"]', str(T0 - 5),
        )  # fmt: skip
        about = stage.redis.hgetall(keys.phone(PHONE))
        assert (about["timezone"], about["createdAt"]) == ("Asia/Jerusalem", str(T0 - 5))
        assert stage.redis.smembers(keys.profiles_used()) == {"f1"}

    def test_what_the_session_says_itself_is_not_overwritten(self, stage: Stage) -> None:
        profiles(stage, Profile("f1", "{}", True, timezone="Asia/Jerusalem", tags=["vip"], created_at=T0))
        stage.register(profile="f1", tags=["mine"], timezone="Europe/Paris", created_at_ms=T0 - 9)
        assert (row(stage)["tags"], row(stage)["createdAt"]) == ('["mine"]', str(T0 - 9))
        assert stage.redis.hget(keys.phone(PHONE), "timezone") == "Europe/Paris"

    def test_a_worker_that_needs_a_proxy_gets_a_profile_too_and_keeps_it(self, stage: Stage) -> None:
        """In the order of their upload; one that comes back has its old place."""
        pool(stage)
        profiles(stage, Profile("f1", "line"), Profile("f0", "later"))
        wanting(stage, SESSION, "other")
        stage.register("x", OTHER, profile="f1")
        stage.redis.hset(keys.session("x"), "removing", 1)
        assert value_of(stage.store.fleet.finish_removal("x", now_ms=T0)).code == "OK"
        assert begin(stage).profile == "f1"
        value_of(stage.store.inventory.drop_profile("f0", by="k", now_ms=T0))
        release(stage)
        assert begin(stage, instance="i2").profile == "f1"
        # An empty pool of profiles holds nobody up.
        assert (begin(stage, "other").code, begin(stage, "other").profile) == ("OK", "")
