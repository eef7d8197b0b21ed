"""The worker's core against a strict fake orchestrator and the simulated WhatsApp, in virtual time."""

import itertools
from typing import Any

import msgspec
import pytest

from paceline.domain.ids import whatsapp_id
from paceline.worker.book import Intent, Outcome, SendError
from paceline.worker.protocol import Blocked, ClaimAnswer, RequestRefused, StaleEpoch, TypingWindow

from .stage import START_MS, Lossy, Theatre, do

T1, T2 = "01JB0000000000000000000000:0", "01JB0000000000000000000000:1"


def calls(theatre: Theatre, *names: str) -> list[tuple[str, object]]:
    return [call for call in theatre.orchestrator.calls if call[0] in names]


def test_a_task_is_sent_reported_and_acked_and_its_receipts_are_told() -> None:
    """The plain way: one ledger line, SENT before ack, then DELIVERED and READ, each once."""
    theatre = Theatre(read_ratio=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(theatre.orchestrator.events_named("MESSAGE_READ")))
    assert [line.task_id for line in theatre.ledger.lines] == [T1]
    assert calls(theatre, "ack", "nack") == [("ack", whatsapp_id(T1))]
    names = [event.event for event in theatre.orchestrator.events if event.event != "PING"]
    assert names == ["CONNECTED", "MESSAGE_SENT", "MESSAGE_DELIVERED", "MESSAGE_READ"]
    assert theatre.orchestrator.events_named("MESSAGE_SENT")[0].data == {
        "messageId": T1,
        "to": "447700900001",
        "whatsappId": whatsapp_id(T1),
    }


def test_typing_fits_inside_the_gap_and_nothing_goes_out_early() -> None:
    """The message goes at sendAfter, not later because of typing and never before."""
    theatre = Theatre()
    due_ms = START_MS + 30_000
    theatre.orchestrator.add(T1, send_after_ms=due_ms)
    theatre.start()
    assert theatre.play()
    assert 0 <= theatre.ledger.lines[0].at - due_ms <= 10
    assert theatre.whatsapp.last_typing is not None
    typed_to, typed_ms = theatre.whatsapp.last_typing
    assert typed_to == "447700900001"
    assert 1_000 <= due_ms - typed_ms <= 3_000


@pytest.mark.parametrize("left_ms", [-1, 0, 250], ids=["past", "now", "inside-the-margin"])
def test_a_task_whose_window_is_over_is_given_back_unsent(left_ms: int) -> None:
    """Nothing is sent at or too near sendBefore; the task goes back without an error."""
    theatre = Theatre()
    task = theatre.orchestrator.add(T1, send_after_ms=START_MS, send_before_ms=START_MS + left_ms)
    theatre.start()
    theatre.play(lambda: bool(calls(theatre, "nack")))
    assert calls(theatre, "nack")[0] == ("nack", (True, None))
    assert theatre.ledger.lines == []
    assert task.errors == []


def test_the_window_is_checked_again_after_the_fsync_of_the_intent() -> None:
    """A disk that takes seconds must not push a message over its closing time; the journal says not_sent."""
    theatre = Theatre()
    theatre.orchestrator.typing = TypingWindow(min_ms=0, max_ms=0)
    theatre.orchestrator.add(T1, send_after_ms=START_MS + 1_000, send_before_ms=START_MS + 2_000)
    theatre.start()
    intend = theatre.journal.intend

    async def slow(intent: Intent) -> None:
        await theatre.clock.sleep_ms(3_000)
        await intend(intent)

    theatre.journal.intend = slow  # type: ignore[method-assign]
    theatre.play(lambda: bool(calls(theatre, "nack")))
    assert calls(theatre, "nack") == [("nack", (True, None))]
    assert theatre.ledger.lines == []
    assert (entry := theatre.journal.entry(T1))
    assert entry.outcome is Outcome.NOT_SENT


def test_an_answer_that_lay_in_the_socket_while_the_worker_was_stopped_is_not_taken_for_fresh() -> None:
    """SIGSTOP longer than the lease with the claim's answer already received: the window is over, nothing goes out."""
    theatre = Theatre()
    theatre.orchestrator.add(T1)
    claim = theatre.orchestrator.claim

    async def stopped(*, epoch: int) -> object:
        answer = await claim(epoch=epoch)
        await theatre.clock.sleep_ms(130_000)
        return answer

    theatre.orchestrator.claim = stopped  # type: ignore[method-assign,assignment]
    theatre.start()
    theatre.play(lambda: bool(calls(theatre, "nack")))
    assert theatre.ledger.lines == []


