"""Every command: it has help and an example that works, and with --json it prints what the API said, byte for byte."""

import re
import shlex
from pathlib import Path
from typing import Any

import httpx
import pytest

from paceline.cli.exits import MEANINGS, Exit
from paceline.cli.reference import leaves

from .conftest import Standin, run

LEAVES = list(leaves())
BY_NAME = dict(LEAVES)
ODD = (
    b'{"odd":  [1, "\\u00e9"],"nextCursor": null, "ok":true,"channels":[], "added": 0,"duplicates": 0,"rejected":[],'
    b'"rejectedTotal":0, "to":"1","canceled":0,"erased":0,"open":0,"suppressed":false}'
)
"""As no encoder of ours would write it, with what some commands look at to say whether all is well."""
NOT_ONE_ANSWER = {
    "paceline doctor": "what it found itself; test_doctor",
    "paceline suppress export": "CSV; test_people",
    "paceline dead-letters show": "one item of a list; test_people",
    "paceline jobs watch": "how the job ended; test_sending",
}
"""Commands with --json that print something else than one answer, and which test has them."""


def _has_json(command: Any) -> bool:
    return any(one.name == "as_json" for one in command.params)


def example(command: Any) -> list[str]:
    (line,) = re.findall(r"Example: `(.+)`", command.help)
    # Up to a pipe or a file: that is the shell's.
    words = shlex.split(re.split(r" [|>] ", line)[0])
    assert words.pop(0) == "paceline"
    return words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("contacts.csv", "optouts.csv", "proxies.txt", "profiles.txt"):
        (tmp_path / name).write_text("to,name\n447700900301,Ada\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=BY_NAME)
def test_it_says_what_it_does_and_how_it_is_typed(name: str, command: Any) -> None:
    words = example(command)
    path = name.split()[1:]
    assert words[: len(path)] == path, "the example is of another command"
    # Parsed as typed, without being run.
    command.make_context(name, words[len(path) :])
    for one in command.params:
        assert one.help, f"{one.name} has no help"


@pytest.mark.parametrize(
    ("name", "command"),
    [pytest.param(name, one, id=name) for name, one in LEAVES if _has_json(one) and name not in NOT_ONE_ANSWER],
)
def test_json_is_what_the_api_said(name: str, command: Any, standin: Standin, folder: Path) -> None:
    standin.answer = lambda _request: httpx.Response(200, content=ODD)
    words = [word for word in example(command) if word not in ("--wait", "--watch")]
    result = run(*words, "--json")
    expected = b"" if command.help.startswith("Take it out of the pool") else ODD + b"\n"
    assert (result.exit_code, result.stdout_bytes) == (0, expected), result.stderr
    assert len(standin.asked) == 1


def test_every_other_command_starts_something() -> None:
    others = {name for name, one in LEAVES if not _has_json(one)}
    services = ("gateway", "dispatcher", "orchestrator", "worker", "dashboard")
    assert others == {f"paceline {name}" for name in ("up", "demo", *services)}


@pytest.mark.parametrize("name", ["paceline", *BY_NAME])
def test_help_fits_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*name.split()[1:], "-h")
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_exit_codes_are_explained_and_in_every_nouns_help() -> None:
    assert set(MEANINGS) == set(Exit)
    told = " ".join(run("jobs", "-h").stdout.split())
    assert "0 done, 1 failed, 2 wrong usage, 3 not reachable, 4 refused, 5 not in time" in told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = run("--show-completion", shell)
    assert result.exit_code == 0
    assert "_PACELINE_COMPLETE" in result.stdout


def test_the_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", run("--version").stdout)
