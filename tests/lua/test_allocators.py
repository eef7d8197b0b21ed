"""Forty allocators on one Redis: no limit is ever broken, no count is ever wrong, a phone keeps its proxy (I7)."""

import asyncio

import pytest

from paceline.store import keys

from .allocators import LIMITS, PROXIES, SESSIONS, Judge, Mutation, commotion
from .servers import LiveServer
from .stage import T0, Stage, value_of


@pytest.mark.parametrize("seed", range(2))
def test_forty_at_once_never_break_a_limit_and_give_back_once(server: LiveServer, seed: int) -> None:
    """Begins, ends, marks and restarts of forty, some of whom die between a call and its answer and repeat it."""
    released = asyncio.run(commotion(server.url, seed))
    judge = Judge(server.client)
    judge.agrees_with(server.client, released)
    # It must have been a commotion: both limits were reached and proxies were lost.
    assert judge.seen["PROXY_TAKEN"] > 100
    assert judge.seen["PROXY_LEFT"] > 10
    assert judge.seen["PROXY_RELEASED"] > 50


def test_after_the_commotion_everything_is_given_back_once(server: LiveServer) -> None:
    told = asyncio.run(commotion(server.url, 99))
    stage = Stage(server.client)
    released = [
        value_of(stage.store.fleet.release(session, now_ms=T0)).released for session in SESSIONS for _ in range(2)
    ]
    judge = Judge(server.client)
    assert judge.holds == {}
    judge.agrees_with(server.client, told)
    assert sum(released) > 0
    assert not any(released[1::2]), "a second release found something"
    assert server.client.hlen(keys.proxy_active()) == server.client.hlen(keys.phone_active()) == 0
    assert server.client.keys("proxy:sessions:*") == []


@pytest.mark.parametrize("live_server", ["embedded"], indirect=True)
@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(
            {"begin_start.lua": ("load < a.perProxy then", "load <= a.perProxy then")}, id="sticky beyond the limit"
        ),
        pytest.param({"begin_start.lua": ("'-inf', '(' .. a.perProxy", "'-inf', '+inf'")}, id="no limit per proxy"),
        pytest.param(
            {"begin_start.lua": ("active_of(phone) >= a.perPhone", "active_of(phone) > a.perPhone")},
            id="five per phone",
        ),
        pytest.param({"begin_start.lua": ("if sticky then\n", "if false then\n")}, id="not sticky"),
        pytest.param({"77_inventory.lua": ("if url == '' then return end", "")}, id="given back without being held"),
        pytest.param(
            {"release_session.lua": ("a.instance and known", "false and known")}, id="an old worker's word counts"
        ),
        pytest.param({"mark_proxy.lua": ("call('ZREM', K.proxies_load(), url)", "")}, id="a bad proxy is given out"),
    ],
)
def test_the_judge_finds_a_planted_bug(server: LiveServer, bug: Mutation) -> None:
    """One change of a script each, as somebody might make it by mistake."""
    found = False
    for seed in range(3):
        server.client.flushall()
        try:
            told = asyncio.run(commotion(server.url, seed, bug))
            Judge(server.client).agrees_with(server.client, told)
        except (AssertionError, KeyError):
            found = True
            break
    assert found
    assert LIMITS.per_proxy * len(PROXIES) < len(SESSIONS)
