"""Who presses buttons in a run, and the night watch that puts right what would hold up messages for ever, so that every
run ends. Both write down when they began and when they were answered; `presses` draws what is pressed."""

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from paceline.dispatcher.operators import Operator
from paceline.dispatcher.schemas import PacerRequest
from paceline.dispatcher.watching import Watching
from paceline.domain.errors import RequestError
from paceline.domain.sessions import OPERATOR
from paceline.policy.proxy_health import CHECKER
from paceline.store import keys
from paceline.store.store import Store
from paceline.store.wishes import Wish
from paceline.testing.outside import Pressed
from paceline.testing.people import People, cancel_job, proxy_url
from paceline.testing.plans import MINUTE_MS, Deed, PhonePlan
from paceline.testing.steps import Pause, Process

if TYPE_CHECKING:
    from paceline.testing.world import World

Work = Callable[[], Awaitable[bool]]
_AT = "@"
"""Before a session's id where a press is about that session alone, and not about its number."""


class Operators(People):
    """Who presses buttons, and the night watch."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._deeds = sorted(world.scenario.deeds, key=lambda deed: deed.at_ms)
        self._deeds_done = 0
        self._since: dict[tuple[str, str], int] = {}
        """What the night watch saw standing, and since when."""
        self._words = 0

    async def press_all(self, process: Process) -> None:
        for deed in self._deeds[self._deeds_done :]:
            await Pause(deed.at_ms)
            await self._do(process, deed)
            self._deeds_done += 1

    async def _do(self, process: Process, deed: Deed) -> None:
        if deed.kind in ("pause_job", "resume_job", "cancel_message"):
            for job_id in self.world.ids_of(self.scenario.jobs[deed.which]):
                which = f"{job_id}:{deed.value}" if deed.kind == "cancel_message" else job_id
                await self._press(process, deed.kind, which)
        elif deed.kind == "hear":
            self._hear(self.scenario.phones[deed.which], deed.value, "hello")
        elif deed.kind == "stop_word":
            self._hear(self.scenario.phones[deed.which], *deed.value)
        elif deed.kind in ("pause", "resume", "stop", "start", "guard"):
            await self._press(process, deed.kind, "", deed.value)
        elif deed.kind == "clock":
            self._set_clock(deed.value)
        elif deed.kind == "hang":
            self._hang(self.scenario.phones[deed.which].session, deed.value)
        elif deed.kind in ("proxy_bad", "proxy_ok"):
            await self._press(process, deed.kind, "", deed.which)
        elif deed.kind in ("pause_session", "resume_session", "restart_session"):
            await self._press(process, deed.kind, _AT + self.scenario.phones[deed.which].session)
        else:
            await self._press(process, deed.kind, self.scenario.phones[deed.which].session, deed.value)

    def _set_clock(self, by_ms: int) -> None:
        """Forward for everybody; back for the services, some of which are started anew for it."""
        if by_ms > 0:
            self.sim.jump(by_ms)
            return
        self.sim.set_back(-by_ms)
        for process in self.world.services:
            if self.sim.rng.random() < 0.5:
                self.sim.kill(process)

    def _hear(self, plan: PhonePlan, who: str, text: str) -> None:
        """Somebody writes to a number, unasked."""
        self._words += 1
        self.world.workers.hear(plan.session, who, text, f"3AFFFF{self._words:014X}")

    async def _press(self, process: Process, kind: str, which: str, value: Any = None) -> Pressed:
        about = self.world.outside.phone_of.get(which, which)
        deed = self.outside.press(kind, about, self.sim.now_ms)
        deed.ok = await self.insist(process, self._work(kind, which, value))
        deed.ended = self.sim.now_ms
        return deed

    def _work(self, kind: str, which: str, value: Any) -> Work:
        works: dict[str, Work] = {
            "pause": lambda: self._pause(True),
            "resume": lambda: self._pause(False),
            "stop": lambda: self._stop(True),
            "start": lambda: self._stop(False),
            "guard": lambda: self._store.operators.toggle_guard(
                value, setting=True, by="operator", now_ms=self._now_ms
            ),
            "pause_session": lambda: self._wish(which, "pause"),
            "resume_session": lambda: self._wish(which, "resume"),
            "restart_session": lambda: self._wish(which, "restart"),
            "proxy_bad": lambda: self._mark(value, "BAD"),
            "proxy_ok": lambda: self._mark(value, "OK"),
            "pause_job": lambda: self._job(self._jobs.queues.pause_job, which),
            "resume_job": lambda: self._job(self._jobs.queues.resume_job, which),
            "cancel_message": lambda: self._cancel_message(which),
        }
        return works.get(kind) or (lambda: self._decide(kind, which, value))

    @property
    def _store(self) -> Store:
        return self.world.dispatcher_store

    @property
    def _now_ms(self) -> int:
        """By the clock of the dispatcher they ask."""
        return self.sim.time_of(self.world.dispatcher)

    @property
    def _jobs(self) -> Store:
        return self.world.gateway_store

    async def _pause(self, paused: bool) -> bool:
        await self._store.operators.pause(paused, by="operator", now_ms=self._now_ms)
        if not paused:
            await self._store.operators.look_at_all(now_ms=self._now_ms)
        return True

    async def _stop(self, stopped: bool) -> bool:
        await self._store.operators.stop(stopped, by="operator", now_ms=self._now_ms)
        if not stopped:
            await self._store.operators.look_at_all(now_ms=self._now_ms)
        return True

    async def _job(self, verb: Callable[..., Awaitable[Any]], job_id: str) -> bool:
        return bool((await verb(job_id, now_ms=self.sim.time_of(self.world.gateway))).code == "OK")

    async def _wish(self, which: str, wish: Wish) -> bool:
        session, now_ms = which.removeprefix(_AT), self._now_ms
        answer = await self._store.fleet.wish(session, wish, reason=OPERATOR, by="operator", now_ms=now_ms)
        return answer.code == "OK"

    async def _mark(self, number: int, state: Literal["OK", "BAD"]) -> bool:
        """As the checks of proxies do, after some that failed or succeeded."""
        rows, _ = await self._store.inventory.proxies(0, 100)
        found = [row.proxy_id for row in rows if row.url == proxy_url(number)]
        for proxy in found:
            await self._store.fleet.mark_proxy(
                proxy, state, reason="no answer in time", by=CHECKER, now_ms=self._now_ms
            )
        return bool(found)

    def _hang(self, session: str, ms: int) -> None:
        """Its worker stands still, and does not end."""
        runner = self.world.runner
        for life in runner.lives if runner else ():
            if life.spec.session_id == session and life.ended_ms is None:
                self.sim.freeze(life.process, ms)
                self.outside.hung.append((life, self.sim.now_ms - self.sim.jumped_ms))

    async def _cancel_message(self, task: str) -> bool:
        """In the queue where it lies; asking for it is free, so the World asks."""
        view = (await self._jobs.jobs.message(task)) if task.rpartition(":")[2] != "None" else None
        phone = (view.phone or view.job.phone) if view else None
        answer = await self._jobs.queues.cancel_task(
            task, phone or self.scenario.phones[0].phone, now_ms=self.sim.time_of(self.world.gateway)
        )
        return answer.code == "OK" or (answer.code == "ENDED" and answer.state == "X")

    async def _decide(self, kind: str, session: str, value: Any) -> bool:
        store, rules, now_ms = self._store, self.world.rules, self._now_ms
        operator = Operator(store, rules, Watching(store, rules, Random(0)))
        try:
            match kind:
                case "rpm":
                    await operator.set_rpm(session, value, by="operator", now_ms=now_ms)
                case "pacer":
                    await operator.set_pacer(session, PacerRequest(**value), by="operator", now_ms=now_ms)
                case "cooldown":
                    await operator.clear_cooldown(session, by="operator", now_ms=now_ms)
                case "requeue":
                    await operator.requeue(session, by="operator", now_ms=now_ms)
                case "cancel_queue":
                    await operator.cancel_queue(session, by="operator", now_ms=now_ms)
        except RequestError:
            return False
        return True

    # The night watch

    async def watch(self, process: Process) -> None:
        while True:
            found = self._standing()
            self._since = {what: self._since.get(what, self.sim.now_ms) for what in found}
            for what, since in list(self._since.items()):
                if self.sim.now_ms - since >= self.scenario.patience_ms:
                    await self._put_right(process, *what)
                    del self._since[what]
            age = self.sim.now_ms - self.scenario.start_ms
            await Pause(self.sim.now_ms + (2 if age < 120 * MINUTE_MS else 30) * MINUTE_MS)

    def _standing(self) -> list[tuple[str, str]]:
        """What holds up messages, as anybody could read it in the API."""
        numbers, jobs = self.scenario.numbers, list(self.world.jobs)
        fleet, *rest = self.world.redis.read(
            ("HMGET", keys.fleet(), "paused", "stopped"),
            *[("HMGET", keys.phone(plan.phone), "quarantined", "cooldownUntil") for plan in numbers],
            *[("HGET", keys.job_run(job_id), "state") for job_id in jobs],
            *[("HGET", keys.session(plan.session), "paused") for plan in self.scenario.phones],
        )
        paused = rest[len(numbers) + len(jobs) :]
        found = [(name, "") for name, value in zip(("resume", "start"), fleet, strict=True) if value == "1"]
        known = list(zip(numbers, rest, strict=False))
        banned = [plan.session for plan, (quarantined, _) in known if quarantined == "1"]
        found += [("banned", session) for session in banned]
        if self.scenario.restores:
            found += [("cooldown", plan.session) for plan, (_, until) in known if int(until or 0) > self._now_ms]
        if len(banned) == len(numbers) and not self.scenario.restores:
            found += [("all_banned", "")]
        failed = self._failed()
        found += [("restart_session", _AT + session) for session in failed]
        held = [plan.session for plan, is_paused in zip(self.scenario.phones, paused, strict=True) if is_paused == "1"]
        found += [("resume_session", _AT + session) for session in held]
        states = zip(jobs, rest[len(numbers) : len(numbers) + len(jobs)], strict=True)
        return found + [("resume_job", job_id) for job_id, state in states if state == "PAUSED"]

    def _failed(self) -> list[str]:
        """Sessions that the platform has given up, and whose number is not banned."""
        if self.world.runner is None:
            return []
        phones = self.scenario.phones
        rows = self.world.redis.read(
            *[("HGET", keys.session(plan.session), "connection") for plan in phones],
            *[("HGET", keys.phone(plan.phone), "quarantined") for plan in phones],
        )
        states = zip(phones, rows, rows[len(phones) :], strict=False)
        return [plan.session for plan, state, banned in states if state == "FAILED" and banned != "1"]

    async def _put_right(self, process: Process, kind: str, which: str) -> None:
        if kind == "all_banned":
            for job_id in list(self.world.jobs):
                await self.insist(process, partial(cancel_job, self.world, self._jobs, job_id))
        elif kind != "banned":
            await self._press(process, kind, which)
        elif self.scenario.restores:
            await self._restore(process, which)
        else:
            await self._press(process, "cancel_queue", which)

    async def _restore(self, process: Process, session: str) -> None:
        """The platform lifts the ban; the workers are started anew, and then somebody says so."""
        phone = self.outside.phone_of[session]
        self.world.workers.lift_bans(phone)
        if self.world.runner is not None:
            for plan in self.scenario.phones:
                if plan.phone == phone:
                    await self._press(process, "restart_session", _AT + plan.session)
        for _ in range(20):
            await Pause(self.sim.now_ms + 30_000)
            if (await self._press(process, "requeue", session)).ok:
                return
