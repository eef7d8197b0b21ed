"""Workers as processes of this machine. They are detached: an orchestrator that dies leaves them running, and the next
one finds them.

What is known of a worker lies in two files: `run/worker-<session>.pid`, which we write when we start it, and
`sessions/<session>/worker.lock`, which the worker itself holds and writes when it has its volume. The second covers the
moment between a start and its pid file, and shows a worker that somebody else started.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import structlog

from paceline.kits.clock import monotonic_ms
from paceline.kits.failpoint import failpoint
from paceline.kits.log_files import rotate
from paceline.kits.processes import PidFile, Process
from paceline.orchestrator.runners.base import Seen, StartRefused, Usage, WorkerSpec, generation_of
from paceline.orchestrator.runners.programs import Program

log = structlog.stdlib.get_logger(__name__)

PREFIX = "worker-"
PASSED_ON = (
    "PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PACELINE_FAILPOINTS",
)  # fmt: skip
"""A list of what may, not of what must not: the keys of the platform are in our environment."""

_LOOK_SECONDS = 0.05
_GRACE_MS = 10_000
_KILL_MS = 10_000
_TAIL_BYTES = 1_000_000


class ProcessRunner:
    def __init__(self, data: Path, programs: Mapping[str, Program]) -> None:
        self._data = data.expanduser().absolute()
        self._run = self._data / "run"
        self._log = self._data / "log"
        self._sessions = self._data / "sessions"
        self._programs = programs
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def runs(self, driver: str) -> bool:
        return driver in self._programs

    async def observe(self) -> list[Seen]:
        return self._seen_of("*")

    async def start(self, spec: WorkerSpec) -> None:
        for one in self._seen_of(spec.session_id):
            if one.state == "running":
                if one.instance == spec.instance:
                    return
                await self.stop(one.handle, _GRACE_MS)
        if reason := self._programs[spec.driver].missing():
            raise StartRefused(reason)
        try:
            for folder in (self._run, self._log, self._sessions / spec.session_id):
                folder.mkdir(parents=True, exist_ok=True)
            process = self._spawn(spec)
            self._children[process.pid] = process
            failpoint("worker-spawned")
            about = {"instance": spec.instance, "generation": str(spec.generation)}
            PidFile(Process.of(process.pid), about).write(self._pid_file(spec.session_id))
        except OSError as error:
            raise StartRefused(f"the process cannot be started: {error}") from error

    async def stop(self, handle: str, grace_ms: int) -> None:
        _, process = _parsed(handle)
        process.send(signal.SIGTERM)
        # A stopped process (SIGSTOP) would look at its SIGTERM only when continued.
        process.send(signal.SIGCONT)
        if await self._is_gone(process, grace_ms):
            return
        log.warning("a worker did not stop in time; killing it", handle=handle)
        process.send(signal.SIGKILL)
        await self._is_gone(process, _KILL_MS)

    async def remove(self, handle: str) -> None:
        session, process = _parsed(handle)
        if self._is_alive(process):
            return
        file = PidFile.read(self._pid_file(session))
        if file is None or file.process == process:
            self._pid_file(session).unlink(missing_ok=True)
        self._children.pop(process.pid, None)

    async def usage(self, handles: Iterable[str]) -> dict[str, Usage]:
        """What they take of the disk is bounded here too: this is where each is looked at now and then."""
        workers = [_parsed(handle) for handle in handles]
        for session, _ in workers:
            rotate(self._log_file(session))
        used = ((session, process.usage()) for session, process in workers)
        return {session: Usage(*found) for session, found in used if found is not None}

    async def logs(self, session_id: str, lines: int) -> list[str]:
        try:
            with self._log_file(session_id).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
                return file.read().decode(errors="replace").splitlines()[-lines:]
        except OSError:
            return []

    async def close(self) -> None:
        """The workers go on."""

    def _spawn(self, spec: WorkerSpec) -> "subprocess.Popen[bytes]":
        inherited = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        own = {"PACELINE_DATA": str(self._data), "PYTHONUNBUFFERED": "1"}
        program = self._programs[spec.driver]
        with self._log_file(spec.session_id).open("ab") as output:
            return subprocess.Popen(
                # The name is for whoever reads `ps`.
                [*program.command, spec.session_id],
                env=inherited | own | dict(program.env) | spec.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # A session of its own: what ends us, or the terminal we are in, does not end it.
                start_new_session=True,
            )

    def _seen_of(self, which: str) -> list[Seen]:
        """Of one session, or of all (`*`): whoever starts hundreds must not read the files of all for each."""
        found: dict[Process, Seen] = {}
        for session, file in self._lock_files(which):
            if self._is_alive(file.process):
                found[file.process] = self._seen(session, file)
        for session, file in self._pid_files(which):
            found[file.process] = self._seen(session, file)
        return list(found.values())

    def _pid_files(self, which: str) -> Iterator[tuple[str, PidFile]]:
        for path in self._run.glob(f"{PREFIX}{which}.pid"):
            if file := PidFile.read(path):
                yield path.stem.removeprefix(PREFIX), file

    def _lock_files(self, which: str) -> Iterator[tuple[str, PidFile]]:
        for path in self._sessions.glob(f"{which}/worker.lock"):
            if file := PidFile.read(path):
                yield path.parent.name, file

    def _seen(self, session: str, file: PidFile) -> Seen:
        process = file.process
        alive = self._is_alive(process)
        child = self._children.get(process.pid)
        return Seen(
            session,
            file.about.get("instance", ""),
            generation_of(file.about.get("generation", "")),
            "running" if alive else "exited",
            f"{session}/{process.pid}/{process.ticks}",
            exit_code=child.returncode if child is not None and not alive else None,
            started_at_ms=process.ticks,
        )

    def _is_alive(self, process: Process) -> bool:
        if process.is_alive():
            return True
        if child := self._children.get(process.pid):
            # It is asked how it ended, so that no zombie is left.
            child.poll()
        return False

    async def _is_gone(self, process: Process, within_ms: int) -> bool:
        until = monotonic_ms() + within_ms
        while self._is_alive(process):
            if monotonic_ms() >= until:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    def _pid_file(self, session: str) -> Path:
        return self._run / f"{PREFIX}{session}.pid"

    def _log_file(self, session: str) -> Path:
        return self._log / f"{PREFIX}{session}.log"


def _parsed(handle: str) -> tuple[str, Process]:
    session, pid, ticks = handle.rsplit("/", 2)
    return session, Process(int(pid), int(ticks))
