"""One worker process for each session that should run here: the registry says which, this makes it so.

The embedded form of a runner: it looks at the orchestrator's list once a second and starts or stops processes. The
decision what should run is the orchestrator's.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import structlog

from paceline.launcher.children import Child
from paceline.launcher.client import ApiError, PlatformClient
from paceline.launcher.data import DataDirectory
from paceline.launcher.preflight import DRIVERS
from paceline.launcher.services import Processes

log = structlog.stdlib.get_logger(__name__)

# A session's id becomes the name of files of ours.
_FILE_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class WorkerKeeper:
    """Keeps the running workers equal to the sessions that should run."""

    POLL_SECONDS = 1.0

    def __init__(
        self,
        client: PlatformClient,
        processes: Processes,
        data: DataDirectory,
        on_death: Callable[[str], None] | None = None,
    ) -> None:
        self._client = client
        self._processes = processes
        self._data = data
        self._on_death = on_death
        self._workers: dict[str, Child] = {}
        self.sessions: list[dict[str, Any]] = []

    async def run(self) -> None:
        while True:
            await self.converge()
            await asyncio.sleep(self.POLL_SECONDS)

    async def converge(self) -> None:
        """One look at the registry. While the orchestrator is away, what runs stays as it is."""
        try:
            self.sessions = await self._client.sessions()
        except ApiError as error:
            log.debug("orchestrator not reachable; workers stay as they are", error=str(error))
            return
        wanted = {session["sessionId"]: session for session in self.sessions if _runs_here(session)}
        unwanted = [self._workers.pop(session_id) for session_id in self._workers.keys() - wanted.keys()]
        # Waited for: a session that is wanted again in the next second must not meet its former worker.
        await asyncio.gather(*(child.stop() for child in unwanted))
        for session_id in wanted.keys() - self._workers.keys():
            self._start(wanted[session_id])

    async def stop(self) -> None:
        await asyncio.gather(*(child.stop() for child in self._workers.values()))
        self._workers.clear()

    def children(self, session_ids: set[str]) -> list[Child]:
        return [child for session_id, child in self._workers.items() if session_id in session_ids]

    def _start(self, session: dict[str, Any]) -> None:
        spec = self._processes.worker(session["sessionId"], str(session["phone"]), session["driver"])
        child = Child(spec, self._data, self._on_death)
        self._workers[session["sessionId"]] = child
        child.start()


def _runs_here(session: dict[str, Any]) -> bool:
    if session.get("desired") != "running" or session.get("driver") not in DRIVERS:
        return False
    return _FILE_SAFE.fullmatch(session["sessionId"]) is not None
