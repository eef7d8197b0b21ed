"""One number whose data is damaged must not stop the others: it is put aside, and the rest goes on."""

import json

import pytest
import redis

from paceline.dispatcher.pacer import Pacer
from paceline.domain.ids import whatsapp_id
from paceline.domain.jobs import Contact
from paceline.kits.rng import new_rng
from paceline.orchestrator.settling import ASIDE_MS, Settling
from paceline.policy.facts import PhoneFacts, Rules
from paceline.policy.retry import RetrySettings
from paceline.policy.trust import parse
from paceline.settings import read_policy
from paceline.store import keys

from .stage import DAY, HOUR, PHONE, SESSION, T0, Stage, recipient, value_of

RULES = Rules(parse(read_policy("demo")))
PHONES = [f"97254000000{number}" for number in range(3)]


@pytest.fixture
def busy(stage: Stage) -> Stage:
    for number, phone in enumerate(PHONES):
        stage.connect(f"s{number}", phone)
        stage.send(recipient(number), phone)
    return stage


def kinds(stage: Stage) -> list[str]:
    return [json.loads(line)["kind"] for line in stage.redis.lrange(keys.incidents(), 0, -1)]


def step(stage: Stage) -> Pacer:
    pacer = Pacer(stage.store, RULES, new_rng(1), handoff_ttl_ms=60_000)
    value_of(pacer.step(stage.now))
    return pacer


def test_a_queue_that_is_no_json(busy: Stage) -> None:
    busy.redis.rpush(keys.queue(PHONES[1]), "not JSON")
    assert step(busy).handed_off == 2
    assert kinds(busy).count("PHONE_UNREADABLE") == 1
    assert busy.redis.zscore(keys.due(), PHONES[1]) == busy.now + 60_000


@pytest.mark.parametrize(
    "damaged",
    [
        "sends",
        "version",
        "lastNow",
        "lastSent",
        "gapMs",
        "capUsed",
        "slot",
        "parkedAt",
        "minExpiry",
        "failures",
        "seen",
    ],
)
@pytest.mark.parametrize("is_known", [True, False], ids=["plain", "first look"])
def test_a_number_that_is_no_number(busy: Stage, damaged: str, *, is_known: bool) -> None:
    """Read with plain commands or by a script: it stopped all who were taken with it, for good."""
    if is_known:
        busy.look()
        busy.now += 6_000
        for number in range(3):
            busy.redis.hset(keys.sessions_seen(), f"s{number}", busy.now)
    if damaged == "seen":
        busy.redis.hset(keys.sessions_seen(), "s1", "no time")
    else:
        busy.set_pacer(PHONES[1], **{damaged: "no number"})
    assert step(busy).handed_off >= 2
    assert not busy.queue(PHONES[0])
    assert not busy.queue(PHONES[2])


@pytest.mark.parametrize(
    "entry", ["5", "true", "null", "[]", '"x"', '{"task":{}}', '{"task":"x:1","to":{},"expiresAt":1,"priority":1}']
)
def test_a_queue_entry_that_is_no_task(busy: Stage, entry: str) -> None:
    busy.redis.rpush(keys.queue(PHONES[1]), entry)
    assert step(busy).handed_off == 2
    assert kinds(busy).count("PHONE_UNREADABLE") == 1


@pytest.mark.parametrize("field", ["sends", "failures"])
def test_the_rest_of_the_fleet_is_still_to_be_read(busy: Stage, field: str) -> None:
    """By routers, SmartGuard and the gateway: one number they cannot read is one they do not fill."""
    busy.set_pacer(PHONES[1], **{field: "no times"})
    assert [phone.facts.phone for phone in value_of(busy.store.pacers.fleet(page=2))] == [PHONES[0], PHONES[2]]
    busy.redis.hset(keys.pace(), PHONES[0], "no pacing")
    assert [phone.facts.phone for phone in value_of(busy.store.pacers.fleet(page=2))] == [PHONES[2]]


