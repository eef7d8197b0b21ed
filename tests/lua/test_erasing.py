"""Forgetting a person, step by step: what each script removes, what it leaves, and that the counts stay right."""

from typing import Any

import msgspec
import pytest

from paceline.domain.events import Event
from paceline.domain.jobs import Contact, Job
from paceline.domain.numbers import notations
from paceline.domain.reasons import Reason
from paceline.policy.dispatch import Idle, Step
from paceline.store import keys
from paceline.store.people import ERASED
from paceline.store.webhooks import Delivery

from .stage import HOUR, PHONE, SESSION, Stage, recipient, value_of

PERSON = recipient(1)
NUMBERS = notations(PERSON)


def erase(stage: Stage, task: str, numbers: tuple[str, ...] = NUMBERS, **jobs: Job) -> Any:
    given = {"old": jobs.get("old"), "new": jobs.get("new")}
    return value_of(stage.store.people.erase_task(task, numbers, now_ms=stage.now, **given))


def contact(stage: Stage, task: str) -> str:
    job, index = task.split(":")
    return str(stage.redis.lindex(keys.job_contacts(job, 0), int(index)))


def find(stage: Stage, *jobs: str) -> list[str]:
    return value_of(stage.store.people.messages_to(NUMBERS, jobs))


def test_a_person_is_found_in_every_job_and_every_notation(stage: Stage) -> None:
    plain, other = stage.accept(3), stage.accept(1, first=7)
    job = stage.new_job(2)
    people = [Contact(NUMBERS[1], {"name": "x"}), Contact(recipient(9), {"text": f'"to":"{PERSON}1"'})]
    chunks = value_of(stage.store.jobs.stage(job.job_id, people))
    value_of(stage.store.jobs.accept(job, chunks, now_ms=stage.now))
    assert find(stage, plain.job_id, other.job_id, job.job_id) == [plain.task_id(1), job.task_id(0)]


