"""save_media, drop_media and the hold of open jobs: a file is kept while any job needs it, and not for ever."""

import hashlib
from typing import Any

import pytest

from paceline.domain.media import Media
from paceline.orchestrator.settling import Settling, Word
from paceline.policy.retry import RetrySettings
from paceline.store import keys
from paceline.store.media import Dropped, Saved

from .stage import GAP, HOUR, SESSION, Stage, value_of

DAY_MS = 24 * HOUR
PICTURE = Media(f"{hashlib.sha256(b'a').hexdigest()}-png", "image/png", 10, "a.png")
PAPER = Media(f"{hashlib.sha256(b'b').hexdigest()}-pdf", "application/pdf", 20)


def save(stage: Stage, media: Media = PICTURE) -> Saved:
    return value_of(stage.store.media.save(media, now_ms=stage.now))


def drop(stage: Stage, *, before: int | None = None, limit: int = 100) -> Dropped:
    before_ms = stage.now if before is None else before
    return value_of(stage.store.media.drop(before_ms=before_ms, now_ms=stage.now, limit=limit))


def get(stage: Stage, media: Media = PICTURE) -> Media | None:
    return value_of(stage.store.media.get(media.ref))


def holders(stage: Stage, media: Media = PICTURE) -> list[Any]:
    return stage.redis.zrange(keys.media_jobs(media.ref), 0, -1)


def with_picture(stage: Stage, total: int = 1, **fields: Any) -> Any:
    return stage.routed(total, mode="image", media=PICTURE, **fields)


class TestSaving:
    def test_what_was_saved_is_found(self, stage: Stage) -> None:
        assert (save(stage).code, save(stage, PAPER).code) == ("OK", "OK")
        assert (get(stage), get(stage, PAPER)) == (PICTURE, PAPER)
        assert value_of(stage.store.media.known([PICTURE.ref, "x", PAPER.ref])) == {PICTURE.ref, PAPER.ref}
        assert value_of(stage.store.media.known([])) == set()
        assert value_of(stage.store.media.get("jobs:x")) is None
        assert stage.with_ttl() == set()

    def test_saving_again_keeps_its_birth_and_takes_the_new_name(self, stage: Stage) -> None:
        first = save(stage)
        stage.now += HOUR
        again = save(stage, Media(PICTURE.ref, PICTURE.type, PICTURE.size, "b.png"))
        assert (again.code, again.created_at) == ("KNOWN", first.created_at)
        found = get(stage)
        assert found is not None
        assert found.name == "b.png"
        save(stage, Media(PICTURE.ref, PICTURE.type, PICTURE.size))
        found = get(stage)
        assert found is not None
        assert found.name is None
        assert stage.redis.hget(keys.media(PICTURE.ref), "lastUsedAt") == str(stage.now)


class TestHolding:
    def test_a_job_holds_its_file_until_its_end(self, stage: Stage) -> None:
        stage.connect()
        stage.hello()
        save(stage)
        job = with_picture(stage, 2)
        assert holders(stage) == [job.job_id]
        for index in range(2):
            assert drop(stage, before=stage.now + DAY_MS).refs == []
            stage.now += GAP.ms
            stage.claim(stage.hand_off())
            stage.sent(job.task_id(index))
        assert holders(stage) == []
        assert stage.redis.hget(keys.media(PICTURE.ref), "lastUsedAt") == str(stage.now)
        assert drop(stage, before=stage.now).refs == []
        assert drop(stage, before=stage.now + 1).refs == [PICTURE.ref]

    @pytest.mark.parametrize("end", ["cancel", "fail"])
    def test_a_job_that_is_stopped_lets_go(self, stage: Stage, end: str) -> None:
        save(stage)
        job = stage.accept(3, mode="image", media=PICTURE)
        if end == "cancel":
            stage.cancel(job)
        else:
            value_of(stage.store.jobs.fail(job.job_id, "r", now_ms=stage.now))
        assert holders(stage) == []

    def test_two_jobs_hold_one_file_and_the_last_lets_go(self, stage: Stage) -> None:
        save(stage)
        jobs = [stage.accept(1, mode="image", media=PICTURE) for _ in range(2)]
        stage.cancel(jobs[0])
        assert holders(stage) == [jobs[1].job_id]
        assert drop(stage, before=stage.now + DAY_MS).refs == []
        stage.cancel(jobs[1])
        assert drop(stage, before=stage.now + DAY_MS).refs == [PICTURE.ref]

    def test_a_single_send_holds_too(self, stage: Stage) -> None:
        stage.connect()
        save(stage)
        job, answer = stage.send(mode="image", media=PICTURE)
        assert answer.code == "OK"
        assert holders(stage) == [job.job_id]

    def test_what_is_gone_is_not_accepted_and_nothing_is_written(self, stage: Stage) -> None:
        """Cleaned up between the gateway's look and its commit."""
        stage.connect()
        before = stage.dump()
        assert stage.send(mode="image", media=PICTURE)[1].code == "NO_MEDIA"
        assert stage.dump() == before
        job = stage.new_job(0, mode="image", media=PICTURE)
        assert value_of(stage.store.jobs.accept(job, 0, now_ms=stage.now)) == "NO_MEDIA"
        assert stage.dump() == before

    def test_a_job_without_media_writes_nothing_of_it(self, stage: Stage) -> None:
        job = stage.accept(1)
        assert [key for key in stage.redis.keys("*") if key.startswith("media")] == []
        assert stage.redis.hget(keys.job_run(job.job_id), "media") is None
        assert "media" not in stage.redis.get(keys.job(job.job_id))


