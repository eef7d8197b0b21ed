"""The data directory on an ext4 of its own, in a file mounted as a loop device (Linux, root).

Cutting the power is the kernel's own test hook, EXT4_IOC_SHUTDOWN without flushing the journal: whatever was not forced
to the disk by then is gone, for Redis, journals, SQLite and all the rest alike. The next mount replays the journal, as
it would after a real power cut. What a disk itself forgets after it has said "written" is not tried.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

SIZE_MB = 1_024
"""Sparse. Room for an hour's append-only file and its rewriting."""
FILLER = "filler"
_SHUTDOWN = 0x8004587D
"""_IOR('X', 125, __u32)"""
_WITHOUT_FLUSH = 2


class Disk:
    def __init__(self, folder: Path, mounted_at: Path) -> None:
        self._image = folder / "disk.img"
        self._at = mounted_at
        with self._image.open("wb") as file:
            file.truncate(SIZE_MB * 1_024 * 1_024)
        _run("mkfs.ext4", "-q", "-F", str(self._image))

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self._at))
        self._at.chmod(0o700)
        # A power cut may have undone that it was freed.
        self.free()

    def unmount(self) -> None:
        """The kernel may take a moment to let go of what the dead had open."""
        for left in reversed(range(100)):
            try:
                return _run("umount", str(self._at))
            except RuntimeError:
                if not left:
                    raise
                time.sleep(0.1)
        return None

    def cut_power(self) -> None:
        """Those who use it must not be running any more when it is mounted again."""
        file = os.open(self._at, os.O_RDONLY)
        try:
            fcntl.ioctl(file, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSH))
        finally:
            os.close(file)

    def fill(self) -> None:
        """To the last block; `free` makes room again."""
        free = os.statvfs(self._at)
        with (self._at / FILLER).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail) * free.f_frsize)
            # What others took meanwhile, or gave back.
            while _grows(file.fileno()):
                pass

    def free(self) -> None:
        (self._at / FILLER).unlink(missing_ok=True)


def why_not() -> str:
    """What is missing for a disk of one's own; empty: nothing."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("mkfs.ext4", "mount", "umount") if shutil.which(name) is None]
    return f"needs {', '.join(missing)}" if missing else "" if Path("/dev/loop-control").exists() else "no loop devices"


def _grows(file: int) -> bool:
    try:
        os.posix_fallocate(file, os.fstat(file).st_size, 65_536)
    except OSError:
        return False
    return True


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
