"""Jobs and messages in words: every state has some, and a bar adds up."""

import pytest

from paceline.client import Progress
from paceline.client.answers_jobs import Fault, MessageItem, Times, Waiting
from paceline.dashboard.parts import work
from paceline.domain.states import MESSAGE_STATE, JobState


def progress(**counts: int) -> Progress:
    names = [field for field in Progress.__struct_fields__ if field != "total"]
    return Progress(total=counts.pop("total", 10), **{name: counts.get(name, 0) for name in names})


def message(**fields: object) -> MessageItem:
    known = {
        "message_id": "j:0", "job_id": "j", "index": 0, "to": "1", "state": "queued", "client_ref": None, "phone": None,
        "session_id": None, "whatsapp_id": None, "attempts": 0, "times": Times(), "last_error": None, "waiting": None,
    }  # fmt: skip
    return MessageItem(**{**known, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("state", list(JobState))
def test_every_state_of_a_job_has_words(state: str) -> None:
    assert work.job_state(state)["title"] == state
    assert state in work._JOB


@pytest.mark.parametrize("state", sorted(set(MESSAGE_STATE.values())))
def test_every_state_of_a_message_has_words_and_a_filter(state: str) -> None:
    assert state in work._MESSAGE
    assert sum(state in states.split(",") for states in work.FILTERS) == 1


def test_a_state_nobody_told_us_of_is_shown_as_it_is() -> None:
    assert work.job_state("RESTING") == {"text": "resting", "tone": "plain", "title": "RESTING"}
    assert work.message_state("resting") == {"text": "resting", "tone": "plain"}


def test_a_bar_shows_each_message_once() -> None:
    """`sent` counts delivered ones, and those count read ones: the parts do not."""
    bar = work.progress_bar(progress(sent=6, delivered=4, read=1, failed=2, queued=2))
    assert [(part["label"], part["value"]) for part in bar["parts"]] == [
        ("read", 1), ("delivered", 3), ("sent", 2), ("failed", 2),
    ]  # fmt: skip
    assert bar["text"] == "6 of 10 sent, 2 failed"
    assert bar["title"] == "1 read, 3 delivered, 2 sent, 2 failed, 2 waiting"


def test_a_number_is_written_as_people_do() -> None:
    assert work.number("447700900301") == "+44 7700 900301"
    assert work.number("erased") == "erased"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"waiting": Waiting(reason="PACING", until=1, text="It rests.")}, "It rests.", id="waits"),
        pytest.param(
            {"state": "failed", "last_error": Fault(code="NOT_ON_WHATSAPP", message="")}, "NOT_ON_WHATSAPP", id="a code"
        ),
        pytest.param(
            {"state": "failed", "last_error": Fault(code="NO_ACK", message="lost")}, "NO_ACK: lost", id="code and words"
        ),
        pytest.param(
            {"state": "sent", "last_error": Fault(code="NO_ACK", message="lost")}, "", id="went out in the end"
        ),
        pytest.param({}, "", id="nothing to say"),
    ],
)
def test_why(fields: dict[str, object], words: str) -> None:
    assert work.why(message(**fields)) == words
