"""The scheduler of the World: runs coroutines by hand, one step at a time, in virtual time, from one seed.

A coroutine stops at three kinds of requests: `Pause` (sleep, or wait to be woken), `Do` (one call to Redis) and
`Point` (a place where something may go wrong). Between any two of them the process may crash, freeze, or lose the
reply of what it just did.
"""

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import replace
from heapq import heappop, heappush
from inspect import CORO_CREATED, getcoroutinestate
from random import Random
from typing import Any
from zlib import crc32

from paceline.domain.errors import Unavailable
from paceline.testing.steps import Do, Faults, Killed, Pause, Point, Process, ProcessDied, Request, Thread

NEVER_MS = 2**62


class Sim:
    def __init__(self, seed: int, start_ms: int, faults: Faults) -> None:
        self.rng = Random(seed)
        self.now_ms = start_ms
        self.faults = faults
        self.processes: list[Process] = []
        self.steps = 0
        self.injected = 0
        self.trace = 0
        """Who ran when, boiled down to a number: two runs with the same one went the same way, step by step."""
        self._current: Thread | None = None
        self._ready: list[Thread] = []
        self._alarms: list[tuple[int, int, Thread | Process, int]] = []
        """A heap of (when, how many were set before, who sleeps or is to boot, which of its sleeps)."""
        self._alarms_set = 0
        self.jumped_ms = 0
        """By how much the clock was set forward in all."""
        self.behind_ms = 0
        """By how much the clock that the services follow was set back."""
        self._waiting: dict[str, dict[Thread, None]] = {}
        """Who sleeps under which key, in the order in which they lay down: a set would make two runs differ."""
        self._rung: Counter[str] = Counter()

    # What coroutines use

    def notify(self, key: str) -> None:
        self._rung[key] += 1
        for thread in list(self._waiting.get(key, ())):
            self._wake(thread)

    def rung(self, key: str) -> int:
        """How often that was notified. Who has more than one step between a look and a pause asks before the look."""
        return self._rung[key]

    @property
    def current_process(self) -> Process | None:
        return self._current.process if self._current else None

    def failpoint(self, name: str, process: Process) -> None:
        """A named place in synchronous code where `process` may die."""
        if self.chance(self.faults.crash * 3):
            self._fail(process)
            if self._current is not None and self._current.process is not process:
                raise ProcessDied(f"{process.name} died at {name}")
            raise Killed(process)

    def start(self, process: Process, coroutine: Coroutine[Request, Any, Any]) -> None:
        """Something more that a running process does; one that is down does nothing."""
        if not process.up:
            coroutine.close()
            return
        thread = Thread(process, coroutine)
        process.threads.append(thread)
        self._ready.append(thread)

    def jump(self, ms: int) -> None:
        """The clock is set forward. Who sleeps, sleeps as long as it would have: sleeping does not ask the clock."""
        self.now_ms += ms
        self.faults = replace(self.faults, until_ms=self.faults.until_ms + ms)
        self._alarms = [(at_ms + ms, *rest) for at_ms, *rest in self._alarms]  # type: ignore[misc]
        for process in self.processes:
            process.boot_at_ms += ms
            process.frozen_until_ms += ms
            process.seen_ms += ms if process.seen_ms else 0
        self.jumped_ms += ms

    def set_back(self, ms: int) -> None:
        """The services' clock alone: what happens on the wire and in workers keeps its time, and so do the judges."""
        for process in self.processes:
            process.seen_ms = self.time_of(process) if process.up else 0
        self.behind_ms += ms

    def time_of(self, process: Process) -> int:
        """What a service takes for the time. One that ran when its clock was set back stands still until the clock has
        caught up; one that is started after it knows no better."""
        return max(process.seen_ms, self.now_ms - self.behind_ms)

    def stands_still(self, process: Process) -> bool:
        return process.seen_ms > self.now_ms - self.behind_ms

    def freeze(self, process: Process, ms: int) -> None:
        process.frozen_until_ms = max(process.frozen_until_ms, self.now_ms + ms)

    def end(self, process: Process) -> None:
        """For good."""
        if process.up:
            self._fail(process)
        elif process.on_death is not None:
            process.on_death()
        process.boot_at_ms = NEVER_MS

    def kill(self, process: Process) -> None:
        """Somebody outside restarts it."""
        if process.up:
            self._fail(process)

    # What the World uses

    def add(self, process: Process) -> Process:
        self.processes.append(process)
        self._set_alarm(process.boot_at_ms, process)
        return process

    def run(self, until: Callable[[], bool], *, deadline_ms: int, max_steps: int) -> bool:
        """Runs until the condition holds; False if the deadline or the step limit came first."""
        ready, jumped_ms = self._ready, self.jumped_ms
        while self.now_ms < deadline_ms + self.jumped_ms - jumped_ms and self.steps < max_steps:
            alarms = self._alarms
            while alarms and alarms[0][0] <= self.now_ms:
                self._ring(*heappop(alarms)[2:])
            self._collect()
            if ready:
                self._step(self._choose())
            elif until():
                return True
            else:
                next_ms = alarms[0][0] if alarms else deadline_ms
                self.now_ms = max(self.now_ms + 1, min(next_ms, deadline_ms))
        return until()

    def close(self) -> None:
        """The run is over: what was to begin next never does."""
        for process in self.processes:
            for thread in process.threads:
                if getcoroutinestate(thread.coroutine) == CORO_CREATED:
                    thread.coroutine.close()

    def _collect(self) -> None:
        """Answers that come later. Here none does."""

    def _choose(self) -> Thread:
        """Any of those that are ready, each as likely."""
        ready = self._ready
        index = int(self.rng.random() * len(ready))
        thread, ready[index] = ready[index], ready[-1]
        ready.pop()
        return thread

    def _step(self, thread: Thread) -> None:
        if not thread.alive:
            return
        if thread.process.frozen_until_ms > self.now_ms:
            self._set_alarm(thread.process.frozen_until_ms, thread)
            return
        self.steps += 1
        # Nothing takes no time at all; two steps rarely fall into the same millisecond for long.
        self.now_ms += self.rng.random() < 0.3
        self.trace = crc32(b"%d %a" % (self.now_ms, thread.process.name), self.trace)
        request, thread.request = thread.request, None
        self._current = thread
        try:
            if request is not None and not isinstance(request, Pause):
                self._answer(thread, request)
            if thread.alive:
                self._settle_down(thread, self._resume(thread))
        except Killed as killed:
            self._fail(killed.process)
        except StopIteration:
            thread.alive = False
            # Its process may have died in this very step.
            if thread in thread.process.threads:
                thread.process.threads.remove(thread)
        finally:
            self._current = None

    def _settle_down(self, thread: Thread, request: Request) -> None:
        thread.request = request
        if not isinstance(request, Pause) or request.until_ms <= self.now_ms:
            self._ready.append(thread)
            return
        self._set_alarm(request.until_ms, thread)
        if request.key:
            self._waiting.setdefault(request.key, {})[thread] = None

    def _set_alarm(self, at_ms: int, who: Thread | Process) -> None:
        self._alarms_set += 1
        heappush(self._alarms, (at_ms, self._alarms_set, who, who.sleep if isinstance(who, Thread) else 0))

    def _ring(self, who: Thread | Process, sleep: int) -> None:
        if isinstance(who, Thread):
            if who.sleep == sleep:
                self._wake(who)
        elif not who.up and who.boot_at_ms <= self.now_ms:
            who.up, who.seen_ms = True, 0
            who.threads = [Thread(who, coroutine) for coroutine in who.boot()]
            self._ready += who.threads

    def _wake(self, thread: Thread) -> None:
        thread.sleep += 1
        if isinstance(thread.request, Pause) and thread.request.key:
            waiting = self._waiting.get(thread.request.key)
            if waiting is not None:
                waiting.pop(thread, None)
                if not waiting:
                    # Keys of workers come and go.
                    del self._waiting[thread.request.key]
        self._ready.append(thread)

    def _resume(self, thread: Thread) -> Request:
        if thread.error is not None:
            error, thread.error = thread.error, None
            return thread.coroutine.throw(error)
        value, thread.value = thread.value, None
        return thread.coroutine.send(value)

    def _answer(self, thread: Thread, request: Request) -> None:
        """Carries the request out, or lets something go wrong with it."""
        if not isinstance(request, Do | Point):
            raise TypeError(f"nobody can wait for {request!r}")
        if self._goes_wrong(thread, request.process, refusable=isinstance(request, Do)):
            return
        thread.value = request.call() if isinstance(request, Do) else None
        self._goes_wrong_after(thread, request.process, losable=isinstance(request, Do))

    def _goes_wrong(self, thread: Thread, owner: Process, *, refusable: bool) -> bool:
        """Before anything was done."""
        if not owner.up:
            thread.error = ProcessDied(f"{owner.name} is down")
            return True
        if self.chance(self.faults.freeze):
            self.freeze(owner, self.rng.randint(*self.faults.freeze_ms))
        if refusable and self.chance(self.faults.refuse):
            thread.error = Unavailable("refused by the simulation")
            return True
        if self.chance(self.faults.crash / 2):
            self._die(thread, owner)
            return True
        return False

    def _goes_wrong_after(self, thread: Thread, owner: Process, *, losable: bool) -> None:
        if self.chance(self.faults.crash / 2):
            self._die(thread, owner)
        elif losable and self.chance(self.faults.lose_reply):
            thread.value, thread.error = None, Unavailable("reply lost by the simulation")

    def _die(self, thread: Thread, owner: Process) -> None:
        self._fail(owner)
        if thread.process is owner:
            thread.coroutine.close()
        else:
            thread.error = ProcessDied(f"{owner.name} died")

    def _fail(self, process: Process) -> None:
        process.crashes += 1
        process.up = False
        for thread in process.threads:
            thread.alive = False
            if thread is not self._current:
                thread.coroutine.close()
        process.threads.clear()
        if process.on_death is not None:
            process.boot_at_ms = NEVER_MS
            process.on_death()
            return
        process.boot_at_ms = self.now_ms + self.rng.randint(*self.faults.restart_ms)
        self._set_alarm(process.boot_at_ms, process)

    def chance(self, probability: float) -> bool:
        """Whether a fault of that likelihood strikes now."""
        if not probability or self.now_ms >= self.faults.until_ms or self.rng.random() >= probability:
            return False
        self.injected += 1
        return True


class VirtualClock:
    """The clock of a service, or of everything else in the World, on a host that may be ahead or behind."""

    def __init__(self, sim: Sim, process: Process | None = None, *, ahead_ms: int = 0) -> None:
        self._sim = sim
        self._process = process
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        now_ms = self._sim.now_ms if self._process is None else self._sim.time_of(self._process)
        return now_ms + self._ahead_ms

    async def sleep_ms(self, ms: int) -> None:
        await Pause(self._sim.now_ms + max(0, ms))