def test_a_clock_set_back_by_less_than_a_claim_had_waited_is_noticed() -> None:
    """Five seconds between two messages that go by an earlier clock than the one before are no seconds at all."""
    theatre = Theatre()
    claim, set_back_ms, due = theatre.orchestrator.claim, 5_000, []

    async def waits(*, epoch: int) -> ClaimAnswer:
        asked_ms = theatre.clock.ms
        await theatre.clock.sleep_ms(10_000)
        if not theatre.orchestrator.tasks:
            due.append(theatre.clock.ms - set_back_ms + 8_000)
            theatre.orchestrator.add(T1, send_after_ms=due[0])
        answer = await claim(epoch=epoch)
        now_ms, waited_ms = theatre.clock.ms - set_back_ms, theatre.clock.ms - asked_ms
        return msgspec.structs.replace(answer, now_ms=now_ms, waited_ms=waited_ms)

    theatre.orchestrator.claim = waits  # type: ignore[method-assign,assignment]
    theatre.start()
    assert theatre.play(lambda: bool(theatre.ledger.lines))
    assert 0 <= theatre.ledger.lines[0].at - set_back_ms - due[0] <= 10


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ({"rate_limited": frozenset({"447700900001"})}, "RATE_LIMIT"),
        ({"not_on_whatsapp": frozenset({"447700900001"})}, "NOT_ON_WHATSAPP"),
        ({"restricted_463": frozenset({"447700900001"})}, "RESTRICTED_463"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_is_one_nack_with_its_code(behaviour: dict[str, Any], code: str) -> None:
    """Refused by the server: certainly not sent, told once by nack alone."""
    theatre = Theatre(**behaviour)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    assert calls(theatre, "ack", "nack") == [("nack", (True, code))]
    assert theatre.orchestrator.events_named("MESSAGE_FAILED") == []
    assert (entry := theatre.journal.entry(T1))
    assert entry.outcome is Outcome.REFUSED
    assert entry.reported


def test_a_report_whose_words_are_not_let_through_is_told_without_them() -> None:
    """What a library says of an error may be what a firewall dislikes; the message waited for its end for ever."""
    heard: list[SendError | None] = []

    class Firewall:
        def __init__(self, port: Any) -> None:
            self._port = port

        def __getattr__(self, name: str) -> Any:
            return getattr(self._port, name)

        async def nack(self, *args: Any, error: SendError | None, **kwargs: Any) -> None:
            heard.append(error)
            if error is not None and error.message:
                raise Blocked("403 UNREADABLE")
            await self._port.nack(*args, error=error, **kwargs)

    theatre = Theatre(rate_limited=frozenset({"447700900001"}))
    theatre.line = Firewall
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(within_ms=120_000)
    assert calls(theatre, "nack") == [("nack", (True, "RATE_LIMIT"))]
    assert [error.message != "" for error in heard if error] == [True] * 5 + [False]


def test_a_lost_ack_is_proven_by_the_delivery_receipt() -> None:
    """Accepted without an ack on a standing connection: the receipt is the proof, at once, and nothing is repeated."""
    theatre = Theatre(lost_ack=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(calls(theatre, "ack", "nack")))
    assert calls(theatre, "ack", "nack") == [("ack", whatsapp_id(T1))]
    assert len(theatre.ledger.lines) == 1
    assert theatre.clock.ms - theatre.ledger.lines[0].at < 10_000


def test_no_ack_and_no_receipt_ends_as_unknown_after_75_seconds() -> None:
    """The recipient's phone is off and the ack is lost: NO_ACK, notSent=false, and the lease was kept alive."""
    theatre = Theatre(on_unknown="hold", lost_ack=1.0, delivered_ratio=0.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    assert calls(theatre, "ack", "nack") == [("nack", (False, "NO_ACK"))]
    assert calls(theatre, "extend")
    assert theatre.clock.ms - theatre.ledger.lines[0].at >= 75_000
    theatre.check_ledger()


def test_a_slow_ack_is_waited_for_under_an_extended_lease() -> None:
    """An ack after 60 s of a 40 s lease still counts as sent, once."""
    theatre = Theatre(slow_ack=1.0, slow_ack_delay_ms=(60_000, 60_000), delivered_ratio=0.0)
    theatre.orchestrator.lease_ms = 40_000
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    assert len(calls(theatre, "extend")) >= 2
    assert calls(theatre, "ack", "nack") == [("ack", whatsapp_id(T1))]


@pytest.mark.parametrize(
    ("refusal", "code"), [(RequestRefused(409, "NOT_YOURS", ""), None), (StaleEpoch("older"), 3)], ids=["lost", "stale"]
)
def test_a_refused_extension_does_not_stop_the_wait_for_the_ack(refusal: Exception, code: int | None) -> None:
    """A SENT is a fact from any epoch: it is waited for and told, and only then a replaced worker ends with 3."""
    theatre = Theatre(slow_ack=1.0, slow_ack_delay_ms=(30_000, 30_000), delivered_ratio=0.0)
    theatre.orchestrator.lease_ms = 40_000
    theatre.orchestrator.extend_error = refusal
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    assert calls(theatre, "ack") == [("ack", whatsapp_id(T1))]
    if code is not None:
        assert theatre.play_to_exit().code == code


def test_a_connection_lost_after_acceptance_is_reconnected_and_proven() -> None:
    """428 between acceptance and ack: after the reconnect the receipt proves it; both changes are told."""
    theatre = Theatre(disconnect_after=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(calls(theatre, "ack", "nack")))
    assert calls(theatre, "ack", "nack") == [("ack", whatsapp_id(T1))]
    assert theatre.play(lambda: len(theatre.orchestrator.events_named("CONNECTED")) == 2)
    assert theatre.orchestrator.events_named("DISCONNECTED")[0].data["code"] == 428
    assert len(theatre.ledger.lines) == 1


def test_a_connection_lost_before_acceptance_is_unknown_and_resent_under_the_same_id() -> None:
    """The worker cannot tell, so it says unknown; told to resend, it does, and the ledger shows one message."""
    theatre = Theatre(disconnect_every=1)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(calls(theatre, "nack")))
    assert calls(theatre, "nack") == [("nack", (False, "NO_ACK"))]
    theatre.behaviour = type(theatre.behaviour)()
    assert theatre.play()
    assert [line.repeat for line in theatre.ledger.lines] == [False]
    theatre.check_ledger()


def test_a_receipt_that_comes_while_unknown_is_being_told_turns_it_into_sent() -> None:
    """The orchestrator does not answer the nack, meanwhile the receipt comes: the last word is an ack."""
    theatre = Theatre(on_unknown="hold", lost_ack=1.0, delivered_delay_ms=(95_000, 95_000))
    theatre.line = lambda protocol: Lossy(protocol, requests=range(15), only="nack")
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(calls(theatre, "ack")))
    assert calls(theatre, "ack", "nack") == [("nack", (False, "NO_ACK")), ("ack", whatsapp_id(T1))]


