"""Files that a running process appends to: kept within bounds by whoever started it."""

import os
import shutil
from pathlib import Path

MAX_BYTES = 20_000_000
"""Two of them, this one and the one before, are days of a busy worker."""


def rotate(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Keep a log within bounds: one older part beside it, then from the start.

    Copied and truncated rather than renamed, because the process holds the file open. A line written in between is
    lost. No file is no harm.
    """
    try:
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, path.with_suffix(".log.1"))
            os.truncate(path, 0)
    except FileNotFoundError:
        return
