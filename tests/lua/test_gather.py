"""Orders that come together go together; each has its own answer, and one that fails fails alone."""

import asyncio
import traceback
from typing import Any

import pytest

from paceline.domain.errors import Unavailable
from paceline.kits.brief import Ticket
from paceline.store.client import RedisError
from paceline.store.gather import Gather, Order
from paceline.store.proofs import Settled

from .stage import Stage, recipient, value_of


class Desk:
    """Takes orders and answers when it is told to."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.open = asyncio.Event()
        self.error: Exception | None = None

    async def call(self, orders: list[Order]) -> list[Any]:
        self.calls.append([order["n"] for order in orders])
        await self.open.wait()
        if self.error:
            raise self.error
        return [order["n"] * 10 for order in orders]


def ask(gather: Gather, *numbers: int) -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(gather.ask({"n": number})) for number in numbers]


async def test_the_first_goes_at_once_and_those_that_come_meanwhile_together() -> None:
    desk = Desk()
    gather = Gather(desk.call, most=3)
    first = ask(gather, 1)
    await asyncio.sleep(0.01)
    others = ask(gather, 2, 3, 4, 5)
    await asyncio.sleep(0.01)
    assert desk.calls == [[1]]
    desk.open.set()
    assert await asyncio.gather(*first, *others) == [10, 20, 30, 40, 50]
    assert desk.calls == [[1], [2, 3, 4], [5]]


async def test_so_many_calls_are_under_way_at_once() -> None:
    desk = Desk()
    gather = Gather(desk.call, most=3, abreast=2)
    asked = []
    for numbers in ([1], [2, 3], [4, 5]):
        asked += ask(gather, *numbers)
        await asyncio.sleep(0.01)
    assert desk.calls == [[1], [2, 3]]
    desk.open.set()
    assert await asyncio.gather(*asked) == [10, 20, 30, 40, 50]
    assert desk.calls == [[1], [2, 3], [4, 5]]


async def test_too_few_for_a_further_call_wait_for_the_first() -> None:
    desk = Desk()
    gather = Gather(desk.call, most=5, abreast=2, enough=3)
    asked = []
    for numbers in ([1], [2, 3], [4], [5]):
        asked += ask(gather, *numbers)
        await asyncio.sleep(0.01)
    assert desk.calls == [[1], [2, 3, 4]]
    desk.open.set()
    assert await asyncio.gather(*asked) == [10, 20, 30, 40, 50]
    assert desk.calls == [[1], [2, 3, 4], [5]]


async def test_the_next_call_is_on_its_way_before_the_answers_are_given_out() -> None:
    """Else Redis would rest while a whole batch of answers is written."""
    desk, seen = Desk(), []
    gather = Gather(desk.call, most=5)
    first = Ticket()
    first.resume = lambda: seen.append(len(desk.calls))
    gather.tell({"n": 1}, first)
    await asyncio.sleep(0.01)
    others = ask(gather, 2, 3)
    await asyncio.sleep(0.01)
    desk.open.set()
    assert await asyncio.gather(*others) == [20, 30]
    assert seen == [2]


async def test_cut_off_between_the_answers_and_giving_them_out_they_are_given_out() -> None:
    """What Redis has done is done, whoever ends meanwhile."""
    desk = Desk()
    gather = Gather(desk.call, most=5)
    (first,) = ask(gather, 1)
    await asyncio.sleep(0.01)
    others = ask(gather, 2)
    await asyncio.sleep(0.01)
    (going,) = gather._going
    start = gather._start
    gather._start = lambda: (start(), going.cancel())  # type: ignore[method-assign,assignment,func-returns-value]
    desk.open.set()
    assert await first == 10
    assert await asyncio.gather(*others) == [20]


@pytest.mark.parametrize("abreast", [1, 2])
async def test_who_asks_again_with_the_answer_is_answered(abreast: int) -> None:
    """In the moment in which the last call has ended, and its task not quite."""
    desk = Desk()
    desk.open.set()
    gather = Gather(desk.call, most=3, abreast=abreast)

    async def asks() -> list[int]:
        return [await gather.ask({"n": number}) for number in range(3)]

    together = asyncio.gather(*[asks() for _ in range(abreast)])
    assert await asyncio.wait_for(together, 5) == [[0, 10, 20]] * abreast


async def test_an_error_is_told_to_all_of_the_call_and_the_next_goes_on() -> None:
    desk = Desk()
    gather = Gather(desk.call, most=10)
    desk.error = Unavailable("away")
    desk.open.set()
    answers = await asyncio.gather(*ask(gather, 1, 2), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
    desk.error = None
    assert await gather.ask({"n": 3}) == 30


async def test_cut_off_everybody_is_told() -> None:
    desk = Desk()
    gather = Gather(desk.call, most=10)
    first = ask(gather, 1)
    await asyncio.sleep(0.01)
    others = ask(gather, 2, 3)
    await asyncio.sleep(0.01)
    (going,) = gather._going
    going.cancel()
    answers = await asyncio.gather(*first, *others, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * 3


async def test_who_goes_away_while_waiting_is_not_sent_and_stops_nobody() -> None:
    desk = Desk()
    gather = Gather(desk.call, most=10)
    (sent,) = ask(gather, 1)
    await asyncio.sleep(0.01)
    gone, stays = ask(gather, 2, 3)
    await asyncio.sleep(0.01)
    sent.cancel()
    gone.cancel()
    desk.open.set()
    assert await stays == 30
    assert desk.calls == [[1], [3]]


def test_an_order_that_runs_into_an_error_does_not_touch_those_beside_it(stage: Stage) -> None:
    """On real Redis: the second of three finds a key of the wrong kind."""
    tasks = [stage.send(recipient(number))[0].task_id(0) for number in (1, 2, 3)]
    wrong = tasks[1]
    stage.redis.set(f"message:{wrong}", "not a hash")
    orders = [
        {"task": task, "outcome": "sent", "now": stage.now, "whatsappId": "X", "statsDay": "2026-03-10"}
        for task in tasks
    ]
    caller = stage.store.outbox._caller
    answers = value_of(caller.rows("prove_sent", orders=orders))
    assert [answer[0] for answer in answers] == ["{", "!", "{"]
    assert "WRONGTYPE" in answers[1]
    assert [stage.byte(task) for task in tasks] == ["S", "r", "S"]
    with pytest.raises(RedisError):
        value_of(caller.joined("prove_sent", Settled).ask(orders[1]))


def test_a_full_redis_is_told_as_such_by_each_order(stage: Stage) -> None:
    stage.redis.config_set("maxmemory", "1")
    try:
        with pytest.raises(Unavailable):
            stage.send(recipient(1))
    finally:
        stage.redis.config_set("maxmemory", "0")


async def test_an_error_for_many_is_told_to_each_as_it_was() -> None:
    """Who goes on with it at once adds its own frames: in the end each would have told of all before it."""
    seen: list[int] = []

    class Teller:
        def done(self) -> bool:
            return False

        def set_result(self, answer: object) -> None: ...

        def set_exception(self, error: Exception) -> None:
            try:
                raise error
            except ValueError as raised:
                seen.append(len(traceback.extract_tb(raised.__traceback__)))

    async def call(orders: list[object]) -> list[object]:
        raise ValueError("nobody gets anything")

    gather = Gather(call, most=10)
    for number in range(5):
        gather.tell(number, Teller())
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(seen) == 5
    assert len(set(seen)) == 1