class TestDropping:
    def test_only_what_is_older_is_forgotten(self, stage: Stage) -> None:
        save(stage)
        stage.now += DAY_MS
        save(stage, PAPER)
        assert drop(stage).refs == [PICTURE.ref]
        assert (get(stage), get(stage, PAPER)) == (None, PAPER)
        assert drop(stage).refs == []
        assert stage.redis.zrange(keys.media_kept(), 0, -1) == [PAPER.ref]

    def test_what_is_still_needed_is_looked_at_again_only_much_later(self, stage: Stage) -> None:
        save(stage)
        stage.accept(1, mode="image", media=PICTURE)
        stage.now += 31 * DAY_MS
        assert drop(stage, before=stage.now - 30 * DAY_MS).refs == []
        assert stage.redis.zscore(keys.media_kept(), PICTURE.ref) == stage.now
        assert get(stage) == PICTURE

    def test_many_are_forgotten_in_portions(self, stage: Stage) -> None:
        for number in range(5):
            save(stage, Media(f"{hashlib.sha256(bytes([number])).hexdigest()}-png", "image/png", 1))
        stage.now += 1
        assert [(len(found.refs), found.more) for found in (drop(stage, limit=2) for _ in range(3))] == [
            (2, True),
            (2, True),
            (1, False),
        ]


class TestWhoMayHaveIt:
    def held(self, stage: Stage, session: str = SESSION, media: Media = PICTURE) -> Media | None:
        return value_of(stage.store.media.held(session, media.ref))

    def test_a_session_has_it_while_it_has_the_task(self, stage: Stage) -> None:
        stage.connect()
        stage.hello()
        save(stage)
        save(stage, PAPER)
        job = with_picture(stage)
        assert self.held(stage) is None
        task = stage.hand_off()
        assert self.held(stage) == PICTURE
        stage.claim(task)
        assert self.held(stage) == PICTURE
        assert self.held(stage, "s2") is None
        assert self.held(stage, media=PAPER) is None
        stage.sent(job.task_id(0))
        assert self.held(stage) is None

    def test_a_task_without_media_gives_nothing(self, stage: Stage) -> None:
        stage.connect()
        stage.hello()
        save(stage)
        stage.routed(1, first=5)
        stage.hand_off()
        assert self.held(stage) is None


def test_a_try_that_had_no_file_costs_the_number_nothing(stage: Stage) -> None:
    """Not on the wire, no failure that SmartGuard would count, the day's unit returned; the task is tried again."""
    stage.connect()
    epoch = stage.hello().epoch
    save(stage)
    with_picture(stage)
    task = stage.hand_off()
    word = Word(SESSION, epoch, task, stage.claim(task).token)
    settling = Settling(stage.store, RetrySettings())
    assert value_of(settling.refused(word, "MEDIA_UNAVAILABLE", "gone", now_ms=stage.now)) == "queued"
    pacer = stage.pacer()
    assert (stage.byte(task), pacer["capUsed"]) == ("t", "0")
    assert not {"sends", "failures"} & set(pacer)
    assert holders(stage) == [task.split(":")[0]]
