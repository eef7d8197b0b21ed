"""Erasing a person: what waits for them is canceled, and their number leaves every place it is kept in.

Step by step over the store, each step bounded and repeatable: asking again finds what is left. What stays, and why, is
in docs/api.md. Neighbour: `store.people` has the steps.
"""

import msgspec

from paceline.domain.errors import BadRequest
from paceline.domain.jobs import Job
from paceline.domain.numbers import notations, person
from paceline.gateway.schemas import ErasedPerson
from paceline.store.store import Store

TRIES = 3
"""A message may move between the look and the cancel: a dispatcher is at work."""


class _Tally:
    def __init__(self) -> None:
        self.canceled = self.erased = self.open = 0


class Erasing:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def erase(self, raw: str, *, by: str, now_ms: int) -> ErasedPerson:
        to = person(raw)
        if to is None:
            raise BadRequest("INVALID_NUMBER", "this is no possible phone number", field="to")
        numbers, people, tally = notations(to), self._store.people, _Tally()
        async for jobs in people.jobs():
            for task in await people.messages_to(numbers, jobs):
                await self._message(task, numbers, tally, now_ms)
        # Last what messages leave behind: canceling one may have written a letter and an event.
        tally.erased += await people.erase_traces(numbers)
        tally.erased += await people.erase_letters(numbers)
        tally.erased += await people.erase_events(numbers)
        if tally.canceled or tally.erased or tally.open:
            await people.note_erased(tally.canceled, tally.erased, tally.open, by=by, now_ms=now_ms)
        return ErasedPerson(
            to=to,
            canceled=tally.canceled,
            erased=tally.erased,
            open=tally.open,
            suppressed=bool(await self._store.guards.suppressed([to])),
        )

    async def _message(self, task: str, numbers: tuple[str, ...], tally: _Tally, now_ms: int) -> None:
        old = await self._store.jobs.get(task.partition(":")[0])
        for _ in range(TRIES):
            answer = await self._store.people.erase_task(
                task, numbers, old=old, new=_without_person(old), now_ms=now_ms
            )
            if answer.code == "OK":
                tally.canceled += int(answer.canceled)
                tally.erased += 1
                return
            if answer.code != "WAITING":
                tally.open += int(answer.code == "OPEN")
                return
            canceled = await self._store.queues.cancel_task(task, answer.phone or "", now_ms=now_ms)
            tally.canceled += int(canceled.code == "OK")
        tally.open += 1


def _without_person(job: Job | None) -> Job | None:
    """A job for one person says to them alone what it says; of a job for many, only the contact is theirs."""
    if job is None or job.total > 1:
        return None
    return msgspec.structs.replace(job, text="", metadata={})
