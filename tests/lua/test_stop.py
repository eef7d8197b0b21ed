"""A stop word: the person is on the list, and of all tasks only the confirmation of that stop passes the gates."""

from typing import Any

import msgspec
import pytest

from paceline.domain.ids import derived_job_id
from paceline.domain.jobs import Job
from paceline.domain.numbers import notations
from paceline.store import keys
from paceline.store.guards import Suppression

from .stage import PHONE, SESSION, Stage, recipient, value_of

PERSON = recipient(0)
TRUNK = f"9720{PERSON[3:]}"
OTHER = recipient(1)


def stop(stage: Stage, wire_id: str = "3A01", *, to: str = PERSON, text: str = "bye", confirm: bool = True) -> Any:
    job_id = derived_job_id("stop", to, wire_id)
    job = stage.new_job(1, text=text, priority=3, phone=PHONE, single=True, confirmation=True)
    job = msgspec.structs.replace(job, job_id=job_id)
    entry = Suppression(to, stage.now, "stop", "inbound", job.task_id(0) if confirm else None)
    answer = value_of(stage.store.people.stop(SESSION, job_id, entry, job=job if confirm else None, now_ms=stage.now))
    return answer.code, answer.confirmed, job


def confirmed(stage: Stage) -> Job:
    code, is_confirmed, job = stop(stage)
    assert (code, is_confirmed) == ("OK", True)
    found: Job = job
    return found


def test_the_person_is_on_the_list_in_every_notation_and_one_confirmation_waits_first(stage: Stage) -> None:
    stage.connect()
    stage.routed(2, first=5)
    job = confirmed(stage)
    assert set(stage.redis.zrange(keys.suppressions(), 0, -1)) == {PERSON, TRUNK} == set(notations(PERSON))
    (facts,) = stage.look()
    assert [(head.task, head.suppressed) for head in facts.heads] == [(job.task_id(0), False)]
    stage.adds_up(job)


@pytest.mark.parametrize("times", [1, 2])
def test_the_same_message_again_does_nothing_at_all(stage: Stage, times: int) -> None:
    """A late duplicate of the webhook, also after an operator took the person off the list."""
    stage.connect()
    confirmed(stage)
    if times == 2:
        value_of(stage.store.guards.unsuppress(PERSON, by="k", now_ms=stage.now))
    before = stage.dump()
    assert stop(stage)[:2] == ("REPEAT", False)
    assert stage.dump() == before


def test_another_stop_of_somebody_on_the_list_is_not_answered(stage: Stage) -> None:
    stage.connect()
    confirmed(stage)
    assert stop(stage, "3A02")[:2] == ("KNOWN", False)
    assert len(stage.queue(key=keys.queue_p3)) == 1
    stage.suppress(OTHER)
    assert stop(stage, "3A03", to=OTHER)[:2] == ("KNOWN", False)
    assert len(stage.queue(key=keys.queue_p3)) == 1


def test_a_stop_from_the_other_notation_is_the_same_person(stage: Stage) -> None:
    stage.connect()
    confirmed(stage)
    assert stop(stage, "3A04", to=TRUNK)[:2] == ("KNOWN", False)


def test_without_a_text_nothing_is_queued(stage: Stage) -> None:
    stage.connect()
    assert stop(stage, confirm=False)[:2] == ("OK", False)
    assert stage.redis.zscore(keys.suppressions(), PERSON) == 0
    assert stage.queue(key=keys.queue_p3) == []


def test_an_unknown_session_changes_nothing(stage: Stage) -> None:
    assert stop(stage)[0] == "UNKNOWN_SESSION"
    assert stage.dump() == {}


def test_what_is_remembered_of_stops_is_bounded(stage: Stage) -> None:
    stage.connect()
    confirmed(stage)
    stage.now += 91 * 86_400_000
    stop(stage, "3A05", to=OTHER)
    assert stage.redis.zcard(keys.stops()) == 1


# The gates, one by one


def test_the_confirmation_passes_every_gate(stage: Stage) -> None:
    """Head, hand-over, both looks of the claim; and it is settled like any message."""
    stage.connect()
    stage.hello()
    job = confirmed(stage)
    task = stage.hand_off()
    assert task == job.task_id(0)
    opened = stage.open()
    assert (opened.task.task, opened.task.suppressed) == (task, False)
    assert stage.claim(task).code == "OK"
    assert stage.sent(task).code == "OK"
    stage.adds_up(job)


def everything_else(stage: Stage, kind: str) -> Job:
    """A message to the same person that is not the confirmation, routed to the same number."""
    if kind == "a single send":
        return stage.send(PERSON)[0]
    if kind == "one that calls itself a confirmation":
        return stage.send(PERSON, confirmation=True, priority=3)[0]
    if kind == "one in the other notation":
        return stage.send(TRUNK)[0]
    return stage.routed(1)


KINDS = ["a job", "a single send", "one that calls itself a confirmation", "one in the other notation"]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_passes_the_head_or_the_hand_over(stage: Stage, kind: str) -> None:
    stage.connect()
    job = everything_else(stage, kind)
    (facts,) = stage.look()
    assert not facts.heads[0].suppressed
    stop(stage, confirm=False)
    assert stage.apply(facts, stage.to_send(facts.heads[0])) == "SUPPRESSED"
    (again,) = stage.look()
    assert [(head.task, head.suppressed) for head in again.heads] == [(job.task_id(0), True)]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_passes_the_claim(stage: Stage, kind: str) -> None:
    """Said between the hand-over and the claim, and between both halves of the claim; the confirmation waits behind."""
    stage.connect()
    stage.hello()
    everything_else(stage, kind)
    task = stage.hand_off()
    assert not stage.open().task.suppressed
    confirmed(stage)
    assert stage.open().task.suppressed
    assert stage.claim(task).code == "SUPPRESSED"


def test_accepting_knows_no_exception(stage: Stage) -> None:
    """Intake and router ask by number alone: a task that would be the confirmation was never theirs."""
    stage.connect()
    confirmed(stage)
    assert value_of(stage.store.guards.suppressed([PERSON, TRUNK, OTHER])) == {PERSON, TRUNK}


def test_the_confirmation_of_one_person_is_no_pass_for_another(stage: Stage) -> None:
    stage.connect()
    stage.hello()
    stop(stage, "3A06", to=OTHER, confirm=False)
    job, _ = stage.send(OTHER, priority=3)
    info = {"to": PERSON, "at": 0, "confirmation": job.task_id(0)}
    row = {"to": PERSON, "info": msgspec.json.encode(info).decode()}
    stage.call("suppress", add=[row], by="k", now=stage.now)
    (facts,) = stage.look()
    assert facts.heads[0].suppressed


def test_taken_off_the_list_and_put_back_the_exception_is_gone(stage: Stage) -> None:
    stage.connect()
    job = confirmed(stage)
    assert value_of(stage.store.guards.unsuppress(TRUNK, by="k", now_ms=stage.now))
    assert stage.redis.zcard(keys.suppressions()) == 0
    stage.suppress(PERSON)
    (facts,) = stage.look()
    assert [(head.task, head.suppressed) for head in facts.heads] == [(job.task_id(0), True)]
