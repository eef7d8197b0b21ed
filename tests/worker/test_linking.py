"""Linking: codes that change, a scan, a logout; and a worker that does what it is told once, however often it hears."""

from pathlib import Path
from typing import Any

import pytest

from paceline.kits.rng import new_rng
from paceline.worker.core import EXIT_REPLACED
from paceline.worker.drivers.base import CannotLink, Disconnected, DriverEvent, LinkBlocked, QrShown
from paceline.worker.drivers.config import Behaviour
from paceline.worker.drivers.ledger import FileLedger
from paceline.worker.drivers.link import Link
from paceline.worker.protocol import Command, WorkerEvent

from .stage import START_MS, Theatre

NOW = 1_800_000_000_000
BY_QR = Behaviour(linking="qr")
TASK = "01JB0000000000000000000000:0"


def showing(behaviour: Behaviour = BY_QR) -> Link:
    link = Link("s1", linked=False)
    link.open(behaviour, NOW)
    return link


def texts(events: list[DriverEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, QrShown)]


class TestLink:
    @pytest.mark.parametrize(
        ("linked", "linking", "expected"),
        [
            (True, "qr", []),
            (True, "blocked", []),
            (False, "at_once", []),
            (False, "blocked", [LinkBlocked("no device can be linked now")]),
        ],
    )
    def test_whether_it_may_connect(self, linked: bool, linking: Any, expected: list[DriverEvent]) -> None:
        link = Link("s1", linked=linked)
        assert link.open(Behaviour(linking=linking), NOW) == expected
        assert link.linked == (not expected)

    def test_codes_change_every_twenty_seconds(self) -> None:
        link = Link("s1", linked=False)
        seen = texts(link.open(BY_QR, NOW))
        assert link.next_due_ms() == NOW + 20_000
        assert link.due(BY_QR, NOW + 19_999) == []
        seen += texts(link.due(BY_QR, NOW + 20_000)) + texts(link.due(BY_QR, NOW + 40_000))
        assert len(seen) == len(set(seen)) == 3
        assert not link.linked

    def test_of_those_that_passed_only_the_last_is_shown(self) -> None:
        assert len(showing().due(BY_QR, NOW + 45_000)) == 1

    def test_after_the_last_code_the_server_gives_up(self) -> None:
        link = showing(Behaviour(linking="qr", qr_codes=2))
        behaviour = Behaviour(linking="qr", qr_codes=2)
        assert len(texts(link.due(behaviour, NOW + 20_000))) == 1
        assert link.due(behaviour, NOW + 40_000) == [Disconnected(408, "QR_ENDED")]
        assert (link.next_due_ms(), link.linked) == (None, False)
        with pytest.raises(CannotLink):
            link.scan()

    def test_a_scan_links_and_asks_for_a_new_connection(self) -> None:
        link = showing()
        assert link.scan() == Disconnected(515, "restart required")
        assert (link.linked, link.next_due_ms()) == (True, None)
        with pytest.raises(CannotLink):
            link.scan()

    def test_a_pairing_code(self) -> None:
        code = showing().pair(new_rng(1))
        assert len(code.text) == 9
        assert code.text not in repr(code)
        with pytest.raises(CannotLink):
            Link("s1", linked=True).pair(new_rng(1))

    def test_a_logout(self) -> None:
        link = Link("s1", linked=True)
        assert link.logout() == Disconnected(401, "logged out")
        with pytest.raises(CannotLink):
            link.logout()

    def test_a_code_is_in_no_log(self) -> None:
        """Whoever prints an event prints no code."""
        (shown,) = Link("s1", linked=False).open(BY_QR, NOW)
        assert isinstance(shown, QrShown)
        assert shown.text not in repr(shown)


def test_the_link_outlives_the_worker(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path, "s1")
    assert not ledger.linked
    ledger.record_link(True)
    assert FileLedger(tmp_path, "s1").linked
    ledger.record_link(False)
    ledger.record_link(False)
    assert not FileLedger(tmp_path, "s1").linked


def told(theatre: Theatre, *, without: tuple[str, ...] = ("PING",)) -> list[WorkerEvent]:
    return [event for event in theatre.orchestrator.events if event.event not in without]


def names(theatre: Theatre) -> list[str]:
    return [event.event for event in told(theatre)]


