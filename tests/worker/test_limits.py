"""The platform's limits in the simulated WhatsApp: the time lock, the cap on new chats, and what outlives a worker."""

from pathlib import Path
from typing import Any

import pytest

from paceline.kits.rng import new_rng
from paceline.worker.drivers.account import Account, Standing
from paceline.worker.drivers.base import DriverEvent, OutgoingMessage, Refused, Restriction, SendAck
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import FileLedger, Ledger, LedgerBook, LedgerLine, MemoryLedger, Refusal
from paceline.worker.drivers.reaction import Accept, Drop, Reaction, Restrict, react
from paceline.worker.drivers.whatsapp import WhatsApp

NOW = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ADA, BOB, EVE = "447700900001", "447700900002", "447700900003"


class Line:
    """One session's connection, and the answers it heard."""

    def __init__(self, account: Account | None = None, session: str = "s1", **behaviour: Any) -> None:
        self.behaviour = Behaviour(delivered_ratio=0.0, **behaviour)
        self.whatsapp = WhatsApp(session, self.behaviour, account=account)
        self.whatsapp.connect(NOW)
        self._sent = 0

    def send(self, to: str, at: int = NOW) -> str:
        """`sent`, or the code it was refused with."""
        self._sent += 1
        message = OutgoingMessage(f"t{self._sent}", f"id-{self._sent}", to, "hello")
        answer = self.whatsapp.receive(message, now_ms=at, rng=new_rng(1))
        if isinstance(answer, LedgerLine):
            return "sent"
        assert isinstance(answer, Refusal)
        assert (answer.to, answer.task_id, answer.session_id) == (to, message.task_id, self.whatsapp.session_id)
        return answer.code

    def stated(self, at: int) -> list[Restriction]:
        return stated(self.whatsapp.due(at))

    def calm(self) -> None:
        """From here on no message causes a new lock."""
        self.whatsapp.behaviour = Behaviour(delivered_ratio=0.0)

    def reconnect(self, at: int) -> list[Restriction]:
        self.whatsapp.disconnect()
        self.whatsapp.connect(at)
        return self.stated(at)


def stated(events: list[DriverEvent]) -> list[Restriction]:
    return [event for event in events if isinstance(event, Restriction)]


NEW, LOCKED, CAPPED = Standing(is_new=True), Standing(is_new=True, locked=True), Standing(is_new=True, capped=True)
KNOWN_BUT_LIMITED = Standing(locked=True, capped=True)


@pytest.mark.parametrize(
    ("behaviour", "standing", "expected"),
    [
        ({}, NEW, Accept),
        ({}, LOCKED, "RESTRICTED_463"),
        ({}, CAPPED, "CAPPED"),
        ({}, Standing(is_new=True, locked=True, capped=True), "RESTRICTED_463"),
        ({}, KNOWN_BUT_LIMITED, Accept),
        ({"time_lock": 1.0}, NEW, "TIME_LOCKED"),
        ({"time_lock": 1.0}, Standing(), Accept),
        ({"time_lock": 1.0}, CAPPED, "CAPPED"),
        ({"time_lock": 1.0}, LOCKED, "RESTRICTED_463"),
        ({"not_on_whatsapp": frozenset({ADA})}, LOCKED, "NOT_ON_WHATSAPP"),
        ({"disconnect_every": 1}, LOCKED, "RESTRICTED_463"),
        ({"disconnect_every": 1}, KNOWN_BUT_LIMITED, Drop),
        ({"ban": 1.0}, CAPPED, "CAPPED"),
        ({"restricted": 1.0}, NEW, "RESTRICTED_463"),
    ],
)
def test_lists_come_before_limits_and_limits_before_counters_and_chance(
    behaviour: dict[str, Any], standing: Standing, expected: str | type[Reaction]
) -> None:
    """One row per pair that could be confused."""
    reaction = react(Behaviour(**behaviour), ADA, 1, new_rng(1), standing)
    match reaction:
        case Restrict(kind=kind, refusal=refusal):
            assert (kind, refusal.code) == (expected, "RESTRICTED_463")
        case Refused(code=code):
            assert code == expected
        case _:
            assert type(reaction) is expected


