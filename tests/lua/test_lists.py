"""Lists on a real Redis: jobs newest first with filters, a job's messages, where a person is found. Each is bounded."""

import pytest

from paceline.domain.ids import task_id
from paceline.domain.jobs import Contact, Job
from paceline.store import keys
from paceline.store.lists import JobFilter, JobsPage, MessagesPage, Place
from paceline.store.scripts import CHUNK, PERSON_KEPT

from .stage import HOUR, PHONE, T0, Stage, recipient, value_of

ALL = JobFilter()


def jobs(
    stage: Stage, wanted: JobFilter = ALL, after: Place | None = None, *, limit: int = 100, look: int = 2_000
) -> JobsPage:
    return value_of(stage.store.lists.jobs(wanted, after, limit=limit, look=look))


def ids(page: JobsPage) -> list[str]:
    return [item.job.job_id for item in page.jobs]


def all_ids(stage: Stage, wanted: JobFilter = ALL, *, limit: int, look: int = 2_000) -> list[str]:
    page = jobs(stage, wanted, limit=limit, look=look)
    seen = ids(page)
    while page.next is not None:
        page = jobs(stage, wanted, page.next, limit=limit, look=look)
        assert len(seen) < 1_000
        seen += ids(page)
    return seen


def accepted(stage: Stage, count: int, *, apart: int = 1_000, **fields: object) -> list[Job]:
    made = []
    for i in range(count):
        made.append(stage.accept(2, first=10 * i, **fields))
        stage.now += apart
    return made


def messages(stage: Stage, job: Job, start: int = 0, *, limit: int = 1_000, bytes_: str | None = None) -> MessagesPage:
    before = stage.dump()
    page = value_of(stage.store.lists.messages(job, start, limit=limit, bytes_=bytes_))
    assert stage.dump() == before
    assert page is not None
    return page


def indexes(page: MessagesPage) -> list[int]:
    return [int(view.task_id.partition(":")[2]) for view in page.views]


def person(stage: Stage, to: str) -> list[str]:
    return sorted(place.task for place in value_of(stage.store.lists.of_person(to)))


class TestJobs:
    def test_none(self, stage: Stage) -> None:
        assert jobs(stage) == JobsPage([], None)

    def test_newest_first_with_exact_progress(self, stage: Stage) -> None:
        old, new = accepted(stage, 2)
        single, _ = stage.send()
        stage.cancel(old)
        page = jobs(stage)
        assert ids(page) == [single.job_id, new.job_id, old.job_id]
        assert [item.state for item in page.jobs] == ["ROUTED", "QUEUED", "CANCELED"]
        assert [item.closed_at for item in page.jobs] == [None, None, stage.now]
        assert page.jobs[2].progress["canceled"] == page.jobs[2].progress["total"] == 2
        assert page.next is None

    @pytest.mark.parametrize("apart", [1_000, 0], ids=["apart", "all in one millisecond"])
    def test_pages_join_without_gap_or_repeat(self, stage: Stage, apart: int) -> None:
        accepted(stage, 9, apart=apart)
        whole = ids(jobs(stage))
        assert len(set(whole)) == 9
        for limit in (1, 2, 3, 8, 9, 10):
            assert all_ids(stage, limit=limit) == whole
            assert all_ids(stage, limit=9, look=limit) == whole

    def test_a_page_longer_than_one_script_gives(self, stage: Stage) -> None:
        accepted(stage, 45)
        page = jobs(stage, limit=42)
        assert (len(page.jobs), page.next is None) == (42, False)
        assert len(jobs(stage, after=page.next).jobs) == 3

    def test_by_state_tag_key_and_time(self, stage: Stage) -> None:
        plain = stage.accept()
        stage.now += HOUR
        tagged = stage.accept(tags=["spring", "vip/עברית"], accepted_by="crm")
        stage.now += HOUR
        gone = stage.accept(tags=["spring"])
        stage.cancel(gone)
        for wanted, expected in (
            (JobFilter(states=["CANCELED"]), [gone]),
            (JobFilter(states=["CANCELED", "QUEUED"]), [gone, tagged, plain]),
            (JobFilter(states=["DONE"]), []),
            (JobFilter(tag="spring"), [gone, tagged]),
            (JobFilter(tag="vip/עברית"), [tagged]),
            (JobFilter(tag="spr"), []),
            (JobFilter(by="crm"), [tagged]),
            (JobFilter(by="crm", tag="other"), []),
            (JobFilter(from_ms=T0 + HOUR), [gone, tagged]),
            (JobFilter(until_ms=T0 + HOUR), [plain]),
            (JobFilter(from_ms=T0 + HOUR, until_ms=T0 + HOUR + 1), [tagged]),
            (JobFilter(from_ms=T0 + 9 * HOUR), []),
        ):
            expected_ids = [job.job_id for job in expected]
            assert ids(jobs(stage, wanted)) == expected_ids, wanted
            assert all_ids(stage, wanted, limit=1) == expected_ids, wanted

    def test_a_filter_that_matches_nothing_ends_with_a_cursor(self, stage: Stage) -> None:
        made = accepted(stage, 7)
        page = jobs(stage, JobFilter(tag="none"), look=5)
        assert page == JobsPage([], Place(T0 + 2_000, made[2].job_id))
        assert jobs(stage, JobFilter(tag="none"), page.next, look=5) == JobsPage([], None)

    def test_a_cursor_whose_job_is_gone_still_is_a_place(self, stage: Stage) -> None:
        made = accepted(stage, 4, apart=0)
        order = ids(jobs(stage))
        page = jobs(stage, limit=2)
        assert page.next is not None
        stage.redis.zrem(keys.jobs_index(), page.next.id)
        assert ids(jobs(stage, after=page.next)) == order[2:]
        assert len(made) == 4

    def test_reading_drops_ids_whose_job_is_gone(self, stage: Stage) -> None:
        first, second = accepted(stage, 2)
        stage.redis.delete(keys.job(first.job_id))
        assert ids(jobs(stage)) == [second.job_id]
        assert stage.redis.zrange(keys.jobs_index(), 0, -1) == [second.job_id]

    def test_accepting_drops_them_too_also_behind_one_that_lives_for_long(self, stage: Stage) -> None:
        """A list that nobody reads must not grow for ever."""
        first = stage.accept()
        for _ in range(300):
            stage.now += 977
            gone = stage.accept()
            stage.redis.delete(keys.job(gone.job_id))
        assert stage.redis.zcard(keys.jobs_index()) < 200
        assert stage.redis.zscore(keys.jobs_index(), first.job_id) == T0


