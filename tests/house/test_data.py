"""The data directory holds keys, texts and numbers: only this user looks into it, whoever made it and when."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.kits.secrets import read_or_create
from paceline.launcher.data import DEMO_DATA, DataDirectory


@pytest.fixture(autouse=True)
def usual_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is made without a word is everybody's to read."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_demo_leaves_nothing_that_others_can_read(tmp_path: Path) -> None:
    """It made `data` on its way to `data/demo`, open to all, and `paceline up` went on with that one."""
    DataDirectory(DEMO_DATA).create()
    assert (mode(tmp_path / "data"), mode(tmp_path / DEMO_DATA)) == (0o700, 0o700)


def test_one_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir(mode=0o755)
    DataDirectory(root).create()
    assert mode(root) == 0o700


@pytest.mark.parametrize("name", [".", "home", "shared"])
def test_a_place_that_is_not_ours_alone_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Where one works, one's home, a directory like /tmp: others have business there."""
    root = tmp_path / name
    root.mkdir(exist_ok=True)
    root.chmod(0o1777 if name == "shared" else 0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    DataDirectory(root).create()
    assert mode(root) == (0o1777 if name == "shared" else 0o755)


def test_a_key_that_others_can_read_is_closed(tmp_path: Path) -> None:
    key = tmp_path / "api-key"
    key.write_text("kept\n")
    key.chmod(0o644)
    assert read_or_create(key) == "kept"
    assert mode(key) == 0o600
    assert (read_or_create(tmp_path / "new"), mode(tmp_path / "new"))[1] == 0o600
