"""What an operator has a worker do beside sending: pair, scan (simulated), log out.

Orders come with `hello` and with claims, perhaps more than once, so whoever has done one remembers it. The end of each
is told as COMMAND_DONE; a pairing code goes with it and is written nowhere else.
"""

from collections import deque
from collections.abc import Iterable

import structlog

from paceline.worker.drivers.base import CannotLink, Driver
from paceline.worker.poster import Poster
from paceline.worker.protocol import Command
from paceline.worker.shift import Shift

log = structlog.stdlib.get_logger(__name__)

_REMEMBERED = 32
"""More than one worker can be told within the time such an order is valid."""


class Orders:
    def __init__(self, shift: Shift, *, driver: Driver, poster: Poster) -> None:
        self._shift = shift
        self._driver = driver
        self._poster = poster
        self._done: deque[str] = deque(maxlen=_REMEMBERED)

    async def obey(self, commands: Iterable[Command]) -> None:
        for command in commands:
            if command.id in self._done:
                continue
            self._done.append(command.id)
            try:
                answer = await self._carry_out(command.kind)
            except CannotLink as error:
                answer = {"ok": False, "error": str(error)}
            log.info("an order was carried out", kind=command.kind, ok=answer["ok"], reason=answer.get("error"))
            self._poster.tell("COMMAND_DONE", {"commandId": command.id, "kind": command.kind, **answer})

    async def _carry_out(self, kind: str) -> dict[str, object]:
        match kind:
            case "pair":
                code = await self._driver.pair()
                return {"ok": True, "pairingCode": code.text, "expiresInMs": code.valid_ms}
            case "scan":
                await self._driver.scan()
            case "logout":
                await self._log_out()
            case _:
                raise CannotLink("this worker does not know that order")
        return {"ok": True}

    async def _log_out(self) -> None:
        if not self._driver.linked:
            # Done by an earlier life of this worker that died before it could say so.
            return
        self._shift.logging_out = True
        try:
            await self._driver.logout()
        except CannotLink:
            self._shift.logging_out = False
            raise