class TestWorker:
    def test_by_default_it_is_linked_at_once(self) -> None:
        theatre = Theatre()
        theatre.start()
        assert theatre.play(lambda: bool(names(theatre)))
        assert names(theatre) == ["CONNECTED"]
        assert theatre.ledger.linked

    def test_from_the_first_code_to_the_first_message(self) -> None:
        """QR, scan, 515, CONNECTED; then it sends. The next life of the worker needs no code."""
        theatre = Theatre(linking="qr")
        theatre.orchestrator.add(TASK)
        theatre.start()
        assert theatre.play(lambda: names(theatre) == ["QR", "QR"], within_ms=25_000)
        codes = [event.data["qr"] for event in told(theatre)]
        assert codes[0] != codes[1]
        assert told(theatre)[0].data["expiresInMs"] == 20_000
        assert theatre.orchestrator.tasks[TASK].state == "queued", "it is not connected, so it takes nothing"
        theatre.orchestrator.commands = [Command(id="c1", kind="scan")]
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=5_000)
        theatre.orchestrator.commands = []
        assert theatre.play()
        connection = [event for event in told(theatre)[2:] if not event.event.startswith("MESSAGE")]
        assert [(event.event, event.data.get("code")) for event in connection] == [
            ("COMMAND_DONE", None), ("DISCONNECTED", 515), ("CONNECTED", None),
        ] or [(event.event, event.data.get("code")) for event in connection] == [
            ("DISCONNECTED", 515), ("COMMAND_DONE", None), ("CONNECTED", None),
        ]  # fmt: skip
        theatre.crash()
        theatre.orchestrator.events.clear()
        theatre.start()
        assert theatre.play(lambda: "CONNECTED" in names(theatre))
        assert "QR" not in names(theatre)

    def test_a_pairing_code_goes_with_the_end_of_the_command(self) -> None:
        theatre = Theatre(linking="qr")
        theatre.orchestrator.commands = [Command(id="c1", kind="pair")]
        theatre.start()
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=10_000)
        (end,) = [event for event in told(theatre) if event.event == "COMMAND_DONE"]
        assert (end.data["commandId"], end.data["ok"]) == ("c1", True)
        assert len(str(end.data["pairingCode"])) == 9
        assert end.data["expiresInMs"] == 180_000

    def test_the_same_command_again_and_again_is_done_once(self) -> None:
        """The orchestrator gives it until it hears of the end; that word may take its time."""
        theatre = Theatre(linking="qr")
        theatre.orchestrator.commands = [Command(id="c1", kind="pair")]
        theatre.start()
        assert theatre.play(lambda: len(theatre.orchestrator.calls) > 20, within_ms=60_000)
        assert names(theatre).count("COMMAND_DONE") == 1

    @pytest.mark.parametrize(
        ("kind", "linking"), [("scan", "at_once"), ("pair", "at_once"), ("dance", "at_once"), ("dance", "qr")]
    )
    def test_what_it_cannot_do_it_says(self, kind: str, linking: str) -> None:
        theatre = Theatre(linking=linking)
        theatre.start()
        assert theatre.play(lambda: bool(names(theatre)))
        theatre.orchestrator.commands = [Command(id="c1", kind=kind)]
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=30_000)
        (end,) = [event for event in told(theatre) if event.event == "COMMAND_DONE"]
        assert end.data["ok"] is False
        assert end.data["error"]

    def test_a_logout_is_told_as_such_and_not_as_a_loss(self) -> None:
        """No DISCONNECTED 401, which would be a quarantine; nothing is reconnected; told to go, it goes."""
        theatre = Theatre()
        theatre.start()
        assert theatre.play(lambda: names(theatre) == ["CONNECTED"])
        theatre.orchestrator.commands = [Command(id="c1", kind="logout")]
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=30_000)
        assert not theatre.ledger.linked
        theatre.orchestrator.commands = []
        theatre.play(lambda: False, within_ms=60_000)
        assert names(theatre) == ["CONNECTED", "COMMAND_DONE"]
        theatre.orchestrator.wanted = "nobody"
        assert theatre.play_to_exit(within_ms=10_000).code == EXIT_REPLACED

    def test_started_again_after_a_logout_it_links_anew(self) -> None:
        theatre = Theatre(linking="qr")
        theatre.ledger.linked = True
        theatre.start()
        assert theatre.play(lambda: names(theatre) == ["CONNECTED"])
        theatre.orchestrator.commands = [Command(id="c1", kind="logout")]
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=30_000)
        theatre.crash()
        theatre.orchestrator.commands = []
        theatre.orchestrator.events.clear()
        theatre.start()
        assert theatre.play(lambda: bool(names(theatre)))
        assert names(theatre) == ["QR"]

    def test_a_logout_that_was_carried_out_before_a_crash_is_told_afterwards(self) -> None:
        theatre = Theatre(linking="qr")
        theatre.orchestrator.commands = [Command(id="c1", kind="logout")]
        theatre.start()
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=10_000)
        (end,) = [event for event in told(theatre) if event.event == "COMMAND_DONE"]
        assert end.data["ok"] is True

    def test_a_message_in_hand_is_finished_before_a_logout(self) -> None:
        theatre = Theatre()
        theatre.orchestrator.add(TASK)
        theatre.start()
        assert theatre.play(lambda: theatre.orchestrator.tasks[TASK].state == "claimed")
        theatre.orchestrator.commands = [Command(id="c1", kind="logout")]
        assert theatre.play(lambda: "COMMAND_DONE" in names(theatre), within_ms=60_000)
        assert theatre.orchestrator.tasks[TASK].state == "sent"

    def test_when_nobody_scans_it_says_so_and_waits_for_a_start(self) -> None:
        theatre = Theatre(linking="qr", qr_codes=2)
        theatre.start()
        assert theatre.play(lambda: "DISCONNECTED" in names(theatre), within_ms=60_000)
        assert theatre.clock.ms - START_MS == pytest.approx(40_000, abs=1_000)
        theatre.play(lambda: False, within_ms=120_000)
        assert [(event.event, event.data.get("reason")) for event in told(theatre)] == [
            ("QR", None), ("QR", None), ("DISCONNECTED", "QR_ENDED"),
        ]  # fmt: skip

    def test_a_blocked_link_is_told_and_not_tried_again(self) -> None:
        theatre = Theatre(linking="blocked")
        theatre.start()
        theatre.play(lambda: False, within_ms=120_000)
        assert names(theatre) == ["LINK_BLOCKED"]

    def test_one_that_is_linked_asks_for_orders_now_and_then_while_it_is_offline(self) -> None:
        """A lost network is no reason to ask every second; but that it asks so tells that it is not connected."""
        theatre = Theatre(offline=True)
        theatre.start()
        theatre.play(lambda: False, within_ms=33_000)
        assert [name for name, _ in theatre.orchestrator.calls if name == "commands"] == ["commands"] * 2