def test_a_day_without_its_count(busy: Stage) -> None:
    busy.set_pacer(PHONES[1], capDay="2999-01-01")
    assert step(busy).handed_off == 3


def test_a_job_whose_places_cannot_be_written(busy: Stage) -> None:
    task = busy.queue(PHONES[1])[0]
    _spoil(busy, keys.job_routes(task.partition(":")[0]))
    assert step(busy).handed_off == 2
    assert kinds(busy).count("PHONE_UNREADABLE") == 1


def _spoil(stage: Stage, key: str) -> None:
    stage.redis.delete(key)
    stage.redis.rpush(key, "something else")


def _prove(stage: Stage, tasks: list[str]) -> list[str]:
    orders = [
        {"task": task, "outcome": "sent", "whatsappId": whatsapp_id(task), "statsDay": DAY, "now": stage.now}
        for task in tasks
    ]
    return value_of(stage.caller.rows("prove_sent", orders=orders))


def test_a_proof_for_a_job_whose_counters_cannot_be_written(busy: Stage) -> None:
    step(busy)
    tasks = [busy.pacer(phone)["unsettled"] for phone in PHONES]
    _spoil(busy, keys.job_sent(tasks[1].partition(":")[0]))
    answers = _prove(busy, tasks)
    assert [answer.startswith("!") for answer in answers] == [False, True, False]
    assert [busy.byte(task) for task in tasks] == ["S", "S", "S"]


def test_a_message_that_cannot_be_read_keeps_its_deadline(busy: Stage) -> None:
    step(busy)
    tasks = [busy.pacer(phone)["unsettled"] for phone in PHONES]
    _spoil(busy, keys.message(tasks[1]))
    assert [answer.startswith("!") for answer in _prove(busy, tasks)] == [False, True, False]
    assert busy.redis.zrange(keys.deadlines(), 0, -1) == [tasks[1]]


def _sweep(stage: Stage) -> None:
    settling = Settling(stage.store, RetrySettings())
    value_of(settling.sweep(stage.now))
    assert value_of(settling.sweep(stage.now)) != stage.now, "the sweeper would never rest"


@pytest.mark.parametrize("what", ["message", "states", "handed", "name"])
def test_one_message_that_cannot_be_read_does_not_stop_the_sweeper(busy: Stage, what: str) -> None:
    """It did, for the whole fleet: no hand-over came back and no lease ended any more."""
    step(busy)
    good, bad, other = (busy.pacer(phone)["unsettled"] for phone in PHONES)
    busy.now += 61_000
    match what:
        case "message":
            _spoil(busy, keys.message(bad))
        case "states":
            _spoil(busy, keys.job_states(bad.partition(":")[0]))
        case "name":
            bad = "no task"
            busy.redis.zadd(keys.deadlines(), {bad: 1})
        case field:
            busy.redis.hdel(keys.message(bad), field)
    _sweep(busy)
    assert [busy.byte(task) for task in (good, other)] == ["r", "r"]
    assert kinds(busy).count("MESSAGE_UNREADABLE") == 1
    assert busy.redis.zscore(keys.deadlines(), bad) == busy.now + ASIDE_MS


@pytest.mark.parametrize(
    "entry", ["{broken", "null", "", '{"task":"x:1"}', None], ids=["no JSON", "nothing", "empty", "no place", "gone"]
)
def test_a_message_without_a_place_in_its_queue_is_not_lost(busy: Stage, entry: str | None) -> None:
    """It left its hand-over before anybody saw that it could not go back: then it waited in no queue."""
    step(busy)
    bad = busy.pacer(PHONES[1])["unsettled"]
    good = busy.redis.hget(keys.message(bad), "entry")
    busy.redis.hdel(keys.message(bad), "entry")
    if entry is not None:
        busy.redis.hset(keys.message(bad), "entry", entry)
    busy.now += 61_000
    used = busy.pacer(PHONES[1])["capUsed"]
    _sweep(busy)
    assert (busy.byte(bad), busy.pacer(PHONES[1])["capUsed"]) == ("h", used)
    assert busy.redis.zscore(keys.deadlines(), bad) == busy.now + ASIDE_MS
    busy.redis.hset(keys.message(bad), "entry", good)
    busy.now += ASIDE_MS
    _sweep(busy)
    assert (busy.byte(bad), busy.queue(PHONES[1])) == ("r", [bad])
    assert "unsettled" not in busy.pacer(PHONES[1])
    assert not busy.redis.exists(keys.deadlines())


