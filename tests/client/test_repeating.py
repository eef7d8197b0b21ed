"""When a call is repeated, when not, and that a repeat never does a thing twice."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from contract.platform import ADMIN_KEY, FRIEND, Platform
from paceline.client import (
    AsyncPaceline,
    BadAnswer,
    Conflict,
    Paceline,
    PacelineError,
    Refused,
    Retries,
    TimedOut,
    TooMany,
    Unavailable,
    Unreachable,
    talking,
)
from paceline.client.calls import Repeat
from paceline.client.reading import Lost, Reply
from paceline.client.talking import may_repeat
from paceline.gateway.idempotency import RETRY_AFTER_S
from paceline.store.guards import IDEMPOTENCY_STALE_MS

from .conftest import Naps, outside
from .examples import JOB, PROGRESS

Step = Callable[[httpx.Request], httpx.Response] | httpx.Response | Exception


class Standin:
    """A gateway that answers as the script says, step by step; then with the last for ever."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        return step(request) if callable(step) else step

    def given_keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.asked]


def error(status: int, code: str = "X", **more: Any) -> httpx.Response:
    headers = {"Retry-After": str(more.pop("after"))} if "after" in more else {}
    return httpx.Response(
        status, json={"error": {"code": code, "message": "in words", "details": more}}, headers=headers
    )


def good(**body: Any) -> httpx.Response:
    return httpx.Response(200, json=body)


SENT = good(queued=True, messageId="01K:0", position=0, estimatedDelivery=None)
AWAY = error(503, "UNAVAILABLE", after=2)
IN_FLIGHT = error(409, "IDEMPOTENCY_IN_FLIGHT", after=1)
TIMEOUT = httpx.ReadTimeout("no answer")
NOBODY = httpx.ConnectError("refused")


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def client(naps: Naps) -> Iterator[Callable[..., Paceline]]:
    opened: list[Paceline] = []

    def build(standin: Standin, **more: Any) -> Paceline:
        transport = httpx.MockTransport(standin)
        opened.append(
            Paceline("http://gw", "k", transport=transport, sleep=naps.sleep, **{"outside": outside(), **more})
        )
        return opened[-1]

    yield build
    for one in opened:
        one.close()


Build = Callable[..., Paceline]


class Forgetful(httpx.AsyncBaseTransport):
    """Carries requests to the real gateway and loses the first answers."""

    def __init__(self, platform: Platform, lose: int) -> None:
        self._inner = httpx.ASGITransport(platform.services["gateway"])
        self._lose = lose
        self.carried = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.carried += 1
        answer = await self._inner.handle_async_request(request)
        if self.carried <= self._lose:
            raise httpx.ReadError("connection reset")
        return answer


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(lambda p: p.jobs.create([FRIEND], text="hello"), id="a job"),
        pytest.param(lambda p: p.jobs.create(csv=f"to\n{FRIEND}", text="hello"), id="a job from CSV"),
        pytest.param(lambda p: p.send(FRIEND, "hello"), id="a message"),
        pytest.param(lambda p: p.send_batch([(FRIEND, "hello")]), id="a batch"),
    ],
)
async def test_a_lost_answer_is_asked_for_again_and_sends_once(platform: Platform, send: Any) -> None:
    await platform.connect()
    transport = Forgetful(platform, lose=2)
    async with AsyncPaceline("http://gw", ADMIN_KEY, transport=transport, sleep=Naps().asleep) as p:
        await send(p)
        assert transport.carried == 3
        assert len([job async for job in p.jobs.each()]) == 1
        # Another call is another message, not a repeat of the first.
        await send(p)
        assert len([job async for job in p.jobs.each()]) == 2


async def test_what_would_be_a_second_thing_is_not_repeated(platform: Platform) -> None:
    transport = Forgetful(platform, lose=1)
    async with AsyncPaceline("http://gw", ADMIN_KEY, transport=transport, sleep=Naps().asleep) as p:
        with pytest.raises(Unreachable) as lost:
            await p.keys.create("CRM", ["send"])
        assert lost.value.maybe_done
        assert [key.name async for key in p.keys.each()].count("CRM") == 1


