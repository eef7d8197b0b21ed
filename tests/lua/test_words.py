"""What workers tell counts once (`is_news`): every answer of session_event and restriction_event, and their copies."""

from typing import Any

import pytest

from paceline.store import keys

from .stage import HOUR, PHONE, SESSION, T0, Stage, value_of

OTHER = "s2"
REMEMBERED = 32
"""As many words of a session as lib/72_fleet.lua keeps."""


@pytest.fixture
def told(stage: Stage) -> Stage:
    """A session whose worker said hello, and is in its first epoch."""
    stage.register()
    stage.hello("first")
    return stage


def connection(stage: Stage, session: str = SESSION) -> Any:
    return stage.redis.hget(keys.session(session), "connection")


def state(
    stage: Stage,
    kind: str,
    word: str | None,
    *,
    session: str = SESSION,
    at: int | None = None,
    until: int | None = T0 + HOUR,
) -> Any:
    """The platform's word on a limit of an hour; what came of it."""
    until = None if kind == "NONE" else until
    when = {"at_ms": stage.now if at is None else at, "now_ms": stage.now}
    epoch = int(stage.redis.hget(keys.session(session), "epoch") or 0)
    return value_of(stage.store.sessions.restriction(session, kind, until, epoch=epoch, word=word, **when)).code


def restriction(stage: Stage) -> Any:
    return stage.redis.hget(keys.phone(PHONE), "restriction")


class TestConnections:
    def test_a_copy_that_comes_after_a_newer_word_changes_nothing(self, told: Stage) -> None:
        """Its worker's clock is ahead, so by the time that is written down every word is said when it is heard."""
        assert told.event(connection="RECONNECTING", epoch=1, word="w1").code == "OK"
        assert told.event(connection="CONNECTED", epoch=1, word="w2").code == "OK"
        told.now += 1_000
        before = told.dump(ignore=("lastSeen",))
        for word in ("w1", "w2", "w1"):
            answer = told.event(connection="RECONNECTING", epoch=1, word=word)
            assert (answer.code, answer.phone) == ("KNOWN", PHONE)
        assert told.dump(ignore=("lastSeen",)) == before
        assert told.redis.hget(keys.session(SESSION), "lastSeen") == str(told.now)

    def test_a_copy_of_a_ban_does_not_ban_again(self, told: Stage) -> None:
        ban = {"connection": "FAILED", "quarantine": "BANNED_403", "epoch": 1, "word": "w1"}
        told.event(**ban)
        told.redis.hdel(keys.phone(PHONE), "quarantined")
        assert told.event(**ban).code == "KNOWN"
        assert told.redis.hget(keys.phone(PHONE), "quarantined") is None

    def test_the_next_worker_may_count_its_words_anew(self, told: Stage) -> None:
        """The same name in another epoch is another word; one of an epoch that is over says nothing of this one."""
        told.event(connection="CONNECTED", epoch=1, word="w1")
        told.hello("second")
        assert told.event(connection="RECONNECTING", epoch=2, word="w1").code == "OK"
        assert connection(told) == "RECONNECTING"
        assert told.event(connection="CONNECTED", epoch=1, word="w9").code == "OK"
        assert connection(told) == "RECONNECTING"

    def test_a_word_without_an_epoch_is_the_same_in_every_one(self, told: Stage) -> None:
        """A worker's last word was kept on its disk and told again by the next: a number that was restored in between
        was quarantined anew."""
        ban = {"connection": "FAILED", "quarantine": "LOGGED_OUT", "failed": "LOGGED_OUT", "word": "i:1:2", "at": T0}
        assert told.event(**ban).code == "OK"
        told.now += 60_000
        told.redis.hdel(keys.phone(PHONE), "quarantined")
        told.hello("second")
        assert told.event(connection="CONNECTED", epoch=2, word="i:2:1").code == "OK"
        assert told.event(**ban).code == "KNOWN"
        assert told.redis.hget(keys.phone(PHONE), "quarantined") is None
        assert connection(told) == "CONNECTED"

    def test_a_limit_without_an_epoch_is_the_same_in_every_one(self, told: Stage) -> None:
        def said() -> str:
            when = {"at_ms": told.now, "now_ms": told.now}
            lock = told.store.sessions.restriction(SESSION, "TIME_LOCKED", T0 + HOUR, epoch=None, word="w1", **when)
            return value_of(lock).code

        assert said() == "OK"
        told.hello("second")
        assert said() == "KNOWN"

    def test_a_word_without_a_name_counts_every_time(self, told: Stage) -> None:
        for said in ("CONNECTED", "RECONNECTING", "CONNECTED"):
            assert told.event(connection=said).code == "OK"
            assert connection(told) == said

    def test_a_word_that_nobody_wanted_to_hear_counts_when_it_is_told_again(self, told: Stage) -> None:
        told.redis.hset(keys.session(SESSION), "desired", "stopped")
        told.event(connection="CONNECTED", epoch=1, word="w1")
        told.redis.hset(keys.session(SESSION), "desired", "running")
        assert told.event(connection="CONNECTED", epoch=1, word="w1").code == "OK"
        assert connection(told) == "CONNECTED"

    def test_so_many_are_remembered_and_no_more(self, told: Stage) -> None:
        for number in range(REMEMBERED + 1):
            told.event(connection="RECONNECTING", epoch=1, word=f"w{number}")
        size = told.redis.hstrlen(keys.session(SESSION), "wordsTold")
        assert told.event(connection="CONNECTED", epoch=1, word="w1").code == "KNOWN"
        assert told.event(connection="CONNECTED", epoch=1, word="w0").code == "OK"
        assert told.redis.hstrlen(keys.session(SESSION), "wordsTold") == size

    def test_an_unknown_session_remembers_nothing(self, stage: Stage) -> None:
        assert stage.event(connection="CONNECTED", word="w1").code == "UNKNOWN_SESSION"
        assert stage.dump() == {}


