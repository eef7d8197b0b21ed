"""The short way of the dispatcher: it does what the long way does, and what changed since the look it leaves alone."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from paceline.domain.jobs import Job
from paceline.kits.rng import new_rng
from paceline.policy.dispatch import Idle, Send, Step, decide
from paceline.policy.facts import PhoneFacts, Rules
from paceline.policy.trust import DAY_MS, Policy, parse
from paceline.settings import read_policy
from paceline.store import keys

from .stage import PHONE, SESSION, T0, Stage, recipient, value_of

RULES = Rules(parse(read_policy("demo")))
PHONES = [f"97254000000{number}" for number in range(3)]


@pytest.fixture
def busy(stage: Stage) -> Stage:
    return fill(stage)


def fill(stage: Stage) -> Stage:
    """A number with single sends, one whose task was handed over before and came back, one that counts another day."""
    for number, phone in enumerate(PHONES):
        stage.connect(f"s{number}", phone)
    stage.send(recipient(0), PHONES[0])
    stage.send(recipient(1), PHONES[0])
    stage.routed(3, phone=PHONES[1], first=10)
    stage.routed(1, phone=PHONES[2], first=20)
    (facts,) = (facts for facts in stage.look() if facts.phone == PHONES[1])
    assert stage.apply(facts, stage.to_send(facts.heads[0], "s1")) == "OK"
    stage.now += 61_000
    stage.settle(facts.heads[0].task, "returned", from_="h", reason="NOT_CLAIMED", unitBack=True)
    stage.redis.hset(keys.message(facts.heads[0].task), "waitReason", "SESSION_PAUSED")
    stage.now += 6_000
    for number in range(3):
        stage.redis.hset(keys.sessions_seen(), f"s{number}", stage.now)
    stage.set_pacer(PHONES[2], capDay="2999-01-01", capUsed="3")
    return stage


def look(stage: Stage) -> list[PhoneFacts]:
    return sorted(stage.brief_look(), key=lambda facts: facts.phone)


def hand_over(stage: Stage, looks: list[PhoneFacts]) -> list[str]:
    decided = [(facts, decide(facts, RULES, now_ms=stage.now, rng=new_rng(1))) for facts in looks]
    assert [type(decision.final) for _, decision in decided] == [Send] * len(looks)
    return value_of(stage.store.pacers.hand_off(decided, now_ms=stage.now, handoff_ttl_ms=60_000))


def test_both_ways_do_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for is_short in (True, False):
        stage.redis.flushall()
        stage.now = T0
        monkeypatch.setattr(stage, "_rng", Random(7))
        monkeypatch.setattr(stage.store.pacers, "_has_ceilings", False)
        fill(stage)
        monkeypatch.setattr(stage.store.pacers, "_has_ceilings", not is_short)
        looks = look(stage)
        assert hand_over(stage, looks) == ["OK"] * 3
        ends.append((_read(looks), stage.dump()))
    assert ends[0] == ends[1]


def _read(looks: list[PhoneFacts]) -> bytes:
    """What both ways must agree on; that the short one asks less about a task is its nature."""
    seen = [replace(facts, heads=tuple(replace(head, is_seen=True) for head in facts.heads)) for facts in looks]
    return msgspec.json.encode(seen, enc_hook=list)


def _spoil(stage: Stage, key: str) -> None:
    stage.redis.delete(key)
    stage.redis.set(key, "not what should stand here")


CHANGES: dict[str, Callable[[Stage, PhoneFacts], Any]] = {
    "the fleet is paused": lambda stage, facts: stage.redis.hset(keys.fleet(), "paused", 1),
    "the dispatchers rest": lambda stage, facts: stage.redis.hset(keys.fleet(), "stopped", 1),
    "somebody looked later": lambda stage, facts: stage.redis.zadd(keys.due(), {facts.phone: stage.now + 9_000}),
    "its pace changed": lambda stage, facts: stage.set_pacer(facts.phone, version=facts.version + 1),
    "the person said stop": lambda stage, facts: stage.suppress(facts.heads[0].to),
    "another is at the head": lambda stage, facts: stage.redis.rpush(keys.queue(facts.phone), "another"),
    "it was canceled": lambda stage, facts: stage.redis.set(
        keys.job_states(facts.heads[0].task.partition(":")[0]), "XXX"
    ),
    "its job is paused": lambda stage, facts: stage.redis.hset(
        keys.job_run(facts.heads[0].task.partition(":")[0]), "state", "PAUSED"
    ),
    "the queue is no list": lambda stage, facts: _spoil(stage, keys.queue(facts.phone)),
    "the outbox is no list": lambda stage, facts: _spoil(stage, keys.outbox("s1")),
    "the message is no hash": lambda stage, facts: _spoil(stage, keys.message(facts.heads[0].task)),
    "the routes are no hash": lambda stage, facts: _spoil(
        stage, keys.job_routes(facts.heads[0].task.partition(":")[0])
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_the_look_is_not_touched(busy: Stage, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it does not go is for hand_off to say and to write down."""
    looks = look(busy)
    CHANGES[change](busy, looks[1])
    rows, left = busy.store.pacers._caller.rows, []

    async def watched(verb: str, /, **arguments: Any) -> list[Any]:
        if verb != "hand_plain":
            return ["LEFT"] * len(arguments["orders"])
        before = _about(busy, looks[1])
        left.extend(await rows(verb, **arguments))
        assert _about(busy, looks[1]) == before
        return left

    monkeypatch.setattr(busy.store.pacers._caller, "rows", watched)
    concerns_all = change in ("the fleet is paused", "the dispatchers rest")
    assert hand_over(busy, looks) == (["LEFT"] * 3 if concerns_all else ["OK", "LEFT", "OK"])
    assert left == ([1, 2, 3] if concerns_all else [2])