def test_the_key_is_the_callers_or_one_for_each_call_and_the_same_at_every_try(client: Build) -> None:
    names = iter("abc")
    standin = Standin(AWAY, TIMEOUT, SENT)
    p = client(standin, outside=outside(new_key=lambda: next(names)))
    p.send("1", "hello")
    p.send("1", "hello", idempotency_key="mine")
    p.send("1", "hello")
    assert standin.given_keys() == ["a", "a", "a", "mine", "b"]
    assert len({request.content for request in standin.asked}) == 1


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(TIMEOUT, id="no answer"),
        pytest.param(NOBODY, id="nobody there"),
        pytest.param(AWAY, id="away"),
        pytest.param(error(500, "INTERNAL"), id="broken"),
        pytest.param(good(something="else"), id="an answer of somebody else"),
    ],
)
def test_an_error_tells_the_key_under_which_to_repeat_it(client: Build, last: Step) -> None:
    with pytest.raises(PacelineError) as lost:
        client(Standin(last), outside=outside(new_key=lambda: "made-up")).send("1", "hello")
    assert lost.value.idempotency_key == "made-up"
    with pytest.raises(PacelineError) as lost:
        client(Standin(last)).send("1", "hello", idempotency_key="mine")
    assert lost.value.idempotency_key == "mine"


def test_what_sends_nothing_has_no_key(client: Build) -> None:
    with pytest.raises(Unreachable) as lost:
        client(Standin(TIMEOUT)).jobs.list()
    assert lost.value.idempotency_key is None


@pytest.mark.parametrize("first", [TIMEOUT, AWAY], ids=["no answer", "away"])
def test_it_may_be_done_if_any_try_may_have_arrived(client: Build, first: Step) -> None:
    with pytest.raises(Unreachable) as lost:
        client(Standin(first, NOBODY)).send("1", "hello")
    assert lost.value.maybe_done


def test_without_a_key_of_ones_own_no_two_are_alike(client: Build) -> None:
    standin = Standin(SENT)
    p = client(standin, outside=None)
    for _ in range(20):
        p.send("1", "hello")
    assert len(set(standin.given_keys())) == 20
    assert all(key and len(key) == 32 for key in standin.given_keys())


def test_pauses_grow_are_random_and_obey_retry_after(client: Build, naps: Naps) -> None:
    standin = Standin(NOBODY, NOBODY, NOBODY, error(429, "RATE_LIMITED", after=7), IN_FLIGHT, SENT)
    client(standin).send("1", "hello")
    first, second, third, asked, waiting = naps.seconds
    assert 0.25 <= first <= 0.5 <= second <= 1.0 <= third <= 2.0
    assert 7 <= asked <= 8.75
    assert waiting >= 4


def test_it_gives_up_after_so_many_tries_with_the_last_error(client: Build, naps: Naps) -> None:
    standin = Standin(NOBODY)
    with pytest.raises(Unreachable) as given_up:
        client(standin).send("1", "hello")
    assert (len(standin.asked), given_up.value.tries, given_up.value.maybe_done) == (9, 9, False)
    assert max(naps.seconds) <= 16
    assert "http://gw" in str(given_up.value)
    alone = Standin(AWAY)
    with pytest.raises(Unavailable) as away:
        client(alone, retries=Retries(tries=1)).health()
    assert (len(alone.asked), away.value.status, away.value.retry_after_seconds) == (1, 503, 2)


