"""The short way of settling: it does what the long way does, and what changed since the look it leaves alone."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from paceline.store import keys
from paceline.store.proofs import Proof, Settled
from paceline.store.rows import sends_text

from .stage import DAY, HOUR, PHONE, SESSION, T0, Stage, recipient, value_of

PHONES = [f"9725400000{number}5" for number in range(4)]


@pytest.fixture
def busy(stage: Stage) -> Stage:
    return fill(stage)


def fill(stage: Stage) -> Stage:
    """Numbers whose first message is under way: claimed with more behind it; claimed as the last one, with many sends
    before it; handed over and not claimed; and one whose message is the last of its job."""
    for number, phone in enumerate(PHONES):
        stage.connect(f"s{number}", phone)
    stage.routed(2, phone=PHONES[0], first=0)
    stage.send(recipient(10), PHONES[1])
    stage.routed(3, phone=PHONES[2], first=20)
    stage.routed(1, phone=PHONES[3], first=30)
    past = [(T0 - 90_000 + i * 2_000, T0 - 89_500 + i * 2_000) for i in range(45)]
    stage.set_pacer(PHONES[1], sends=sends_text(past), lastSent=T0 - 1_000, sentBy="s1")
    for facts in sorted(stage.look(), key=lambda facts: facts.phone):
        session = f"s{PHONES.index(facts.phone)}"
        assert stage.apply(facts, stage.to_send(facts.heads[0], session)) == "OK"
        if facts.phone != PHONES[2]:
            stage.hello(session=session)
            stage.claim(facts.heads[0].task, session=session)
    stage.now += 4_321
    return stage


def proofs(stage: Stage) -> list[Proof]:
    tasks = [stage.pacer(phone)["unsettled"] for phone in PHONES]
    return [Proof(task, "sent", stage.now, DAY, phone) for task, phone in zip(tasks, PHONES, strict=True)]


def settle(stage: Stage, orders: list[Proof]) -> list[Settled | Exception]:
    return value_of(stage.store.outbox._proofs.settle(orders))


def watched(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs that are called, with how many orders."""
    caller, called = stage.store.outbox._proofs._caller, []
    rows = caller.rows

    async def noted(verb: str, /, **arguments: Any) -> list[Any]:
        called.append(f"{verb} {len(arguments.get('tasks') or arguments['orders'])}")
        return await rows(verb, **arguments)

    monkeypatch.setattr(caller, "rows", noted)
    return called


def test_both_ways_do_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for is_short in (True, False):
        stage.redis.flushall()
        stage.now = T0
        monkeypatch.setattr(stage, "_rng", Random(7))
        fill(stage)
        orders = proofs(stage)
        monkeypatch.setattr(stage.store.outbox._proofs, "_has_ceilings", not is_short)
        with monkeypatch.context() as patch:
            called = watched(stage, patch)
            answers = settle(stage, orders)
        assert called == (["prove_plain 4"] if is_short else ["prove_sent 4"])
        ends.append((answers, _in_order(stage.dump())))
    assert ends[0] == ends[1]
    assert [answer.was for answer in ends[0][0]] == ["c", "c", "h", "c"]  # type: ignore[union-attr]


def _in_order(dump: dict[str, Any]) -> dict[str, Any]:
    """Which job of one moment is told of first is nobody's business; of each job the order counts."""
    by_job = {
        keys.events(): sorted(dump[keys.events()][0], key=lambda event: event[5][:26]),
        keys.job_events(): sorted(dump[keys.job_events()][0]),
        keys.messages_ended(): sorted(dump[keys.messages_ended()][0][0].split()),
    }
    return dump | by_job