def _about(stage: Stage, facts: PhoneFacts) -> dict[str, Any]:
    """All that a hand-over of this number would write, but for what is written for others, too."""
    task = facts.heads[0].task
    named = (facts.phone, task, task.partition(":")[0], ":s1")
    known = {key: value for key, value in stage.dump().items() if key.endswith(named)}
    shared = (keys.pace(), facts.phone), (keys.marks(), facts.phone)
    deadline = stage.redis.zscore(keys.deadlines(), task)
    return {
        **known,
        "due": stage.due_at(facts.phone),
        "deadline": deadline,
        "texts": [stage.redis.hget(*at) for at in shared],
    }


def wait_a_minute(stage: Stage, *sessions: str) -> None:
    """These were heard of meanwhile."""
    stage.now += 61_000
    stage.redis.hset(keys.sessions_seen(), mapping=dict.fromkeys(sessions, stage.now))


def served(stage: Stage, rules: Rules = RULES) -> tuple[PhoneFacts, str]:
    """The one due phone, as the pacer serves it, and what came of it."""
    (facts,) = stage.brief_look()
    decision = decide(facts, rules, now_ms=stage.now, rng=new_rng(1))
    return facts, value_of(stage.store.pacers.hand_off([(facts, decision)], now_ms=stage.now, handoff_ttl_ms=60_000))[0]


def test_a_repeat_goes_from_its_own_session_also_where_the_short_look_sees_nothing_of_that(stage: Stage) -> None:
    """The short look reads the entry alone. What it would send wrongly is left, and seen in full the next time."""
    _, task, _ = stage.claimed()
    stage.retry(task, at=T0, pinned=True, unitBack=None)
    stage.release()
    stage.connect("s0")
    # What seldom changes of a number is written down by a look in full.
    stage.brief_look()
    wait_a_minute(stage, "s0", SESSION)
    facts, code = served(stage)
    assert (facts.heads[0].is_seen, facts.heads[0].pinned, code) == (False, None, "CHANGED")
    assert (stage.outbox("s0"), stage.byte(task)) == ([], "t")
    facts, code = served(stage)
    assert (facts.heads[0].is_seen, facts.heads[0].pinned, code) == (True, SESSION, "OK")
    assert stage.outbox(SESSION) == [task]


def _pause(stage: Stage, job: Job) -> None:
    stage.redis.hset(keys.job_run(job.job_id), "state", "PAUSED")


