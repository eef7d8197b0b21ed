"""A failpoint kills the process that passes it armed, once, and no other."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.kits.failpoint import failpoint, set_hook

PASS_TWO = (
    "from paceline.kits.failpoint import failpoint; failpoint('other'); failpoint('sent-not-reported'); print('alive')"
)


def run(directory: Path | None) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if key != "PACELINE_FAILPOINTS"}
    if directory is not None:
        env["PACELINE_FAILPOINTS"] = str(directory)
    return subprocess.run([sys.executable, "-c", PASS_TWO], env=env, capture_output=True, text=True, check=False)


def test_an_armed_failpoint_kills_the_first_process_that_passes_and_only_it(tmp_path: Path) -> None:
    (tmp_path / "sent-not-reported").touch()
    first = run(tmp_path)
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "")
    assert list(tmp_path.iterdir()) == []
    assert run(tmp_path).stdout == "alive\n"


def test_a_process_without_the_variable_passes_and_leaves_it_armed(tmp_path: Path) -> None:
    (tmp_path / "sent-not-reported").touch()
    assert run(None).stdout == "alive\n"
    assert (tmp_path / "sent-not-reported").exists()


@pytest.fixture
def passed() -> Iterator[list[str]]:
    names: list[str] = []
    set_hook(names.append)
    yield names
    set_hook(None)


def test_a_hook_takes_the_place_of_the_files(
    passed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.kits.failpoint._directory", str(tmp_path))
    (tmp_path / "chunk-routed").touch()
    failpoint("chunk-routed")
    assert passed == ["chunk-routed"]
    assert (tmp_path / "chunk-routed").exists()