def test_a_late_receipt_after_unknown_is_told_as_sent() -> None:
    """Held as failed, then delivered an hour later: MESSAGE_SENT and MESSAGE_DELIVERED correct it."""
    theatre = Theatre(on_unknown="hold", lost_ack=1.0, delivered_delay_ms=(3_600_000, 3_600_000), read_ratio=0.0)
    task = theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: task.state == "failed")
    assert theatre.play(lambda: task.state == "sent", within_ms=7_200_000)
    assert theatre.orchestrator.events_named("MESSAGE_SENT")
    assert theatre.play(lambda: bool(theatre.orchestrator.events_named("MESSAGE_DELIVERED")))


def test_a_banned_account_stays_down_and_claims_nothing_more() -> None:
    """403: told, not reconnected, not even by the next worker; the second task stays in the queue."""
    theatre = Theatre(on_unknown="hold", ban=1.0)
    theatre.orchestrator.add(T1)
    second = theatre.orchestrator.add(T2)
    theatre.start()
    theatre.play(lambda: False, within_ms=300_000)
    assert [event.data["code"] for event in theatre.orchestrator.events_named("DISCONNECTED")] == [403]
    theatre.crash()
    theatre.start()
    theatre.play(lambda: False, within_ms=300_000)
    assert second.state == "queued"
    assert theatre.ledger.lines == []