class _Shortest(random.Random):
    """Draws the lower end each time."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


def test_it_waits_until_a_request_that_a_crash_cut_off_is_taken_over() -> None:
    """It gave up after 17 to 32 s, nearly always before the gateway lets a repeat take over: then nobody knew whether
    the message was sent, and the key that would have told was gone with the call."""
    retries, waited_s, tries = Retries(), 0.0, 1
    while (pause := retries.pause(tries, RETRY_AFTER_S, _Shortest())) is not None:
        waited_s, tries = waited_s + pause, tries + 1
    assert waited_s * 1000 > IDEMPOTENCY_STALE_MS


def test_a_wait_of_hours_is_left_to_the_caller(client: Build, naps: Naps) -> None:
    standin = Standin(error(429, "DAILY_LIMIT_REACHED", after=40_000))
    with pytest.raises(TooMany) as refused:
        client(standin).send("1", "hello")
    assert (len(standin.asked), refused.value.retry_after_seconds, naps.seconds) == (1, 40_000, [])


LOST_BEFORE, LOST_AFTER = Lost("x", maybe_done=False), Lost("x", maybe_done=True)


def reply(response: httpx.Response) -> Reply:
    return Reply(response.status_code, {}, response.content)


@pytest.mark.parametrize(
    ("heard", "harmless", "keyed", "another"),
    [
        pytest.param(LOST_BEFORE, True, True, True, id="nobody was reached"),
        pytest.param(LOST_AFTER, True, True, False, id="an answer was lost"),
        pytest.param(reply(error(429)), True, True, True, id="too many"),
        pytest.param(reply(error(503)), True, True, False, id="unavailable"),
        pytest.param(reply(httpx.Response(502, text="a page")), True, True, False, id="a proxy's page"),
        pytest.param(reply(IN_FLIGHT), False, True, False, id="in flight"),
        pytest.param(reply(error(409, "JOB_CLOSED")), False, False, False, id="a conflict"),
        pytest.param(reply(error(400)), False, False, False, id="a refusal"),
        pytest.param(reply(error(500)), False, False, False, id="our fault"),
        pytest.param(reply(httpx.Response(302)), False, False, False, id="a redirect"),
    ],
)
def test_what_may_be_repeated(heard: Reply | Lost, harmless: bool, keyed: bool, another: bool) -> None:
    kinds = (Repeat.HARMLESS, Repeat.KEYED, Repeat.ANOTHER)
    assert [may_repeat(kind, heard) for kind in kinds] == [harmless, keyed, another]


def test_no_pause_is_longer_than_its_cap() -> None:
    retries, rng = Retries(tries=2_000), random.Random(1)
    for tries in range(1, 1_500, 7):
        assert 0 < (retries.pause(tries, None, rng) or 0) <= retries.longest_seconds
        assert 60 <= (retries.pause(tries, 60, rng) or 0) <= 75


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        pytest.param(good(status=7), BadAnswer, "Expected `str`", id="a field of another kind"),
        pytest.param(good(ok=True), BadAnswer, "`status`", id="a missing field is named"),
        pytest.param(httpx.Response(200, text="<html>"), BadAnswer, "not answer like", id="no JSON"),
        pytest.param(httpx.Response(200, content=b'{"status": "\xff"}'), BadAnswer, "not answer like", id="no UTF-8"),
        pytest.param(httpx.Response(302, headers={"Location": "http://evil/"}), BadAnswer, "302", id="a redirect"),
        pytest.param(httpx.Response(404, text="a page"), BadAnswer, "not in the words", id="somebody else's 404"),
        pytest.param(error(409), Conflict, "409: X: in words", id="a conflict"),
        pytest.param(error(413, field="file"), Refused, r"in words \(file\)", id="too large"),
    ],
)
def test_one_try_and_its_error(client: Build, answer: httpx.Response, kind: type[PacelineError], words: str) -> None:
    standin = Standin(answer)
    with pytest.raises(kind, match=words):
        client(standin).health()
    assert len(standin.asked) == 1


def test_fields_of_a_newer_gateway_are_ignored(client: Build) -> None:
    assert client(Standin(good(status="ok", mood="sunny"))).health().status == "ok"
    waiting = {"reason": "NEW", "until": None, "text": "new", "more": []}
    odd = JOB | {"state": "DREAMING", "progress": PROGRESS | {"dreaming": 1}, "waiting": waiting}
    job = client(Standin(good(**odd))).jobs.get("01K")
    assert (job.state, job.ended, job.waiting and job.waiting.reason) == ("DREAMING", False, "NEW")


def test_a_list_without_end_ends(client: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talking, "MAX_PAGES", 3)
    standin = Standin(good(items=[], nextCursor="again"))
    with pytest.raises(BadAnswer, match="more than 3 pages"):
        list(client(standin).jobs.each(tag="t"))
    assert [request.url.params.get("cursor") for request in standin.asked] == [None, "again", "again"]
    assert {request.url.params["tag"] for request in standin.asked} == {"t"}


def test_an_answer_without_end_ends(client: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.client.wire.ANSWER_LIMIT", 1_000)
    with pytest.raises(BadAnswer, match="without end"):
        client(Standin(httpx.Response(200, content=b" " * 2_000))).health()


def test_waiting_tells_changes_survives_an_outage_and_ends_in_time(client: Build, naps: Naps) -> None:
    def job(sent: int, **more: Any) -> httpx.Response:
        return good(**(JOB | {"progress": PROGRESS | {"total": 2, "sent": sent}} | more))

    standin = Standin(job(0), job(0), NOBODY, job(1), AWAY, job(2, state="DONE", closedAt=9))
    looks = [look.progress.sent for look in client(standin).jobs.watch("01K", every_seconds=3)]
    assert looks == [0, 1, 2]
    assert naps.seconds.count(3) == 3
    times = iter(range(0, 100, 4))
    slow = client(Standin(job(1)), outside=outside(monotonic=lambda: float(next(times))))
    with pytest.raises(TimedOut) as timed_out:
        slow.jobs.wait("01K", timeout_seconds=10, every_seconds=5)
    assert timed_out.value.last.progress.sent == 1
    assert isinstance(timed_out.value, TimeoutError)
