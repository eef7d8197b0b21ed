"""A worker's hold on its volume: one worker at a time writes there, whatever started the second.

The lock is the kernel's, so it goes with the process however that ends. The file says who holds it, for the runner that
looks for workers it does not know (`orchestrator.runners.process`).
"""

import fcntl
import os
from pathlib import Path

from paceline.domain.errors import PacelineError
from paceline.kits.processes import PidFile, Process


class VolumeTaken(PacelineError):
    """Another worker has it."""


class VolumeForeign(PacelineError):
    """It holds the link and the journal of another number: a session of that name was removed, and made anew for this
    one. Its messages would go out from a number that nobody paces."""


class Volume:
    """Held until `close`."""

    def __init__(self, folder: Path, about: dict[str, str], *, phone: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "worker.lock"
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            holder = PidFile.read(path)
            raise VolumeTaken(f"held by process {holder.process.pid if holder else 'unknown'}") from error
        try:
            _mark(folder / "phone", phone)
        except (OSError, VolumeForeign):
            os.close(self._descriptor)
            raise
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, PidFile(Process.of(os.getpid()), about).text().encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)


def _mark(path: Path, phone: str) -> None:
    """The first worker that is told its number writes down whose volume it is."""
    known = path.read_text().strip() if path.exists() else ""
    if known and phone and known != phone:
        raise VolumeForeign("it belongs to another number; move it away, or take another session id")
    if phone and not known:
        path.write_text(f"{phone}\n")
