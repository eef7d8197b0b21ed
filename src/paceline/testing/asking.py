"""Questions to the store from outside a run: nothing can go wrong with them, and they change nothing."""

from collections.abc import Callable, Coroutine, Generator, Sequence
from itertools import islice
from types import coroutine
from typing import Any

from paceline.store.blocking import BlockingRedis
from paceline.store.client import Command
from paceline.store.scripts import Script
from paceline.store.store import Store

Question = Callable[[Store], Coroutine[Any, Any, Any]]


def ask(redis: BlockingRedis, *questions: Question) -> list[Any]:
    """They are asked side by side, so that what they read comes in a few large answers instead of many small ones."""
    store = Store(_Asking())
    answers: list[Any] = [None] * len(questions)
    asking: list[tuple[int, Coroutine[Any, Any, Any], list[Any] | None]]
    asking = [(number, question(store), None) for number, question in enumerate(questions)]
    while asking:
        wanted: list[tuple[int, Coroutine[Any, Any, Any], Sequence[Command]]] = []
        for number, question, found in asking:
            try:
                wanted.append((number, question, question.send(found)))
            except StopIteration as answer:
                answers[number] = answer.value
        found_all = iter(redis.read(*[command for _, _, commands in wanted for command in commands]))
        asking = [(number, question, list(islice(found_all, len(commands)))) for number, question, commands in wanted]
    return answers


class _Asking:
    """A link that only hands its questions up, to whoever drives the coroutine."""

    is_shared = False

    async def run(self, script: Script, argument: bytes) -> Any:
        raise RuntimeError("who asks from outside changes nothing")

    async def read(self, *commands: Command) -> list[Any]:
        return await _handed_up(commands)


@coroutine
def _handed_up(commands: Sequence[Command]) -> Generator[Sequence[Command], list[Any], list[Any]]:
    return (yield commands)
