"""create_key and revoke_key: every answer, repeats, and the bound on how many there are."""

import pytest

from paceline.store import keys
from paceline.store.guards import ApiKeyRecord

from .stage import T0, Stage, value_of

LIMIT = 3


def record(key_id: str = "k1", **fields: object) -> ApiKeyRecord:
    return ApiKeyRecord(key_id, f"digest-of-{key_id}", ["send"], **fields)  # type: ignore[arg-type]


def create(stage: Stage, made: ApiKeyRecord, *, ended_before: int = 0) -> str:
    return value_of(stage.store.guards.create_key(made, ended_before_ms=ended_before, limit=LIMIT))


def stored(stage: Stage) -> dict[str, ApiKeyRecord]:
    return {made.key_id: made for made in value_of(stage.store.guards.api_keys())}


def test_a_key_is_stored_as_it_was_given(stage: Stage) -> None:
    made = record(name='ключ "1"/x', created_at=T0, created_by="bootstrap", expires_at=T0 + 1, rate_per_minute=0)
    assert create(stage, made) == "OK"
    assert stored(stage) == {"k1": made}
    assert stage.redis.ttl(keys.api_keys()) == -1


def test_the_same_again_changes_nothing(stage: Stage) -> None:
    create(stage, record())
    value_of(stage.store.guards.revoke_key("k1", by="k9", now_ms=T0))
    before = stage.dump()
    assert create(stage, record()) == "OK"
    assert stage.dump() == before


def test_beyond_the_limit_it_is_refused_and_a_repeat_is_not(stage: Stage) -> None:
    for number in range(LIMIT):
        assert create(stage, record(f"k{number}")) == "OK"
    before = stage.dump()
    assert create(stage, record("k9")) == "KEYS_FULL"
    assert create(stage, record("k0")) == "OK"
    assert stage.dump() == before


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        pytest.param({}, True, id="live"),
        pytest.param({"expires_at": T0 + 1}, True, id="expires later"),
        pytest.param({"expires_at": T0}, True, id="just within"),
        pytest.param({"expires_at": T0 - 1}, False, id="expired long ago"),
        pytest.param({"revoked_at": T0}, True, id="revoked just within"),
        pytest.param({"revoked_at": T0 - 1}, False, id="revoked long ago"),
        pytest.param({"revoked_at": T0 - 1, "expires_at": T0 + 9}, False, id="revoked long before it would expire"),
    ],
)
def test_a_new_key_makes_room_of_those_that_ended_long_ago(stage: Stage, fields: dict[str, int], kept: bool) -> None:
    value_of(stage.store.guards.save_key(record("old", **fields)))
    assert create(stage, record("new"), ended_before=T0) == "OK"
    assert set(stored(stage)) == ({"old", "new"} if kept else {"new"})


def test_revoking_keeps_the_record_and_says_when_and_by_whom(stage: Stage) -> None:
    made = record(name="CRM é", created_at=T0, expires_at=T0 + 86_400_000, rate_per_minute=1_000_000)
    create(stage, made)
    revoked = value_of(stage.store.guards.revoke_key("k1", by="boss", now_ms=T0 + 5))
    assert revoked is not None
    assert (revoked.revoked_at, revoked.revoked_by) == (T0 + 5, "boss")
    assert stored(stage) == {"k1": revoked}
    assert (revoked.name, revoked.digest, revoked.scopes) == (made.name, made.digest, made.scopes)
    assert (revoked.created_at, revoked.expires_at, revoked.rate_per_minute) == (T0, T0 + 86_400_000, 1_000_000)


def test_of_two_who_revoke_the_first_word_stays(stage: Stage) -> None:
    create(stage, record())
    first = value_of(stage.store.guards.revoke_key("k1", by="a", now_ms=T0))
    before = stage.dump()
    assert value_of(stage.store.guards.revoke_key("k1", by="b", now_ms=T0 + 1)) == first
    assert stage.dump() == before


def test_a_key_nobody_knows(stage: Stage) -> None:
    assert value_of(stage.store.guards.revoke_key("none", by="a", now_ms=T0)) is None
    assert stage.dump() == {}