@pytest.mark.parametrize(
    ("happens", "ends"),
    [
        pytest.param(lambda stage, job: stage.suppress(recipient(0)), "O", id="they said stop"),
        pytest.param(lambda stage, job: stage.redis.set(keys.job_states(job.job_id), "X"), "X", id="canceled"),
        pytest.param(
            lambda stage, job: stage.redis.hset(keys.job_run(job.job_id), "state", "PAUSED"), "p", id="paused"
        ),
    ],
)
@pytest.mark.parametrize("is_connected", [True, False], ids=["connected", "away"])
def test_what_must_not_go_leaves_the_queue_at_the_second_look(
    stage: Stage, happens: Callable[[Stage, Job], Any], ends: str, is_connected: bool
) -> None:
    stage.connect()
    job = stage.routed(1)
    if not is_connected:
        stage.event(connection="RECONNECTING")
    stage.brief_look()
    wait_a_minute(stage, SESSION)
    happens(stage, job)
    facts, code = served(stage)
    assert (facts.heads[0].is_seen, code) == (False, "CHANGED" if is_connected else "OK")
    wait_a_minute(stage, SESSION)
    served(stage)
    # Of a paused job nothing leaves its number while that has to wait anyway.
    is_left = ends == "p" and not is_connected
    assert (stage.states(job), stage.queue()) == (("r", [f"{job.job_id}:0"]) if is_left else (ends, []))
    assert stage.outbox(SESSION) == []


@pytest.mark.parametrize("task", ["x", "x:", "x:y", ":", "x:1:2", "x:-1", "x:+1", "x:007", "x:\u0661", "x:1.5"])
def test_an_entry_that_names_no_task_stops_none_of_those_taken_with_it(busy: Stage, task: str) -> None:
    """The short way goes by the number a task ends with; what has none, or one written oddly, is not for it."""
    entry = f'["{task}","972540000099",{busy.now + DAY_MS},1,1,{busy.now}]'
    busy.redis.rpush(keys.queue(PHONES[1]), entry)
    looks = look(busy)
    assert [facts.phone for facts in looks if not facts.heads[0].is_seen] == [PHONES[0], PHONES[2]]
    assert hand_over(busy, [facts for facts in looks if facts.phone != PHONES[1]]) == ["OK", "OK"]


AWAKE = replace(parse(read_policy("demo")), recipient_hours=(7, 23))
NEVER = replace(AWAKE, recipient_hours=(7, 7))
CLOSED = replace(AWAKE, levels=tuple(replace(level, hours=(0, 1)) for level in AWAKE.levels))


@pytest.mark.parametrize("policy", [AWAKE, NEVER, CLOSED], ids=["asleep", "no common hours", "the number's own hours"])
def test_a_person_who_said_stop_is_told_apart_from_one_who_sleeps(stage: Stage, policy: Policy) -> None:
    """Nothing is done with a task, and it is not left for hours, by a look that read its entry alone."""
    stage.connect()
    person = "12125550100"
    _, answer = stage.send(person, PHONE)
    assert answer.code == "OK"
    stage.brief_look()
    wait_a_minute(stage, SESSION)
    stage.suppress(person)
    (task,) = stage.queue()
    facts, code = served(stage, Rules(policy))
    assert (facts.heads[0].is_seen, code, stage.queue()) == (False, "CHANGED", [task])
    facts, code = served(stage, Rules(policy))
    assert (facts.heads[0].is_seen, code, stage.byte(task), stage.queue()) == (True, "OK", "O", [])


def test_a_step_that_comes_too_late_leaves_nothing_of_the_task_behind(stage: Stage) -> None:
    """It was canceled between the look and what was decided on it."""
    stage.connect()
    job = stage.routed(1)
    (facts,) = stage.look()
    (head,) = facts.heads
    stage.redis.hset(keys.message(head.task), "waitReason", "RECIPIENT_HOURS")
    stage.redis.set(keys.job_states(job.job_id), "X")
    park = Step("park", head.entry, head.task, "RECIPIENT_HOURS", stage.now + DAY_MS)
    assert stage.apply(facts, Idle(), park) == "OK"
    assert (stage.queue(), stage.redis.exists(keys.job_routes(job.job_id))) == ([], 0)
    assert stage.redis.ttl(keys.message(head.task)) > 0
