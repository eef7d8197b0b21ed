"""Named places where a test may kill the process, to prove that nothing is lost or repeated by a crash there.

Armed by a file: with PACELINE_FAILPOINTS=<dir>, the first process that passes `failpoint(name)` while
<dir>/<name> exists takes the file away and dies by SIGKILL, as in a power cut: no handler runs, nothing is
flushed. Without the variable a failpoint costs nothing. In virtual time the World installs a hook
instead.
"""

import os
import signal
from collections.abc import Callable

Hook = Callable[[str], None]

_hook: Hook | None = None
_directory = os.environ.get("PACELINE_FAILPOINTS")
"""Looked up once: a process has one for its whole life."""


def set_hook(hook: Hook | None) -> None:
    """Have `hook(name)` called at every failpoint instead of looking for files; None restores the files."""
    # One process, one hook: threading it through every caller would cost more than it says.
    global _hook  # noqa: PLW0603
    _hook = hook


def failpoint(name: str) -> None:
    """Die here if a test armed this name."""
    if _hook is not None:
        _hook(name)
        return
    if _directory and _disarm(os.path.join(_directory, name)):
        os.kill(os.getpid(), signal.SIGKILL)


def _disarm(path: str) -> bool:
    # Removing the file decides the race: of two processes that pass at once, one dies.
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