class TestLimits:
    def test_a_copy_does_not_bring_a_limit_back(self, told: Stage) -> None:
        assert [state(told, "TIME_LOCKED", "w1"), state(told, "NONE", "w2")] == ["OK", "OK"]
        told.now += 1_000
        before = told.dump()
        assert [state(told, "TIME_LOCKED", "w1"), state(told, "NONE", "w2")] == ["KNOWN", "KNOWN"]
        assert told.dump() == before
        assert restriction(told) is None

    def test_an_older_word_of_the_same_worker_is_late(self, told: Stage) -> None:
        state(told, "NONE", "w2")
        assert state(told, "TIME_LOCKED", "w1", at=T0 - 1) == "LATE"
        assert restriction(told) is None

    @pytest.fixture
    def both(self, told: Stage) -> Stage:
        """Two workers of one number."""
        told.register(OTHER)
        told.hello("other", OTHER)
        return told

    @pytest.mark.parametrize("over", ["NONE", "TIME_LOCKED"], ids=["none", "over"])
    def test_another_workers_older_word_lifts_no_newer_limit(self, both: Stage, over: str) -> None:
        """A "none" that was under way for minutes lifted the lock that had begun meanwhile."""
        both.now = T0 + 60_000
        assert state(both, "TIME_LOCKED", "w1", at=T0 + 50_000) == "OK"
        both.now = T0 + 120_000
        assert state(both, over, "w1", session=OTHER, at=T0 + 10_000, until=T0) == "LATE"
        assert restriction(both) == "TIME_LOCKED"
        assert state(both, over, "w2", session=OTHER, at=T0 + 60_000, until=T0) == "OK"
        assert restriction(both) is None

    def test_it_lifts_what_was_stated_before_it(self, both: Stage) -> None:
        both.now = T0 + 1_000
        state(both, "CAPPED", "w1")
        both.now = T0 + 60_000
        state(both, "TIME_LOCKED", "w2")
        assert state(both, "NONE", "w1", session=OTHER, at=T0 + 10_000) == "LATE"
        assert restriction(both) == "TIME_LOCKED"
        state(both, "NONE", "w3")
        assert restriction(both) is None

    def test_another_workers_limit_counts_however_old_its_word_is(self, both: Stage) -> None:
        state(both, "NONE", "w1")
        assert state(both, "TIME_LOCKED", "w1", session=OTHER, at=T0 - HOUR) == "OK"
        assert restriction(both) == "TIME_LOCKED"

    def test_its_own_word_lifts_a_limit_that_another_stated_earlier(self, both: Stage) -> None:
        state(both, "TIME_LOCKED", "w1")
        both.now += 1_000
        state(both, "TIME_LOCKED", "w1", session=OTHER)
        both.now += 1_000
        assert state(both, "NONE", "w2", at=T0 + 500) == "LATE"
        assert state(both, "NONE", "w3", at=T0 + 1_000) == "OK"
        assert restriction(both) is None

    def test_a_clock_that_was_set_back_keeps_no_limit(self, both: Stage) -> None:
        both.now = T0 + HOUR - 1
        state(both, "TIME_LOCKED", "w1")
        both.now = T0
        assert state(both, "NONE", "w1", session=OTHER) == "OK"
        assert restriction(both) is None

    def test_our_own_guess_is_lifted_by_any_word(self, both: Stage) -> None:
        both.connect()
        both.routed(1)
        task = both.hand_off()
        both.fail(task, from_="h", lockedUntil=both.now + HOUR, code="RESTRICTED_463")
        assert restriction(both) == "TIME_LOCKED"
        assert state(both, "NONE", "w1", session=OTHER, at=T0 - HOUR) == "OK"
        assert restriction(both) is None

    def test_nor_is_a_worker_with_the_one_before_it(self, told: Stage) -> None:
        state(told, "TIME_LOCKED", "w1")
        told.hello("second")
        assert state(told, "NONE", "w1", at=T0 - HOUR) == "OK"
        assert restriction(told) is None

    def test_of_an_epoch_that_is_over_it_is_late(self, told: Stage) -> None:
        told.hello("second")
        when = {"at_ms": told.now, "now_ms": told.now}
        said = told.store.sessions.restriction(SESSION, "TIME_LOCKED", T0 + HOUR, epoch=1, word="w1", **when)
        assert value_of(said).code == "LATE"
        assert restriction(told) is None

    def test_an_unknown_session(self, stage: Stage) -> None:
        assert state(stage, "NONE", "w1") == "UNKNOWN_SESSION"
        assert stage.dump() == {}
