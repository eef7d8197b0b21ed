"""The ledger: what the simulated WhatsApp accepted, one JSON line each. The ground truth that tests judge by.

A message counts as accepted when its line is on the disk; the ack comes after. Several workers of one session
(which must not happen, and which a test must be able to see) share the file under a lock, so a repeated id is
marked whoever sent it first. Beside the lines stands what else outlives a worker: a ban, the link to the number, and
the account with its lock.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from paceline.worker.drivers.account import Account


class LedgerLine(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One accepted message."""

    at: int
    session_id: str
    to: str
    whatsapp_id: str
    task_id: str
    text: str
    mode: str = "message"
    media_sha256: str | None = None
    repeat: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """One message that the server said no to. Kept in memory alone, for those who judge what was tried again."""

    at: int
    session_id: str
    to: str
    task_id: str
    code: str


class Ledger(Protocol):
    @property
    def account(self) -> Account:
        """The account as it is known apart from the lines; who reads them brings it up to date."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody else appends meanwhile."""

    def unread(self) -> list[LedgerLine]:
        """The lines that this object has neither read nor written yet."""

    def append(self, line: LedgerLine) -> None: ...
    def note_refusal(self, refusal: Refusal) -> None: ...

    @property
    def banned(self) -> bool: ...

    def record_ban(self) -> None: ...

    @property
    def linked(self) -> bool: ...

    def record_link(self, linked: bool) -> None: ...
    def record_lock(self) -> None:
        """Keep the account's lock as it is now."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(LedgerLine)


class FileLedger:
    """`$PACELINE_DATA/ledger/<sessionId>.jsonl`, and beside it `<sessionId>.banned` once the account is banned,
    `<sessionId>.locked`, which holds the end of its last lock, and `<sessionId>.linked` while it is linked."""

    def __init__(self, directory: Path, session_id: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / f"{session_id}.jsonl"
        self._ban = directory / f"{session_id}.banned"
        self._lock = directory / f"{session_id}.locked"
        self._link = directory / f"{session_id}.linked"
        self.account = Account(locked_until_ms=_read_lock(self._lock))
        self._kept_lock_ms = self.account.locked_until_ms
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o600)
        self._read_bytes = 0

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def unread(self) -> list[LedgerLine]:
        lines: list[LedgerLine] = []
        if os.fstat(self._descriptor).st_size == self._read_bytes:
            return lines
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            for raw in file:
                if not raw.endswith(b"\n"):
                    # Torn by a power cut before its fsync returned, so never accepted.
                    os.ftruncate(self._descriptor, self._read_bytes)
                    break
                lines.append(_decoder.decode(raw))
                self._read_bytes += len(raw)
        return lines

    def append(self, line: LedgerLine) -> None:
        raw = _encoder.encode(line) + b"\n"
        written = os.write(self._descriptor, raw)
        if written != len(raw):
            raise OSError(f"the ledger took {written} of {len(raw)} bytes")
        os.fsync(self._descriptor)
        self._read_bytes += written

    def note_refusal(self, refusal: Refusal) -> None:
        """Nothing is kept: on a disk the ledger holds what was accepted, and nothing else."""

    @property
    def banned(self) -> bool:
        return self._ban.exists()

    def record_ban(self) -> None:
        self._ban.touch()

    @property
    def linked(self) -> bool:
        return self._link.exists()

    def record_link(self, linked: bool) -> None:
        if linked:
            self._link.touch()
        else:
            self._link.unlink(missing_ok=True)

    def record_lock(self) -> None:
        if self.account.locked_until_ms == self._kept_lock_ms:
            return
        draft = self._lock.with_suffix(".draft")
        draft.write_text(f"{self.account.locked_until_ms}\n")
        draft.replace(self._lock)
        self._kept_lock_ms = self.account.locked_until_ms

    def close(self) -> None:
        os.close(self._descriptor)


class LedgerBook:
    """What a `MemoryLedger` writes to; outlives the workers of the World that come and go. Sessions of one number have
    each their book, and one account."""

    def __init__(self, account: Account | None = None) -> None:
        self.lines: list[LedgerLine] = []
        self.refusals: list[Refusal] = []
        self.banned = False
        self.linked = False
        self.account = account or Account()


class MemoryLedger:
    """A ledger in memory, for virtual time."""

    def __init__(self, book: LedgerBook) -> None:
        self._book = book
        self._read = 0
        self.account = book.account

    def exclusive(self) -> AbstractContextManager[None]:
        return nullcontext()

    def unread(self) -> list[LedgerLine]:
        lines = self._book.lines[self._read :]
        self._read = len(self._book.lines)
        return lines

    def append(self, line: LedgerLine) -> None:
        self._book.lines.append(line)
        self._read += 1

    @property
    def banned(self) -> bool:
        return self._book.banned

    def record_ban(self) -> None:
        self._book.banned = True

    @property
    def linked(self) -> bool:
        return self._book.linked

    def record_link(self, linked: bool) -> None:
        self._book.linked = linked

    def note_refusal(self, refusal: Refusal) -> None:
        self._book.refusals.append(refusal)

    def record_lock(self) -> None:
        """The book's account is the one that was locked."""


def _read_lock(path: Path) -> int:
    """The end of the lock, or 0: a file that a person emptied means that there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
