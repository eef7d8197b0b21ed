"""Calls a verb with named arguments and reads its typed answer."""

from typing import Any, TypeVar

import msgspec

from paceline.store.client import Command, Link
from paceline.store.scripts import ScriptConfig, load

T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """What every verb returns at least: one of the codes its file lists."""

    code: str


class Caller:
    def __init__(self, link: Link, config: ScriptConfig, *, mutate: dict[str, tuple[str, str]] | None = None) -> None:
        self._link = link
        self._scripts = load(config, mutate)
        self._encode = msgspec.json.Encoder().encode
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

    async def call(self, verb: str, answer: type[T], /, **arguments: Any) -> T:
        """Arguments that are None are left out: Lua reads them as absent."""
        given = {name: value for name, value in arguments.items() if value is not None}
        raw = await self._link.run(self._scripts[verb], self._encode(given).decode())
        decoder = self._decoders.get(answer)
        if decoder is None:
            decoder = self._decoders[answer] = msgspec.json.Decoder(answer)
        return decoder.decode(raw)  # type: ignore[no-any-return]

    async def rows(self, verb: str, /, **arguments: Any) -> list[Any]:
        """The plain reply of a verb that has much to tell and does not encode it."""
        rows: list[Any] = await self._link.run(self._scripts[verb], self._encode(arguments).decode())
        return rows

    async def read(self, *commands: Command) -> list[Any]:
        return await self._link.read(*commands)

    async def read_one(self, *command: str | int | float) -> Any:
        return (await self._link.read(command))[0]
