"""What waits to be told stays until it is heard. A full line drops what is missed least, and says so."""

import pytest
from structlog.testing import capture_logs

from paceline.kits.rng import new_rng
from paceline.worker import poster
from paceline.worker.poster import MESSAGE_RECEIVED, Poster
from paceline.worker.protocol import Blocked, ProtocolUnavailable, RequestRefused, WorkerEvent
from paceline.worker.shift import Shift

from .stage import ClockWake, MemoryDisk, MemoryJournal, Stage, VirtualClock

ROOM = 10


class Orchestrator:
    """Answers when it is back, and remembers what it was told."""

    def __init__(self) -> None:
        self.is_away = True
        self.refusal: Exception = ProtocolUnavailable("away")
        self.told: list[WorkerEvent] = []
        self.blocked: set[str] = set()
        """Which events something in between does not let through."""
        self.tries = 0

    async def webhook(self, event: WorkerEvent) -> None:
        self.tries += 1
        if self.is_away:
            raise self.refusal
        if event.event_id in self.blocked or event.event in self.blocked:
            raise Blocked("403 UNREADABLE")
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


def _names(line: Line) -> list[str]:
    names = {"CONNECTED", "DISCONNECTED", "QR"}
    return [event.event if event.event in names else event.event_id for event in line.orchestrator.told]


def test_one_word_that_is_not_let_through_does_not_hold_up_the_others(line: Line) -> None:
    """A firewall refused one person's text, and every later "stop" waited behind it for ever."""
    line.orchestrator.is_away, line.orchestrator.blocked = False, {"word-1"}
    for number in range(1, 4):
        line.word(number)
    assert line.stage.run(lambda: len(line.orchestrator.told) == 2, within_ms=120_000)
    line.word(4)
    assert line.stage.run(lambda: len(line.orchestrator.told) == 3, within_ms=5_000), "it waited for the one put aside"
    assert _names(line) == ["word-2", "word-3", "word-4"]
    line.orchestrator.blocked = set()
    assert line.told()[3:] == ["word-1"]


def test_words_on_the_connection_keep_their_order_whatever_is_let_through(line: Line) -> None:
    line.orchestrator.is_away, line.orchestrator.blocked = False, {"DISCONNECTED"}
    line.poster.tell("DISCONNECTED", {})
    line.word(1)
    line.poster.tell("CONNECTED", {})
    line.word(2)
    line.poster.tell("QR", {})
    line.stage.run(lambda: False, within_ms=600_000)
    assert _names(line) == ["word-1", "word-2"]
    line.orchestrator.blocked = set()
    line.told()
    assert _names(line)[2:] == ["DISCONNECTED", "CONNECTED", "QR"]


def test_those_put_aside_are_tried_in_turn_and_seldom(line: Line) -> None:
    line.orchestrator.is_away, line.orchestrator.blocked = False, {"word-1", "word-2", "word-3"}
    for number in range(1, 4):
        line.word(number)
    line.stage.run(lambda: False, within_ms=1_200_000)
    tries = line.orchestrator.tries
    line.stage.run(lambda: False, within_ms=600_000)
    assert line.orchestrator.tries - tries <= 10
    line.orchestrator.blocked = {"word-1"}
    assert line.stage.run(lambda: len(line.orchestrator.told) == 2, within_ms=180_000)
    line.orchestrator.blocked = set()
    line.told()
    assert sorted(_names(line)) == ["word-1", "word-2", "word-3"]


def test_an_orchestrator_that_is_away_holds_up_all(line: Line) -> None:
    for number in range(1, 4):
        line.word(number)
    line.stage.run(lambda: False, within_ms=600_000)
    assert line.told() == ["word-1", "word-2", "word-3"]
