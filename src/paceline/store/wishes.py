"""What is wished for sessions: by operators, and by the fleet that heals itself.

Part of `fleet.FleetStore`; `policy.reconcile` decides what follows from a wish. The table is `domain.sessions`.
"""

from typing import Literal

import msgspec

from paceline.store import keys
from paceline.store.caller import Answer, Caller

Wish = Literal["start", "stop", "restart", "remove", "pause", "resume"]


class Wished(Answer, frozen=True):
    """OK | UNKNOWN_SESSION | REMOVING | STALE | NOT_WANTED | QUARANTINED | TASKS_WAITING; see wish.lua."""

    changed: bool = False
    generation: int = 0
    phone: str = ""
    waiting: int = 0
    last: bool = False
    """TASKS_WAITING: it is the number's last session, so what waits for the number counts."""


CommandKind = Literal["pair", "scan", "logout"]


class Given(Answer, frozen=True):
    """OK | AGAIN | UNKNOWN_SESSION | REMOVING | NOT_RUNNING | LINKED | NOT_LINKED; see give_command.lua."""

    id: str = ""
    until: int = 0


class Secret(msgspec.Struct, frozen=True):
    """What links a device to the number, for as long as it is valid. Whoever has it can do so."""

    value: str
    until: int


class Wishes:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def wish(
        self,
        session: str,
        wish: Wish,
        *,
        reason: str,
        by: str,
        now_ms: int,
        generation: int | None = None,
        force: bool = False,
    ) -> Wished:
        """What an operator (reason OPERATOR) or the fleet itself (SILENT, PROXY_BAD, CRASHED …) wants of a session.
        With a generation it counts only while that is the present one: whoever decides on what they saw says so."""
        return await self._caller.call(
            "wish", Wished, session=session, wish=wish, reason=reason, by=by, now=now_ms, generation=generation,
            force=force or None,
        )  # fmt: skip

    async def give_command(
        self, session: str, kind: CommandKind, *, command_id: str, until_ms: int, by: str, now_ms: int
    ) -> Given:
        """Tells the session's worker to do something, by then at the latest."""
        return await self._caller.call(
            "give_command", Given, session=session, kind=kind, id=command_id, until=until_ms, by=by, now=now_ms
        )

    async def end_command(
        self,
        session: str,
        command_id: str,
        *,
        ok: bool,
        now_ms: int,
        error: str | None = None,
        pairing: Secret | None = None,
    ) -> Answer:
        """The worker's word that it was done, or why not; of a pairing with the code it got."""
        return await self._caller.call(
            "end_command", Answer, session=session, id=command_id, ok=ok, error=error, now=now_ms,
            code=None if pairing is None else msgspec.json.encode(pairing).decode(),
            codeTtl=None if pairing is None else pairing.until - now_ms,
        )  # fmt: skip

    async def qr(self, session: str, *, now_ms: int) -> Secret | None:
        """The QR text that is shown now."""
        return _valid(await self._caller.read_one("GET", keys.session_qr(session)), now_ms)

    async def pairing(self, session: str, *, now_ms: int) -> Secret | None:
        return _valid(await self._caller.read_one("GET", keys.session_pairing(session)), now_ms)


def _valid(raw: str | None, now_ms: int) -> Secret | None:
    found = None if raw is None else msgspec.json.decode(raw, type=Secret)
    return found if found is not None and found.until > now_ms else None
