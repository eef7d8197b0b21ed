"""A runner in memory: workers are rows that a test lets die, and the engine can be away."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from paceline.orchestrator.runners.base import RunnerAway, Seen, StartRefused, Usage, WorkerSpec


@dataclass
class FakeRunner:
    workers: list[Seen] = field(default_factory=list)
    started: list[WorkerSpec] = field(default_factory=list)
    is_away: bool = False
    refusal: str = ""
    drivers: tuple[str, ...] = ("simulated", "other")

    def runs(self, driver: str) -> bool:
        return driver in self.drivers

    async def observe(self) -> list[Seen]:
        self._answer()
        return list(self.workers)

    async def start(self, spec: WorkerSpec) -> None:
        self._answer()
        if self.refusal:
            raise StartRefused(self.refusal)
        mine = [one for one in self.workers if one.session_id == spec.session_id]
        if any(one.instance == spec.instance and one.state == "running" for one in mine):
            return
        self.started.append(spec)
        handle = f"{spec.session_id}/{len(self.started)}"
        self.workers = [one for one in self.workers if one not in mine]
        self.workers.append(Seen(spec.session_id, spec.instance, spec.generation, "running", handle))

    async def stop(self, handle: str, grace_ms: int) -> None:
        self._answer()
        self._change(handle, state="exited", exit_code=0)

    async def remove(self, handle: str) -> None:
        self._answer()
        self.workers = [one for one in self.workers if one.handle != handle or one.state == "running"]

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        self._answer()
        asked = set(handles)
        return {one.session_id: Usage(1, 1.0) for one in self.workers if one.handle in asked and one.state == "running"}

    async def logs(self, session_id: str, lines: int) -> list[str]:
        self._answer()
        return ["said"] * min(lines, 3)

    async def close(self) -> None:
        return

    def die(self, session: str, exit_code: int = 1) -> None:
        for one in self.workers:
            if one.session_id == session and one.state == "running":
                self._change(one.handle, state="exited", exit_code=exit_code)

    def running(self) -> list[tuple[str, str, int]]:
        return [(one.session_id, one.instance, one.generation) for one in self.workers if one.state == "running"]

    def _change(self, handle: str, **fields: object) -> None:
        self.workers = [msgspec.structs.replace(one, **fields) if one.handle == handle else one for one in self.workers]

    def _answer(self) -> None:
        if self.is_away:
            raise RunnerAway("no engine here")