class TestMessagesOfAJob:
    def test_in_the_order_of_the_contacts_with_what_is_known(self, stage: Stage) -> None:
        stage.connect()
        stage.hello()
        job = stage.routed(4)
        task = stage.hand_off()
        stage.claim(task)
        stage.sent(task)
        page = messages(stage, job)
        assert indexes(page) == [0, 1, 2, 3]
        assert [view.byte for view in page.views] == list("Srrr")
        assert [view.contact.to for view in page.views] == [recipient(i) for i in range(4)]
        first, second = page.views[:2]
        assert (first.known["sessionId"], first.known["attempts"], first.phone) == ("s1", "1", PHONE)
        assert "history" not in first.known
        assert (second.known, second.phone, second.run["state"]) == ({}, PHONE, "ROUTED")

    @pytest.mark.parametrize("limit", [1, 2, 3, 5])
    def test_by_state_page_by_page(self, stage: Stage, limit: int) -> None:
        job = stage.accept(10)
        stage.redis.set(keys.job_states(job.job_id), "qFrSqFtDFq")
        for bytes_, expected in (("F", [1, 5, 8]), ("qrt", [0, 2, 4, 6, 9]), ("X", []), (None, list(range(10)))):
            page = messages(stage, job, limit=limit, bytes_=bytes_)
            seen = indexes(page)
            while page.next is not None:
                page = messages(stage, job, page.next, limit=limit, bytes_=bytes_)
                seen += indexes(page)
            assert seen == expected

    def test_across_chunks_and_scripts(self, stage: Stage) -> None:
        job = stage.accept(CHUNK + 250)
        page = messages(stage, job, CHUNK - 120, limit=300)
        assert indexes(page) == list(range(CHUNK - 120, CHUNK + 180))
        assert [view.contact.to for view in page.views] == [recipient(i) for i in range(CHUNK - 120, CHUNK + 180)]
        assert page.next == CHUNK + 180

    def test_beyond_the_end_there_is_nothing(self, stage: Stage) -> None:
        assert messages(stage, stage.accept(2), 2) == MessagesPage([], None)

    def test_a_job_that_is_gone(self, stage: Stage) -> None:
        assert value_of(stage.store.lists.messages(stage.new_job(), 0, limit=10, bytes_=None)) is None


