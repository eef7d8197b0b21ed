"""The last look at workers when `up` stops. They are the orchestrator's, which ends them when it is asked to stop; one
that was killed could not."""

import asyncio
import signal
from itertools import chain

import structlog

from paceline.kits.clock import monotonic_ms
from paceline.kits.processes import PidFile, Process
from paceline.launcher.data import DataDirectory

log = structlog.stdlib.get_logger(__name__)

GRACE_MS = 10_000
_LOOK_SECONDS = 0.05


async def stop_workers(data: DataDirectory, grace_ms: int = GRACE_MS) -> None:
    """SIGTERM to all that are left, SIGKILL after `grace_ms`. Returns when they are gone."""
    paths = list(data.run.glob("worker-*.pid"))
    files = [PidFile.read(path) for path in chain(paths, data.sessions.glob("*/worker.lock"))]
    left = {file.process for file in files if file is not None and file.process.is_alive()}
    for number, within_ms in ((signal.SIGTERM, grace_ms), (signal.SIGKILL, grace_ms)):
        if left:
            log.warning("ending workers that were left", workers=len(left), signal=number.name)
        left = await _end(left, number, within_ms)
    for path in paths:
        path.unlink(missing_ok=True)


async def _end(processes: set[Process], number: signal.Signals, within_ms: int) -> set[Process]:
    """Those that are still there afterwards."""
    for process in processes:
        process.send(number)
        process.send(signal.SIGCONT)
    until = monotonic_ms() + within_ms
    while (left := {process for process in processes if process.is_alive()}) and monotonic_ms() < until:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    return left
