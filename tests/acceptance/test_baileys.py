"""The whole way with the real library: gateway, dispatcher, orchestrator, Node workers, and a WhatsApp that decrypts
what it gets. Workers are killed at every step of sending; the ledger has one id for each message, and its text.
"""

import hashlib
import os

import pytest

from .api import Asked, Client, people
from .checkers import judge
from .platform import TEXT_CANARY, Platform, wait_for
from .test_media_and_webhooks import picture, upload

PLATFORM = {"sessions": 2, "driver": "baileys"}

TEXTS = {
    "Hebrew": f"שלום {{{{name}}}}, ההזמנה מחכה לך {TEXT_CANARY}",
    "Arabic": f"مرحبا {{{{name}}}}، طلبك جاهز {TEXT_CANARY}",
    "emoji": f"👩‍👩‍👧‍👦 {{{{name}}}} 🇮🇱 ❤️ é {TEXT_CANARY}",
}
FAILPOINTS = (
    "claimed-not-sent",
    "prepared-not-typed",
    "intent-written",
    "at-the-wire",
    "written-not-acked",
    "sent-not-reported",
    "reported-not-acked",
)


@pytest.fixture(autouse=True)
def no_crash_loop(platform: Platform) -> None:
    """So many deaths within a minute are these tests' own; without this the pauses before a start would double."""
    for name in ("wa-1", "wa-2"):
        platform.redis.hset(f"session:{name}", "starts", 0)


def all_read(client: Client, job: Asked) -> None:
    """DONE, and every message was seen to be read by its recipient."""
    [view] = client.wait_end(job)
    assert view["state"] == "DONE", view
    wait_for(
        f"all of {job.job_id} to be read",
        lambda: all(one["state"] == "read" for one in client.messages(job).values()),
    )


def test_the_ready_line_tells_where_the_fake_whatsapp_is_and_both_numbers_are_linked(
    platform: Platform, client: Client
) -> None:
    facts = dict(fact.split("=", 1) for fact in platform.ready.split()[1:])
    devices = client.request("GET", f"{facts['whatsapp']}/devices").json()["devices"]
    assert sorted((one["sessionId"], one["connected"]) for one in devices) == [("wa-1", True), ("wa-2", True)]
    assert [client.session(name)["authorisation"] for name in ("wa-1", "wa-2")] == ["LINKED", "LINKED"]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_every_script_arrives_as_it_was_written_is_delivered_and_read(
    platform: Platform, client: Client, text: str
) -> None:
    job = client.post_job(people(4), text=text)
    all_read(client, job)
    judge(platform, client, job)
    assert len(client.lines_of(job)) == 4


def test_a_picture_arrives_whole_although_its_worker_dies_with_it(platform: Platform, client: Client) -> None:
    """The hash is that of what the recipient decrypted."""
    body = picture(61)
    died = platform.arm("claimed-not-sent")
    job = client.post_job(people(3), text=TEXTS["Hebrew"], mode="image", mediaRef=upload(client, body))
    wait_for("a worker to die with the picture", died)
    all_read(client, job)
    judge(platform, client, job)
    lines = client.lines_of(job)
    assert {(line["mode"], line["mediaSha256"]) for line in lines} == {("image", hashlib.sha256(body).hexdigest())}


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_killed_at_this_step_of_sending_every_message_has_one_id_and_its_text(
    platform: Platform, client: Client, failpoint: str
) -> None:
    died = platform.arm(failpoint)
    job = client.post_job(people(4), text=TEXTS["Arabic"])
    wait_for(f"a worker to die at {failpoint}", died)
    client.wait_end(job)
    judge(platform, client, job)
    assert {line["to"] for line in client.lines_of(job)} == set(job.contacts)


def test_a_worker_killed_in_the_middle_of_a_job_comes_back_without_a_new_link(
    platform: Platform, client: Client
) -> None:
    job = client.post_job(people(12), text=TEXTS["emoji"])
    client.wait_sent(job, 3)
    os.kill(platform.pid("worker-wa-1"), 9)
    client.wait_end(job)
    judge(platform, client, job)
    client.wait_connected("wa-1", "wa-2")
    assert client.session("wa-1")["authorisation"] == "LINKED"


def test_whatsapp_itself_is_killed_and_comes_back_with_its_links(platform: Platform, client: Client) -> None:
    job = client.post_job(people(8), text=TEXTS["Hebrew"])
    client.wait_sent(job, 2)
    platform.kill("fake-whatsapp")
    client.wait_end(job)
    judge(platform, client, job)
    client.wait_connected("wa-1", "wa-2")


def test_stopped_and_started_again_its_numbers_are_linked_as_before(platform: Platform, client: Client) -> None:
    """No second device is linked, and the next message goes."""
    admin = f"{platform.ready.partition('whatsapp=')[2].split()[0]}/devices"
    before = [one["jid"] for one in client.request("GET", admin).json()["devices"]]
    platform.stop()
    platform.start()
    assert [one["jid"] for one in client.request("GET", admin).json()["devices"]] == before
    job = client.post_job(people(2), text=TEXTS["Hebrew"])
    all_read(client, job)
    judge(platform, client, job)


def test_no_message_key_was_used_twice_and_nobody_got_what_they_could_not_read(platform: Platform) -> None:
    """After all those kills: an older Signal session on a worker's disk would show here."""
    lines = platform.ledger()
    assert lines
    flags = ("counterReused", "noRecipient", "undecryptable")
    assert [line for line in lines if any(line.get(flag) for flag in flags)] == []
