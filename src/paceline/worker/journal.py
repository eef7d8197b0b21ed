"""The worker's memory on its volume: append-only JSON lines, on the disk before anything goes out.

Two implementations of one port, held to the same contract suite: `FileJournal` for production, `MemoryJournal`
for the World, whose `MemoryDisk` survives the crash of the journal that writes to it. What the lines mean is in
`book.py`. First line: `{"journalId": …}`; a journal with another id is another memory, and the orchestrator
treats a worker that comes back with one as a worker that remembers nothing.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import msgspec
import structlog

from paceline.domain.errors import PacelineError
from paceline.worker.book import Book, Entry, Greeted, Intent, Receipt, ReceiptKind, Record, Reported, Result

log = structlog.stdlib.get_logger(__name__)

# About 10 MB of lines; a worker that runs for months must not fill its volume between two starts.
COMPACT_EVERY_RECORDS = 60_000


class JournalCorrupt(PacelineError):
    """A line before the last one cannot be read: the disk lied, and nothing after it can be trusted."""


class JournalBroken(PacelineError):
    """An append failed half way. Nothing may be sent by a worker that can no longer remember."""


class Journal(Protocol):
    """Reading is immediate; writing returns once the record is as durable as it must be."""

    @property
    def journal_id(self) -> str: ...
    @property
    def greeted(self) -> bool:
        """False for a journal that has not yet seen a `hello` through: it cannot vouch for earlier claims."""

    def entry(self, task_id: str) -> Entry | None: ...
    def find(self, whatsapp_id: str) -> Entry | None: ...
    def unreported(self) -> list[Entry]: ...

    async def greet(self, at_ms: int) -> None: ...
    async def intend(self, intent: Intent) -> None: ...
    async def conclude(self, result: Result) -> None: ...
    async def mark_reported(self, task_id: str) -> None:
        """Not forced to the disk: losing it costs one repeated report."""

    async def mark_receipt(self, whatsapp_id: str, receipt: ReceiptKind) -> None:
        """Not forced to the disk: losing it costs one repeated webhook."""


class _Header(msgspec.Struct, frozen=True, rename="camel"):
    journal_id: str


class _Loaded(NamedTuple):
    journal_id: str | None
    book: Book
    good_bytes: int


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(_Header)
_record_decoder = msgspec.json.Decoder(Record)


def load(data: bytes) -> _Loaded:
    """Read a journal's bytes. A torn last line was never acted upon, so it counts as not written."""
    book, journal_id, position = Book(), None, 0
    while (end := data.find(b"\n", position)) >= 0:
        line = data[position:end]
        try:
            if journal_id is None:
                journal_id = _header_decoder.decode(line).journal_id
            else:
                book.apply(_record_decoder.decode(line))
        except msgspec.DecodeError as error:
            if data.find(b"\n", end + 1) >= 0:
                raise JournalCorrupt(f"line at byte {position}: {error}") from error
            break
        position = end + 1
    return _Loaded(journal_id, book, position)


def dump(journal_id: str, records: list[Record]) -> bytes:
    return b"".join(_encoder.encode(item) + b"\n" for item in (_Header(journal_id), *records))


class _BookJournal:
    """The part of a journal that does not care where the bytes go."""

    def __init__(self, journal_id: str, book: Book) -> None:
        self._journal_id = journal_id
        self._book = book

    @property
    def journal_id(self) -> str:
        return self._journal_id

    @property
    def greeted(self) -> bool:
        return self._book.greeted_at is not None

    def entry(self, task_id: str) -> Entry | None:
        return self._book.entry(task_id)

    def find(self, whatsapp_id: str) -> Entry | None:
        return self._book.find(whatsapp_id)

    def unreported(self) -> list[Entry]:
        return [entry for entry in self._book.entries() if entry.unreported]

    async def greet(self, at_ms: int) -> None:
        self._write(Greeted(at_ms), durable=True)

    async def intend(self, intent: Intent) -> None:
        self._write(intent, durable=True)

    async def conclude(self, result: Result) -> None:
        self._write(result, durable=True)

    async def mark_reported(self, task_id: str) -> None:
        self._write(Reported(task_id), durable=False)

    async def mark_receipt(self, whatsapp_id: str, receipt: ReceiptKind) -> None:
        self._write(Receipt(whatsapp_id, receipt), durable=False)

    def _write(self, record: Record, *, durable: bool) -> None:
        # The disk first: a record that could not be kept must not be believed.
        self._append(_encoder.encode(record) + b"\n", durable=durable)
        self._book.apply(record)
        self._tidy()

    def _append(self, line: bytes, *, durable: bool) -> None:
        raise NotImplementedError

    def _tidy(self) -> None:
        """A chance to make the storage smaller, after a record was applied."""


