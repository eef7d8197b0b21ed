"""A terminal of 80 columns with a command in it, as a person would have it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

import paceline

SOURCE = Path(paceline.__file__).parents[1]
PATIENCE_S = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    def __init__(self, *arguments: str, env: Mapping[str, str], columns: int = 80, rows: int = 50) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        self._process = subprocess.Popen(
            # Whoever runs the tests in the background has SIGINT ignored, and so would this.
            ["env", "--default-signal=INT", sys.executable, "-m", "paceline.cli", *arguments],
            env={**kept, "TERM": "xterm-256color", "PYTHONFAULTHANDLER": "1", "PYTHONPATH": str(SOURCE), **env},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.output = ""

    def until(self, words: str) -> str:
        """What was printed up to these words."""
        while words not in self.output:
            assert self._more(), f"it ended without {words!r}: {self.output}"
        return self.output

    def type(self, words: str) -> None:
        os.write(self._master, words.encode())

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Its exit code, after everything was read."""
        while self._more():
            pass
        os.close(self._master)
        return self._process.wait(PATIENCE_S)

    @property
    def plain(self) -> str:
        return CONTROL.sub("", self.output).replace("\r", "")

    def _more(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        if not ready:
            # It says where it stands (PYTHONFAULTHANDLER), and ends.
            self._process.send_signal(signal.SIGABRT)
            self._process.wait(PATIENCE_S)
            raise AssertionError(f"silent for {PATIENCE_S} s: {self.output}{os.read(self._master, 65_536).decode()}")
        try:
            chunk = os.read(self._master, 65_536)
        except OSError:
            # So Linux says that nobody has the other end any more.
            return False
        self.output += chunk.decode(errors="replace")
        return bool(chunk)