def test_what_came_back_only_half_frees_its_number_later(busy: Stage) -> None:
    """It waits again, but its number was not freed. The sweeper asked for such a one for ever, without a rest."""
    step(busy)
    bad = busy.pacer(PHONES[1])["unsettled"]
    busy.now += 61_000
    busy.set_pacer(PHONES[1], gapMs="no time", sends=f"{T0}{T0}s")
    _sweep(busy)
    assert (busy.byte(bad), busy.pacer(PHONES[1])["unsettled"]) == ("r", bad)
    busy.set_pacer(PHONES[1], gapMs=5000)
    used = busy.pacer(PHONES[1])["capUsed"]
    busy.now += ASIDE_MS
    _sweep(busy)
    assert "unsettled" not in busy.pacer(PHONES[1])
    assert (busy.queue(PHONES[1]), busy.pacer(PHONES[1])["capUsed"]) == ([bad], used)
    assert busy.redis.ttl(keys.message(bad)) == -1
    assert not busy.redis.exists(keys.deadlines())


def test_a_state_nobody_knows_is_put_aside(busy: Stage) -> None:
    step(busy)
    bad = busy.pacer(PHONES[1])["unsettled"]
    busy.redis.setrange(keys.job_states(bad.partition(":")[0]), 0, "z")
    busy.now += 61_000
    _sweep(busy)
    assert kinds(busy).count("MESSAGE_UNREADABLE") == 1


def test_a_queue_whose_head_is_no_json_takes_back_what_came_before(busy: Stage) -> None:
    step(busy)
    task = busy.pacer(PHONES[1])["unsettled"]
    busy.redis.rpush(keys.queue(PHONES[1]), "not JSON")
    busy.now += 61_000
    _sweep(busy)
    assert busy.byte(task) == "r"
    assert [task in line for line in busy.redis.lrange(keys.queue(PHONES[1]), 0, -1)] == [False, True]


