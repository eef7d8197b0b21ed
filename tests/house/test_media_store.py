"""Files named by their content: whole or not there, whatever dies; nothing outside the folder."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.kits.media_store import MediaFiles

BODY = b"\x89PNG\r\n\x1a\n" + b"x" * 5_000
NAME = f"{hashlib.sha256(BODY).hexdigest()}-png"


@pytest.fixture
def files(tmp_path: Path) -> MediaFiles:
    return MediaFiles(tmp_path / "media")


def put(files: MediaFiles, body: bytes = BODY, name: str = NAME) -> None:
    draft = files.draft()
    draft.write(body)
    files.keep(draft, name)


def everything(files: MediaFiles) -> set[str]:
    root = files.path(NAME).parent.parent
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_a_kept_file_is_whole_private_and_the_only_one(files: MediaFiles) -> None:
    put(files)
    put(files)
    assert everything(files) == {f"{NAME[:2]}/{NAME}"}
    assert files.path(NAME).read_bytes() == BODY
    assert files.path(NAME).stat().st_mode & 0o777 == 0o600
    assert files.has(NAME, len(BODY))
    assert not files.has(NAME, len(BODY) + 1)


def test_a_spoilt_file_is_mended_by_the_next_upload(files: MediaFiles) -> None:
    put(files)
    files.path(NAME).write_bytes(b"spoilt")
    put(files)
    assert files.path(NAME).read_bytes() == BODY


def test_a_draft_tells_size_and_hash_and_leaves_nothing_when_discarded(files: MediaFiles) -> None:
    draft = files.draft()
    draft.write(BODY[:10])
    draft.write(BODY[10:])
    assert (draft.size, draft.sha256) == (len(BODY), NAME.partition("-")[0])
    draft.discard()
    draft.discard()
    assert everything(files) == set()


def test_discarding_what_was_kept_does_no_harm(files: MediaFiles) -> None:
    draft = files.draft()
    draft.write(BODY)
    files.keep(draft, NAME)
    draft.discard()
    assert files.has(NAME, len(BODY))


CRASH = """
import sys
from pathlib import Path
from paceline.kits.media_store import MediaFiles
files = MediaFiles(Path(sys.argv[1]))
draft = files.draft()
draft.write(sys.argv[2].encode())
files.keep(draft, sys.argv[3])
"""


def test_a_crash_between_the_write_and_the_rename_leaves_nothing_visible(files: MediaFiles, tmp_path: Path) -> None:
    """A real process, killed at the failpoint; its draft is cleared up later."""
    armed = tmp_path / "failpoints"
    armed.mkdir()
    (armed / "media-written").touch()
    arguments = [sys.executable, "-c", CRASH, str(tmp_path / "media"), "body", NAME]
    env = {**os.environ, "PACELINE_FAILPOINTS": str(armed)}
    assert subprocess.run(arguments, env=env, check=False).returncode == -9
    assert not files.path(NAME).exists()
    (left,) = everything(files)
    assert left.startswith("drafts/")
    made_ms = (tmp_path / "media" / left).stat().st_ctime_ns // 1_000_000
    assert files.drop_drafts(made_ms) == 0
    assert files.drop_drafts(made_ms + 1) == 1
    assert everything(files) == set()


def test_what_is_put_aside_can_come_back_or_go(files: MediaFiles) -> None:
    put(files)
    assert files.put_aside(NAME)
    assert not files.has(NAME, len(BODY))
    assert not files.put_aside(NAME)
    files.put_back(NAME)
    assert files.has(NAME, len(BODY))
    assert files.put_aside(NAME)
    files.forget(NAME)
    assert everything(files) == set()


def test_what_was_put_aside_long_ago_is_found_again(files: MediaFiles) -> None:
    """By the time of the rename: the file itself may be months old."""
    put(files)
    os.utime(files.path(NAME), (1, 1))
    files.put_aside(NAME)
    assert files.in_trash(1_000_000) == []
    assert files.in_trash(10**14) == [NAME]


def test_files_are_found_by_folder_and_age(files: MediaFiles) -> None:
    put(files)
    folder = int(NAME[:2], 16)
    assert files.names(folder, 10**14) == [NAME]
    assert files.names(folder, 1_000) == []
    assert files.names((folder + 1) % 256, 10**14) == []


@pytest.mark.parametrize("name", ["", "..", "../x", f"../{NAME}", f"{NAME}/..", NAME + "\n", NAME.upper(), "a" * 64])
def test_no_other_name_becomes_a_path(files: MediaFiles, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        files.path(name)
