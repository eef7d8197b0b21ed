"""SEND_MODE=api: handing_due, enqueue_outbox and the dispatcher's loop over them. A hand-over by POST is lost by no
crash and made twice by no repeat."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from paceline.dispatcher.handing import BATCH, LEASE_MS, Handing, Post
from paceline.domain.errors import RequestError
from paceline.domain.states import TERMINAL
from paceline.orchestrator.enqueue import Enqueue, EnqueueBody
from paceline.orchestrator.settling import Settling
from paceline.policy.dispatch import Decision, Idle, Step
from paceline.policy.retry import RetrySettings
from paceline.store import keys
from paceline.store.texts import JOBS_KEPT, Texts

from .stage import PHONE, SESSION, T0, Stage, recipient, value_of

TTL_MS = 60_000


def hand_off(stage: Stage, session: str = SESSION, *, api: bool = True) -> str:
    """Hands the first task of the one due phone over by POST; returns it."""
    (facts,) = stage.look()
    decision = Decision(stage.to_send(facts.heads[0], session))
    given: dict[str, Any] = {"now_ms": stage.now, "handoff_ttl_ms": TTL_MS, "api": api}
    assert value_of(stage.store.pacers.hand_off([(facts, decision)], **given)) == ["OK"]
    return facts.heads[0].task


def due(stage: Stage, limit: int = 100) -> Any:
    return value_of(stage.store.handing.due(now_ms=stage.now, lease_ms=LEASE_MS, limit=limit))


def enqueue(stage: Stage, task: str, session: str = SESSION) -> str:
    return value_of(stage.store.handing.enqueue(session, task, now_ms=stage.now))


def waiting(stage: Stage) -> dict[str, float]:
    found: Any = stage.redis.zrange(keys.handing(), 0, -1, withscores=True)
    return dict(found)


def outbox(stage: Stage, session: str = SESSION) -> list[str]:
    return stage.outbox(session)


def withdraw(stage: Stage, task: str) -> None:
    """What the sweep does with a hand-over whose time is over."""
    answer = stage.settle(task, "returned", from_="h", overdue=True, unitBack=True, reason="NOT_CLAIMED")
    assert answer.code == "OK"


def in_one_place(stage: Stage, task: str) -> None:
    """A task that is handed off is on its way or in its outbox, once; any other is in neither."""
    places = [*waiting(stage), *outbox(stage)]
    assert places.count(task) == (1 if stage.byte(task) == "h" else 0)
    assert (task in waiting(stage)) == (stage.message(task).get("handing") == "1")


@pytest.fixture
def ready(stage: Stage) -> Stage:
    """A connected session and a job of three in its queue."""
    stage.connect()
    stage.hello()
    stage.routed(3)
    return stage


@pytest.fixture
def handed(ready: Stage) -> tuple[Stage, str]:
    return ready, hand_off(ready)


class TestHandOff:
    def test_everything_is_taken_but_the_way_into_the_outbox(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        assert (stage.byte(task), outbox(stage), waiting(stage)) == ("h", [], {task: T0})
        message, pacer = stage.message(task), stage.pacer()
        assert (message["handing"], message["sessionId"]) == ("1", SESSION)
        assert (pacer["unsettled"], pacer["capUsed"]) == (task, "1")
        assert stage.redis.zscore(keys.deadlines(), task) == T0 + TTL_MS


class TestHandingDue:
    def test_nothing_waits(self, stage: Stage) -> None:
        answer = due(stage)
        assert (answer.code, answer.tasks, answer.ended, answer.next_at) == ("OK", [], [], None)
        assert stage.dump() == {}

    def test_a_look_is_a_lease(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        (found,) = due(stage).tasks
        assert (found.task, found.session, found.to) == (task, SESSION, recipient(0))
        again = due(stage)
        assert (again.tasks, again.next_at) == ([], T0 + LEASE_MS)
        stage.now += LEASE_MS
        assert [found.task for found in due(stage).tasks] == [task]

    def test_no_more_than_the_limit_the_oldest_first(self, stage: Stage) -> None:
        tasks = []
        for number in range(3):
            phone, session = f"97250000001{number}", f"s{number}"
            stage.connect(session, phone)
            stage.routed(1, first=number, phone=phone)
            tasks.append(hand_off(stage, session))
            stage.now += 1
        first = due(stage, 2)
        assert [found.task for found in first.tasks] == tasks[:2]
        assert first.next_at == T0 + 2
        assert [found.task for found in due(stage, 2).tasks] == tasks[2:]

    def test_what_was_canceled_on_its_way_is_named_until_it_is_cleared(self, ready: Stage) -> None:
        """Somebody must free the phone. Whoever took it may die, so it comes again like any other."""
        job = ready.routed(1, first=9, phone="972500000009")
        ready.connect("s9", "972500000009")
        (other,) = [facts for facts in ready.look() if facts.phone == "972500000009"]
        decision = Decision(ready.to_send(other.heads[0], "s9"))
        value_of(ready.store.pacers.hand_off([(other, decision)], now_ms=ready.now, handoff_ttl_ms=TTL_MS, api=True))
        ready.cancel(job)
        answer = due(ready)
        assert (answer.tasks, answer.ended) == ([], [job.task_id(0)])
        ready.now += LEASE_MS
        assert due(ready).ended == [job.task_id(0)]
        assert ready.settle(job.task_id(0), "cleared", from_=TERMINAL).code == "OK"
        ready.now += LEASE_MS
        answer = due(ready)
        assert (answer.ended, answer.next_at) == ([], None)

    @pytest.mark.parametrize("loss", ["mark", "message", "job"])
    def test_what_is_not_on_its_way_any_more_is_dropped(self, handed: tuple[Stage, str], loss: str) -> None:
        """It cannot be, by what the scripts write; but no member may stay for ever if it were."""
        stage, task = handed
        job = task.split(":")[0]
        if loss == "mark":
            stage.redis.hdel(keys.message(task), "handing")
        else:
            stage.redis.delete({"message": keys.message(task), "job": keys.job_states(job)}[loss])
        answer = due(stage)
        assert (answer.tasks, answer.ended, answer.next_at) == ([], [], None)
        assert waiting(stage) == {}
        assert "handing" not in stage.message(task)


class TestEnqueueOutbox:
    def test_moves_the_task_and_a_repeat_changes_nothing(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        assert enqueue(stage, task) == "OK"
        assert (outbox(stage), waiting(stage), stage.byte(task)) == ([task], {}, "h")
        assert "handing" not in stage.message(task)
        before = stage.dump()
        assert enqueue(stage, task) == "REPEAT"
        assert stage.dump() == before
        assert stage.claim(task).code == "OK"

    def test_wakes_the_worker_that_waits(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        client: Any = stage.redis
        with client.pubsub(ignore_subscribe_messages=True) as listener:
            listener.subscribe(keys.WAKE_CHANNEL)
            listener.get_message(timeout=5)
            enqueue(stage, task)
            heard = listener.get_message(timeout=5)
        assert heard is not None
        assert heard["data"] == f"outbox:{SESSION}"

    @pytest.mark.parametrize("proof", ["claimed", "unknown", "sent", "delivered", "read"])
    def test_what_was_there_already_is_a_repeat(self, handed: tuple[Stage, str], proof: str) -> None:
        """A post that was repeated because its answer was lost, and arrives after the worker was quicker."""
        stage, task = handed
        enqueue(stage, task)
        token = stage.claim(task).token
        if proof == "unknown":
            stage.settle(task, "unknown", from_="c", token=token, reason="LEASE_ENDED")
        elif proof != "claimed":
            stage.sent(task, proof)
        before = stage.dump()
        assert enqueue(stage, task) == "REPEAT"
        assert stage.dump() == before

    @pytest.mark.parametrize("end", ["withdrawn", "parked", "retried", "failed", "canceled", "expired", "suppressed"])
    def test_what_was_taken_back_or_ended_is_gone(self, handed: tuple[Stage, str], end: str) -> None:
        """However late the post: it never brings it back."""
        stage, task = handed
        job_id = task.split(":")[0]
        if end == "withdrawn":
            stage.now += TTL_MS
            withdraw(stage, task)
        elif end == "parked":
            stage.settle(task, "parked", from_="h", unitBack=True, reason="RECIPIENT_HOURS", untilMs=T0 + 9_000)
        elif end in ("expired", "suppressed"):
            stage.settle(task, end, from_="h", unitBack=True, reason=end.upper())
        elif end == "canceled":
            value_of(stage.store.jobs.cancel(job_id, now_ms=stage.now))
        else:
            enqueue(stage, task)
            stage.claim(task)
            stage.retry(task) if end == "retried" else stage.fail(task)
        before = stage.dump()
        assert enqueue(stage, task) == "GONE"
        assert stage.dump() == before

    def test_a_task_that_still_waits_in_a_queue_is_gone_too(self, ready: Stage) -> None:
        """Nobody gets past the pacing by naming a task of ours."""
        (task, *_) = ready.queue()
        before = ready.dump()
        assert enqueue(ready, task) == "GONE"
        assert ready.dump() == before

    @pytest.mark.parametrize("task", ["01ARZ3NDEKTSV4RRFFQ69G5FAV:0", "{job}:3", "{job}:999999"])
    def test_what_is_no_task_of_ours_is_unknown(self, handed: tuple[Stage, str], task: str) -> None:
        stage, ours = handed
        before = stage.dump()
        assert enqueue(stage, task.format(job=ours.split(":")[0])) == "UNKNOWN"
        assert stage.dump() == before

    def test_of_another_session(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        before = stage.dump()
        assert enqueue(stage, task, "s2") == "WRONG_SESSION"
        assert stage.dump() == before
        enqueue(stage, task)
        assert enqueue(stage, task, "s2") == "WRONG_SESSION"

    def test_a_late_post_of_a_hand_over_that_was_made_anew(self, handed: tuple[Stage, str]) -> None:
        """Taken back and handed over again: the late post completes the second hand-over, the second repeats it."""
        stage, task = handed
        stage.now += TTL_MS
        withdraw(stage, task)
        assert hand_off(stage) == task
        assert enqueue(stage, task) == "OK"
        assert enqueue(stage, task) == "REPEAT"
        in_one_place(stage, task)

    def test_a_late_post_to_the_session_that_had_it_before(self, handed: tuple[Stage, str]) -> None:
        """Handed over anew to another session of the number: the first one's post must not bring it there."""
        stage, task = handed
        stage.now += TTL_MS
        withdraw(stage, task)
        stage.connect("s2")
        assert hand_off(stage, "s2") == task
        assert enqueue(stage, task) == "WRONG_SESSION"
        assert (outbox(stage), list(waiting(stage))) == ([], [task])
        assert enqueue(stage, task, "s2") == "OK"

    def test_a_late_post_of_one_that_went_straight_in_the_second_time(self, handed: tuple[Stage, str]) -> None:
        """Two dispatchers of different modes on one Redis."""
        stage, task = handed
        stage.now += TTL_MS
        withdraw(stage, task)
        assert hand_off(stage, api=False) == task
        assert enqueue(stage, task) == "REPEAT"
        assert outbox(stage) == [task]

    def test_on_a_full_redis_what_was_handed_off_still_arrives(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        enqueue(stage, "01ARZ3NDEKTSV4RRFFQ69G5FAV:0")  # The script is loaded.
        stage.redis.config_set("maxmemory", 1)
        try:
            assert enqueue(stage, task) == "OK"
        finally:
            stage.redis.config_set("maxmemory", 0)
        in_one_place(stage, task)


class Line:
    """The way to the orchestrator, whose own logic answers. What happens to each post is a list of words."""

    def __init__(self, stage: Stage, *fates: str) -> None:
        self._stage = stage
        self._orchestrator = Enqueue(stage.store)
        self.fates = list(fates)
        self.posts: list[Post] = []
        self.before: Callable[[str], object] = lambda _task: None

    async def enqueue_many(self, posts: Sequence[Post]) -> list[str | None]:
        return [await self._one(post) for post in posts]

    async def _one(self, post: Post) -> str | None:
        self.posts.append(post)
        fate = self.fates.pop(0) if self.fates else ""
        if fate == "lost":
            return "ConnectError"
        self.before(post.body["taskId"])
        body = msgspec.convert(post.body, EnqueueBody)
        try:
            await self._orchestrator.enqueue(post.session, body, by="dispatcher", now_ms=self._stage.now)
        except RequestError as error:
            return f"{error.status} {error.code}"
        return "ReadTimeout" if fate == "unanswered" else fate or None


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def tell(self, event: str, fields: dict[str, Any]) -> None:
        self.heard.append((event, fields))


def step(stage: Stage, line: Line, ear: Ear | None = None) -> int | None:
    return value_of(Handing(stage.store, line, ear).step(stage.now))


class TestHanding:
    def test_nothing_to_do(self, stage: Stage) -> None:
        line = Line(stage)
        assert step(stage, line) is None
        assert line.posts == []

    def test_posts_the_final_text_and_looks_again(self, stage: Stage) -> None:
        stage.connect()
        stage.routed(1, text="hi there")
        task = hand_off(stage)
        line = Line(stage)
        assert step(stage, line) == T0
        body = {"mode": "message", "to": recipient(0), "text": "hi there", "jobId": task.split(":")[0], "taskId": task}
        assert line.posts == [Post(SESSION, body)]
        assert outbox(stage) == [task]
        assert step(stage, line) is None

    def test_a_lost_post_is_told_and_posted_again(self, handed: tuple[Stage, str]) -> None:
        stage, task = handed
        line, ear = Line(stage, "lost"), Ear()
        assert step(stage, line, ear) == T0
        told = {"at": T0, "sessionId": SESSION, "taskId": task, "error": "ConnectError"}
        assert ear.heard == [("SESSION_CONSUMER_ERROR", told)]
        assert step(stage, line, ear) == T0 + LEASE_MS
        stage.now += LEASE_MS
        step(stage, line, ear)
        assert outbox(stage) == [task]
        assert (len(line.posts), len(ear.heard)) == (2, 1)

    def test_a_lost_answer_costs_nothing(self, handed: tuple[Stage, str]) -> None:
        """It had arrived, so it is in nobody's list any more."""
        stage, task = handed
        line = Line(stage, "unanswered")
        step(stage, line)
        stage.now += LEASE_MS
        assert step(stage, line) is None
        assert (len(line.posts), outbox(stage)) == (1, [task])

    def test_an_answer_that_lied_costs_a_lease(self, handed: tuple[Stage, str]) -> None:
        """A 2xx of whatever stands in between: only the orchestrator's own script takes a task off the list."""
        stage, task = handed

        class Liar(Line):
            async def _one(self, post: Post) -> str | None:
                return None

        step(stage, Liar(stage))
        assert list(waiting(stage)) == [task]
        stage.now += LEASE_MS
        step(stage, Line(stage))
        assert outbox(stage) == [task]

    @pytest.mark.parametrize("fate", ["401 UNAUTHORIZED", "404 UNKNOWN_SESSION", "429 X", "500 INTERNAL"])
    def test_a_refusal_that_says_nothing_about_the_task_is_repeated(self, handed: tuple[Stage, str], fate: str) -> None:
        stage, task = handed

        class Refusing(Line):
            async def _one(self, post: Post) -> str | None:
                return fate

        ear = Ear()
        step(stage, Refusing(stage), ear)
        assert [fields["error"] for _, fields in ear.heard] == [fate]
        assert waiting(stage) == {task: T0 + LEASE_MS}

    def test_two_dispatchers_post_the_same(self, handed: tuple[Stage, str]) -> None:
        """One was slow beyond its lease. The second post is a repeat, and the task is there once."""
        stage, task = handed
        slow, quick = Line(stage), Line(stage)

        def meanwhile(_task: str) -> None:
            slow.before = lambda _: None
            stage.now += LEASE_MS
            step(stage, quick)

        slow.before = meanwhile
        step(stage, slow)
        assert (len(slow.posts), len(quick.posts)) == (1, 1)
        assert outbox(stage) == [task]
        in_one_place(stage, task)

    def test_taken_back_between_post_and_script(self, handed: tuple[Stage, str]) -> None:
        """The sweep was quicker: 409, an end. The task is in its queue once, and the phone is free for it."""
        stage, task = handed
        line, ear = Line(stage), Ear()

        def sweep(_task: str) -> None:
            stage.now += TTL_MS
            withdraw(stage, task)

        line.before = sweep
        step(stage, line, ear)
        assert (stage.byte(task), stage.queue()[0], outbox(stage), waiting(stage)) == ("r", task, [], {})
        assert (stage.pacer()["capUsed"], "unsettled" in stage.pacer(), ear.heard) == ("0", False, [])
        assert hand_off(stage) == task

    @pytest.mark.parametrize("when", ["before the look", "between post and script"])
    def test_canceled_on_its_way(self, handed: tuple[Stage, str], when: str) -> None:
        """The phone is free at once and the day's unit is back, not only when the hand-over's time is over."""
        stage, task = handed
        line, ear = Line(stage), Ear()

        def cancel(_task: str) -> None:
            value_of(stage.store.jobs.cancel(task.split(":")[0], now_ms=stage.now))

        if when == "before the look":
            cancel(task)
        else:
            line.before = cancel
        step(stage, line, ear)
        assert (stage.byte(task), outbox(stage), waiting(stage)) == ("X", [], {})
        assert (stage.pacer()["capUsed"], "unsettled" in stage.pacer(), ear.heard) == ("0", False, [])
        assert stage.redis.zscore(keys.deadlines(), task) is None
        before = stage.dump()
        assert step(stage, line) is None
        assert stage.dump() == before

    @pytest.mark.parametrize("loss", ["job", "contacts"])
    def test_what_cannot_become_a_message_ends_visibly(self, stage: Stage, loss: str) -> None:
        """Or its phone would hand the same task over for ever."""
        stage.connect()
        job = stage.routed(1, text="hi {{name}}")
        task = hand_off(stage)
        stage.redis.delete(keys.job_contacts(job.job_id, 0))
        if loss == "job":
            stage.redis.set(keys.job(job.job_id), "no json")
        line = Line(stage)
        step(stage, line)
        assert (line.posts, stage.byte(task), waiting(stage)) == ([], "F", {})
        assert stage.message(task)["errorCode"] == "JOB_MALFORMED"
        assert (stage.pacer()["capUsed"], "unsettled" in stage.pacer()) == ("0", False)
        stage.adds_up(job)

    def test_a_round_takes_no_more_than_a_batch(self, stage: Stage) -> None:
        for number in range(BATCH + 2):
            phone, session = f"9725000001{number:02d}", f"s{number}"
            stage.connect(session, phone)
            stage.routed(1, first=number, phone=phone)
            hand_off(stage, session)
        line = Line(stage)
        handing = Handing(stage.store, line)
        assert (value_of(handing.step(T0)), len(line.posts)) == (T0, BATCH)
        assert (value_of(handing.step(T0)), len(line.posts)) == (T0, BATCH + 2)
        assert (value_of(handing.step(T0)), handing.posted, handing.failed) == (None, BATCH + 2, 0)

    def test_the_sweep_takes_back_what_nobody_posts(self, handed: tuple[Stage, str]) -> None:
        """The dispatcher died, or its mode was changed: it is withdrawn like any hand-over that nobody claimed."""
        stage, task = handed
        stage.now += TTL_MS
        value_of(Settling(stage.store, RetrySettings()).sweep(stage.now))
        assert (stage.byte(task), stage.queue()[0], waiting(stage), stage.pacer()["capUsed"]) == ("r", task, {}, "0")
        assert "handing" not in stage.message(task)


class TestTexts:
    def test_a_jobs_text_with_and_without_variables(self, stage: Stage) -> None:
        texts = Texts(stage.store.jobs)
        plain = stage.accept(1, text="hello")
        assert value_of(texts.final(plain.task_id(0))) == "hello"
        assert value_of(texts.final("01ARZ3NDEKTSV4RRFFQ69G5FAV:0")) is None
        assert value_of(texts.final("no task")) is None
        filled = stage.accept(1, text="hi {{name}}")
        stage.redis.lset(keys.job_contacts(filled.job_id, 0), 0, '{"to":"972540000001","vars":{"name":"Ada"}}')
        assert value_of(texts.final(filled.task_id(0))) == "hi Ada"

    def test_jobs_are_kept_but_not_all_of_them(self, stage: Stage) -> None:
        texts = Texts(stage.store.jobs)
        jobs = [stage.accept(1, first=number) for number in range(JOBS_KEPT + 1)]
        for job in jobs:
            value_of(texts.final(job.task_id(0)))
            stage.redis.delete(keys.job(job.job_id))
        assert value_of(texts.final(jobs[-1].task_id(0))) == "hello"
        assert value_of(texts.final(jobs[0].task_id(0))) is None


class Walk:
    """Everybody who has a say in a hand-over, acting in any order: two dispatchers, the network, the orchestrator, its
    sweep, the worker, the customer."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.rng = stage, Random(seed)
        self.late: list[Post] = []
        self.claimed: list[str] = []
        for session in (SESSION, "s2"):
            stage.connect(session)
            stage.hello(session=session)
        self.jobs = [stage.routed(4, first=10 * number) for number in range(3)]

    def step(self) -> str:
        action = self.rng.choice(
            [self.pace, self.pace, self.post, self.post, self.arrive, self.sweep, self.claim, self.claim, self.settle]
            + [self.wait, self.cancel] * (self.rng.random() < 0.2)
        )
        action()
        return action.__name__

    def pace(self) -> None:
        for facts in self.stage.look():
            if facts.heads and facts.heads[0].state in "rt":
                decision = Decision(self.stage.to_send(facts.heads[0], self.rng.choice([SESSION, "s2"])))
                given: dict[str, Any] = {"now_ms": self.stage.now, "handoff_ttl_ms": TTL_MS}
                by_post = self.rng.random() < 0.9
                value_of(self.stage.store.pacers.hand_off([(facts, decision)], **given, api=by_post))
            else:
                ended = [Step("drop", head.entry, head.task) for head in facts.heads[:1]]
                self.stage.apply(facts, Idle(), *ended)

    def post(self) -> None:
        """Some posts are lost, some answers, and some posts arrive a second time, much later."""
        line = Line(self.stage, self.rng.choice(["", "lost", "unanswered", ""]))
        step(self.stage, line)
        self.late += line.posts

    def arrive(self) -> None:
        if self.late:
            post = self.rng.choice(self.late)
            enqueue(self.stage, post.body["taskId"], post.session)

    def sweep(self) -> None:
        value_of(Settling(self.stage.store, RetrySettings()).sweep(self.stage.now))

    def claim(self) -> None:
        for session in (SESSION, "s2"):
            if (box := outbox(self.stage, session)) and self.stage.claim(box[-1], session=session).code == "OK":
                self.claimed.append(box[-1])
            elif box and self.stage.byte(box[-1]) in TERMINAL:
                self.stage.settle(box[-1], "cleared", from_=TERMINAL)

    def settle(self) -> None:
        if self.claimed:
            task = self.claimed.pop()
            self.rng.choice([self.stage.sent, self.stage.fail])(task)

    def wait(self) -> None:
        self.stage.now += self.rng.choice([1_000, LEASE_MS, TTL_MS])

    def cancel(self) -> None:
        self.stage.cancel(self.rng.choice(self.jobs))

    def holds(self) -> None:
        """Each task handed off lies in one place, and the phone is busy with it alone."""
        places = [*waiting(self.stage), *outbox(self.stage), *outbox(self.stage, "s2")]
        handed = [task for job in self.jobs for task in map(job.task_id, range(4)) if self.stage.byte(task) == "h"]
        assert len(places) == len(set(places))
        assert set(handed) <= set(places)
        assert all(self.stage.byte(task) in "h" + TERMINAL for task in places)
        assert len(places) <= 1
        assert [self.stage.pacer().get("unsettled")] == places or places == []
        assert [task for task in waiting(self.stage) if self.stage.message(task)["handing"] != "1"] == []
        for session in (SESSION, "s2"):
            assert {self.stage.message(task)["sessionId"] for task in outbox(self.stage, session)} <= {session}


@pytest.mark.parametrize("seed", range(12))
def test_in_any_order_a_hand_over_is_in_one_place_and_every_task_ends_once(stage: Stage, seed: int) -> None:
    """Lost posts, lost answers, late posts, the sweep, cancels: at the end nothing is lost, nothing is doubled."""
    walk = Walk(stage, seed)
    for _ in range(120):
        name = walk.step()
        try:
            walk.holds()
        except AssertionError as error:
            raise AssertionError(f"after {name}") from error
    # Quiet at last: everybody does their work until there is none.
    for _ in range(400):
        if all(set(stage.states(job)) <= set(TERMINAL) for job in walk.jobs):
            break
        stage.now += 30_000
        for action in (walk.pace, walk.post, walk.sweep, walk.claim, walk.settle):
            action()
            walk.holds()
    for job in walk.jobs:
        assert set(stage.states(job)) <= set(TERMINAL)
        stage.adds_up(job)
    step(stage, Line(stage))
    assert (waiting(stage), outbox(stage), outbox(stage, "s2")) == ({}, [], [])


def test_a_phone_has_one_hand_over_under_way(handed: tuple[Stage, str]) -> None:
    """At most one task of a phone is unsettled, whichever way it goes."""
    stage, task = handed
    assert stage.look() == []
    assert stage.pacer(PHONE)["unsettled"] == task
