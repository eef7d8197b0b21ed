"""Somebody else starts the workers: nothing is seen, nothing is started, and a hello of any instance is welcome."""

from collections.abc import Iterable

from paceline.orchestrator.runners.base import Seen, StartRefused, Usage, WorkerSpec


class ExternalRunner:
    def runs(self, driver: str) -> bool:
        return False

    async def observe(self) -> list[Seen]:
        return []

    async def start(self, spec: WorkerSpec) -> None:
        raise StartRefused("RUNNER is external: workers are started by somebody else")

    async def stop(self, handle: str, grace_ms: int) -> None:
        return

    async def remove(self, handle: str) -> None:
        return

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        return {}

    async def logs(self, session_id: str, lines: int) -> list[str]:
        return []

    async def close(self) -> None:
        return
