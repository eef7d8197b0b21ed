"""A WhatsApp that misbehaves: what it loses, delays, refuses and bans. Each test has a number of its own.

Two stories that take more than a minute of waiting run in the background of the others: the number that may send ten a
minute, and the acks that never come and have no receipt.
"""

import json
import os
import signal
from typing import Any

import pytest

from .api import Asked, Client, people
from .checkers import judge
from .platform import OLD, Platform, wait_for

SESSIONS = 10
PLATFORM = {"sessions": SESSIONS, "paces": {"old-1": OLD}}

# How the numbers of the background stories behave, whatever a test does with its own.
MUTE: dict[str, dict[str, Any]] = {
    "sim_9": {"lost_ack": 1.0, "delivered_ratio": 0.0},
    "sim_10": {"lost_ack": 1.0, "delivered_ratio": 0.0},
}


@pytest.fixture(scope="module")
def slow_job(platform: Platform, client: Client) -> Asked:
    """A number that may send ten a minute and has sent them. All who could forget that are killed then."""
    client.register("old-1", "447700900901", createdAt="2020-01-01T00:00:00Z")
    client.wait_connected("old-1")
    job = client.post_job(people(OLD.rpm + 2), sessionId="old-1")
    client.wait_sent(job, OLD.rpm)
    for service in ("worker-old-1", "dispatcher", "orchestrator", "redis"):
        platform.kill(service)
    client.wait_reason(job.task(OLD.rpm + 1), "PACING")
    return job


@pytest.fixture(scope="module")
def mute_jobs(platform: Platform, client: Client) -> dict[str, Asked]:
    platform.simulate(**MUTE)
    jobs = {
        "resend": client.post_job(people(1), on_unknown="resend", sessionId="sim-9", validitySeconds=3_600),
        "hold": client.post_job(people(1), on_unknown="hold", sessionId="sim-10"),
    }
    for job in jobs.values():
        client.wait_sent(job, 1)
    return jobs


@pytest.fixture(autouse=True)
def background(slow_job: Asked, mute_jobs: dict[str, Asked]) -> None:
    """Begun before the first test."""


@pytest.fixture
def number() -> str:
    """The session of this test alone."""
    return f"sim-{next(_numbers)}"


_numbers = iter(range(1, SESSIONS - 1))


def simulate(platform: Platform, session: str, **behaviour: Any) -> None:
    platform.simulate(**MUTE, **{session.replace("-", "_"): behaviour})


def dead_letters(platform: Platform) -> dict[str, dict[str, Any]]:
    letters = [json.loads(raw) for raw in platform.redis.lrange("queue:dead_letter", 0, -1)]
    return {letter["taskId"]: letter for letter in letters}


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_lost_and_slow_acks_and_disconnects_are_proven_by_receipts(
    platform: Platform, client: Client, number: str, on_unknown: str
) -> None:
    """Whatever becomes of the ack, a receipt says that it is out: sent once, not repeated, not called unknown."""
    trouble = {"lost_ack": 0.2, "slow_ack": 0.1, "disconnect_before": 0.1, "disconnect_after": 0.2}
    simulate(platform, number, **trouble, slow_ack_delay_ms=[3_500, 4_000], delivered_delay_ms=[100, 600])
    job = client.post_job(people(20), on_unknown=on_unknown, sessionId=number)
    client.wait_end(job)
    judge(platform, client, job)


def test_an_ack_that_takes_longer_than_a_lease_is_waited_for(platform: Platform, client: Client, number: str) -> None:
    """The lease is extended while the worker waits: sent, without a doubt ever recorded."""
    simulate(platform, number, slow_ack=1.0, slow_ack_delay_ms=[4_500, 5_000], delivered_ratio=0.0)
    job = client.post_job(people(2), on_unknown="hold", sessionId=number)
    [view] = client.wait_end(job)
    assert view["progress"]["sent"] == 2
    evidence = judge(platform, client, job)
    histories = [entry["what"] for message in evidence.messages.values() for entry in message["history"]]
    assert histories == ["sent", "sent"]


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_connection_that_ends_after_the_write_leaves_an_unknown_outcome(
    platform: Platform, client: Client, number: str, on_unknown: str
) -> None:
    """With no receipt either, `resend` sends the same id again and `hold` ends honestly."""
    simulate(platform, number, disconnect_after=1.0, delivered_ratio=0.0, dedupe=on_unknown == "resend")
    job = client.post_job(people(1), on_unknown=on_unknown, sessionId=number)
    client.wait_sent(job, 1)
    if on_unknown == "resend":
        wait_for("the doubt to be recorded", lambda: client.message(job.task(0))["history"])
        simulate(platform, number)
    client.wait_end(job)
    evidence = judge(platform, client, job)
    view = evidence.messages[job.task(0)]
    if on_unknown == "hold":
        assert (view["state"], view["lastError"]["code"]) == ("failed", "UNKNOWN_OUTCOME")
        assert dead_letters(platform)[job.task(0)]["code"] == "UNKNOWN_OUTCOME"
    else:
        assert view["state"] in ("sent", "delivered", "read")
        assert len(evidence.by_task[job.task(0)]) == 2


