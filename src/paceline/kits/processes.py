"""Processes that outlive whoever started them: who they are, whether they still live, what they use.

A pid alone says little, because the kernel gives it to somebody else later; with the time it was started at (field 22
of /proc/<pid>/stat) it names one process for ever. Where there is no /proc, the pid has to do.
"""

import contextlib
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")

# Positions in /proc/<pid>/stat behind the name, which may itself hold spaces and brackets.
_STATE, _UTIME, _STIME, _STARTED, _RSS = 0, 11, 12, 19, 21


@dataclass(frozen=True)
class Process:
    pid: int
    ticks: int
    """When it was started, in the kernel's ticks since boot; 0 where nobody can tell."""

    @classmethod
    def of(cls, pid: int) -> "Process":
        stat = _stat(pid)
        return cls(pid, int(stat[_STARTED]) if stat else 0)

    def is_alive(self) -> bool:
        """A zombie has ended; only nobody has asked yet how."""
        stat = _stat(self.pid)
        if stat is not None:
            return stat[_STATE] not in ("Z", "X") and (self.ticks == 0 or int(stat[_STARTED]) == self.ticks)
        return not _PROC.joinpath("self").exists() and _answers(self.pid)

    def send(self, number: signal.Signals) -> None:
        """To it and all it started, if it is the first of its own session. One that is gone is no mistake."""
        if not self.is_alive():
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if number == signal.SIGKILL and os.getsid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def usage(self) -> tuple[int, float] | None:
        """Bytes in memory and seconds of CPU so far; None if it is gone or nobody can tell."""
        stat = _stat(self.pid) if self.is_alive() else None
        if stat is None:
            return None
        return int(stat[_RSS]) * _PAGE, (int(stat[_UTIME]) + int(stat[_STIME])) / _TICKS


@dataclass(frozen=True)
class PidFile:
    """The first line is the pid, for people and scripts; the second, JSON, is the rest."""

    process: Process
    about: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        rest = {"ticks": str(self.process.ticks), **self.about}
        return f"{self.process.pid}\n{msgspec.json.encode(rest).decode()}\n"

    def write(self, path: Path) -> None:
        """All of it or nothing."""
        draft = path.with_suffix(".new")
        draft.write_text(self.text())
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> "PidFile | None":
        """None for a file that is not there, or of which only a part was written."""
        try:
            first, _, rest = path.read_text().partition("\n")
            about = msgspec.json.decode(rest, type=dict[str, str])
            return cls(Process(int(first), int(about.pop("ticks"))), about)
        except (OSError, ValueError, KeyError, msgspec.DecodeError):
            return None


def _stat(pid: int) -> list[str] | None:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
