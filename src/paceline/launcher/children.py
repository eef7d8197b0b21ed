"""One supervised child process: started, watched, restarted when it dies, stopped for good when asked.

Its pid is in `run/<name>.pid` while it lives, its output in `log/<name>.log`. On Linux the kernel kills it if
the launcher dies without a chance to do so itself, so a `kill -9` of `up` leaves nothing behind that would
fight the next one.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from paceline.kits.clock import monotonic_ms
from paceline.kits.tasks import Backoff
from paceline.launcher.data import DataDirectory

log = structlog.stdlib.get_logger(__name__)

FIRST_PAUSE_MS = 200
MAX_PAUSE_MS = 5_000
NOTE_AGAIN_MS = 1_000

_PR_SET_PDEATHSIG = 1
# Loaded here, because between fork and exec nothing may be imported or allocated that is not there already.
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class ChildSpec:
    """What to run. `pause_ms_after` overrides the pause before a restart for exit codes that mean "not so
    fast"."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(repr=False)
    grace_ms: int = 5_000
    pause_ms_after: Mapping[int, int] = field(default_factory=dict)


class Child:
    """Keeps one process of `spec` running from `start` to `stop`."""

    def __init__(self, spec: ChildSpec, data: DataDirectory, on_death: Callable[[str], None] | None = None) -> None:
        self.spec = spec
        self.deaths = 0
        self._data = data
        self._on_death = on_death or (lambda message: None)
        self._stop = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process else None

    def start(self) -> None:
        self._keeper = asyncio.create_task(self._keep(), name=f"child {self.spec.name}")

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL after `grace_ms`. Returns when the process is gone."""
        self._stop.set()
        if self._keeper is not None:
            await self._keeper

    async def _keep(self) -> None:
        backoff = Backoff(first_ms=FIRST_PAUSE_MS, max_ms=MAX_PAUSE_MS)
        while not self._stop.is_set():
            started_ms = monotonic_ms()
            ending = await self._live_once()
            if self._stop.is_set():
                return
            self.deaths += 1
            pause_ms = backoff.after_life_of(monotonic_ms() - started_ms)
            if ending is not None:
                pause_ms = self.spec.pause_ms_after.get(ending, pause_ms)
            log.warning("child died", child=self.spec.name, exit_code=ending, restart_in_ms=pause_ms)
            self._on_death(f"{self.spec.name} {_describe(ending)}; starting it again")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause_ms / 1000)

    async def _live_once(self) -> int | None:
        """Run the process to its end, which is ours to bring about once `stop` was called. Its exit code, or
        None."""
        try:
            self._process = process = await self._spawn()
        except OSError as error:
            # On a full disk not even that can be written.
            with contextlib.suppress(OSError):
                self._data.log_file(self.spec.name).write_text(f"cannot start {self.spec.command[0]}: {error}\n")
            return None
        log.info("child started", child=self.spec.name, pid=process.pid)
        noting = asyncio.create_task(self._note_pid(process.pid), name=f"pid of {self.spec.name}")
        try:
            return await self._wait(process)
        finally:
            noting.cancel()
            # Gone before the next start: a pid that is no longer ours may by then be somebody else's.
            self._data.pid_file(self.spec.name).unlink(missing_ok=True)

    async def _note_pid(self, pid: int) -> None:
        """Until it is written. The child is watched meanwhile: a full disk must not leave it without its keeper."""
        pid_file = self._data.pid_file(self.spec.name)
        draft = pid_file.with_suffix(".new")
        while True:
            try:
                draft.write_text(f"{pid}\n")
                draft.replace(pid_file)
                return
            except OSError as error:
                log.warning("a pid file cannot be written", child=self.spec.name, pid=pid, reason=str(error))
            await asyncio.sleep(NOTE_AGAIN_MS / 1000)

    async def _spawn(self) -> asyncio.subprocess.Process:
        output_path = self._data.log_file(self.spec.name)
        with open(output_path, "ab") as output:  # noqa: ASYNC230 - only opened here, the child writes
            return await asyncio.create_subprocess_exec(
                *self.spec.command,
                env=dict(self.spec.env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # A session of its own: Ctrl-C in the terminal reaches the launcher alone, which stops all in
                # order.
                start_new_session=True,
                preexec_fn=_die_with_parent(os.getpid()),
            )

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        exited = asyncio.ensure_future(process.wait())
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({exited, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not exited.done():
            await self._end(process, exited)
        return await exited

    async def _end(self, process: asyncio.subprocess.Process, exited: asyncio.Future[int]) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
            # A stopped process (SIGSTOP) would look at its SIGTERM only when continued.
            process.send_signal(signal.SIGCONT)
        await asyncio.wait({exited}, timeout=self.spec.grace_ms / 1000)
        if not exited.done():
            log.warning("child did not stop in time; killing it", child=self.spec.name, pid=process.pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _die_with_parent(parent_pid: int) -> Callable[[], None] | None:
    if _libc is None:
        return None
    prctl = _libc.prctl

    def arm() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        # The parent may have died before the line above; then nobody will tell us.
        if os.getppid() != parent_pid:
            os._exit(1)

    return arm


def _describe(exit_code: int | None) -> str:
    if exit_code is None:
        return "could not be started"
    if exit_code < 0:
        return f"was killed by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"
