"""Many tasks in one call: what is stored afterwards is what the same orders one by one would have left."""

import msgspec
import redis

from paceline.domain.ids import whatsapp_id
from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Decision, Idle, Send, Step, Wait
from paceline.policy.facts import PhoneFacts
from paceline.store import keys

from .servers import LiveServer
from .stage import DAY, GAP, HOUR, T0, Stage, heard, recipient, value_of

PHONES = [f"97254000000{number}" for number in range(5)]


def filled(client: redis.Redis) -> Stage:
    """Five numbers; two work for one job, two for another, the last has a single send. A number has more to do."""
    client.flushdb()
    stage = Stage(client)
    for number, phone in enumerate(PHONES):
        stage.connect(f"s{number}", phone)
    for first in (0, 2):
        job = stage.accept(3, first=first * 10)
        stage.turn()
        for index, phone in enumerate((PHONES[first], PHONES[first + 1], PHONES[first + 1])):
            assert stage.route(job, index, index + 1, phone).code == "OK"
    stage.send(recipient(99), PHONES[4])
    return stage


def decided(stage: Stage) -> list[tuple[PhoneFacts, Decision]]:
    return [(facts, decision(facts)) for facts in stage.look()]


def decision(facts: PhoneFacts) -> Decision:
    head, session = facts.heads[0], facts.sessions[0].id
    if facts.phone == PHONES[2]:
        return Decision(Idle(), (Step("expire", head.entry, head.task, Reason.EXPIRED),))
    if facts.phone == PHONES[3]:
        step = Step("park", head.entry, head.task, Reason.RECIPIENT_HOURS, T0 + HOUR)
        return Decision(Wait(T0 + 1, Reason.IN_TURN), (step,))
    return Decision(Send(head=head, session_id=session, send_after_ms=T0, gap=GAP, day=DAY, cap=500))


def proofs(handed: list[tuple[PhoneFacts, Decision]]) -> list[dict[str, object]]:
    tasks = [given.final.head.task for _, given in handed if isinstance(given.final, Send)]
    return [
        {"task": task, "outcome": outcome, "whatsappId": whatsapp_id(task), "statsDay": DAY, "now": T0 + 50}
        for task in tasks
        for outcome in ("sent", "delivered")
    ]


def run(stage: Stage, *, together: bool) -> dict[str, object]:
    handed = decided(stage)
    for some in [handed] if together else [[one] for one in handed]:
        codes = value_of(stage.store.pacers.hand_off(some, now_ms=T0, handoff_ttl_ms=60_000))
        assert set(codes) == {"OK"}
    told = proofs(handed)
    for orders in [told] if together else [[one] for one in told]:
        value_of(stage.caller.rows("prove_sent", orders=orders))
    found = {key: value for key, value in stage.dump().items() if key != keys.events()}
    ended = stage.redis.zrange(keys.messages_ended(), 0, -1)
    return found | {keys.messages_ended(): sorted(" ".join(ended).split())}


def test_what_is_stored_is_the_same(server: LiveServer) -> None:
    one_by_one = run(filled(server.client), together=False)
    assert run(filled(server.client), together=True) == one_by_one


def test_a_job_ends_once_when_all_its_messages_end_together(server: LiveServer) -> None:
    stage = filled(server.client)
    jobs = stage.accept(4, first=50)
    stage.turn()
    assert stage.route(jobs, 0, 4, PHONES[0]).code == "OK"
    orders = [
        {"task": jobs.task_id(index), "outcome": "sent", "whatsappId": "x", "statsDay": DAY, "now": T0 + index}
        for index in (0, 1, 1, 2, 3)
    ]
    value_of(stage.caller.rows("prove_sent", orders=orders))
    assert stage.states(jobs) == "SSSS"
    (done,) = stage.events("JOB_DONE", jobs)
    assert (done["sent"], done["at"]) == (4, T0 + 3)
    stage.adds_up(jobs)


def sends(stage: Stage) -> list[dict[str, object]]:
    """Single sends for numbers with and without work; of all priorities, one for later, one twice."""
    orders: list[dict[str, object]] = []
    for place, (phone, priority, valid_s, send_at) in enumerate([
        (PHONES[0], 1, 86_400, None), (PHONES[0], 1, 60, None), (PHONES[1], 3, 86_400, None),
        (PHONES[1], 1, 86_400, None), (PHONES[2], 2, 30, None), (PHONES[3], 1, 86_400, T0 + HOUR),
        (PHONES[4], 1, 86_400, None),
    ]):  # fmt: skip
        job = stage.new_job(1, single=True, phone=phone, validity_seconds=valid_s, priority=priority)
        to = recipient(200 + place // 2)
        orders.append({
            "job": job.job_id, "json": "{}", "task": job.task_id(0), "contact": to, "phone": phone, "to": to,
            "expiresAt": T0 + valid_s * 1_000, "priority": priority, "limit": 1_000, "now": T0 + place,
            **({"sendAt": send_at} if send_at else {}),
        })  # fmt: skip
    return [*orders, orders[0]]


def taken(stage: Stage, *, together: bool) -> tuple[list[str], dict[str, object]]:
    stage.redis.zadd(keys.due(), {PHONES[2]: T0 + HOUR})
    orders = sends(stage)
    parts = [orders] if together else [[order] for order in orders]
    answers = [answer for part in parts for answer in value_of(stage.caller.rows("accept_send", orders=part))]
    return answers, stage.dump()


def test_single_sends_that_come_together_are_stored_the_same(server: LiveServer) -> None:
    answers, one_by_one = taken(filled(server.client), together=False)
    assert taken(filled(server.client), together=True) == (answers, one_by_one)
    assert [msgspec.json.decode(answer)["code"] for answer in answers] == ["OK"] * 7 + ["EXISTS"]
    assert [msgspec.json.decode(answer).get("position") for answer in answers[:4]] == [1, 2, 0, 3]


def test_single_sends_that_come_together_wake_once(server: LiveServer) -> None:
    """Whoever sleeps until the first score hears of a number that comes before it, in a batch as alone."""
    stage = filled(server.client)
    stage.redis.delete(keys.due())
    orders = sends(stage)[2:4]
    words = heard(stage.redis, lambda: value_of(stage.caller.rows("accept_send", orders=orders)))
    assert words == []
    stage.redis.zadd(keys.due(), {PHONES[2]: T0 + HOUR})
    words = heard(stage.redis, lambda: value_of(stage.caller.rows("accept_send", orders=sends(stage)[4:5])))
    assert words == ["due"]
