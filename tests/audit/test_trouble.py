"""A disk that is full, a file that is broken, a process that dies between any two steps: nothing is lost or doubled."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lua.servers import LiveServer
from lua.stage import Stage, value_of
from needed import skip_if
from paceline.orchestrator import audit_db

from .trail import Trail

FOLLOW = Path(__file__).with_name("follow.py")
FAILPOINTS = ("audit-read", "audit-inserted", "audit-committed", "audit-trimmed")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        skip_if("mounting needs root; a full disk is tested only by a connection that says so")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


class FullDisk(sqlite3.Connection):
    """Takes everything until it comes to the end of a transaction."""

    full = True

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        if FullDisk.full and sql == "COMMIT":
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *arguments)


def full_disk(*arguments: Any, **options: Any) -> sqlite3.Connection:
    return sqlite3.connect(*arguments, factory=FullDisk, **options)


def test_while_the_disk_is_full_facts_wait_and_an_incident_says_so_once(stage: Stage, tmp_path: Path) -> None:
    FullDisk.full = True
    trail = Trail(stage, tmp_path / "t.sqlite", connect=full_disk)
    for number in range(3):
        trail.act(number)
        trail.later()
    assert (trail.actions(), trail.waiting()) == ([], 3)
    assert trail.incidents() == ["AUDIT_BROKEN"]
    FullDisk.full = False
    trail.later()
    assert (trail.actions(), trail.waiting()) == (["a0", "a1", "a2"], 0)
    assert trail.incidents() == ["AUDIT_BROKEN", "AUDIT_RECOVERED"]


def test_a_real_disk_that_is_full(stage: Stage, small_disk: Path) -> None:
    """The same with a file system that has no room: it catches up when there is some."""
    trail = Trail(stage, small_disk / "t.sqlite")
    trail.act(1)
    trail.follow()
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    for number in range(2, 402):
        trail.act(number, reason="r" * 200)
    trail.follow()
    assert trail.incidents() == ["AUDIT_BROKEN"]
    assert trail.waiting() == 400
    value_of(stage.store.operators.pause(True, by="k1", now_ms=trail.now))
    ballast.unlink()
    trail.later()
    assert trail.actions() == [*(f"a{number}" for number in range(1, 402)), "pause_fleet"]
    assert (trail.waiting(), trail.incidents()[-1]) == (0, "AUDIT_RECOVERED")


def test_a_broken_file_is_left_as_it_is_and_a_new_one_in_its_place_catches_up(trail: Trail) -> None:
    trail.path.write_bytes(b"this is no database" * 100)
    trail.act(1)
    trail.follow()
    assert trail.waiting() == 1
    assert trail.incidents() == ["AUDIT_BROKEN"]
    assert trail.path.read_bytes().startswith(b"this is no database")
    trail.path.rename(trail.path.with_suffix(".broken"))
    trail.later()
    assert (trail.actions(), trail.waiting()) == (["a1"], 0)


def test_a_file_of_a_newer_version_is_not_touched(trail: Trail) -> None:
    with sqlite3.connect(trail.path) as db:
        db.execute("PRAGMA user_version=99")
    trail.act(1)
    trail.follow()
    assert trail.waiting() == 1
    assert trail.rows("SELECT count(*) FROM sqlite_master") == [(0,)]


def test_a_migration_that_was_cut_off_is_done_again(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the version before, and none of its changes."""
    first = audit_db.MIGRATIONS
    trail.act(1)
    trail.follow()
    trail.db.close()
    second = "ALTER TABLE session_bindings ADD COLUMN host TEXT; CREATE TABLE more (x TEXT);"
    monkeypatch.setattr(audit_db, "MIGRATIONS", (*first, f"{second} this is no SQL;"))
    trail.act(2)
    later = Trail(trail.stage, trail.path)
    later.follow()
    assert later.rows("PRAGMA user_version") == [(1,)]
    assert later.rows("SELECT count(*) FROM sqlite_master WHERE name = 'more'") == [(0,)]
    monkeypatch.setattr(audit_db, "MIGRATIONS", (*first, second))
    later.later()
    assert later.rows("PRAGMA user_version") == [(2,)]
    assert later.actions() == ["a1", "a2"]


def test_a_directory_that_cannot_be_made_is_no_crash(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trail = Trail(stage, tmp_path / "file" / "t.sqlite")
    trail.act(1)
    trail.follow()
    assert trail.incidents() == ["AUDIT_BROKEN"]


def follow(server: LiveServer, path: Path, failpoints: Path) -> int:
    command = [sys.executable, str(FOLLOW), server.url, str(path)]
    environment = {**os.environ, "PACELINE_FAILPOINTS": str(failpoints)}
    return subprocess.run(command, env=environment, timeout=60, check=False).returncode


@pytest.mark.parametrize("name", FAILPOINTS)
def test_killed_between_any_two_steps_each_fact_is_one_row(
    server: LiveServer, trail: Trail, tmp_path: Path, name: str
) -> None:
    armed = tmp_path / "failpoints"
    armed.mkdir()
    trail.act(1)
    trail.send(1)
    (armed / name).touch()
    assert follow(server, trail.path, armed) == -signal.SIGKILL
    assert follow(server, trail.path, armed) == 0
    assert (trail.actions(), trail.waiting()) == (["a1"], 0)
    trail.act(2)
    trail.send(2)
    assert follow(server, trail.path, armed) == 0
    assert trail.actions() == ["a1", "a2"]
    assert len(trail.sends()) == 2
    assert trail.waiting() == 0


def test_a_copy_of_the_file_taken_at_any_time_can_be_read(trail: Trail, tmp_path: Path) -> None:
    """A backup copies file and log together; the transaction that is not in it is read from Redis again."""
    trail.act(1)
    trail.follow()
    for source in trail.path.parent.glob("trail.sqlite*"):
        shutil.copy(source, tmp_path / source.name.replace("trail", "copy"))
    copied = Trail(trail.stage, tmp_path / "copy.sqlite")
    copied.follow()
    assert copied.actions() == ["a1"]


def test_a_file_that_broke_and_was_replaced_gets_all_that_redis_still_knows(trail: Trail) -> None:
    """Confirmed sends lie in the stream of events for long: the new file begins with them."""
    first = trail.send(1)
    trail.follow()
    trail.db.close()
    trail.path.write_bytes(b"a page that went bad" * 400)
    for beside in trail.path.parent.glob("trail.sqlite-*"):
        beside.unlink()
    second = trail.send(2)
    trail.follow()
    trail.path.unlink()
    trail.later()
    assert trail.sends() == [first, second]
