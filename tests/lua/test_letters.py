"""Dead letters: their pages hold still while new ones come; each is sent again once, in one step with the new job."""

import pytest

from paceline.domain.jobs import Contact, Job
from paceline.store import keys
from paceline.store.jobs import Replay
from paceline.store.letters import Placed

from .stage import Stage, recipient, value_of


def given_up(stage: Stage, count: int = 1, **facts: str) -> Job:
    """A job all of whose messages failed."""
    stage.connect()
    stage.hello()
    job = stage.routed(count)
    for _ in range(count):
        stage.now += 120_000
        stage.event(connection="CONNECTED")
        task = stage.hand_off()
        stage.claim(task)
        stage.fail(task, **facts)
    return job


def page(stage: Stage, start: int | None = None, limit: int = 2) -> tuple[list[str], int | None]:
    found = value_of(stage.store.letters.page(start, limit))
    return [placed.letter.task_id for placed in found.letters], found.next


def again(stage: Stage, job: Job, *indexes: int, again: bool = False) -> tuple[str, Job]:
    new = stage.new_job(len(indexes), replay_of=job.job_id)
    chunks = value_of(stage.store.jobs.stage(new.job_id, [Contact(recipient(index)) for index in indexes]))
    replay = Replay(job.job_id, list(indexes), again)
    return value_of(stage.store.jobs.accept(new, chunks, now_ms=stage.now, replay=replay)), new


def test_pages_are_newest_first_and_hold_still(stage: Stage) -> None:
    job = given_up(stage, 5)
    assert page(stage) == ([job.task_id(4), job.task_id(3)], 2)
    stage.redis.lpush(keys.dead_letters(), '{"taskId":"X:0","at":1}')
    assert page(stage, 2) == ([job.task_id(2), job.task_id(1)], 0)
    assert page(stage, 0) == ([job.task_id(0)], None)
    assert page(stage, 99)[0] == ["X:0", job.task_id(4)]


def test_an_empty_list_has_one_empty_page(stage: Stage) -> None:
    assert page(stage) == ([], None)
    assert value_of(stage.store.letters.find("x")) is None


def test_a_letter_has_its_whole_history(stage: Stage) -> None:
    job = given_up(stage)
    letter = value_of(stage.store.letters.find(job.task_id(0)))
    assert letter is not None
    assert (letter.code, letter.to, letter.attempts) == ("NOT_ON_WHATSAPP", recipient(0), 1)
    assert [line["what"] for line in letter.lines()] == ["failed"]
    assert value_of(stage.store.letters.find(job.task_id(1))) is None
    (placed,) = value_of(stage.store.letters.page(None)).letters
    assert placed == Placed(0, letter)


def test_a_letter_is_sent_again_once(stage: Stage) -> None:
    job = given_up(stage, 2)
    code, new = again(stage, job, 0)
    assert code == "OK"
    before = stage.dump()
    assert again(stage, job, 0)[0] == "REPLAYED"
    assert again(stage, job, 1, 0)[0] == "REPLAYED"
    staged = {name for name in stage.dump() if name.startswith("job:contacts:")}
    assert {name: value for name, value in stage.dump().items() if name not in staged} == {
        name: value for name, value in before.items() if name not in staged
    }
    letters = [placed.letter for placed in value_of(stage.store.letters.page(None)).letters]
    marks = [state.replayed_as for state in value_of(stage.store.letters.states(letters))]
    assert marks == [None, new.job_id]
    assert again(stage, job, 0, again=True)[0] == "OK"
    assert again(stage, job, 1)[0] == "OK"


def test_the_same_request_again_finds_its_job(stage: Stage) -> None:
    job = given_up(stage)
    _, new = again(stage, job, 0)
    replay = Replay(job.job_id, [0])
    assert value_of(stage.store.jobs.accept(new, 1, now_ms=stage.now, replay=replay)) == "EXISTS"


def test_what_was_proven_sent_is_not_sent_again(stage: Stage) -> None:
    job = given_up(stage)
    stage.sent(job.task_id(0), "delivered")
    assert again(stage, job, 0, again=True)[0] == "REPLAYED"


@pytest.mark.parametrize("ended", [True, False])
def test_the_marks_live_as_long_as_the_job_they_are_about(stage: Stage, ended: bool) -> None:
    job = given_up(stage)
    if not ended:
        stage.redis.persist(keys.job(job.job_id))
    again(stage, job, 0)
    ttl = stage.redis.ttl(keys.job_replays(job.job_id))
    assert ttl == (stage.redis.ttl(keys.job(job.job_id)) if ended else -1)


def test_a_job_that_ends_takes_its_marks_with_it(stage: Stage) -> None:
    stage.connect()
    stage.hello()
    job = stage.routed(2)
    task = stage.hand_off()
    stage.claim(task)
    stage.fail(task)
    again(stage, job, 0)
    assert stage.redis.ttl(keys.job_replays(job.job_id)) == -1
    stage.cancel(job)
    assert stage.redis.ttl(keys.job_replays(job.job_id)) > 0
