"""The World's client: what is published is here with the answer, and what is refused leaves nothing behind."""

import hashlib

import pytest
import redis

from paceline.store.blocking import BlockingRedis
from paceline.store.keys import WAKE_CHANNEL
from paceline.store.scripts import Script

from .servers import LiveServer

SHOUT = f"redis.call('PUBLISH', '{WAKE_CHANNEL}', ARGV[1]) return ARGV[1]"


def script(source: str) -> Script:
    return Script("any", source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@pytest.fixture
def blocking(server: LiveServer) -> BlockingRedis:
    return BlockingRedis(server.socket)


def test_what_a_script_publishes_is_here_with_its_answer(blocking: BlockingRedis) -> None:
    """Some servers push it before the answer, some behind it."""
    shout = script(SHOUT)
    for topic in (f"outbox:{number}" for number in range(20)):
        assert blocking.run(shout, topic.encode()) == topic
        assert blocking.wakes() == [topic]


def test_so_it_is_where_the_answer_is_fetched_later(blocking: BlockingRedis) -> None:
    shout = script(SHOUT)
    blocking.begin_run(shout, b"due")
    blocking.begin_read(("ECHO", "one"), ("ECHO", "two"))
    assert [blocking.end(), blocking.end(), blocking.wakes()] == [["due"], ["one", "two"], ["due"]]


def test_a_refusal_is_not_the_answer_to_what_is_asked_next(blocking: BlockingRedis) -> None:
    with pytest.raises(redis.ResponseError, match="no good"):
        blocking.run(script("return redis.error_reply('no good')"), b"")
    with pytest.raises(redis.ResponseError):
        blocking.read(("ECHO", "before"), ("HGET", "not", "right", "at", "all"), ("ECHO", "behind"))
    assert blocking.read(("ECHO", "next")) == ["next"]
