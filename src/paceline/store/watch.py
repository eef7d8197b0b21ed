"""What the watchdog writes down: who is away, what workers take of their host, how proxies did. It reads the rows of
`fleet`."""

from collections.abc import Mapping, Sequence

from paceline.policy.proxy_health import Health
from paceline.store.caller import Answer, Caller

AT_ONCE = 500
"""Rows of one script call: a millisecond of Redis."""


class Noted(Answer, frozen=True):
    changed: bool = False


class WatchStore:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def down(self, session: str, is_down: bool, *, now_ms: int, reason: str | None = None) -> Noted:
        """OK | UNKNOWN_SESSION. An incident at the first time of each: SESSION_DOWN, SESSION_UP."""
        return await self._caller.call("note_down", Noted, session=session, down=is_down, reason=reason, now=now_ms)

    async def usage(self, used: Mapping[str, tuple[int, float]], *, now_ms: int) -> None:
        """Bytes of memory and seconds of processor time, by session."""
        rows = [
            {"session": session, "memory": memory, "cpu": round(seconds * 1000)}
            for session, (memory, seconds) in used.items()
        ]
        for first in range(0, len(rows), AT_ONCE):
            await self._caller.call("note_usage", Answer, used=rows[first : first + AT_ONCE], now=now_ms)

    async def checks(self, health: Sequence[Health], *, now_ms: int) -> None:
        rows = [
            {"proxy": one.proxy_id, "failures": one.failures, "successes": one.successes, "fault": one.fault,
             "took": one.took_ms}
            for one in health
        ]  # fmt: skip
        for first in range(0, len(rows), AT_ONCE):
            await self._caller.call("note_checks", Answer, checks=rows[first : first + AT_ONCE], now=now_ms)
