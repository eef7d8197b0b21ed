"""Files that are named by what is in them, on a disk that several services of one machine share.

A file is visible under its name only when it is whole and on the disk: a draft is written, forced out and renamed.
A draft that a crash left behind is removed with the next clean-up. Names are made by the caller and checked here once
more, since they become a path. Every call blocks for as long as the disk takes: call them in a thread.
"""

import hashlib
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path

from paceline.kits.failpoint import failpoint

_NAME = re.compile(r"[0-9a-f]{64}-[a-z0-9]{1,8}", re.ASCII)
_DRAFTS, _TRASH = "drafts", "trash"


class Draft:
    """A file that is being written and that nobody sees yet. Ends with `MediaFiles.keep` or `discard`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb")

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self._hash.update(chunk)
        self.size += len(chunk)

    def finish(self) -> None:
        """Everything is on the disk when this returns."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        """Nothing of it stays. Harmless after `keep`."""
        self._file.close()
        self.path.unlink(missing_ok=True)


class MediaFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    def draft(self) -> Draft:
        folder = self._folder(_DRAFTS)
        return Draft(folder / uuid.uuid4().hex)

    def keep(self, draft: Draft, name: str) -> None:
        """The draft becomes the file of that name. One that is there already is replaced by the same bytes, which also
        mends what the disk may have spoilt."""
        draft.finish()
        failpoint("media-written")
        target = self.path(name)
        self._folder(target.parent.name)
        os.replace(draft.path, target)
        _fsync_directory(target.parent)

    def path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError("not a name of this store")
        return self._root / name[:2] / name

    def has(self, name: str, size: int) -> bool:
        """Whether the file is there, as long as it should be."""
        try:
            return self.path(name).stat().st_size == size
        except FileNotFoundError:
            return False

    def used_bytes(self) -> int:
        """What all files take, in whatever state. A draft is not counted: it becomes a file, or is gone soon."""
        used = 0
        for path in self._root.glob("[0-9a-f][0-9a-f]/*"):
            with suppress(FileNotFoundError):
                used += path.stat().st_size
        return used

    def put_aside(self, name: str) -> bool:
        """Out of sight, but not gone: `put_back` or `forget` follows."""
        self._folder(_TRASH)
        try:
            os.replace(self.path(name), self._root / _TRASH / name)
        except FileNotFoundError:
            return False
        return True

    def put_back(self, name: str) -> None:
        os.replace(self._root / _TRASH / name, self.path(name))

    def forget(self, name: str) -> None:
        (self._root / _TRASH / name).unlink(missing_ok=True)

    def names(self, folder: int, before_ms: int) -> list[str]:
        """The files in one of the 256 folders that were written before that time."""
        found = []
        for path in (self._root / f"{folder:02x}").glob("*"):
            with suppress(FileNotFoundError):
                if _NAME.fullmatch(path.name) and path.stat().st_mtime_ns // 1_000_000 < before_ms:
                    found.append(path.name)
        return sorted(found)

    def in_trash(self, before_ms: int) -> list[str]:
        """What was put aside before that time and whose end a crash prevented."""
        return [path.name for path in self._left_in(_TRASH, before_ms)]

    def drop_drafts(self, before_ms: int) -> int:
        """Removes drafts that have lain there since before that time; returns how many."""
        left = self._left_in(_DRAFTS, before_ms)
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)

    def _left_in(self, folder: str, before_ms: int) -> list[Path]:
        found = []
        for path in (self._root / folder).glob("*"):
            with suppress(FileNotFoundError):
                # The time of the rename counts: what lies in the trash was written long ago.
                if path.stat().st_ctime_ns // 1_000_000 < before_ms:
                    found.append(path)
        return found

    def _folder(self, name: str) -> Path:
        folder = self._root / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def _fsync_directory(directory: Path) -> None:
    """A rename is on the disk only when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