def test_a_task_offered_again_after_it_was_sent_is_acked_and_not_sent() -> None:
    """The orchestrator forgot (a restored backup): the journal knows."""
    theatre = Theatre()
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    theatre.orchestrator.add(T1)
    assert theatre.play()
    assert len(theatre.ledger.lines) == 1
    assert len(calls(theatre, "ack")) == 2


def test_a_task_that_may_be_out_is_not_sent_without_the_word_resend() -> None:
    """An open intent and a claim without `resend`: the worker looks for receipts and says unknown."""
    theatre = Theatre(on_unknown="hold")
    theatre.start()
    do(theatre.journal.greet(START_MS))
    do(theatre.journal.intend(Intent(T1, whatsapp_id(T1), "447700900001", 1, START_MS)))
    theatre.orchestrator.add(T1)
    assert theatre.play()
    assert calls(theatre, "nack") == [("nack", (False, "UNKNOWN_OUTCOME"))]
    assert theatre.ledger.lines == []


def test_nothing_new_is_claimed_while_a_result_is_unreported() -> None:
    """The orchestrator is away for minutes after the send: the report is repeated, the next task waits."""
    theatre = Theatre()
    theatre.line = lambda protocol: Lossy(protocol, requests=range(3, 33))
    theatre.orchestrator.add(T1)
    theatre.orchestrator.add(T2)
    theatre.start()
    assert theatre.play()
    order = [name for name, _ in calls(theatre, "claim", "ack")]
    assert order == ["claim", "ack", "claim", "ack"]
    theatre.check_ledger()


def test_a_report_that_is_refused_is_not_repeated() -> None:
    """A 4xx ends the repetition; the worker goes on with the next task."""
    theatre = Theatre()
    theatre.orchestrator.report_error = RequestRefused(422, "NO", "no")
    theatre.orchestrator.add(T1)
    theatre.orchestrator.add(T2)
    theatre.start()
    assert theatre.play()
    assert len(calls(theatre, "ack")) == 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_report_of_a_worker_that_is_not_let_in_is_told_by_the_next(status: int) -> None:
    """WEBHOOK_SECRET was changed while it sent. The refusal counted as told, so the next life gave the task back as
    never tried, and it went out again."""
    theatre = Theatre(restricted_463=frozenset({"447700900001"}))
    theatre.orchestrator.add(T1)
    theatre.orchestrator.report_error = RequestRefused(status, "UNAUTHORIZED", "no")
    theatre.start()
    assert theatre.play_to_exit().code == 1
    theatre.orchestrator.report_error = None
    theatre.start()
    assert theatre.play()
    assert calls(theatre, "nack")[-1] == ("nack", (True, "RESTRICTED_463"))


def test_an_instance_that_is_not_wanted_ends_with_3_and_never_connects() -> None:
    """NOT_WANTED: a connection would throw out the wanted one."""
    theatre = Theatre()
    theatre.orchestrator.wanted = "somebody-else"
    theatre.start()
    assert theatre.play_to_exit().code == 3
    assert not theatre.whatsapp.connected


def test_a_worker_that_was_replaced_ends_with_3() -> None:
    """STALE_EPOCH on claim."""
    theatre = Theatre()
    theatre.start()
    theatre.play(lambda: False, within_ms=5_000)
    theatre.orchestrator.epoch += 1
    assert theatre.play_to_exit().code == 3


def test_hello_is_repeated_until_the_orchestrator_answers() -> None:
    """A worker that starts before its orchestrator waits for it."""
    theatre = Theatre()
    theatre.line = lambda protocol: Lossy(protocol, requests=range(20), only="hello")
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()


def test_a_claim_whose_answer_was_lost_is_given_back_at_once() -> None:
    """The worker asks by hello what it holds; the task is not left to the end of its lease."""
    theatre = Theatre()
    theatre.line = lambda protocol: Lossy(protocol, answers={0}, only="claim")
    task = theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play()
    assert calls(theatre, "nack") == [("nack", (True, None))]
    assert task.unknown_at_ms == []
    assert theatre.clock.ms - START_MS < theatre.orchestrator.lease_ms


def test_a_stop_gives_an_unsent_task_back() -> None:
    """Asked to stop while waiting for the slot: nack without an error, status 0, within two seconds."""
    theatre = Theatre()
    theatre.orchestrator.add(T1, send_after_ms=START_MS + 60_000)
    theatre.start()
    theatre.play(lambda: bool(calls(theatre, "claim")))
    theatre.play(lambda: False, within_ms=5_000)
    asked_ms = theatre.clock.ms
    theatre.core.request_stop()
    assert theatre.play_to_exit().code == 0
    assert calls(theatre, "nack") == [("nack", (True, None))]
    assert theatre.clock.ms - asked_ms <= 2_000