def test_no_job_is_passed_over_while_others_leave_the_list(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by place, the job behind one that was dropped was skipped, and its message went to somebody erased."""
    monkeypatch.setattr("paceline.store.people.JOBS_AT_ONCE", 2)
    together = [stage.accept().job_id for _ in range(3)]
    stage.now += 1
    later = stage.accept().job_id

    async def walk() -> list[str]:
        seen = []
        async for jobs in stage.store.people.jobs():
            seen += jobs
            stage.redis.zrem(keys.jobs_index(), together[0])
        return seen

    assert sorted(value_of(walk())) == sorted([*together, later])


def test_a_search_goes_on_where_it_stopped(stage: Stage) -> None:
    big, small = stage.accept(2_500), stage.accept(2)
    found, at = [], None
    for _ in range(9):
        page = stage.call("find_contacts", jobs=[big.job_id, small.job_id], at=at, numbers=NUMBERS, contacts=1_000)
        found += page.get("found", [])
        at = page.get("next")
        if at is None:
            break
    assert found == [big.task_id(1), small.task_id(1)]


@pytest.mark.parametrize("ends", ["sent", "failed"])
def test_a_message_that_ended_loses_its_person_and_nothing_else(stage: Stage, ends: str) -> None:
    stage.connect()
    stage.hello()
    job = stage.routed(3, first=1)
    task = stage.hand_off()
    stage.claim(task)
    if ends == "sent":
        stage.sent(task)
    else:
        stage.fail(task, message=f"no such user {PERSON}")
    assert erase(stage, task).code == "OK"
    assert contact(stage, task) == ERASED
    assert not any(number in repr(stage.message(task)) for number in NUMBERS)
    assert stage.message(task)["to"] == ERASED
    stage.adds_up(job)
    assert erase(stage, task).code == "OTHER"


def test_one_that_nobody_routed_yet_is_canceled(stage: Stage) -> None:
    stage.connect()
    job = stage.accept(2)
    answer = erase(stage, job.task_id(1))
    assert (answer.code, answer.canceled) == ("OK", True)
    assert stage.states(job) == "qX"
    stage.adds_up(job)
    stage.turn()
    stage.contacts[job.job_id][1] = ERASED
    stage.route(job)
    assert stage.queue() == [job.task_id(0)]
    assert stage.redis.exists(keys.sticky(ERASED)) == 0


def test_one_in_a_queue_has_to_be_canceled_first(stage: Stage) -> None:
    stage.connect()
    job = stage.routed(2)
    before = stage.dump()
    answer = erase(stage, job.task_id(1))
    assert (answer.code, answer.phone) == ("WAITING", PHONE)
    assert stage.dump() == before


def test_what_a_canceled_job_left_in_the_queue_is_taken_out(stage: Stage) -> None:
    stage.connect()
    job = stage.routed(3)
    stage.cancel(job)
    assert erase(stage, job.task_id(1)).code == "OK"
    assert stage.queue() == [job.task_id(0), job.task_id(2)]
    stage.adds_up(job)


def test_what_a_canceled_job_had_been_given_back_is_taken_out_too(stage: Stage) -> None:
    """Once it was handed over, the job does not know any more whose queue it lies in; the message does."""
    stage.connect()
    job = stage.routed(1, first=1)
    task = stage.hand_off()
    stage.settle(task, "returned", from_="h", unitBack=True, reason="HANDOFF_TIMEOUT")
    assert stage.queue() == [task]
    stage.cancel(job)
    assert erase(stage, task).code == "OK"
    assert stage.queue() == []


def test_what_a_canceled_job_had_parked_after_it_was_given_back_is_taken_out_too(stage: Stage) -> None:
    stage.connect()
    job = stage.routed(1, first=1)
    task = stage.hand_off()
    stage.settle(task, "returned", from_="h", unitBack=True, reason="HANDOFF_TIMEOUT")
    stage.now += HOUR
    (facts,) = stage.look()
    stage.apply(facts, Idle(), Step("park", facts.heads[0].entry, task, Reason.RECIPIENT_HOURS, stage.now + HOUR))
    assert stage.redis.zcard(keys.parked(PHONE)) == 1
    stage.cancel(job)
    assert erase(stage, task).code == "OK"
    assert stage.redis.exists(keys.parked(PHONE)) == 0


def test_a_canceled_single_send_for_later_leaves_the_schedule(stage: Stage) -> None:
    later = stage.now + HOUR
    job, _ = stage.send(PERSON, send_at=later)
    other, _ = stage.send(recipient(2), send_at=later)
    stage.cancel(job)
    assert erase(stage, job.task_id(0)).code == "OK"
    (left,) = stage.redis.zrange(keys.scheduled(), 0, -1)
    assert other.task_id(0) in left


def test_what_a_worker_holds_is_left_alone(stage: Stage) -> None:
    _, task, _ = stage.claimed(first=1)
    before = stage.dump()
    assert erase(stage, task).code == "OPEN"
    assert stage.dump() == before


def test_others_and_what_is_gone_are_left_alone(stage: Stage) -> None:
    job = stage.accept(3)
    before = stage.dump()
    assert erase(stage, job.task_id(0)).code == "OTHER"
    assert erase(stage, f"{job.job_id}:9").code == "GONE"
    assert stage.dump() == before


def test_a_job_for_them_alone_forgets_what_it_said(stage: Stage) -> None:
    job, _ = stage.send(PERSON, text="a private word")
    value_of(stage.store.queues.cancel_task(job.task_id(0), PHONE, now_ms=stage.now))
    ttl = stage.redis.ttl(keys.job(job.job_id))
    assert erase(stage, job.task_id(0), old=job, new=msgspec.structs.replace(job, text="")).code == "OK"
    assert "private" not in repr(stage.dump())
    assert stage.redis.ttl(keys.job(job.job_id)) == ttl > 0


def test_a_late_proof_brings_nothing_back(stage: Stage) -> None:
    _, task, _ = stage.claimed(first=1)
    stage.fail(task)
    erase(stage, task)
    value_of(stage.store.people.erase_traces(NUMBERS))
    assert stage.sent(task, "delivered").code == "OK"
    left = stage.dump()
    assert not any(name in left for name in (keys.sticky(ERASED), keys.sticky(PERSON), keys.chats(PHONE)))


def test_traces_are_removed_everywhere_and_only_theirs(stage: Stage) -> None:
    stage.connect()
    for person in (PERSON, recipient(2)):
        value_of(stage.store.sessions.received(SESSION, person, at_ms=stage.now, now_ms=stage.now))
        for raw in (f"{person}@s.whatsapp.net", person, f"1{person}", f"{person}9"):
            stage.event(event=msgspec.json.encode({"event": "X", "data": {"from": raw}}).decode())
    assert value_of(stage.store.people.erase_traces(NUMBERS)) == 4
    left = stage.dump()
    assert keys.sticky(PERSON) not in left
    assert keys.sticky(recipient(2)) in left
    assert list(stage.redis.zrange(keys.chats(PHONE), 0, -1)) == [recipient(2)]
    events = stage.redis.lrange(keys.session_events(SESSION), 0, -1)
    assert sum(f"1{PERSON}" in event or f"{PERSON}9" in event for event in events) == 2
    assert sum(ERASED in event for event in events) == 2
    assert value_of(stage.store.people.erase_traces(NUMBERS)) == 0


def test_letters_and_events_lose_them(stage: Stage) -> None:
    _, task, _ = stage.claimed(first=1)
    value_of(stage.store.sessions.received(SESSION, PERSON, at_ms=stage.now, now_ms=stage.now, whatsapp_id="3A"))
    stage.fail(task, message=f"no {PERSON}")
    delivery = {"id": "d", "event": msgspec.json.encode({"to": PERSON}).decode()}
    stage.redis.hset(keys.webhooks(), "w1", "{}")
    stage.redis.hset(keys.webhook_deliveries("w1"), "d", msgspec.json.encode(delivery).decode())
    assert value_of(stage.store.people.erase_letters(NUMBERS)) == 1
    assert value_of(stage.store.people.erase_events(NUMBERS)) == 3  # received, failed with their number, the delivery
    (letter,) = stage.redis.lrange(keys.dead_letters(), 0, -1)
    assert msgspec.json.decode(letter)["to"] == ERASED
    assert PERSON not in letter
    found = msgspec.json.decode(stage.redis.hget(keys.webhook_deliveries("w1"), "d"))
    assert msgspec.json.decode(found["event"]) == {"to": ERASED}
    assert PERSON not in repr(stage.redis.xrange(keys.events()))


def test_a_delivery_that_waits_forgets_what_they_wrote(stage: Stage) -> None:
    """With EVENT_INBOUND_TEXT a delivery has it, and may be tried for days."""
    wrote = {"from": PERSON, "wa": "3A", "text": "a private word"}
    event = Event("1-1", "message.received", stage.now, wrote)
    others = Event("1-2", "message.received", stage.now, {**wrote, "from": recipient(2)})
    stage.redis.hset(keys.webhook("w1"), "cursor", "0-0")
    stage.redis.hset(keys.webhooks(), "w1", "{}")
    feed = stage.store.webhooks.feed
    value_of(feed("w1", [event, others], from_="0-0", cursor="1-2", behind=False, now_ms=stage.now))
    assert value_of(stage.store.people.erase_events(NUMBERS)) == 1
    taken = value_of(stage.store.webhooks.take(now_ms=stage.now, lease_ms=1, parallel=4))
    left = msgspec.json.decode(msgspec.json.decode(taken.delivery, type=Delivery).event, type=Event)
    assert (left.at, left.fields) == (stage.now, {"from": ERASED, "wa": "3A"})
    assert "private" in stage.redis.hget(keys.webhook_deliveries("w1"), "1-2")


def test_one_that_ended_in_an_outbox_leaves_it(stage: Stage) -> None:
    """An outbox holds tasks as they lay in their queue, with whom they are for."""
    stage.connect()
    job = stage.routed(1, first=1)
    task = stage.hand_off()
    stage.cancel(job)
    assert PERSON in repr(stage.redis.lrange(keys.outbox(SESSION), 0, -1))
    assert erase(stage, task).code == "OK"
    assert stage.outbox() == []


def test_one_whose_text_changed_is_found_in_its_outbox(stage: Stage) -> None:
    stage.connect()
    job = stage.routed(1, first=1)
    task = stage.hand_off()
    stage.redis.hset(keys.message(task), "entry", "another")
    assert stage.sent(task).code == "OK"
    assert (stage.outbox(), stage.states(job)) == ([], "S")
