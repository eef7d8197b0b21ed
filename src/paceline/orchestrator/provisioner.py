"""Makes what runs equal to what is wanted: gathers both, asks `policy.reconcile`, carries out its answer.

Every tick and after every change. One orchestrator does it at a time, under a lease that only spares two of them the
quarrel; that no session ever has two workers rests on `begin_start`, which lets one of two begin, and on the engine,
which has one container or one volume of a name. A session whose worker takes its time to stop holds up nobody else:
each has an errand of its own, and is left out of the next looks while that lasts.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

import structlog

from paceline.domain.drivers import DRIVERS
from paceline.domain.errors import Unavailable
from paceline.kits.clock import monotonic_ms
from paceline.kits.errands import Work
from paceline.orchestrator.hands import STOPPED, Hands, Terms, wanted_of
from paceline.orchestrator.pauses import Pauses
from paceline.orchestrator.runners.base import Runner, RunnerAway, Seen
from paceline.policy import reconcile
from paceline.policy.reconcile import Action, Ended, Wait
from paceline.store.fleet import FleetStore
from paceline.store.workers import LOOK, NO_WORKER, WorkerRow

log = structlog.stdlib.get_logger(__name__)

LEASE = "provisioning"


class ErrandsPort(Protocol):
    @property
    def busy(self) -> frozenset[str]: ...

    async def run(self, name: str, work: Work) -> None: ...

    async def settled(self) -> None: ...


class Provisioner:
    def __init__(
        self,
        fleet: FleetStore,
        runner: Runner,
        terms: Terms,
        hands: Hands,
        *,
        holder: str,
        errands: ErrandsPort,
        now_ms: Callable[[], int],
        monotonic: Callable[[], int] = monotonic_ms,
        look_again: Callable[[], None] = lambda: None,
    ) -> None:
        """`look_again` asks for a step before the next tick."""
        self._fleet = fleet
        self._runner = runner
        self._terms = terms
        self._hands = hands
        self._holder = holder
        self._errands = errands
        self._now_ms = now_ms
        self._pauses = Pauses(monotonic)
        self._look_again = look_again
        self._is_away = False
        self._is_first = True
        self._is_done = False

    async def step(self, now_ms: int) -> int:
        """One look at everything. Returns when to look again."""
        next_ms = now_ms + self._terms.interval_ms
        if self._is_done or not await self._is_ours(now_ms):
            return next_ms
        # Before the look: what an errand did after it is not in what was seen.
        busy = self._errands.busy
        seen = await self._observed()
        if seen is None:
            return next_ms
        # After the look: a worker that is seen without a row must not be one that was registered meanwhile.
        rows, others = await self._unlike(seen)
        self._pauses.keep(rows)
        wanted = [
            self._pauses.without_those_over(wanted_of(row, self._runner.runs(row.driver))) for row in rows.values()
        ]
        todo: dict[str, list[Action]] = defaultdict(list)
        for action in reconcile.decide(wanted, others, rules=self._terms.rules, now_ms=now_ms):
            if isinstance(action, Wait):
                self._pauses.begin(action, now_ms=now_ms)
                next_ms = min(next_ms, action.until_ms)
            elif action.session_id not in busy:
                todo[action.session_id].append(action)
        self._greet(seen, todo)
        for session, actions in todo.items():
            await self._errands.run(session, self._errand(actions, rows.get(session)))
        return next_ms

    async def rest(self, *, stop_workers: bool) -> None:
        """We stop: nothing is begun any more. With `stop_workers` all end, to be begun at once the next time."""
        self._is_done = True
        if not await self._is_ours(self._now_ms()):
            return
        if stop_workers:
            await self._errands.settled()
            await self._end_all()
        # Whoever comes next need not wait for its end.
        await self._fleet.hold_lease(LEASE, self._holder, ttl_ms=0, now_ms=self._now_ms())

    async def _end_all(self) -> None:
        try:
            seen = await self._runner.observe()
        except RunnerAway as error:
            log.warning("the runner is away; its workers go on", reason=str(error))
            return
        for one in seen:
            await self._errands.run(one.handle, self._farewell(one))
        await self._errands.settled()

    async def _is_ours(self, now_ms: int) -> bool:
        ttl_ms = 3 * self._terms.interval_ms
        return await self._fleet.hold_lease(LEASE, self._holder, ttl_ms=ttl_ms, now_ms=now_ms)

    async def _observed(self) -> list[Seen] | None:
        try:
            seen = await self._runner.observe()
        except RunnerAway as error:
            if not self._is_away:
                log.error("the runner is away; all sessions stay as they are until it is back", reason=str(error))
            self._is_away = True
            return None
        if self._is_away:
            log.info("the runner is back", workers=len(seen))
        self._is_away = False
        return seen

    async def _unlike(self, seen: list[Seen]) -> tuple[dict[str, WorkerRow], list[Seen]]:
        """The rows of sessions whose worker is not as expected, and what is seen of those and of nobody's."""
        workers: dict[str, list[Seen]] = defaultdict(list)
        for one in seen:
            workers[one.session_id].append(one)
        ids = await self._fleet.ids()
        expected = await self._fleet.expected(
            ids,
            elsewhere=[driver for driver in DRIVERS if not self._runner.runs(driver)],
            per_proxy=self._terms.limits.per_proxy,
        )
        right = {
            id_ for id_, word in zip(ids, expected, strict=True) if word != LOOK and word == _word_of(workers[id_])
        }
        rows = await self._fleet.rows([id_ for id_ in ids if id_ not in right])
        return {row.session_id: row for row in rows}, [one for one in seen if one.session_id not in right]

    def _greet(self, seen: list[Seen], todo: dict[str, list[Action]]) -> None:
        if self._is_first:
            kept = sum(one.state == "running" and one.session_id not in todo for one in seen)
            log.info("provisioning", adopted=kept, to_do=len(todo))
        self._is_first = False

    def _errand(self, actions: list[Action], row: WorkerRow | None) -> Work:
        async def work() -> None:
            try:
                changed = [await self._hands.carry_out(action, row) for action in actions]
            except RunnerAway as error:
                log.warning("the runner went away", session_id=actions[0].session_id, reason=str(error))
                return
            except Unavailable as error:
                # Whatever was cut off here is found and gone on with by the next look.
                log.warning("the store went away", session_id=actions[0].session_id, reason=str(error))
                return
            if any(changed):
                self._look_again()

        return work

    def _farewell(self, one: Seen) -> Work:
        async def work() -> None:
            if one.state == "running":
                await self._runner.stop(one.handle, self._terms.grace_ms)
            await self._runner.remove(one.handle)
            # Written down, so that the next start need not wonder where it went.
            await self._hands.note_end(Ended(one.session_id, one.instance, 0, STOPPED, 0, 0))

        return work


def _word_of(workers: list[Seen]) -> str:
    """What runs of one session, in the words of `WorkerRows.expected`."""
    if not workers:
        return NO_WORKER
    [one, *others] = workers
    return f"{one.generation} {one.instance}" if one.state == "running" and not others else LOOK