def test_what_is_told_again_is_known(busy: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = proofs(busy)
    called = watched(busy, monkeypatch)
    twice = [orders[0], msgspec.structs.replace(orders[0], now=busy.now + 1), orders[1]]
    assert [answer.code for answer in settle(busy, twice)] == ["OK", "REPEAT", "OK"]  # type: ignore[union-attr]
    assert called == ["prove_plain 2", "prove_sent 1"]
    before = busy.dump()
    assert [answer.code for answer in settle(busy, orders[:2])] == ["REPEAT", "REPEAT"]  # type: ignore[union-attr]
    assert busy.dump() == before


def test_those_of_one_job_are_told_together(busy: Stage) -> None:
    """In their order, as one entry of the stream."""
    job = busy.routed(5, phone="972540000055", first=50)
    for number, index in enumerate((3, 1, 0, 4)):
        phone, session = f"97254000006{number}", f"t{number}"
        busy.connect(session, phone)
        entry = f'["{job.task_id(index)}","{recipient(index)}",{busy.now + HOUR},1,1,{busy.now}]'
        busy.redis.lpush(keys.queue(phone), entry)
        busy.redis.zadd(keys.due(), {phone: busy.now})
        (facts,) = (facts for facts in busy.look() if facts.phone == phone)
        assert busy.apply(facts, busy.to_send(facts.heads[0], session)) == "OK"
    orders = [
        Proof(job.task_id(index), "sent", busy.now, DAY, f"97254000006{n}") for n, index in enumerate((3, 1, 0, 4))
    ]
    assert [answer.code for answer in settle(busy, orders)] == ["OK"] * 4  # type: ignore[union-attr]
    assert (busy.states(job), busy.dump()["events"][0][-1][4:]) == ("SSrSS", ["job", job.job_id, "ix", "0,1,3,4"])


def test_all_of_a_call_count_as_heard_when_the_last_was(busy: Stage) -> None:
    """So they share one event, and no gap gets shorter for it."""
    orders = [msgspec.structs.replace(order, now=busy.now + n) for n, order in enumerate(proofs(busy))]
    settle(busy, orders)
    assert {busy.sends(phone)[-1][1] for phone in PHONES} == {busy.now + 3}


@pytest.mark.parametrize("field", ["history", "errorCode", "retryMember", "waitReason", "maybeSent", "fleetMember"])
def test_a_message_with_a_story_goes_the_long_way(busy: Stage, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = proofs(busy)
    busy.redis.hset(keys.message(orders[1].task), field, '{"at":1}')
    called = watched(busy, monkeypatch)
    assert [answer.code for answer in settle(busy, orders)] == ["OK"] * 4  # type: ignore[union-attr]
    assert called == ["prove_plain 3", "prove_sent 1"]


LONG: dict[str, Callable[[Stage, Proof], Proof]] = {
    "a receipt": lambda stage, proof: msgspec.structs.replace(proof, outcome="delivered"),
    "nobody knows its number": lambda stage, proof: msgspec.structs.replace(proof, phone=None),
    "another number": lambda stage, proof: msgspec.structs.replace(proof, phone=PHONES[0]),
    "no day": lambda stage, proof: msgspec.structs.replace(proof, stats_day=None),
    "no such task": lambda stage, proof: msgspec.structs.replace(proof, task="nothing:x"),
    "its person may be bound to another number by now": lambda stage, proof: _later(stage, proof, HOUR),
    "another session sent before": lambda stage, proof: _paced(stage, proof, sentBy="s9"),
    "the number is busy with another": lambda stage, proof: _paced(stage, proof, unsettled="other:0"),
    "the number's sends are damaged": lambda stage, proof: _paced(stage, proof, sends="123"),
    "the rest is no number": lambda stage, proof: _paced(stage, proof, gapMs="no"),
    "the version is no number": lambda stage, proof: _paced(stage, proof, version="1.5"),
    "the pace is damaged": lambda stage, proof: _set(stage, proof, keys.pace(), "[1"),
    "the message is damaged": lambda stage, proof: _set(stage, proof, keys.message(proof.task), "", "entry"),
    "what was handed over is damaged": lambda stage, proof: _set(stage, proof, keys.message(proof.task), "x", "handed"),
}


def _later(stage: Stage, proof: Proof, ms: int) -> Proof:
    stage.now += ms
    return msgspec.structs.replace(proof, now=stage.now)


def _paced(stage: Stage, proof: Proof, **fields: Any) -> Proof:
    stage.set_pacer(str(proof.phone), **fields)
    return proof


def _set(stage: Stage, proof: Proof, key: str, value: str, field: str = "") -> Proof:
    stage.redis.hset(key, field or str(proof.phone), value)
    return proof


@pytest.mark.parametrize("reason", LONG)
def test_what_is_not_plain_goes_the_long_way(busy: Stage, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = proofs(busy)
    changed = LONG[reason](busy, second)
    called = watched(busy, monkeypatch)
    answers = settle(busy, [first, changed])
    assert (called, answers[0].code) == (["prove_plain 1", "prove_sent 1"], "OK")  # type: ignore[union-attr]


def _spoil(stage: Stage, key: str) -> None:
    stage.redis.delete(key)
    stage.redis.set(key, "not what should stand here")


def _no_text(stage: Stage, proof: Proof) -> None:
    states = keys.job_states(proof.task.partition(":")[0])
    stage.redis.delete(states)
    stage.redis.rpush(states, "x")


CHANGES: dict[str, Callable[[Stage, Proof], Any]] = {
    "its pace changed": lambda stage, proof: stage.set_pacer(PHONES[1], version=9),
    "its state changed": lambda stage, proof: stage.redis.set(keys.job_states(proof.task.partition(":")[0]), "u"),
    "something came": lambda stage, proof: stage.send(recipient(90), PHONES[1]),
    "something urgent came": lambda stage, proof: stage.send(recipient(90), PHONES[1], priority=3),
    "something was parked": lambda stage, proof: stage.redis.zadd(keys.parked(PHONES[1]), {"entry": 1}),
    "another is in its worker's hands": lambda stage, proof: stage.redis.rpush(keys.processing("s1"), "other:0"),
    "nothing is in its worker's hands": lambda stage, proof: stage.redis.delete(keys.processing("s1")),
    "the worker's hands are no list": lambda stage, proof: _spoil(stage, keys.processing("s1")),
    "the message is no hash": lambda stage, proof: _spoil(stage, keys.message(proof.task)),
    "the states are no text": _no_text,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since_the_look_is_not_touched(busy: Stage, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to do about it is for prove_sent to say."""
    orders = proofs(busy)
    proving = busy.store.outbox._proofs
    rows, left = proving._caller.rows, []

    async def changed(verb: str, /, **arguments: Any) -> list[Any]:
        if verb == "prove_sent":
            return ['{"code":"LEFT"}'] * len(arguments["orders"])
        if verb != "prove_plain":
            return await rows(verb, **arguments)
        CHANGES[change](busy, orders[1])
        before = _about(busy, orders[1])
        answer = await rows(verb, **arguments)
        assert _about(busy, orders[1]) == before
        left.extend(arguments["tasks"][place - 1] for place in answer[0])
        return answer

    monkeypatch.setattr(proving._caller, "rows", changed)
    assert [answer.code for answer in settle(busy, orders)] == ["OK", "LEFT", "OK", "OK"]  # type: ignore[union-attr]
    assert left == [orders[1].task]


def _about(stage: Stage, proof: Proof) -> dict[str, Any]:
    """All that settling this message would write, but for what is written for others, too."""
    named = (str(proof.phone), proof.task, proof.task.partition(":")[0], ":s1", ":s1:" + DAY + ":sent")
    known = {key: value for key, value in stage.dump().items() if key.endswith(named)}
    texts = [stage.redis.hget(key, str(proof.phone)) for key in (keys.pace(), keys.sends(), keys.marks())]
    deadline = stage.redis.zscore(keys.deadlines(), proof.task)
    return {**known, "due": stage.due_at(str(proof.phone)), "deadline": deadline, "texts": texts}


def test_it_passes_when_redis_is_full(busy: Stage) -> None:
    orders = proofs(busy)
    asked = _asked(busy, orders)
    busy.redis.config_set("maxmemory", "1")
    try:
        assert value_of(busy.store.outbox._proofs._caller.rows("prove_plain", **asked)) == [[], []]
    finally:
        busy.redis.config_set("maxmemory", "0")
    assert [busy.byte(order.task) for order in orders] == ["S"] * 4
    assert [busy.pacer(phone).get("unsettled") for phone in PHONES] == [None] * 4


def _asked(stage: Stage, orders: list[Proof]) -> dict[str, Any]:
    """What the script is asked with, without asking it."""
    caught: dict[str, Any] = {}
    caller = stage.store.outbox._proofs._caller

    async def catch(verb: str, /, **arguments: Any) -> list[Any]:
        caught.update(arguments)
        return [[], []]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caller, "rows", catch)
        settle(stage, orders)
    return caught


def test_a_job_that_cannot_be_counted_is_told(busy: Stage) -> None:
    """And does not touch those of other jobs."""
    orders = proofs(busy)
    busy.redis.set(keys.job_open(orders[0].task.partition(":")[0]), "many")
    first, *others = settle(busy, orders)
    assert isinstance(first, Exception)
    assert [answer.code for answer in others] == ["OK"] * 3  # type: ignore[union-attr]


def test_a_statistic_that_cannot_be_counted_holds_nobody_up(busy: Stage) -> None:
    orders = proofs(busy)
    busy.redis.rpush(keys.session_stats("s0", DAY, "sent"), "x")
    assert [answer.code for answer in settle(busy, orders)] == ["OK"] * 4  # type: ignore[union-attr]
    assert "unsettled" not in busy.pacer(PHONES[0])


def test_the_orchestrators_proofs_are_plain(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    _, task, _ = stage.claimed()
    called = watched(stage, monkeypatch)
    assert stage.prove(task, "sent", stats_day=DAY, phone=PHONE).state == "S"
    assert (called, stage.byte(task), stage.redis.exists(keys.processing(SESSION))) == (["prove_plain 1"], "S", 0)
