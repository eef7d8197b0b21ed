"""Times, spans and tables as people read them, and moments as people write them."""

import time
from typing import Any

import pytest
import typer

from paceline.cli import inputs, showing

AT = 1_773_136_800_000


@pytest.fixture
def jerusalem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Jerusalem")
    time.tzset()


def test_times_are_of_this_terminal_with_their_offset(jerusalem: None) -> None:
    assert showing.when(AT) == "2026-03-10 12:00:00 +02:00"
    assert showing.when(None) is None


def test_utc_is_short() -> None:
    assert showing.when(AT) == "2026-03-10 10:00:00Z"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("2026-03-10 12:00", AT, id="of this terminal"),
        pytest.param("2026-03-10T10:00:00+00:00", AT, id="with an offset"),
        pytest.param("2026-03-10T10:00:00Z", AT, id="UTC"),
        pytest.param(str(AT), AT, id="Unix milliseconds"),
    ],
)
def test_moments(jerusalem: None, words: str, expected: int) -> None:
    assert inputs.moment(words) == expected


@pytest.mark.parametrize("words", ["soon", "", "2026-13-01", "12:00"])
def test_what_is_no_moment_is_wrong_usage(words: str) -> None:
    with pytest.raises(typer.Exit) as ended:
        inputs.moment(words)
    assert ended.value.exit_code == 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.6, "1 min"), (90, "1 min 30 s"), (3_600, "1 h"), (183_600, "2 d 3 h"), (86_461, "1 d 1 min")],
)
def test_spans(seconds: float, words: str) -> None:
    assert showing.span(seconds) == words


@pytest.mark.parametrize(("offset", "words"), [(-90, "1 min 30 s ago"), (7_200, "in 2 h"), (0, "now")])
def test_ago(monkeypatch: pytest.MonkeyPatch, offset: int, words: str) -> None:
    monkeypatch.setattr(time, "time", lambda: AT / 1000)
    assert showing.ago(AT + offset * 1000) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param(None, "—", id="nothing"),
        pytest.param([], "—", id="an empty list"),
        pytest.param(True, "yes", id="yes"),
        pytest.param(["a", "b"], "a, b", id="a list"),
        pytest.param("[red]x[/red]", "[red]x[/red]", id="no markup"),
        pytest.param("a\x1b[2Jb\x9b", "a\ufffd[2Jb\ufffd", id="no command to the terminal"),
        pytest.param("שלום", "שלום", id="right to left"),
    ],
)
def test_cells(value: Any, words: str) -> None:
    assert showing.text_of(value).plain == words


def test_an_empty_table_is_a_sentence_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    showing.table("A B", [], empty="Nothing.")
    assert capsys.readouterr() == ("", "Nothing.\n")