def test_a_lock_is_stated_once_and_holds_for_new_people_alone() -> None:
    """The message that causes it and every other to somebody new is refused; known chats go on; then it is over."""
    line = Line()
    assert line.send(ADA) == "sent"
    line.whatsapp.behaviour = Behaviour(time_lock=1.0, delivered_ratio=0.0)
    assert line.send(BOB, NOW + 1_000) == "RESTRICTED_463"
    end = NOW + 1_000 + HOUR_MS
    assert line.stated(NOW + 2_000) == [Restriction("TIME_LOCKED", end, NOW + 1_000)]
    line.calm()
    assert [line.send(to, NOW + 2_000) for to in (ADA, BOB, EVE)] == ["sent", "RESTRICTED_463", "RESTRICTED_463"]
    assert line.send(EVE, end - 1) == "RESTRICTED_463"
    assert line.send(EVE, end) == "sent"
    assert line.stated(end + HOUR_MS) == [], "neither told again nor told that it is over"


def test_a_lock_is_told_again_at_every_connect_while_it_lasts() -> None:
    line = Line(time_lock=1.0, time_lock_ms=10_000)
    line.send(ADA)
    assert line.reconnect(NOW + 5_000) == [Restriction("TIME_LOCKED", NOW + 10_000, NOW + 5_000)]
    assert line.reconnect(NOW + 10_000) == []


def test_a_statement_that_its_connection_did_not_live_to_hear_is_not_lost() -> None:
    """The push dies with its connection; the next one begins with it."""
    line = Line(time_lock=1.0)
    line.send(ADA)
    assert line.reconnect(NOW + 1) == [Restriction("TIME_LOCKED", NOW + HOUR_MS, NOW + 1)]


def test_a_cap_counts_new_people_and_ends_with_its_cycle() -> None:
    """Two new chats a cycle: the third is refused, whoever is known goes on, the next cycle begins with a new chat."""
    line = Line(new_chats=2, new_chats_cycle_ms=HOUR_MS)
    assert [line.send(to) for to in (ADA, ADA, BOB, ADA)] == ["sent"] * 4
    assert line.stated(NOW + 1) == [], "a cap that is reached is no refusal yet"
    assert line.send(EVE, NOW + 1_000) == "RESTRICTED_463"
    assert line.stated(NOW + 1_000) == [Restriction("CAPPED", NOW + HOUR_MS, NOW + 1_000)]
    assert line.send(BOB, NOW + 2_000) == "sent"
    later = NOW + HOUR_MS + 500
    assert [line.send(to, later) for to in (EVE, "447700900004", "447700900005")] == ["sent", "sent", "RESTRICTED_463"]
    assert line.stated(later) == [Restriction("CAPPED", later + HOUR_MS, later)]


def test_a_cap_that_is_used_up_is_told_at_connect() -> None:
    line = Line(new_chats=1, new_chats_cycle_ms=HOUR_MS)
    line.send(ADA)
    assert line.reconnect(NOW + 1) == [Restriction("CAPPED", NOW + HOUR_MS, NOW + 1)]
    assert line.reconnect(NOW + HOUR_MS) == []


def test_a_lock_does_not_hide_the_cap_at_connect() -> None:
    """They add up: who is told of the lock alone starts new chats after its end and is refused."""
    line = Line(new_chats=1, new_chats_cycle_ms=DAY_MS)
    line.send(ADA)
    line.whatsapp.account.lock(NOW + HOUR_MS)
    assert line.reconnect(NOW + 1) == [
        Restriction("TIME_LOCKED", NOW + HOUR_MS, NOW + 1),
        Restriction("CAPPED", NOW + DAY_MS, NOW + 1),
    ]


