"""The journal: one contract, two implementations, and what a crash may and may not take away."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.worker import journal as journal_module
from paceline.worker.book import (
    KEEP_ENTRIES,
    KEEP_MS,
    Book,
    Greeted,
    Intent,
    Outcome,
    Receipt,
    Record,
    Reported,
    Result,
    SendError,
)
from paceline.worker.decisions import LookFirst, answer_for_pending
from paceline.worker.journal import FileJournal, Journal, JournalBroken, MemoryDisk, MemoryJournal, dump, load

NOW = 1_800_000_000_000
ERROR = SendError("RATE_LIMIT", "too many")


def intent(task: str = "t1", attempt: int = 1, at: int = NOW) -> Intent:
    return Intent(task, f"id-{task}", "447700900001", attempt, at)


class Shelf(Protocol):
    """Where a journal lies between two lives."""

    def open(self) -> Journal: ...
    def content(self) -> bytes: ...
    def overwrite(self, data: bytes) -> None: ...


class FileShelf:
    def __init__(self, volume: Path) -> None:
        self.volume = volume
        self.opened = 0

    def open(self) -> FileJournal:
        self.opened += 1
        return FileJournal.open(self.volume, new_id=lambda: f"journal-{self.opened}", now_ms=lambda: NOW)

    def content(self) -> bytes:
        return (self.volume / "journal.jsonl").read_bytes()

    def overwrite(self, data: bytes) -> None:
        (self.volume / "journal.jsonl").write_bytes(data)


class MemoryShelf:
    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.opened = 0

    def open(self) -> MemoryJournal:
        self.opened += 1
        return MemoryJournal(self.disk, new_id=lambda: f"journal-{self.opened}", now_ms=lambda: NOW)

    def content(self) -> bytes:
        return bytes(self.disk.data)

    def overwrite(self, data: bytes) -> None:
        self.disk.data[:] = data
        self.disk.synced_bytes = len(data)


@pytest.fixture(params=["file", "memory"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    return FileShelf(tmp_path / "volume") if request.param == "file" else MemoryShelf()


async def test_a_new_journal_has_an_id_of_its_own_and_keeps_it(shelf: Shelf) -> None:
    """The id in the first line is what tells a kept memory from a lost one."""
    assert shelf.open().journal_id == "journal-1"
    assert shelf.open().journal_id == "journal-1"
    assert shelf.content().startswith(b'{"journalId":"journal-1"}\n')


async def test_everything_written_is_there_after_reopening(shelf: Shelf) -> None:
    """Intent, result, report and receipt of a task, and the greeting, survive."""
    journal = shelf.open()
    assert not journal.greeted
    await journal.greet(NOW)
    await journal.intend(intent())
    await journal.conclude(Result("t1", Outcome.SENT, NOW))
    await journal.mark_reported("t1")
    await journal.mark_receipt("id-t1", "delivered")
    await journal.intend(intent("t2"))
    await journal.conclude(Result("t2", Outcome.REFUSED, NOW, ERROR))
    journal = shelf.open()
    assert journal.greeted
    assert (first := journal.entry("t1"))
    assert (first.sent, first.reported, first.receipts) == (True, True, {"delivered"})
    assert journal.find("id-t1") is first
    assert [entry.task_id for entry in journal.unreported()] == ["t2"]
    assert journal.unreported()[0].error == ERROR


async def test_sent_is_final(shelf: Shelf) -> None:
    """Neither a later result nor a later intent makes a sent message unsent."""
    journal = shelf.open()
    await journal.intend(intent())
    await journal.conclude(Result("t1", Outcome.SENT, NOW))
    await journal.conclude(Result("t1", Outcome.NOT_SENT, NOW))
    await journal.intend(intent(attempt=2))
    for opened in (journal, shelf.open()):
        assert (entry := opened.entry("t1"))
        assert entry.sent


async def test_a_doubt_outlives_a_later_attempt_that_was_not_sent(shelf: Shelf) -> None:
    """Attempt 1 cut off, attempt 2 surely not sent: the message may still be out, also after compaction."""
    journal = shelf.open()
    await journal.intend(intent())
    await journal.intend(intent(attempt=2))
    await journal.conclude(Result("t1", Outcome.NOT_SENT, NOW))
    for opened in (journal, shelf.open(), shelf.open()):
        assert (entry := opened.entry("t1"))
        assert entry.maybe_sent
        assert entry.outcome is Outcome.NOT_SENT


@pytest.mark.parametrize(
    "tail",
    [b'{"kind":"result","taskId":"t1","outc', b'{"kind":"result","taskId":"t1"}\n', b"\x00\x00\n", b"{}"],
    ids=["cut", "not-a-record", "zeros", "no-newline"],
)
async def test_a_torn_last_line_counts_as_not_written(shelf: Shelf, tail: bytes) -> None:
    """What a power cut left of the last line is cut off; the rest stands and can be continued."""
    await shelf.open().intend(intent())
    shelf.overwrite(shelf.content() + tail)
    journal = shelf.open()
    assert (entry := journal.entry("t1"))
    assert entry.outcome is None
    await journal.conclude(Result("t1", Outcome.SENT, NOW))
    assert (entry := shelf.open().entry("t1"))
    assert entry.sent


async def test_opening_twice_changes_nothing(shelf: Shelf) -> None:
    """Compaction is idempotent."""
    journal = shelf.open()
    await journal.greet(NOW)
    await journal.intend(intent())
    await journal.conclude(Result("t1", Outcome.UNKNOWN, NOW, ERROR))
    shelf.open()
    once = shelf.content()
    shelf.open()
    assert shelf.content() == once


records = st.one_of(
    st.builds(Greeted, at=st.just(NOW)),
    st.builds(
        lambda task, attempt, asked: Intent(task, f"id-{task}", "4477", attempt, NOW, request_id=asked),
        st.sampled_from("abc"),
        st.integers(1, 3),
        st.sampled_from(["", "crm-42"]),
    ),
    st.builds(
        Result, task_id=st.sampled_from("abc"), outcome=st.sampled_from(Outcome), at=st.just(NOW), error=st.just(None)
    ),
    st.builds(Reported, task_id=st.sampled_from("abc")),
    st.builds(Receipt, whatsapp_id=st.sampled_from(["id-a", "id-b"]), receipt=st.sampled_from(["delivered", "read"])),
)


@given(history=st.lists(records, max_size=20))
def test_compaction_keeps_the_meaning(history: list[Record]) -> None:
    """Any history and its compacted form say the same of every task."""
    book = Book()
    for record in history:
        book.apply(record)
    again = load(dump("j", book.records(NOW))).book
    assert again.entries() == book.entries()
    assert again.greeted_at == book.greeted_at


@given(history=st.lists(records, max_size=8), cut=st.integers(0, 2000))
def test_any_prefix_of_a_journal_can_be_read(history: list[Record], cut: int) -> None:
    """Wherever the bytes end, the whole records before that point are there."""
    data = dump("j", history)
    loaded = load(data[:cut])
    whole = data[:cut].rfind(b"\n") + 1
    assert loaded.good_bytes == whole
    assert load(data[:whole]).book.entries() == loaded.book.entries()


def test_compaction_forgets_what_is_old_and_told_and_nothing_else() -> None:
    """30 days and 10,000 entries are the limits, but what is open or untold stays, and what is in doubt for a month."""
    book = Book()
    old = NOW - KEEP_MS - 1
    for task, at, outcome in (("old", old, Outcome.SENT), ("untold", old, Outcome.SENT), ("open", NOW, None)):
        book.apply(intent(task, at=at))
        if outcome is not None:
            book.apply(Result(task, outcome, at))
    book.apply(Reported("old"))
    for number in range(KEEP_ENTRIES + 5):
        book.apply(intent(f"n{number}"))
        book.apply(Result(f"n{number}", Outcome.SENT, NOW))
        book.apply(Reported(f"n{number}"))
    kept = load(dump("j", book.records(NOW))).book
    assert kept.entry("old") is None
    assert kept.entry("untold") is not None
    assert kept.entry("open") is not None
    assert kept.entry("n4") is None
    assert kept.entry("n5") is not None


async def test_an_open_intent_is_kept_however_old_it_seems(shelf: Shelf) -> None:
    """A host without a clock dated it 2020 and was killed in the send: forgotten, it would be answered as not sent."""
    await shelf.open().intend(intent(at=1_577_836_800_000))
    assert answer_for_pending(shelf.open().entry("t1")) == LookFirst()


async def test_an_unforced_note_may_be_lost_and_nothing_else() -> None:
    """A crash of the memory disk takes `reported` and leaves intent and result, as an fsync promises."""
    shelf = MemoryShelf()
    journal = shelf.open()
    await journal.intend(intent())
    await journal.conclude(Result("t1", Outcome.SENT, NOW))
    await journal.mark_reported("t1")
    shelf.disk.crash(torn_bytes=5)
    assert (entry := shelf.open().entry("t1"))
    assert (entry.sent, entry.reported) == (True, False)


async def test_a_journal_that_cannot_be_read_is_put_aside_and_counts_as_lost(tmp_path: Path) -> None:
    """Rot in the middle: a new journal with a new id and no greeting, and the old bytes kept for a person."""
    shelf = FileShelf(tmp_path)
    journal = shelf.open()
    await journal.greet(NOW)
    await journal.intend(intent())
    shelf.overwrite(shelf.content().replace(b'"greeted"', b'"gr\x00eted"'))
    journal = shelf.open()
    assert (journal.journal_id, journal.greeted) == ("journal-2", False)
    assert [name for name in os.listdir(tmp_path) if name.startswith("journal.corrupt-")]


async def test_a_journal_that_could_not_append_takes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the intent fails, is not believed, and no further line is glued to the torn one."""
    journal = FileShelf(tmp_path).open()
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, data[:10]))
    with pytest.raises(JournalBroken):
        await journal.intend(intent())
    monkeypatch.undo()
    assert journal.entry("t1") is None
    with pytest.raises(JournalBroken):
        await journal.intend(intent())
    assert FileShelf(tmp_path).open().entry("t1") is None


