"""Jobs take turns; in each, the next few tasks get their numbers and go into those numbers' queues.

Routing is late: a phone's queue is filled to `min(ROUTE_AHEAD, budget left today)` and the rest of the job stays at
its cursor, so a ban, a cap or a new number changes nothing that was routed a week ago.
"""

import msgspec

from paceline.dispatcher.fleet import FleetWatch
from paceline.dispatcher.measures import Measures
from paceline.domain.jobs import Contact, Job, Strategy, decode_job
from paceline.domain.reasons import Reason
from paceline.domain.states import Byte, JobState
from paceline.kits.failpoint import failpoint
from paceline.policy.routing import AT_REST_MS, RESTRICTED_ASKED, NotNow, Sticky
from paceline.store.jobs import TaskRoute, Turn
from paceline.store.store import Store

TURN_TASKS = 100
"""Tasks a job may route before the next job's turn."""
TURN_LEASE_MS = 5_000
NO_SESSIONS_MS = 10_000


class Router:
    def __init__(
        self, store: Store, watch: FleetWatch, *, strategy: Strategy = "sticky", measures: Measures | None = None
    ) -> None:
        """`watch` is shared by all routers of a process."""
        self._store = store
        self._watch = watch
        self._strategy: Strategy = strategy
        self._measures = measures or Measures()
        self.turns = 0
        self.routed = 0
        self.failed = 0

    async def step(self, now_ms: int) -> int | None:
        """One job's turn. Returns when the next may be due; None when nothing waits."""
        turn = await self._store.jobs.next_turn(now_ms=now_ms, lease_ms=TURN_LEASE_MS)
        if turn.code == "NONE":
            return turn.next_at
        self.turns += 1
        if turn.code == "OK":
            await self._take_turn(turn, now_ms)
        return now_ms

    async def _take_turn(self, turn: Turn, now_ms: int) -> None:
        if turn.state == JobState.PAUSED:
            await self._only_expire(turn, now_ms)
            return
        try:
            job = decode_job(turn.json)
            contacts = await self._store.jobs.contacts(job.job_id, turn.cursor, TURN_TASKS)
        except msgspec.MsgspecError as error:
            self.failed += 1
            await self._store.jobs.fail(turn.job, f"malformed job: {error}", now_ms=now_ms)
            return
        if turn.cursor >= job.total:
            # All of it is routed; it only stood in the round once too often.
            await self._store.jobs.route(job, turn.cursor, [], now_ms=now_ms)
            return
        if not contacts:
            self.failed += 1
            await self._store.jobs.fail(job.job_id, "the contacts of the job are missing", now_ms=now_ms)
            return
        tasks, stop = await self._decide(job, turn.cursor, contacts, now_ms)
        if not tasks and stop is not None and stop[0] != Reason.SCHEDULED and not self._watch.is_fresh(now_ms):
            # Before a job waits, the newest word about the fleet is asked for: a number may have come a moment ago.
            tasks, stop = await self._decide(job, turn.cursor, contacts, now_ms, fresh=True)
        if tasks:
            answer = await self._store.jobs.route(job, turn.cursor, tasks, now_ms=now_ms)
            self.routed += max(0, answer.cursor - turn.cursor)
            self._measures.routed(job, turn.cursor, answer.cursor)
            failpoint("chunk-routed")
        elif stop is not None:
            reason, next_at = stop
            await self._store.jobs.yield_turn(job.job_id, turn.cursor, reason=reason, next_at_ms=next_at, now_ms=now_ms)

    async def _only_expire(self, turn: Turn, now_ms: int) -> None:
        """A paused job goes nowhere, but the validity of its messages does not wait for it."""
        job, cursor = decode_job(turn.json), turn.cursor
        end = cursor
        while end < min(job.total, cursor + TURN_TASKS) and job.expires_at(end) <= now_ms:
            end += 1
        if end > cursor:
            ended = [TaskRoute(index, ends=Byte.EXPIRED) for index in range(cursor, end)]
            await self._store.jobs.route(job, cursor, ended, now_ms=now_ms)
        else:
            next_at = job.expires_at(cursor)
            await self._store.jobs.yield_turn(
                job.job_id, cursor, reason=Reason.JOB_PAUSED, next_at_ms=next_at, now_ms=now_ms
            )

    async def _decide(
        self, job: Job, cursor: int, contacts: list[Contact], now_ms: int, *, fresh: bool = False
    ) -> tuple[list[TaskRoute], tuple[Reason, int] | None]:
        """What becomes of the next tasks, up to the first that has to wait, and what that one waits for."""
        people = [contact.to for contact in contacts]
        stickies = await self._store.jobs.stickies(people)
        suppressed = await self._store.guards.suppressed(people)
        fleet = await self._watch.look(
            job.priority, job.strategy or self._strategy, turn=cursor, now_ms=now_ms, fresh=fresh
        )
        knowing = await self._store.jobs.known_by(fleet.restricted[:RESTRICTED_ASKED], people)
        tasks: list[TaskRoute] = []
        for index, (contact, sticky, known) in enumerate(zip(contacts, stickies, knowing, strict=True), start=cursor):
            if job.scheduled_at(index) > now_ms:
                return tasks, (Reason.SCHEDULED, job.scheduled_at(index))
            if job.expires_at(index) <= now_ms:
                tasks.append(TaskRoute(index, ends=Byte.EXPIRED))
            elif contact.to in suppressed:
                tasks.append(TaskRoute(index, ends=Byte.SUPPRESSED))
            else:
                decision = fleet.route(sticky, named=job.phone, known=known, now_ms=now_ms)
                if isinstance(decision, NotNow):
                    pause_ms = {
                        Reason.WAITING_FOR_ROOM: fleet.room_in_ms(job.phone),
                        Reason.NO_SESSIONS_AVAILABLE: NO_SESSIONS_MS,
                    }.get(decision.reason, AT_REST_MS)
                    return tasks, (decision.reason, min(now_ms + pause_ms, job.expires_at(index)))
                tasks.append(_routed(job, index, contact, decision.phone, sticky))
                self._watch.note(fleet, decision.phone)
        return tasks, None


def _routed(job: Job, index: int, contact: Contact, phone: str, sticky: Sticky | None) -> TaskRoute:
    return TaskRoute(
        index,
        to=contact.to,
        tz=contact.timezone,
        expires_at=job.expires_at(index),
        phone=phone,
        seen=sticky.phone if sticky else None,
        seen_warm=sticky.warm_at_ms if sticky else 0,
    )