def test_a_lost_volume_is_never_taken_for_a_proof_that_nothing_was_sent() -> None:
    """A new journal with tasks pending says unknown, also when its first life crashes before it could answer."""
    theatre = Theatre(on_unknown="hold", delivered_ratio=0.0, ack_delay_ms=(5_000, 5_000))
    theatre.orchestrator.add(T1)
    theatre.start()
    theatre.play(lambda: bool(theatre.ledger.lines))
    theatre.crash()
    theatre.disk.wipe()
    theatre.start()
    theatre.play(lambda: len(calls(theatre, "hello")) == 2)
    theatre.crash()
    theatre.start()
    assert theatre.play()
    assert calls(theatre, "nack") == [("nack", (False, "UNKNOWN_OUTCOME"))]
    assert theatre.orchestrator.journal_ids == ["journal-1", "journal-2", "journal-2"]


def test_a_sent_result_that_nobody_asks_for_is_told_at_the_next_start() -> None:
    """Sent, journaled, never reported, lease ended meanwhile: the start tells it by MESSAGE_SENT."""
    theatre = Theatre(on_unknown="hold", delivered_ratio=0.0)
    task = theatre.orchestrator.add(T1)
    theatre.line = lambda protocol: Lossy(protocol, requests=range(1000), only="webhook")
    theatre.start()
    assert theatre.play(lambda: (entry := theatre.journal.entry(T1)) is not None and entry.sent)
    theatre.crash()
    theatre.clock.ms += 600_000
    theatre.line = lambda protocol: protocol
    theatre.start()
    assert theatre.play(lambda: task.state == "sent")
    assert theatre.play(lambda: theatre.journal.unreported() == [])
    assert calls(theatre, "ack", "nack") == []


def test_a_receipt_that_fell_due_while_the_worker_was_away_is_told_once() -> None:
    """The server keeps it for the next connection; the journal keeps it from being told at every one after."""
    theatre = Theatre(read_ratio=1.0)
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(calls(theatre, "ack")))
    theatre.crash()
    theatre.clock.ms += 300_000
    theatre.start()
    theatre.play(lambda: False, within_ms=60_000)
    theatre.disk.synced_bytes = len(theatre.disk.data)
    theatre.crash()
    theatre.start()
    theatre.play(lambda: False, within_ms=60_000)
    for name in ("MESSAGE_DELIVERED", "MESSAGE_READ"):
        assert len(theatre.orchestrator.events_named(name)) == 1


def test_an_offline_worker_claims_nothing_and_comes_back_by_itself() -> None:
    """Five minutes without a network: no claim meanwhile, then the task goes out."""
    theatre = Theatre(offline=True)
    theatre.start()
    theatre.orchestrator.add(T1)
    theatre.play(lambda: False, within_ms=300_000)
    assert calls(theatre, "claim") == []
    assert len(theatre.orchestrator.events_named("DISCONNECTED")) == 1
    theatre.behaviour = type(theatre.behaviour)()
    assert theatre.play(within_ms=60_000)


def test_the_worker_pings_every_15_seconds() -> None:
    """An idle worker is heard of."""
    theatre = Theatre()
    theatre.start()
    theatre.play(lambda: False, within_ms=60_500)
    stamps = [event.timestamp for event in theatre.orchestrator.events_named("PING")]
    assert len(stamps) >= 4
    assert {later - earlier for earlier, later in itertools.pairwise(stamps)} <= set(range(14_900, 15_400))


def test_an_answer_to_a_message_is_passed_on() -> None:
    """MESSAGE_RECEIVED carries sender, text and id."""
    theatre = Theatre(read_ratio=1.0, reply_ratio=1.0, reply_text="stop")
    theatre.orchestrator.add(T1)
    theatre.start()
    assert theatre.play(lambda: bool(theatre.orchestrator.events_named("MESSAGE_RECEIVED")))
    data = theatre.orchestrator.events_named("MESSAGE_RECEIVED")[0].data
    assert (data["from"], data["text"]) == ("447700900001", "stop")
