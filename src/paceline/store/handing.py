"""Hand-overs by POST (SEND_MODE=api): which are to be posted, and how a post that arrived completes one."""

import msgspec

from paceline.store.caller import Answer, Caller


class HandOver(msgspec.Struct, frozen=True):
    """A task on its way to a session's outbox."""

    task: str
    session: str
    to: str


class HandingDue(Answer, frozen=True):
    tasks: list[HandOver] = []
    ended: list[str] = []
    next_at: int | None = None


class Handing:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def due(self, *, now_ms: int, lease_ms: int, limit: int) -> HandingDue:
        return await self._caller.call("handing_due", HandingDue, now=now_ms, lease=lease_ms, limit=limit)

    async def enqueue(self, session: str, task: str, *, now_ms: int) -> str:
        """`task` has the shape of a task id. See enqueue_outbox.lua for the codes."""
        answer = await self._caller.call("enqueue_outbox", Answer, session=session, task=task, now=now_ms)
        return answer.code