def test_a_message_that_was_not_accepted_starts_no_chat() -> None:
    """Refused or cut off: the person stays new and the cycle stays unused."""
    line = Line(new_chats=1, not_on_whatsapp=frozenset({ADA}))
    assert line.send(ADA) == "NOT_ON_WHATSAPP"
    assert line.send(BOB) == "sent"
    assert line.send(EVE) == "RESTRICTED_463"


def test_somebody_who_wrote_first_is_no_new_chat() -> None:
    """Their message is heard, uses nothing of the cap, and a lock does not hold for them."""
    line = Line(new_chats=1, time_lock=1.0)
    line.whatsapp.hear(ADA, "hi", "3A01", NOW)
    assert [type(event).__name__ for event in line.whatsapp.due(NOW)] == ["Received"]
    assert line.send(BOB) == "RESTRICTED_463"
    assert line.send(ADA) == "sent"


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_chats_cycle_and_lock_survive_the_worker(kind: str, tmp_path: Path) -> None:
    """Everything the server knew of the account it still knows in the worker's next life."""
    book = LedgerBook()

    def life(**behaviour: Any) -> tuple[Line, Ledger]:
        ledger: Ledger = FileLedger(tmp_path, "s1") if kind == "file" else MemoryLedger(book)
        line = Line(ledger.account, **behaviour)
        for known in ledger.unread():
            line.whatsapp.recall(known)
        return line, ledger

    _, ledger = life(new_chats=2)
    ledger.append(LedgerLine(NOW, "s1", ADA, "id-a", "ta", "hello"))
    line, ledger = life(time_lock=1.0)
    assert line.send(BOB) == "RESTRICTED_463"
    ledger.record_lock()
    line, _ = life(new_chats=2)
    assert [line.send(to, NOW + 1_000) for to in (ADA, BOB)] == ["sent", "RESTRICTED_463"]
    assert line.reconnect(NOW + 1_000) == [Restriction("TIME_LOCKED", NOW + HOUR_MS, NOW + 1_000)]
    assert [line.send(to, NOW + HOUR_MS) for to in (BOB, EVE)] == ["sent", "RESTRICTED_463"]
    assert line.stated(NOW + HOUR_MS) == [Restriction("CAPPED", NOW + DAY_MS, NOW + HOUR_MS)]


def test_a_lock_is_a_small_file_that_a_person_may_remove(tmp_path: Path) -> None:
    """It holds the end of the lock; gone or unreadable it means that there is none."""
    ledger = FileLedger(tmp_path, "s1")
    ledger.record_lock()
    assert not (tmp_path / "s1.locked").exists(), "no lock, no file"
    ledger.account.lock(NOW)
    ledger.record_lock()
    assert (tmp_path / "s1.locked").read_text() == f"{NOW}\n"
    assert FileLedger(tmp_path, "s1").account.locked_until_ms == NOW
    (tmp_path / "s1.locked").write_text("soon")
    assert FileLedger(tmp_path, "s1").account.locked_until_ms == 0
    (tmp_path / "s1.locked").unlink()
    assert FileLedger(tmp_path, "s1").account.locked_until_ms == 0


def test_two_sessions_of_a_number_are_one_account() -> None:
    """The platform looks at the number: a chat or a lock of one session is one of the other."""
    account = Account()
    one, two = Line(account, "s1"), Line(account, "s2", time_lock=1.0)
    assert one.send(ADA) == "sent"
    assert [two.send(to) for to in (ADA, BOB)] == ["sent", "RESTRICTED_463"]
    assert one.send(BOB, NOW + 1) == "RESTRICTED_463"


def test_a_refusal_without_a_stated_limit_stays_one() -> None:
    """`restricted` and `restricted_463` refuse with 463 and lock nothing."""
    line = Line(restricted_463=frozenset({ADA}))
    assert [line.send(to) for to in (ADA, BOB)] == ["RESTRICTED_463", "sent"]
    events = line.whatsapp.due(NOW + HOUR_MS)
    assert stated(events) == []
    assert sum(isinstance(event, SendAck) for event in events) == 2