async def test_a_journal_that_grows_is_compacted_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that never restarts does not fill its volume, and loses no record at the seam."""
    monkeypatch.setattr(journal_module, "COMPACT_EVERY_RECORDS", 10)
    shelf = FileShelf(tmp_path)
    journal = shelf.open()
    for attempt in range(1, 36):
        await journal.intend(intent(attempt=attempt))
        assert (entry := journal.entry("t1"))
        assert entry.attempt == attempt
    assert len(shelf.content().splitlines()) < 15
    assert (entry := shelf.open().entry("t1"))
    assert entry.attempt == 35


WRITER = """
import asyncio, sys
from pathlib import Path
from paceline.worker.book import Intent, Outcome, Result
from paceline.worker.journal import FileJournal

async def write(life):
    journal = FileJournal.open(Path(sys.argv[1]), new_id=lambda: "j", now_ms=lambda: 0)
    for number in range(100_000):
        task = f"{life}-{number}"
        await journal.intend(Intent(task, task, "4477", 1, 0))
        await journal.conclude(Result(task, Outcome.SENT, 0))
        sys.stdout.write(task + "\\n")
        sys.stdout.flush()

asyncio.run(write(sys.argv[2]))
"""


def test_kill_9_of_a_writing_process_loses_nothing_that_was_forced_out(tmp_path: Path) -> None:
    """Thirty writers killed at arbitrary moments: every task they had announced is in the journal, as sent."""
    announced: list[str] = []
    for life in range(30):
        announced += _write_and_kill(tmp_path, life)
    journal = FileJournal.open(tmp_path, new_id=lambda: "other", now_ms=lambda: 0)
    assert journal.journal_id == "j"
    assert len(announced) > 30
    missing = [task for task in announced if (entry := journal.entry(task)) is None or not entry.sent]
    assert missing == []


def _write_and_kill(volume: Path, life: int) -> list[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(volume), str(life)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": "src"},
    )
    assert process.stdout is not None
    # The moment of the kill varies with the number of tasks awaited; the pipe says how far it really came.
    announced = [process.stdout.readline().strip() for _ in range(1 + life % 7)]
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    complete = rest[: rest.rfind("\n") + 1]
    return announced + complete.split()


def test_the_journal_of_the_world_and_of_production_have_the_same_bytes(tmp_path: Path) -> None:
    """The same calls leave the same lines, so what the World proves holds on a disk."""

    async def live(opened: Callable[[], Journal]) -> None:
        journal = opened()
        await journal.greet(NOW)
        await journal.intend(intent())
        await journal.conclude(Result("t1", Outcome.UNKNOWN, NOW, ERROR))
        await journal.mark_reported("t1")
        await journal.mark_receipt("id-t1", "read")

    file_shelf, memory_shelf = FileShelf(tmp_path), MemoryShelf()
    asyncio.run(live(file_shelf.open))
    asyncio.run(live(memory_shelf.open))
    assert file_shelf.content() == memory_shelf.content()
