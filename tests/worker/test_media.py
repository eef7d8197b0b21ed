"""Tasks with a file: fetched and checked before anything is typed, sent under one id with one hash, whatever dies."""

import hashlib

import pytest

from paceline.domain.media import Media
from paceline.worker.drivers.base import OutgoingMedia, OutgoingMessage
from paceline.worker.protocol import ProtocolUnavailable, RequestRefused

from .stage import NAP_MS, Theatre

PICTURE = b"\x89PNG\r\n\x1a\n" + b"pixels" * 100
REF = f"{hashlib.sha256(PICTURE).hexdigest()}-png"
TASK = "01JB0000000000000000000000:0"
GONE = RequestRefused(404, "UNKNOWN_MEDIA", "no")


def theatre_with_a_picture(*, tasks: int = 1, **behaviour: object) -> Theatre:
    theatre = Theatre(**behaviour)
    theatre.orchestrator.files[REF] = PICTURE
    for index in range(tasks):
        theatre.orchestrator.add(f"01JB0000000000000000000000:{index}", mode="image", media_ref=REF, text="look")
    return theatre


def fetches(theatre: Theatre) -> int:
    return sum(name == "media" for name, _ in theatre.orchestrator.calls)


def test_a_picture_goes_out_with_its_caption_and_its_hash() -> None:
    theatre = theatre_with_a_picture()
    theatre.start()
    assert theatre.play()
    (line,) = theatre.ledger.lines
    assert (line.mode, line.text, line.media_sha256) == ("image", "look", Media(REF, "image/png", 1).sha256)


def test_the_file_is_there_before_anybody_sees_us_typing() -> None:
    theatre = theatre_with_a_picture()
    theatre.start()
    assert theatre.play(until=lambda: fetches(theatre) > 0)
    assert theatre.whatsapp.last_typing is None


def test_one_file_for_many_is_fetched_once() -> None:
    theatre = theatre_with_a_picture(tasks=5)
    theatre.start()
    assert theatre.play()
    assert (fetches(theatre), len(theatre.ledger.lines)) == (1, 5)


def test_a_message_without_media_asks_for_none() -> None:
    theatre = Theatre()
    theatre.orchestrator.add(TASK)
    theatre.start()
    assert theatre.play()
    assert fetches(theatre) == 0
    assert (theatre.ledger.lines[0].mode, theatre.ledger.lines[0].media_sha256) == ("message", None)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ProtocolUnavailable("no answer"), id="no answer"),
        pytest.param(GONE, id="gone"),
    ],
)
def test_without_its_file_a_task_is_refused_as_certainly_not_sent(error: Exception) -> None:
    theatre = theatre_with_a_picture()
    theatre.orchestrator.media_errors = [error]
    theatre.start()
    assert theatre.play()
    assert ("nack", (True, "MEDIA_UNAVAILABLE")) in theatre.orchestrator.calls
    assert theatre.ledger.lines == []
    assert theatre.whatsapp.last_typing is None


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(PICTURE[:-1], id="a byte short"),
        pytest.param(PICTURE[:-1] + b"?", id="another byte"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_file_that_is_not_the_one_named_is_not_sent(given: bytes) -> None:
    theatre = theatre_with_a_picture()
    asked = theatre.orchestrator.media

    async def other(ref: str, *, size: int) -> bytes:
        await asked(ref, size=size)
        return given

    theatre.orchestrator.media = other  # type: ignore[method-assign]
    theatre.start()
    assert theatre.play()
    assert ("nack", (True, "MEDIA_UNAVAILABLE")) in theatre.orchestrator.calls
    assert theatre.ledger.lines == []


def test_a_file_that_could_not_be_fetched_is_asked_for_again_with_the_next_task() -> None:
    """A failure is not remembered in place of the file."""
    theatre = theatre_with_a_picture(tasks=2)
    theatre.orchestrator.media_errors = [GONE]
    theatre.start()
    assert theatre.play()
    assert [line.task_id[-1] for line in theatre.ledger.lines] == ["1"]


@pytest.mark.parametrize(
    "task",
    [
        pytest.param({"mode": "sticker"}, id="a mode nobody knows"),
        pytest.param({"mode": "image"}, id="an image without a file"),
        pytest.param({"mode": "message", "media_ref": REF}, id="a message with a file"),
    ],
)
def test_what_this_worker_cannot_send_so_is_refused(task: dict[str, str]) -> None:
    theatre = Theatre()
    theatre.orchestrator.files[REF] = PICTURE
    theatre.orchestrator.add(TASK, **task)
    theatre.start()
    assert theatre.play()
    assert theatre.orchestrator.tasks[TASK].errors == ["SEND_FAILED"]
    assert theatre.ledger.lines == []


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
@pytest.mark.parametrize("behaviour", [{}, {"lose_ack_every": 2, "delivered_ratio": 0.0}], ids=["healthy", "lost-acks"])
def test_a_crash_between_any_two_awaits_sends_one_file_under_one_id(
    behaviour: dict[str, float], on_unknown: str
) -> None:
    """For every step k, the fetch among them: dropped there and started anew, each task ends once, under one id, and
    every time it was on the wire it was the same file."""
    whole = theatre_with_a_picture(tasks=2, on_unknown=on_unknown, step_ms=NAP_MS, **behaviour)
    whole.start(stepped=True)
    steps = 0
    while not whole.orchestrator.settled:
        whole.stage.step()
        steps += 1
    for k in range(steps):
        theatre = theatre_with_a_picture(tasks=2, on_unknown=on_unknown, step_ms=NAP_MS, **behaviour)
        theatre.start(stepped=True)
        for _ in range(k):
            theatre.stage.step()
        theatre.crash()
        theatre.start()
        assert theatre.play(within_ms=3_600_000), f"a task never came to an end after step {k}"
        theatre.check_ledger()
        assert {line.media_sha256 for line in theatre.ledger.lines} <= {hashlib.sha256(PICTURE).hexdigest()}


def test_a_resend_whose_file_is_gone_does_not_take_back_the_doubt() -> None:
    """The first try may be out. That the second had no file says nothing about it."""
    theatre = theatre_with_a_picture(lose_ack_every=1, delivered_ratio=0.0)
    theatre.start()
    assert theatre.play(until=lambda: bool(theatre.orchestrator.tasks[TASK].unknown_at_ms))
    theatre.orchestrator.media_errors = [GONE]
    theatre.crash()
    theatre.start()
    assert theatre.play()
    entry = theatre.journal.entry(TASK)
    assert entry is not None
    assert entry.maybe_sent
    assert len(theatre.ledger.lines) == 1


def test_neither_a_file_nor_its_name_is_in_what_a_message_shows_of_itself() -> None:
    """Whatever a library or a traceback prints."""
    media = OutgoingMedia("ab", "image/png", b"canary-bytes", "canary-name.png")
    assert "canary" not in repr(OutgoingMessage("t", "w", "1", "x", "image", media))
