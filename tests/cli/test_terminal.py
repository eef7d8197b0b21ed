"""On a terminal there are colours, bars and questions; in a pipe there are none."""

import os
import subprocess
import sys

import pytest
import segno

from paceline.cli import linking
from paceline.cli.exits import Exit

from .conftest import Cli
from .terminal import CONTROL, SOURCE, Terminal

REAL = "2@" + "h5Yk0dQ3vRz8TqWn+/mB7xLc2pEoU=f9Gs" * 7
"""As long as a code of WhatsApp."""


def piped(cli: Cli, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **cli.environment}
    command = [sys.executable, "-m", "paceline.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_table_fits_the_terminal_in_colour_and_is_plain_in_a_pipe(cli: Cli) -> None:
    terminal = Terminal("sessions", "list", env=cli.environment)
    assert terminal.end() == 0
    assert CONTROL.search(terminal.output)
    assert [line for line in terminal.plain.splitlines() if len(line) > 80] == []
    plain = piped(cli, "sessions", "list")
    assert (plain.returncode, plain.stderr) == (0, "")
    assert not CONTROL.search(plain.stdout)
    assert [line for line in plain.stdout.splitlines() if line != line.rstrip()] == []
    without = Terminal("sessions", "list", env={**cli.environment, "NO_COLOR": "1"})
    assert without.end() == 0
    assert "\x1b[32m" not in without.output


def test_a_job_is_watched_as_a_bar_on_a_terminal_and_as_lines_in_a_pipe(cli: Cli) -> None:
    job = cli.out("jobs", "create", "-", "Hello", stdin="to\n447700900330\n447700900331\n").strip()
    terminal = Terminal("jobs", "watch", job, env=cli.environment)
    assert terminal.end() == 0
    assert "━" in terminal.output
    assert "DONE: sent 2" in terminal.plain
    lines = piped(cli, "jobs", "watch", job)
    assert lines.returncode == 0
    assert lines.stdout.splitlines()[-1].startswith("DONE 2/2 sent 2")
    assert "━" not in lines.stdout + lines.stderr


def test_the_watching_is_interrupted_not_the_job(cli: Cli) -> None:
    cli.said("fleet", "pause")
    try:
        job = cli.out("jobs", "create", "-", "Hello", stdin="to\n447700900332\n").strip()
        terminal = Terminal("jobs", "watch", job, env=cli.environment)
        terminal.until("0/1")
        terminal.interrupt()
        assert terminal.end() == Exit.INTERRUPTED
        assert cli.json("jobs", "show", job)["closedAt"] is None
    finally:
        cli.said("fleet", "resume")
    assert piped(cli, "jobs", "watch", job).returncode == 0


@pytest.mark.parametrize(
    ("answer", "exit_code", "words"), [("n", Exit.FAILED, "Nothing was done"), ("y", Exit.REFUSED, "UNKNOWN_JOB")]
)
def test_what_cannot_be_undone_is_asked_for(cli: Cli, answer: str, exit_code: Exit, words: str) -> None:
    terminal = Terminal("jobs", "cancel", "01KKBK4FE0S7MP2BKPJTKCXK0V", env=cli.environment)
    terminal.until("[y/N]")
    terminal.type(f"{answer}\n")
    assert terminal.end() == exit_code
    assert words in terminal.plain


def test_the_code_is_shown_until_the_number_is_linked(cli: Cli, unlinked: str) -> None:
    terminal = Terminal("sessions", "qr", unlinked, env=cli.environment)
    assert "█" in terminal.until("Linked devices")
    cli.said("sessions", "scan", unlinked)
    assert terminal.end() == 0
    assert f"{unlinked} is linked to 447700900077" in terminal.plain


def test_a_session_that_will_show_no_code_is_refused(cli: Cli, unlinked: str) -> None:
    cli.said("sessions", "stop", unlinked)
    cli.wait_for("it to stop", "sessions", "show", unlinked, until=lambda one: one["connection"] == "STOPPED")
    terminal = Terminal("sessions", "qr", unlinked, env=cli.environment)
    assert terminal.end() == Exit.REFUSED
    assert "NOT_RUNNING" in terminal.plain


def test_nobody_scans_is_5(cli: Cli, unlinked: str) -> None:
    terminal = Terminal("sessions", "qr", unlinked, "--timeout", "1", env=cli.environment)
    assert terminal.end() == Exit.TIMED_OUT
    assert "was not linked within 1 s" in terminal.plain


@pytest.mark.parametrize("words", [REAL, "short"])
def test_a_drawing_is_the_code(words: str) -> None:
    lines = linking.drawing(words).plain.split("\n")
    drawn = []
    for line in lines:
        drawn.append([char in "▄ " for char in line])
        drawn.append([char in "▀ " for char in line])
    expected = [list(map(bool, row)) for row in segno.make(words, micro=False).matrix_iter(border=linking.QUIET_ZONE)]
    assert drawn[: len(expected)] == expected
    assert all(len(line) <= 80 for line in lines)


def test_a_reader_that_goes_away_is_no_traceback(cli: Cli) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **cli.environment}
    command = [sys.executable, "-m", "paceline.cli", "sessions", "list", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
