"""The scripts that fill, empty and watch the pools of proxies and profiles: every answer, repeats, and the lists."""

import msgspec
import pytest

from paceline.domain.profiles import Profile
from paceline.store import keys
from paceline.store.inventory import Added

from .stage import PHONE, SESSION, T0, Stage, value_of
from .test_fleet import URLS, begin, incidents, mark, release, wanting


def add(stage: Stage, *urls: str, limit: int = 100) -> Added:
    return value_of(stage.store.inventory.add_proxies(urls, limit=limit, by="k", now_ms=stage.now))


def add_profiles(stage: Stage, *ids: str, limit: int = 100) -> Added:
    given = [Profile(id_, f"line of {id_}") for id_ in ids]
    return value_of(stage.store.inventory.add_profiles(given, limit=limit, by="k", now_ms=stage.now))


def actions(stage: Stage) -> list[str]:
    return [msgspec.json.decode(fields["d"])["action"] for _, fields in stage.redis.xrange(keys.audit())]


class TestProxies:
    def test_they_are_added_once_and_the_same_again_changes_nothing(self, stage: Stage) -> None:
        assert add(stage, *URLS[:2]) == Added("OK", added=2)
        before = stage.dump()
        assert add(stage, *URLS[:2]) == Added("OK", duplicates=2)
        assert stage.dump() == before
        assert stage.redis.smembers(keys.proxies()) == stage.redis.smembers(keys.proxies_available()) == set(URLS[:2])
        assert stage.redis.get(keys.proxy_status(URLS[0])) == "OK"
        assert actions(stage) == ["PROXIES_ADDED"]

    def test_one_that_is_bad_stays_bad(self, stage: Stage) -> None:
        add(stage, URLS[0])
        mark(stage, "p1")
        assert add(stage, URLS[0]).duplicates == 1
        assert stage.redis.smembers(keys.proxies_available()) == set()

    def test_a_full_pool_says_which_it_refused(self, stage: Stage) -> None:
        add(stage, URLS[0])
        assert add(stage, URLS[0], *URLS[1:4], limit=2) == Added("OK", added=1, duplicates=1, refused=[2, 3])
        assert stage.redis.scard(keys.proxies()) == 2

    def test_a_list_in_the_order_of_upload_in_pages(self, stage: Stage) -> None:
        add(stage, *URLS)
        wanting(stage, SESSION)
        begin(stage)
        rows, last = value_of(stage.store.inventory.proxies(0, 3))
        assert [(row.proxy_id, row.url) for row in rows] == [(f"p{n}", URLS[n - 1]) for n in (1, 2, 3)]
        assert (rows[0].sessions, rows[1].sessions, rows[0].about["addedAt"]) == ([SESSION], [], str(T0))
        rest, end = value_of(stage.store.inventory.proxies(last or 0, 3))
        assert ([row.proxy_id for row in rest], end) == (["p4"], None)
        assert value_of(stage.store.inventory.proxies(4, 3)) == ([], None)

    def test_an_unused_one_can_be_taken_out_and_its_number_is_never_given_again(self, stage: Stage) -> None:
        before = stage.dump(ignore=("lastProxy",))
        add(stage, URLS[0])
        assert value_of(stage.store.inventory.drop_proxy("p1", by="k", now_ms=T0)).code == "OK"
        assert value_of(stage.store.inventory.drop_proxy("p1", by="k", now_ms=T0)).code == "UNKNOWN_PROXY"
        left = stage.dump(ignore=("lastProxy",))
        assert {key: left[key] for key in left if key not in ("audit", "inventory")} == before
        add(stage, URLS[0])
        assert value_of(stage.store.inventory.proxy("p2")) is not None
        assert value_of(stage.store.inventory.proxy("p1")) is None

    def test_one_that_a_session_holds_stays_and_its_phone_gets_another_afterwards(self, stage: Stage) -> None:
        add(stage, *URLS[:2])
        wanting(stage, SESSION)
        begin(stage)
        before = stage.dump()
        dropped = value_of(stage.store.inventory.drop_proxy("p1", by="k", now_ms=T0))
        assert (dropped.code, dropped.sessions) == ("IN_USE", [SESSION])
        assert stage.dump() == before
        release(stage)
        assert value_of(stage.store.inventory.drop_proxy("p1", by="k", now_ms=T0)).code == "OK"
        assert begin(stage, instance="i2").proxy_id == "p2"
        assert stage.redis.hgetall(keys.sticky_proxy()) == {PHONE: URLS[1]}


