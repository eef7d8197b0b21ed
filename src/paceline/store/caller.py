"""Calls a verb with named arguments and reads its typed answer."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from paceline.store.client import Command, Link, refusal
from paceline.store.gather import Alone, Gather
from paceline.store.scripts import ScriptConfig, load

T = TypeVar("T")
TOGETHER = 32
"""Orders in one call. Enough that a call's own cost, and that of a write to the disk, is small for each; Redis is at
them for a millisecond, and everybody else waits for that long."""
ABREAST = 2
"""Calls of a kind under way: while Redis is at one, the next is there already."""
ENOUGH = 16
"""Orders that are worth a second call. Fewer wait for the end of the first: two small calls cost more than one."""


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What every verb returns at least: one of the codes its file lists."""

    code: str


class Caller:
    def __init__(self, link: Link, config: ScriptConfig, *, mutate: dict[str, tuple[str, str]] | None = None) -> None:
        self._link = link
        self._scripts = load(config, mutate)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
        self._joined: dict[str, Gather | Alone] = {}

    async def call(self, verb: str, answer: type[T], /, **arguments: Any) -> T:
        """Arguments that are None are left out: Lua reads them as absent."""
        raw = await self._link.run(self._scripts[verb], self._encode(given(arguments)))
        return self._decoded(raw, answer)

    def joined(self, verb: str, answer: type[T], *, most: int = TOGETHER) -> Gather | Alone:
        """For one order to a verb that takes many: with those of others, if there are any at the time."""
        if verb not in self._joined:
            self._joined[verb] = self.together(partial(self.answers, verb, answer), most=most)
        return self._joined[verb]

    def together(self, call: Callable[[list[Any]], Awaitable[list[Any]]], *, most: int = TOGETHER) -> Gather | Alone:
        """For one question to a call that takes many: with those of others, if there are any at the time."""
        if not self._link.is_shared:
            return Alone(call)
        return Gather(call, most=most, abreast=ABREAST, enough=ENOUGH)

    async def answers(self, verb: str, answer: type[T], orders: Sequence[Any]) -> list[T | Exception]:
        """Of a verb that takes many orders: to each its own, or why only that one failed."""
        rows = await self.rows(verb, orders=orders)
        return [refusal(raw[1:]) if raw.startswith("!") else self._decoded(raw, answer) for raw in rows]

    def _decoded(self, raw: str, answer: type[T]) -> T:
        decoder = self._decoders.get(answer)
        if decoder is None:
            decoder = self._decoders[answer] = msgspec.json.Decoder(answer)
        return decoder.decode(raw)  # type: ignore[no-any-return]

    async def rows(self, verb: str, /, **arguments: Any) -> list[Any]:
        """The plain reply of a verb that has much to tell and does not encode it."""
        rows: list[Any] = await self._link.run(self._scripts[verb], self._encode(arguments))
        return rows

    async def read(self, *commands: Command) -> list[Any]:
        return await self._link.read(*commands)

    async def read_one(self, *command: str | int | float) -> Any:
        return (await self._link.read(command))[0]


def scored(answer: list[Any]) -> list[tuple[str, int]]:
    """What was read of a sorted set with its scores: as pairs or flat, depending on the client."""
    flat = [part for pair in answer for part in pair] if answer and isinstance(answer[0], list | tuple) else answer
    return [(member, int(float(score))) for member, score in zip(flat[::2], flat[1::2], strict=True)]


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Without what is None: Lua reads that as absent."""
    return {name: value for name, value in arguments.items() if value is not None}