class FileJournal(_BookJournal):
    """`<volume>/journal.jsonl`. An fsync blocks the event loop for some milliseconds, in a program that has
    nothing else to do meanwhile."""

    def __init__(self, path: Path, loaded: _Loaded, journal_id: str, now_ms: Callable[[], int]) -> None:
        super().__init__(journal_id, loaded.book)
        self._path = path
        self._now_ms = now_ms
        self._descriptor = -1
        self._broken = False
        self._compact()

    @classmethod
    def open(cls, volume: Path, *, new_id: Callable[[], str], now_ms: Callable[[], int]) -> Self:
        """Open or create. A journal that cannot be read is put aside and counts as lost, which is the safe
        side: what it knew becomes unknown, and unknown is never sent again unasked."""
        volume.mkdir(parents=True, exist_ok=True)
        path = volume / "journal.jsonl"
        try:
            loaded = load(path.read_bytes() if path.exists() else b"")
        except JournalCorrupt as error:
            aside = path.with_name(f"journal.corrupt-{now_ms()}.jsonl")
            log.error("the journal cannot be read and is put aside", path=str(aside), reason=str(error))
            path.rename(aside)
            loaded = load(b"")
        return cls(path, loaded, loaded.journal_id or new_id(), now_ms)

    def close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, line: bytes, *, durable: bool) -> None:
        if self._broken:
            raise JournalBroken("an earlier append failed; the journal must be opened anew")
        # Stays set if anything below raises: a line written by half must not be followed by another.
        self._broken = True
        if os.write(self._descriptor, line) != len(line):
            raise JournalBroken("the disk took only a part of the line (full?)")
        if durable:
            os.fsync(self._descriptor)
        self._broken = False
        self._appended += 1

    def _tidy(self) -> None:
        if self._appended >= COMPACT_EVERY_RECORDS:
            self._compact()

    def _compact(self) -> None:
        """Write what is still needed to a new file and put it in the place of the old one, all or nothing."""
        draft = self._path.with_suffix(".draft")
        content = dump(self._journal_id, self._book.records(self._now_ms()))
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        _fsync_directory(self._path.parent)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._appended = 0
        self._book = load(content).book


class MemoryDisk:
    """What survives a crash in the World: the bytes, and how many of them were forced out."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced_bytes = 0

    def crash(self, *, torn_bytes: int = 0) -> None:
        """Lose what was not forced out, but for the first `torn_bytes` of it, as a power cut may."""
        del self.data[self.synced_bytes + torn_bytes :]

    def wipe(self) -> None:
        """Lose the volume."""
        self.data.clear()
        self.synced_bytes = 0


class MemoryJournal(_BookJournal):
    """A journal on a `MemoryDisk`. Open a new one on the same disk after a crash."""

    def __init__(self, disk: MemoryDisk, *, new_id: Callable[[], str], now_ms: Callable[[], int]) -> None:
        loaded = load(bytes(disk.data))
        super().__init__(loaded.journal_id or new_id(), loaded.book)
        self._disk = disk
        disk.data[:] = dump(self._journal_id, self._book.records(now_ms()))
        disk.synced_bytes = len(disk.data)

    def _append(self, line: bytes, *, durable: bool) -> None:
        self._disk.data += line
        if durable:
            self._disk.synced_bytes = len(self._disk.data)


def _fsync_directory(directory: Path) -> None:
    """A rename is on the disk only when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)