def test_refusals_that_concern_the_recipient_end_at_once(platform: Platform, client: Client, number: str) -> None:
    """Not on WhatsApp is never repeated; everybody else is served; a poison task ends after its third crash. And 463 is
    never repeated and never moved; from then on the number starts no new chats."""
    contacts, (restricted, stranger) = people(7), people(2)
    missing, poison = contacts[1], contacts[4]
    simulate(platform, number, not_on_whatsapp=[missing], restricted_463=[restricted], poison=[poison])
    job = client.post_job(contacts, phone=client.session(number)["phone"])
    [view] = client.wait_end(job)
    assert (view["state"], view["progress"]["sent"], view["progress"]["failed"]) == ("DONE_WITH_ERRORS", 5, 2)
    refused = client.post_job([restricted], sessionId=number)
    client.wait_end(refused)
    later = client.post_job([stranger, contacts[0]], sessionId=number)
    client.wait_sent(later, 1)
    client.wait_reason(later.task(0), "TIME_LOCKED")
    client.cancel(later)
    evidence = judge(platform, client, job, refused)
    wanted = {
        job.task_to(missing): ("NOT_ON_WHATSAPP", 1),
        job.task_to(poison): ("POISON", 3),
        refused.task(0): ("RESTRICTED_463", 1),
    }
    letters = dead_letters(platform)
    for task, (code, attempts) in wanted.items():
        message = evidence.messages[task]
        assert (message["state"], message["lastError"]["code"], message["attempts"]) == ("failed", code, attempts)
        assert (letters[task]["code"], letters[task]["sessionId"]) == (code, number)
        assert [line for line in evidence.lines if line["to"] == message["to"]] == []


def test_a_number_told_to_slow_down_rests_with_all_its_messages(
    platform: Platform, client: Client, number: str
) -> None:
    """RATE_LIMIT: the phone cools down for half an hour; its messages wait, and say for what and until when."""
    contacts = people(6)
    simulate(platform, number, rate_limited=[contacts[2]])
    job = client.post_job(contacts, sessionId=number)
    waiting = client.wait_reason(job.task(5), "COOLDOWN")["waiting"]
    assert waiting["until"] > platform.now_ms()
    refused = client.wait_reason(job.task(2), "RETRY")
    assert refused["lastError"]["code"] == "RATE_LIMIT"
    assert [line["taskId"] for line in client.lines_of(job)] == [job.task(0), job.task(1)]
    client.cancel(job)
    client.wait_end(job)
    judge(platform, client, job)


def test_a_banned_number_is_quarantined_and_the_others_go_on(platform: Platform, client: Client, number: str) -> None:
    """A ban: session FAILED, its queue waits for an operator, nothing of it is pushed through another number."""
    simulate(platform, number, ban=1.0)
    banned = client.post_job(people(5), sessionId=number)
    wait_for("the ban to be noticed", lambda: client.session(number)["connection"] == "FAILED")
    view = client.session(number)
    assert (view["authorisation"], view["restriction"]) == ("LOGGED_OUT", "QUARANTINED")
    client.wait_reason(banned.task(4), "QUARANTINED")
    # Its worker is killed, and nobody starts it again.
    os.kill(platform.pid(f"worker-{number}"), signal.SIGKILL)
    wait_for("its end to be noticed", lambda: f"worker-{number}" not in platform.pids())
    others = client.post_job(people(10), sessionId="sim-1")
    client.wait_end(others)
    judge(platform, client, others)
    progress = client.job(banned)["progress"]
    assert client.lines_of(banned) == []
    assert f"worker-{number}" not in platform.pids()
    assert progress["sent"] + progress["failed"] == 0
    client.cancel(banned)


def test_no_crash_shortened_a_rolling_minute(platform: Platform, client: Client, slow_job: Asked) -> None:
    """The number with ten a minute had to wait the minute out, although all who counted were killed meanwhile."""
    [view] = client.wait_end(slow_job)
    assert view["progress"]["sent"] == OLD.rpm + 2
    judge(platform, client, slow_job)


def test_an_ack_that_never_comes_and_no_receipt(
    platform: Platform, client: Client, mute_jobs: dict[str, Asked]
) -> None:
    """After the time WhatsApp has to answer, `hold` ends as unknown; `resend` goes out again under the same id."""
    resent, held = mute_jobs["resend"], mute_jobs["hold"]
    [view] = client.wait_end(held)
    assert view["progress"]["failed"] == 1
    client.wait_sent(resent, 2)
    # The repetition is answered, as soon as somebody reads it.
    platform.kill("worker-sim-9")
    platform.simulate()
    client.wait_end(resent)
    judge(platform, client, held, resent)