def test_statistics_that_cannot_be_written_hold_up_no_proof(busy: Stage) -> None:
    step(busy)
    tasks = [busy.pacer(phone)["unsettled"] for phone in PHONES]
    _spoil(busy, keys.fleet_hour(str(busy.now // 3_600_000)))
    with pytest.raises(redis.ResponseError):
        _prove(busy, tasks)
    assert [busy.byte(task) for task in tasks] == ["S", "S", "S"]


def test_an_order_that_fails_in_the_middle_of_a_batch(busy: Stage) -> None:
    """The others are handed over with their deadlines; the one that failed is looked at again."""
    busy.redis.set(keys.outbox("s1"), "not a list")
    assert step(busy).handed_off == 2
    assert kinds(busy).count("PHONE_UNREADABLE") == 1
    held = {busy.pacer(phone).get("unsettled") for phone in PHONES} - {None}
    assert held <= set(busy.redis.zrange(keys.deadlines(), 0, -1))
    assert busy.redis.zscore(keys.due(), PHONES[1]) == busy.now + 60_000


def test_a_job_whose_states_cannot_be_read(busy: Stage) -> None:
    task = busy.queue(PHONES[1])[0]
    _spoil(busy, keys.job_states(task.partition(":")[0]))
    assert step(busy).handed_off == 2
    assert kinds(busy).count("PHONE_UNREADABLE") == 1


def test_facts_that_no_one_can_read(busy: Stage) -> None:
    busy.set_pacer(PHONES[1], capUsed="many")
    assert step(busy).handed_off == 2


def test_a_timezone_this_host_does_not_know(busy: Stage) -> None:
    busy.set_facts(keys.phone(PHONES[1]), timezone="Mars/Olympus")
    assert step(busy).handed_off == 2


@pytest.mark.parametrize("what", ["seq", "pacer", "queue", "queue below", "queue of later"])
def test_a_send_to_a_number_that_cannot_be_read_is_not_half_accepted(stage: Stage, what: str) -> None:
    """The job was there but in no queue, and whoever asked again under the same key was told that it is accepted."""
    stage.connect()
    match what:
        case "seq":
            stage.set_pacer(seq="x")
        case "pacer":
            stage.redis.hset(keys.pace(), PHONE, "no pacing")
        case _:
            stage.redis.set(keys.queue(PHONE), "no list")
    later = {"send_at": stage.now + 60_000} if what == "queue of later" else {}
    priority = 2 if what == "queue below" else 1
    job = stage.new_job(1, single=True, phone=PHONE, priority=priority, **later)
    contact = Contact(recipient(1))
    before = stage.dump()
    with pytest.raises(redis.ResponseError):
        value_of(stage.store.jobs.accept_send(job, contact, PHONE, now_ms=stage.now))
    assert stage.dump() == before
    stage.redis.delete(keys.pace(), keys.marks(), keys.queue(PHONE))
    assert value_of(stage.store.jobs.accept_send(job, contact, PHONE, now_ms=stage.now)).code == "OK"
    queue = stage.queue(PHONE, keys.queue_p2 if priority == 2 else keys.queue)
    assert (queue, stage.states(job)) == (([], "s") if later else ([job.task_id(0)], "r"))


def test_a_send_that_came_twice_and_fails_is_not_called_accepted(stage: Stage) -> None:
    """A customer's retry may come in the same call as the first."""
    stage.connect()
    stage.set_pacer(seq="x")
    job = stage.new_job(1, single=True, phone=PHONE)
    order = {
        "job": job.job_id, "json": "{}", "task": job.task_id(0), "contact": recipient(1), "phone": PHONE,
        "to": recipient(1), "expiresAt": stage.now + 1_000, "priority": 1, "limit": 10, "now": stage.now,
    }  # fmt: skip
    answers = value_of(stage.caller.rows("accept_send", orders=[order, order]))
    assert [answer.startswith("!") for answer in answers] == [True, True]


@pytest.mark.parametrize("later", [False, True], ids=["now", "later"])
def test_a_send_whose_person_cannot_be_noted_waits_all_the_same(stage: Stage, later: bool) -> None:
    stage.connect()
    stage.redis.set(keys.person(recipient(1)), "no list")
    job = stage.new_job(1, single=True, phone=PHONE, **({"send_at": stage.now + 60_000} if later else {}))
    with pytest.raises(redis.ResponseError):
        value_of(stage.store.jobs.accept_send(job, Contact(recipient(1)), PHONE, now_ms=stage.now))
    assert stage.queue(PHONE) == ([] if later else [job.task_id(0)])
    assert stage.redis.zcard(keys.scheduled()) == int(later)


def test_what_ends_all_at_once_is_ended_in_parts(busy: Stage) -> None:
    """The validity of a job ends for all its messages in one moment; one call must not hold Redis up that long."""
    for number in range(700):
        busy.send(recipient(number), PHONES[0], validity_seconds=60)
    busy.now += 120_000
    looks: list[list[PhoneFacts]] = []
    for _ in range(6):
        due = value_of(busy.store.pacers.claim_due(now_ms=busy.now, lease_ms=5_000, limit=100, brief=True))
        looks.append(due.phones)
        assert sum(len(facts.heads) for facts in due.phones) <= 500 + 200
        busy.now += 5_001
    first = next(facts for facts in looks[0] if facts.phone == PHONES[0])
    assert len(first.heads) == 200


@pytest.fixture
def damaged(busy: Stage) -> Stage:
    """What is kept of the second number's pacing cannot be read."""
    busy.redis.hset(keys.pace(), PHONES[1], "no pacing")
    return busy


def test_a_statistic_that_cannot_be_written_holds_up_no_number(busy: Stage) -> None:
    step(busy)
    task = busy.pacer(PHONES[1])["unsettled"]
    _spoil(busy, keys.pacer(PHONES[1]))
    assert busy.sent(task).code == "OK"
    assert "unsettled" not in busy.pacer(PHONES[1])


def test_an_order_that_fails_leaves_nothing_half_done_for_the_next(busy: Stage) -> None:
    """Two proofs about one number in a call: what the first had begun to change must not be written by the second."""
    step(busy)
    task = busy.pacer(PHONES[1])["unsettled"]
    busy.set_pacer(PHONES[1], gapMs="no time", sends=f"{T0}{T0}s")
    before = busy.pacer(PHONES[1])["unsettled"]
    orders = [{"task": task, "outcome": outcome, "statsDay": DAY, "now": busy.now} for outcome in ("sent", "delivered")]
    first, _ = value_of(busy.caller.rows("prove_sent", orders=orders))
    assert first.startswith("!")
    assert busy.pacer(PHONES[1])["unsettled"] == before


def test_a_hand_over_of_a_damaged_number_is_not_half_taken_back(busy: Stage) -> None:
    step(busy)
    task = busy.pacer(PHONES[1])["unsettled"]
    busy.redis.hset(keys.pace(), PHONES[1], "no pacing")
    with pytest.raises(redis.ResponseError):
        busy.settle(task, "returned", from_="h", reason="r", unitBack=True)
    assert (busy.byte(task), busy.outbox(busy.message(task)["sessionId"])) == ("h", [task])
    assert busy.redis.zscore(keys.deadlines(), task) is not None


@pytest.mark.parametrize("key", [keys.scheduled, keys.task_retry])
def test_what_comes_back_to_a_damaged_number_waits_and_the_others_come(stage: Stage, key: keys.Key) -> None:
    stage.connect()
    stage.connect("s2", "972500000002")
    stage.hello()
    stage.hello("i2", "s2")
    tasks = []
    for session, phone in ((SESSION, PHONE), ("s2", "972500000002")):
        if key is keys.scheduled:
            job, _ = stage.send(recipient(len(tasks)), phone, send_at=T0 + 10)
            tasks.append(job.task_id(0))
            continue
        stage.routed(1, first=len(tasks), phone=phone)
        (facts,) = [facts for facts in stage.look() if facts.phone == phone]
        assert stage.apply(facts, stage.to_send(facts.heads[0], session)) == "OK"
        tasks.append(facts.heads[0].task)
        stage.claim(tasks[-1], session=session)
        stage.retry(tasks[-1], at=T0 + 10)
    stage.redis.hset(keys.pace(), PHONE, "no pacing")
    stage.now += 10
    assert stage.release().released == 1
    assert stage.redis.zrange(key(), 0, -1, withscores=True)[0][1] == stage.now + 60_000
    assert stage.queue("972500000002") == [tasks[1]]
    assert "PHONE_UNREADABLE" in kinds(stage)


def test_whoever_looks_at_many_sees_the_others(damaged: Stage) -> None:
    operators = damaged.store.operators
    sessions = [(f"s{number}", phone) for number, phone in enumerate(PHONES)]
    assert len(value_of(operators.last_minute(sessions, now_ms=damaged.now))) == len(PHONES)
    assert damaged.call("measure_fleet", offset=0, limit=10, now=damaged.now, worst=1, usageSince=0)["phones"] >= 3
    damaged.redis.zadd(keys.due(), dict.fromkeys(PHONES, damaged.now + HOUR))
    value_of(operators.look_at_all(now_ms=damaged.now))
    assert {damaged.due_at(phone) for phone in PHONES} == {damaged.now}
