"""Programs for Node.js: which `node` runs them, and what is missing if none can.

Only those who run such a program need it, so nobody looks before it is asked for.
"""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = 20
"""The oldest release of Node that still gets repairs and that the programs here are built for."""

_ASK_SECONDS = 20


def node_path() -> str:
    """The `node` of the PATH, or its bare name where there is none."""
    return shutil.which("node") or "node"


def missing_for(script: Path) -> str | None:
    """Why this script cannot be run, or None. It is a person who reads it, so it says what to do."""
    found = shutil.which("node")
    if found is None:
        return f"node is not on the PATH; install Node.js {OLDEST} or newer"
    version = _major(found, os.stat(found).st_mtime_ns)
    if version is None or version < OLDEST:
        return f"{found} is Node.js {version or 'of an unknown version'}; {OLDEST} or newer is needed"
    if not script.is_file():
        return f"{script} is missing; build it with tools/ensure-node"
    return None


@functools.lru_cache(maxsize=8)
def _major(path: str, changed: int) -> int | None:
    """Asked once for each file: it takes a tenth of a second, and each of many workers is about to be started."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"v(\d+)\.", answer.stdout)
    return int(version[1]) if version else None
