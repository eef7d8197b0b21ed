"""The simulated WhatsApp: each behaviour as a row, receipts from the id alone, and the ledger's lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.kits.rng import new_rng
from paceline.worker.drivers.base import (
    Accepted,
    Connected,
    Delivered,
    Disconnected,
    DriverEvent,
    OutgoingMessage,
    Read,
    Refused,
    SendAck,
)
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import FileLedger, LedgerBook, LedgerLine, MemoryLedger
from paceline.worker.drivers.whatsapp import WhatsApp, receipts_of

NOW = 1_800_000_000_000
TO = "447700900001"
HOUR_MS = 3_600_000


def message(number: int = 1) -> OutgoingMessage:
    return OutgoingMessage(f"t{number}", f"id-{number}", TO, "hello")


def connected(**behaviour: Any) -> WhatsApp:
    whatsapp = WhatsApp("s1", Behaviour(**behaviour))
    assert whatsapp.connect(NOW) == Connected(NOW)
    return whatsapp


def send(whatsapp: WhatsApp, number: int = 1, at: int = NOW) -> LedgerLine | None:
    """The line in the ledger, None if the message was not accepted."""
    answer = whatsapp.receive(message(number), now_ms=at, rng=new_rng(1))
    return answer if isinstance(answer, LedgerLine) else None


def kinds(events: list[DriverEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


@pytest.mark.parametrize(
    ("behaviour", "accepted", "expected"),
    [
        ({}, True, ["SendAck", "Delivered", "Read"]),
        ({"read_ratio": 0.0}, True, ["SendAck", "Delivered"]),
        ({"delivered_ratio": 0.0}, True, ["SendAck"]),
        ({"reply_ratio": 1.0}, True, ["SendAck", "Delivered", "Read", "Received"]),
        ({"lost_ack": 1.0}, True, ["Delivered", "Read"]),
        ({"lose_ack_every": 1}, True, ["Delivered", "Read"]),
        ({"slow_ack": 1.0}, True, ["Delivered", "SendAck", "Read"]),
        ({"disconnect_after": 1.0}, True, ["Disconnected"]),
        ({"disconnect_before": 1.0}, False, ["Disconnected"]),
        ({"disconnect_every": 1}, False, ["Disconnected"]),
        ({"ban": 1.0}, False, ["Disconnected"]),
        ({"rate_limit": 1.0}, False, ["SendAck"]),
        ({"rate_limit_every": 1}, False, ["SendAck"]),
        ({"rate_limited": frozenset({TO})}, False, ["SendAck"]),
        ({"not_registered": 1.0}, False, ["SendAck"]),
        ({"not_on_whatsapp": frozenset({TO})}, False, ["SendAck"]),
        ({"restricted": 1.0}, False, ["SendAck"]),
        ({"restricted_463": frozenset({TO})}, False, ["SendAck"]),
        ({"time_lock": 1.0}, False, ["Restriction", "SendAck"]),
        ({"new_chats": 1}, True, ["SendAck", "Delivered", "Read"]),
    ],
    ids=lambda value: ",".join(value) or "healthy" if isinstance(value, dict) else "",
)
def test_the_table_of_behaviours(behaviour: dict[str, Any], accepted: bool, expected: list[str]) -> None:
    """Each key does what it says: whether the message is accepted, and what the client hears, in order."""
    fixed = {"read_ratio": 1.0, "read_delay_ms": (60_000, 60_000), "slow_ack_delay_ms": (20_000, 20_000)}
    whatsapp = connected(**(fixed | behaviour))
    assert (send(whatsapp) is not None) == accepted
    assert kinds(whatsapp.due(NOW + HOUR_MS)) == expected


@pytest.mark.parametrize(
    ("key", "code"),
    [("rate_limit", "RATE_LIMIT"), ("not_registered", "NOT_ON_WHATSAPP"), ("restricted", "RESTRICTED_463")],
)
def test_a_refusal_names_its_code(key: str, code: str) -> None:
    """The codes are those of domain.failures."""
    whatsapp = connected(**{key: 1.0})
    send(whatsapp)
    (event,) = whatsapp.due(NOW + HOUR_MS)
    assert isinstance(event, SendAck)
    assert isinstance(event.outcome, Refused)
    assert event.outcome.code == code


@pytest.mark.parametrize(("dedupe", "deliveries"), [(True, 1), (False, 2)])
def test_a_repeated_id_is_recorded_and_delivered_again_only_without_deduplication(
    dedupe: bool, deliveries: int
) -> None:
    """Both lines are in the ledger, the second marked; both are acked."""
    whatsapp = connected(dedupe=dedupe, read_ratio=0.0)
    first, second = send(whatsapp), send(whatsapp, at=NOW + 60_000)
    assert first is not None
    assert second is not None
    assert (first.repeat, second.repeat) == (False, True)
    events = whatsapp.due(NOW + HOUR_MS)
    assert kinds(events).count("Delivered") == deliveries
    assert events.count(SendAck("id-1", Accepted())) == 2


def test_an_id_is_known_after_a_restart() -> None:
    """The ledger of an earlier life makes a repetition a repetition."""
    line = send(connected())
    assert line is not None
    whatsapp = WhatsApp("s1")
    whatsapp.recall(line)
    whatsapp.connect(NOW)
    again = send(whatsapp)
    assert again is not None
    assert again.repeat


@pytest.mark.parametrize(("away_ms", "expected"), [(HOUR_MS, ["Delivered", "Read"]), (25 * HOUR_MS, [])])
def test_receipts_that_fell_due_while_nobody_was_connected_come_at_the_next_connection(
    away_ms: int, expected: list[str]
) -> None:
    """Kept for 24 hours, by a server that was itself restarted."""
    line = send(connected(read_ratio=1.0))
    assert line is not None
    whatsapp = WhatsApp("s1", Behaviour(read_ratio=1.0))
    whatsapp.recall(line)
    whatsapp.connect(NOW + away_ms)
    assert kinds(whatsapp.due(NOW + away_ms)) == expected


def test_an_ack_dies_with_its_connection_and_a_receipt_does_not() -> None:
    """After a reconnect only the receipt comes."""
    whatsapp = connected(read_ratio=0.0)
    send(whatsapp)
    whatsapp.disconnect()
    assert whatsapp.due(NOW + HOUR_MS) == []
    whatsapp.connect(NOW + HOUR_MS)
    assert kinds(whatsapp.due(NOW + HOUR_MS)) == ["Delivered"]


def test_a_ban_lasts() -> None:
    """No connection after a ban."""
    whatsapp = connected(ban=1.0)
    send(whatsapp)
    assert whatsapp.due(NOW) == [Disconnected(403, "account banned")]
    assert whatsapp.connect(NOW + HOUR_MS) == Disconnected(403, "account banned")


def test_going_offline_ends_a_standing_connection() -> None:
    """The file changed under a running worker: 408, and back when it changes again."""
    whatsapp = connected()
    whatsapp.behaviour = Behaviour(offline=True)
    assert whatsapp.due(NOW) == [Disconnected(408, "offline")]
    assert whatsapp.connect(NOW) == Disconnected(408, "offline")
    whatsapp.behaviour = Behaviour()
    assert whatsapp.connect(NOW) == Connected(NOW)


def test_probabilities_exclude_each_other() -> None:
    """One draw walks along them, so 30 % and 20 % of many messages are 30 % and 20 %."""
    behaviour = Behaviour(rate_limit=0.3, lost_ack=0.2, delivered_ratio=0.0)
    whatsapp = WhatsApp("s1", behaviour)
    whatsapp.connect(NOW)
    rng = new_rng(7)
    answers = [whatsapp.receive(message(n), now_ms=NOW, rng=rng) for n in range(2_000)]
    accepted = sum(isinstance(answer, LedgerLine) for answer in answers)
    events = whatsapp.due(NOW + HOUR_MS)
    acked = sum(isinstance(event, SendAck) and isinstance(event.outcome, Accepted) for event in events)
    assert 0.66 < accepted / 2_000 < 0.74
    assert 0.46 < acked / 2_000 < 0.54


@given(number=st.integers(), at=st.integers(0, NOW))
def test_receipts_follow_from_the_id_and_lie_in_their_windows(number: int, at: int) -> None:
    """Drawn twice they are the same; delivered within its window, read after delivered within its own."""
    line = LedgerLine(at, "s1", TO, f"id-{number}", "t", "x")
    behaviour = Behaviour(read_ratio=1.0)
    delivered, read = receipts_of(line, behaviour)
    assert receipts_of(line, behaviour) == [delivered, read]
    assert isinstance(delivered, Delivered)
    assert isinstance(read, Read)
    assert 300 <= delivered.at_ms - at <= 3_000
    assert 2_000 <= read.at_ms - delivered.at_ms <= 60_000


def test_a_ledger_line_looks_as_promised(tmp_path: Path) -> None:
    """The keys of the contract and no others; `repeat` and `mediaSha256` only where they say something."""
    ledger = FileLedger(tmp_path, "s1")
    ledger.append(LedgerLine(NOW, "s1", TO, "id-1", "t1", "hello"))
    ledger.append(LedgerLine(NOW, "s1", TO, "id-1", "t1", "hello", media_sha256="ab", repeat=True))
    plain = {"at": NOW, "sessionId": "s1", "to": TO, "whatsappId": "id-1", "taskId": "t1", "text": "hello"}
    lines = [json.loads(line) for line in (tmp_path / "s1.jsonl").read_text().splitlines()]
    assert lines == [plain, {**plain, "mediaSha256": "ab", "repeat": True}]


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_two_workers_of_one_session_see_each_others_lines(kind: str, tmp_path: Path) -> None:
    """They must not exist; if they do, the ledger still tells a repetition."""
    book = LedgerBook()
    one, two = (FileLedger(tmp_path, "s1") if kind == "file" else MemoryLedger(book) for _ in range(2))
    line = LedgerLine(NOW, "s1", TO, "id-1", "t1", "hello")
    one.append(line)
    assert one.unread() == []
    assert two.unread() == [line]
    assert two.unread() == []
    two.record_ban()
    assert one.banned


def test_a_torn_ledger_line_was_never_accepted(tmp_path: Path) -> None:
    """A power cut in the middle of a line: it is cut off, and the next line stands alone."""
    line = LedgerLine(NOW, "s1", TO, "id-1", "t1", "hello")
    FileLedger(tmp_path, "s1").append(line)
    with (tmp_path / "s1.jsonl").open("ab") as file:
        file.write(b'{"at":18')
    ledger = FileLedger(tmp_path, "s1")
    assert ledger.unread() == [line]
    ledger.append(line)
    assert FileLedger(tmp_path, "s1").unread() == [line, line]