class TestProfiles:
    def test_they_are_added_once_listed_and_taken_out(self, stage: Stage) -> None:
        assert add_profiles(stage, "f1", "f2", "f3") == Added("OK", added=3)
        before = stage.dump()
        assert add_profiles(stage, "f1", "f2") == Added("OK", duplicates=2)
        assert stage.dump() == before
        assert add_profiles(stage, "f3", "f4", limit=3) == Added("OK", duplicates=1, refused=[1])
        rows, last = value_of(stage.store.inventory.profiles(0, 2))
        assert ([row.profile_id for row in rows], last) == (["f1", "f2"], 2)
        assert rows[0].known["line"] == "line of f1"
        assert value_of(stage.store.inventory.drop_profile("f1", by="k", now_ms=T0)).code == "OK"
        assert value_of(stage.store.inventory.drop_profile("f1", by="k", now_ms=T0)).code == "UNKNOWN_PROFILE"
        assert stage.redis.smembers(keys.profiles_available()) == {"f2", "f3"}

    def test_one_that_a_session_has_stays(self, stage: Stage) -> None:
        add_profiles(stage, "f1")
        stage.register(profile="f1")
        before = stage.dump()
        dropped = value_of(stage.store.inventory.drop_profile("f1", by="k", now_ms=T0))
        assert (dropped.code, dropped.sessions) == ("IN_USE", [SESSION])
        assert stage.dump() == before
        sizes = value_of(stage.store.inventory.sizes())
        assert (sizes.profiles_available, sizes.profiles_used) == (0, 1)


class TestWatch:
    def watch(self, stage: Stage, *, low: int = 2, per_proxy: int = 1) -> list[tuple[str, str]]:
        watched = value_of(stage.store.inventory.watch(low=low, per_proxy=per_proxy, now_ms=stage.now))
        return [(told.what, told.level) for told in watched.told]

    def test_a_pool_that_nobody_needs_is_not_low(self, stage: Stage) -> None:
        assert self.watch(stage) == []
        assert stage.redis.lrange(keys.incidents(), 0, -1) == []

    def test_one_that_somebody_asked_is(self, stage: Stage) -> None:
        wanting(stage, SESSION)
        begin(stage)
        assert self.watch(stage) == [("proxies", "NONE")]

    def test_few_and_none_are_told_once_each_until_there_is_enough_again(self, stage: Stage) -> None:
        add(stage, *URLS[:2])
        assert self.watch(stage) == []
        for number in range(2):
            wanting(stage, f"s{number}", phone=f"97250000000{number}")
        begin(stage, "s0", proxy=1)
        assert self.watch(stage) == [("proxies", "FEW")]
        assert self.watch(stage) == []
        begin(stage, "s1", proxy=1)
        assert self.watch(stage) == [("proxies", "NONE")]
        # One comes and goes: no news, there was never enough.
        release(stage, "s1")
        assert self.watch(stage) == []
        begin(stage, "s1", instance="i2", proxy=1)
        assert self.watch(stage) == []
        assert incidents(stage, "INVENTORY_OK") == []
        add(stage, *URLS[2:])
        assert self.watch(stage) == self.watch(stage) == []
        assert [(fact["what"], fact["available"]) for fact in incidents(stage, "INVENTORY_OK")] == [("proxies", 2)]
        mark(stage, "p3")
        assert self.watch(stage) == [("proxies", "FEW")]
        told = incidents(stage, "INVENTORY_LOW")
        assert [(fact["what"], fact["level"], fact["available"], fact["low"]) for fact in reversed(told)] == [
            ("proxies", "FEW", 1, 2),
            ("proxies", "NONE", 0, 2),
            ("proxies", "FEW", 1, 2),
        ]

    def test_profiles_are_watched_too_and_with_0_only_none_is_told(self, stage: Stage) -> None:
        add_profiles(stage, "f1", "f2")
        assert self.watch(stage, low=0) == []
        stage.register("a", profile="f1")
        assert self.watch(stage, low=0) == []
        stage.register("b", profile="f2")
        assert self.watch(stage, low=0) == [("profiles", "NONE")]

    @pytest.mark.parametrize(("per_proxy", "room"), [(1, set()), (2, {URLS[0]})])
    def test_a_changed_limit_changes_who_has_room(self, stage: Stage, per_proxy: int, room: set[str]) -> None:
        add(stage, URLS[0])
        wanting(stage, SESSION)
        begin(stage)
        self.watch(stage, per_proxy=per_proxy)
        assert stage.redis.smembers(keys.proxies_available()) == room
