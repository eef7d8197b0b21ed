"""What waits to be told stays until it is heard. A full line drops what is missed least, and says so."""

import pytest
from structlog.testing import capture_logs

from paceline.kits.rng import new_rng
from paceline.worker import poster
from paceline.worker.poster import MESSAGE_RECEIVED, Poster
from paceline.worker.protocol import ProtocolUnavailable, RequestRefused, WorkerEvent
from paceline.worker.shift import Shift

from .stage import ClockWake, MemoryDisk, MemoryJournal, Stage, VirtualClock

ROOM = 10


class Orchestrator:
    """Answers when it is back, and remembers what it was told."""

    def __init__(self) -> None:
        self.is_away = True
        self.refusal: Exception = ProtocolUnavailable("away")
        self.told: list[WorkerEvent] = []

    async def webhook(self, event: WorkerEvent) -> None:
        if self.is_away:
            raise self.refusal
        self.told.append(event)


class Line:
    """A poster before an orchestrator that is away."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.orchestrator = Orchestrator()
        journal = MemoryJournal(MemoryDisk(), new_id=lambda: "journal-1", now_ms=self.clock.now_ms)
        self.poster = Poster(
            Shift("s1", "instance-1", "life-1", journal),
            protocol=self.orchestrator,  # type: ignore[arg-type]
            clock=self.clock,
            rng=new_rng(1),
            wake=ClockWake(self.clock),
            ping_every_ms=0,
        )
        self.stage = Stage(self.clock)
        self.stage.spawn(self.poster.run)

    def receipt(self, number: int) -> None:
        event = WorkerEvent("s1", "MESSAGE_DELIVERED", {}, self.clock.now_ms(), f"receipt-{number}")
        self.poster.post(event, receipt=(f"id-{number}", "delivered"))

    def word(self, number: int) -> None:
        self.poster.post(WorkerEvent("s1", MESSAGE_RECEIVED, {}, self.clock.now_ms(), f"word-{number}"))

    def told(self) -> list[str]:
        """Everything it has, once the orchestrator is back."""
        self.orchestrator.is_away = False
        self.stage.run(lambda: not self.poster._waiting, within_ms=3_600_000)
        return [event.event_id for event in self.orchestrator.told]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setattr(poster, "_MAX_WAITING", ROOM)
    return Line()


def test_a_stop_word_outlives_any_number_of_receipts_that_come_after_it(line: Line) -> None:
    """The oldest was dropped, whatever it was: a "stop" before thousands of receipts was lost without a word."""
    line.word(1)
    for number in range(5 * ROOM):
        line.receipt(number)
    told = line.told()
    assert told[0] == "word-1"
    assert told[1:] == [f"receipt-{number}" for number in range(5 * ROOM - ROOM + 1, 5 * ROOM)]


def test_receipts_go_first_then_words_of_the_session_then_words_of_people(line: Line) -> None:
    line.poster.tell("CONNECTED", {})
    line.word(0)
    for number in range(3):
        line.receipt(number)
    for number in range(1, ROOM):
        line.word(number)
    assert line.told() == [f"word-{number}" for number in range(ROOM)]


def test_what_is_dropped_is_counted_in_the_log_and_a_persons_word_is_an_error(line: Line) -> None:
    with capture_logs() as logged:
        for number in range(ROOM + 3):
            line.word(number)
    assert [(entry["log_level"], entry["name"], entry["dropped"]) for entry in logged] == [
        ("error", MESSAGE_RECEIVED, 1)
    ]
    assert line.told() == [f"word-{number}" for number in range(3, ROOM + 3)]
    assert line.poster._dropped == {MESSAGE_RECEIVED: 3}


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_our_secret_is_no_answer(line: Line, status: int) -> None:
    """What a person wrote while WEBHOOK_SECRET was changed was dropped, a "stop" as well."""
    line.orchestrator.refusal = RequestRefused(status, "UNAUTHORIZED", "no")
    line.word(1)
    line.stage.run(lambda: False, within_ms=60_000)
    assert line.told() == ["word-1"]
