"""Taking events in and posting them: two coroutines, so that a frozen orchestrator costs no proof."""

from typing import Any

import pytest

from paceline.domain.ids import whatsapp_id
from paceline.worker.protocol import ProtocolUnavailable, WorkerEvent

from .stage import START_MS, Theatre

T1, T2 = "01JB0000000000000000000000:0", "01JB0000000000000000000000:1"
HOUR_MS = 3_600_000


class Frozen:
    """A line on which nothing is answered before a given time: each call hangs for ten seconds, as HTTP lets it."""

    def __init__(self, port: Any, theatre: Theatre, *, until_ms: int, only: frozenset[str] = frozenset()) -> None:
        self._port, self._theatre, self._until_ms, self._only = port, theatre, until_ms, only

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if self._only and name not in self._only:
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self._theatre.clock.ms < self._until_ms:
                await self._theatre.clock.sleep_ms(10_000)
                raise ProtocolUnavailable("timeout")
            return await method(*args, **kwargs)

        return call


def frozen_webhooks(theatre: Theatre, until_ms: int) -> None:
    theatre.line = lambda protocol: Frozen(protocol, theatre, until_ms=until_ms, only=frozenset({"webhook"}))


def names(theatre: Theatre) -> list[str]:
    return [event.event for event in theatre.orchestrator.events if event.event != "PING"]


def calls(theatre: Theatre, *names: str) -> list[tuple[str, object]]:
    return [call for call in theatre.orchestrator.calls if call[0] in names]


def test_a_receipt_is_taken_in_while_every_webhook_hangs() -> None:
    """Found in review: the pump waited ten seconds in each webhook, and the proof came after the grace time."""
    theatre = Theatre(on_unknown="hold", lost_ack=1.0, read_ratio=0.0)
    frozen_webhooks(theatre, START_MS + 300_000)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: (entry := theatre.journal.entry(T1)) is not None and entry.sent)
    assert theatre.clock.ms - theatre.ledger.lines[0].at < 5_000
    assert theatre.orchestrator.events == []
    assert theatre.play()
    assert calls(theatre, "ack", "nack") == [("ack", whatsapp_id(T1))]


def test_what_waited_for_the_orchestrator_comes_in_its_order_and_once() -> None:
    """Everything that happened during the freeze is told after it, first things first."""
    theatre = Theatre(read_ratio=1.0, reply_ratio=1.0)
    frozen_webhooks(theatre, START_MS + 300_000)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: "MESSAGE_RECEIVED" in names(theatre))
    from_the_pump = [name for name in names(theatre) if name != "MESSAGE_SENT"]
    assert from_the_pump == ["CONNECTED", "MESSAGE_DELIVERED", "MESSAGE_READ", "MESSAGE_RECEIVED"]


def test_a_connection_that_ends_during_the_freeze_is_opened_again_at_once() -> None:
    """The reconnect does not wait for the word that told of the end."""
    theatre = Theatre(disconnect_after=1.0)
    frozen_webhooks(theatre, START_MS + 300_000)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(theatre.ledger.lines) and not theatre.whatsapp.connected)
    assert theatre.play(lambda: theatre.whatsapp.connected, within_ms=2_000)


def test_a_stated_limit_is_told_until_it_is_answered() -> None:
    """RESTRICTION with kind, end and epoch; the first tries are lost, and all of them have one id."""
    theatre = Theatre(time_lock=1.0)
    webhook = theatre.orchestrator.webhook

    async def deaf(event: WorkerEvent) -> None:
        await webhook(event)
        if len(theatre.orchestrator.events_named("RESTRICTION")) in (1, 2) and event.event == "RESTRICTION":
            raise ProtocolUnavailable("answer lost")

    theatre.orchestrator.webhook = deaf  # type: ignore[method-assign]
    theatre.orchestrator.add(T1)
    theatre.start()
    theatre.play(lambda: False, within_ms=60_000)
    told = theatre.orchestrator.events_named("RESTRICTION")
    at_ms = theatre.ledger.refusals[0].at
    assert len(told) == 3
    assert {event.event_id for event in told} == {told[0].event_id}
    assert told[0].data == {"kind": "TIME_LOCKED", "until": at_ms + HOUR_MS, "epoch": 1}
    assert told[0].timestamp == at_ms
    assert calls(theatre, "nack") == [("nack", (True, "RESTRICTED_463"))]


def test_the_lock_is_told_again_by_the_next_worker_and_every_refusal_is_on_record() -> None:
    """The account stays locked through a crash; what was refused before and after stands in the book."""
    theatre = Theatre(time_lock=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    theatre.crash()
    theatre.behaviour = type(theatre.behaviour)()
    theatre.orchestrator.add(T2, to="447700900002")
    theatre.start()
    assert theatre.play()
    told = theatre.orchestrator.events_named("RESTRICTION")
    assert [event.data["epoch"] for event in told] == [1, 2]
    assert {event.data["until"] for event in told} == {theatre.ledger.refusals[0].at + HOUR_MS}
    kept = [(refusal.task_id, refusal.to, refusal.code) for refusal in theatre.ledger.refusals]
    assert kept == [(T1, "447700900001", "RESTRICTED_463"), (T2, "447700900002", "RESTRICTED_463")]
    assert theatre.ledger.lines == []


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_after_a_ban_the_open_task_is_answered_at_once(on_unknown: str) -> None:
    """Found in review: it waited a minute for a connection that could not come."""
    theatre = Theatre(on_unknown=on_unknown, ban=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: theatre.ledger.banned)
    banned_ms = theatre.clock.ms
    assert theatre.play(lambda: bool(calls(theatre, "nack")))
    assert calls(theatre, "nack") == [("nack", (False, "NO_ACK"))]
    assert theatre.clock.ms - banned_ms <= 1_000


def test_a_worker_that_starts_on_a_banned_account_answers_for_the_past_at_once() -> None:
    """The crash came before the answer; no receipt can come to the next worker either."""
    theatre = Theatre(on_unknown="hold", ban=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: theatre.ledger.banned)
    theatre.crash()
    theatre.start()
    assert theatre.play(within_ms=2_000)
    assert calls(theatre, "nack") == [("nack", (False, "UNKNOWN_OUTCOME"))]


def test_a_ban_that_shows_at_the_reconnect_is_told() -> None:
    """Found in review: the connection was gone already, so its end for good was no news to the worker."""
    theatre = Theatre()
    theatre.start()
    assert theatre.play(lambda: "CONNECTED" in names(theatre))
    theatre.behaviour = type(theatre.behaviour)(offline=True)
    assert theatre.play(lambda: "DISCONNECTED" in names(theatre))
    theatre.behaviour = type(theatre.behaviour)(banned=True)
    theatre.play(lambda: len(theatre.orchestrator.events_named("DISCONNECTED")) > 1, within_ms=120_000)
    assert [event.data["code"] for event in theatre.orchestrator.events_named("DISCONNECTED")] == [408, 403]


def test_a_refusal_that_comes_after_the_patience_for_the_ack_still_counts() -> None:
    """Found in review: a 463 after 75 s was dropped, and the message, called unknown, was sent again."""
    theatre = Theatre(on_unknown="resend", restricted_463=frozenset({"447700900001"}), ack_delay_ms=(78_000, 78_000))
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(calls(theatre, "nack")))
    assert calls(theatre, "nack") == [("nack", (True, "RESTRICTED_463"))]
    theatre.play(lambda: False, within_ms=300_000)
    assert len(theatre.ledger.refusals) == 1