class TestOfAPerson:
    def test_what_got_a_number_is_remembered_by_when_it_was_accepted(self, stage: Stage) -> None:
        job = stage.accept(2)
        stage.now += HOUR
        stage.turn()
        stage.route(job)
        single, _ = stage.send(recipient(1))
        assert person(stage, recipient(0)) == [job.task_id(0)]
        assert person(stage, recipient(1)) == sorted([job.task_id(1), single.task_id(0)])
        scores = dict(stage.redis.zrange(keys.person(recipient(1)), 0, -1, withscores=True))
        assert scores == {job.task_id(1): T0, single.task_id(0): T0 + HOUR}
        assert 0 < stage.redis.ttl(keys.person(recipient(1))) <= stage.config.message_ttl

    def test_one_who_waits_or_ended_at_the_cursor_is_not(self, stage: Stage) -> None:
        stage.accept(1)
        assert person(stage, recipient(0)) == []
        assert stage.redis.exists(keys.person(recipient(0))) == 0

    def test_the_newest_of_very_many_are_kept(self, stage: Stage) -> None:
        key = keys.person(recipient(0))
        stage.redis.zadd(key, {task_id("A" * 26, i): T0 - 5_000 + i for i in range(PERSON_KEPT)})
        job = stage.routed(1)
        assert stage.redis.zcard(key) == PERSON_KEPT
        assert stage.redis.zrange(key, -1, -1) == [job.task_id(0)]
        assert stage.redis.zscore(key, task_id("A" * 26, 0)) is None

    def test_rows_of_messages_in_the_order_asked_for(self, stage: Stage) -> None:
        first, second = stage.routed(2), stage.accept(1, first=5)
        gone = task_id("B" * 26, 0)
        tasks = [second.task_id(0), gone, first.task_id(1), first.task_id(0)]
        views = value_of(stage.store.lists.views(tasks))
        assert [view.task_id for view in views] == [tasks[0], tasks[2], tasks[3]]
        assert [view.byte for view in views] == ["q", "r", "r"]
        assert [view.phone for view in views] == [None, PHONE, PHONE]
        assert value_of(stage.store.lists.views([])) == []


class TestUnrouted:
    def search(
        self, stage: Stage, to: str, after: Place | None = None, *, limit: int = 100, calls: int = 200
    ) -> object:
        before = stage.dump()
        found = value_of(stage.store.lists.unrouted([to, "x"], after, limit=limit, calls=calls))
        assert stage.dump() == before
        return [(place.id, place.index) for place in found.found], found.next

    def test_found_in_each_job_that_has_them_newest_first(self, stage: Stage) -> None:
        one = stage.accept(3)
        stage.now += 1_000
        stage.accept(3, first=50)
        two = stage.accept(3, first=1)
        assert self.search(stage, recipient(1)) == ([(two.job_id, 0), (one.job_id, 1)], None)
        assert self.search(stage, recipient(99)) == ([], None)

    def test_with_variables_or_without(self, stage: Stage) -> None:
        job = stage.new_job(3)
        contacts = [Contact("97254000000"), Contact("972540000001", {"name": '{"to":"972540000002"'}), Contact("97254")]
        chunks = value_of(stage.store.jobs.stage(job.job_id, contacts))
        value_of(stage.store.jobs.accept(job, chunks, now_ms=stage.now))
        assert self.search(stage, "972540000001") == ([(job.job_id, 1)], None)
        assert self.search(stage, "972540000002") == ([], None)
        assert self.search(stage, "97254") == ([(job.job_id, 2)], None)

    def test_what_was_routed_or_stopped_is_not_searched(self, stage: Stage) -> None:
        job = stage.accept(3)
        stage.turn()
        stage.route(job, 0, 2)
        assert self.search(stage, recipient(1)) == ([], None)
        assert self.search(stage, recipient(2)) == ([(job.job_id, 2)], None)
        stage.cancel(job)
        assert self.search(stage, recipient(2)) == ([], None)
        assert stage.redis.exists(keys.jobs_unrouted()) == 0

    def test_a_paused_job_is_searched(self, stage: Stage) -> None:
        job = stage.accept(1)
        stage.call("pause_job", job=job.job_id, now=stage.now)
        assert self.search(stage, recipient(0)) == ([(job.job_id, 0)], None)

    def test_a_job_routed_to_the_end_leaves_the_list(self, stage: Stage) -> None:
        stage.routed(2)
        stage.send()
        assert stage.redis.exists(keys.jobs_unrouted()) == 0

    def test_a_call_looks_at_a_thousand_and_goes_on_from_there(self, stage: Stage) -> None:
        small = stage.accept(1, first=2_400)
        stage.now += 1_000
        large = stage.accept(2_500)
        stage.turn()
        stage.turn()
        stage.route(large, 0, 300)
        found, mark = self.search(stage, recipient(2_400), calls=1)  # type: ignore[misc]
        assert (found, mark) == ([], Place(stage.now, large.job_id, 1_299))
        found, mark = self.search(stage, recipient(2_400), mark, calls=1)  # type: ignore[misc]
        assert (found, mark) == ([], Place(stage.now, large.job_id, 2_299))
        assert self.search(stage, recipient(2_400), mark) == ([(large.job_id, 2_400), (small.job_id, 0)], None)
        assert self.search(stage, recipient(2_400)) == ([(large.job_id, 2_400), (small.job_id, 0)], None)

    def test_it_ends_early_with_enough(self, stage: Stage) -> None:
        large = stage.accept(2_500)
        found, mark = self.search(stage, recipient(5), limit=1)  # type: ignore[misc]
        assert (found, mark) == ([(large.job_id, 5)], Place(T0, large.job_id, 999))
