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


def hold(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()


def test_the_demo_leaves_nothing_that_others_can_read(tmp_path: Path) -> None:
    """It made `data` on its way to `data/demo`, open to all, and `paceline up` went on with that one."""
    DataDirectory(DEMO_DATA).create()
    assert (mode(tmp_path / "data"), mode(tmp_path / DEMO_DATA)) == (0o700, 0o700)


@pytest.mark.parametrize(
    "left", [(), ("api-key", "lost+found"), ("run/up.lock", "orchestrator.sqlite-wal"), ("demo/api-key",)]
)
@pytest.mark.parametrize(("before", "after"), [(0o755, 0o750), (0o2755, 0o2750), (0o2750, 0o2750), (0o777, 0o770)])
def test_one_that_is_open_to_everybody_is_closed_to_all_but_its_group(
    tmp_path: Path, left: tuple[str, ...], before: int, after: int
) -> None:
    """A group that was let in on purpose lost its way in."""
    root = tmp_path / "data"
    root.mkdir()
    hold(root, *left)
    root.chmod(before)
    DataDirectory(root).create()
    assert mode(root) == after


@pytest.mark.parametrize("left", [("website/index.html",), ("redis/dump.rdb",), ("api-key", "website/index.html")])
def test_one_that_holds_what_is_not_ours_stays_as_it_is(tmp_path: Path, left: tuple[str, ...]) -> None:
    """As root, a disk that others had files on was closed to them. What is made in it is closed all the same."""
    root = tmp_path / "srv"
    root.mkdir()
    hold(root, *left)
    DataDirectory(root).create()
    DataDirectory(root).create()
    assert (mode(root), mode(root / "sessions")) == (0o755, 0o750)


def test_a_link_to_ones_home_leaves_it_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "data").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    DataDirectory(tmp_path / "data").create()
    assert mode(home) == 0o755


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


def test_a_key_that_is_a_link_keeps_its_mode(tmp_path: Path) -> None:
    """What it leads to is somebody's who has a reason for it."""
    (tmp_path / "mounted").write_text("kept\n")
    (tmp_path / "api-key").symlink_to("mounted")
    assert read_or_create(tmp_path / "api-key") == "kept"
    assert mode(tmp_path / "mounted") == 0o644


def test_a_key_of_another_user_keeps_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root could change it, and its owner's services could no longer read it."""
    key = tmp_path / "api-key"
    key.write_text("kept\n")
    monkeypatch.setattr(os, "getuid", lambda: key.stat().st_uid + 1)
    assert read_or_create(key) == "kept"
    assert mode(key) == 0o644
