"""kill -9 around files, webhooks and half-done requests: a picture arrives once, a receiver hears everything at least
once and can check who said it, and a repeated request makes one job.

Leases and patience of a minute are cut short in Redis: what is proven is what follows them, not that time passes.
"""

import hashlib
import os
import uuid
from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from .api import Asked, Client, people
from .platform import API_KEY, Platform, wait_for
from .receiver import Receiver

PLATFORM = {"sessions": 2, "env": {"WEBHOOK_ALLOW_PRIVATE": "true"}}

CONTACTS = 6
BOOTSTRAP = "bootstrap"
LONG_AGO_MS = 40 * 86_400_000


def picture(number: int, *, folder: str = "") -> bytes:
    """A PNG nobody else has; whose hash, and so its folder, begins as asked."""
    for nonce in count():
        body = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + f"{number}:{nonce}".encode() * 50
        if hashlib.sha256(body).hexdigest().startswith(folder):
            return body
    raise AssertionError


def upload(client: Client, body: bytes) -> str:
    answer = client.ask("POST", "/v1/media", content=body, headers={"Content-Type": "image/png"})
    ref: str = answer["mediaRef"]
    return ref


def files(platform: Platform) -> set[str]:
    return {path.name for path in (platform.data / "media").rglob("*") if path.is_file()}


def arrived(platform: Platform, client: Client, job: Asked, body: bytes) -> None:
    """Every contact has the picture, once."""
    client.wait_end(job)
    lines = client.lines_of(job)
    assert sorted(line["to"] for line in lines) == sorted(job.contacts)
    assert {(line["mode"], line["mediaSha256"]) for line in lines} == {("image", hashlib.sha256(body).hexdigest())}


@pytest.fixture(scope="module")
def receiver(platform: Platform, client: Client) -> Iterator[Receiver]:
    opened = Receiver()
    hook = client.ask("POST", "/v1/webhooks", json={"url": opened.url, "events": ["*"]})
    opened.secret = hook["secret"]
    yield opened
    opened.close()


def test_a_picture_is_sent_once_although_a_worker_dies_with_it_in_its_hands(platform: Platform, client: Client) -> None:
    body = picture(1)
    ref = upload(client, body)
    died = platform.arm("claimed-not-sent")
    job = client.post_job(people(CONTACTS), mode="image", mediaRef=ref)
    wait_for("a worker to die with the picture", died)
    arrived(platform, client, job, body)
    assert ref in files(platform)


def test_a_form_with_a_picture_that_crashed_half_way_is_one_job_when_it_is_sent_again(
    platform: Platform, client: Client
) -> None:
    """The gateway dies between storing the file and recording it. The same Idempotency-Key: the repeat stores the file
    anew, finds the job id of the first try, and the picture arrives once."""
    body, key, contacts = picture(2), uuid.uuid4().hex, people(CONTACTS)
    died = platform.arm("media-kept-not-recorded")
    with pytest.raises(httpx.TransportError):
        form(client, body, contacts, key)
    assert died()
    hurry(platform, key)
    answers = [again(client, body, contacts, key) for _ in range(3)]
    assert len({answer["jobId"] for answer in answers}) == 1
    job = Asked(answers[0]["jobId"], contacts, "")
    arrived(platform, client, job, body)


def form(client: Client, body: bytes, contacts: list[str], key: str) -> httpx.Response:
    parts = {"image": ("a.png", body, "image/png"), "contacts": (None, "\n".join(contacts)), "caption": (None, "hi")}
    return client.request("POST", "/api/messages", files=parts, headers={"Idempotency-Key": key})


def again(client: Client, body: bytes, contacts: list[str], key: str) -> dict[str, str]:
    def look() -> dict[str, str] | None:
        try:
            answer = form(client, body, contacts, key)
        except httpx.TransportError:
            return None
        assert answer.status_code == 202, answer.text
        accepted: dict[str, str] = answer.json()
        return accepted

    return wait_for("the form to be taken", look)


def hurry(platform: Platform, key: str) -> None:
    """The half minute in which a request that was begun counts as running is over."""
    record = f"idempotency:{BOOTSTRAP}:{key}"
    assert platform.redis.hget(record, "state") == "begun"
    platform.redis.hset(record, "begunAt", platform.now_ms() - 60_000)


def test_a_job_and_then_housekeeping_die_half_way_and_both_are_made_good(platform: Platform, client: Client) -> None:
    """The gateway dies with the contacts written and no job committed; as it comes back, between forgetting a file and
    removing it. The repeat makes one job under its key, and the file that lay there is removed and can come again."""
    body = picture(3, folder="00")  # the first folder that is looked through
    ref = forgotten(platform, client, body)
    key, contacts = uuid.uuid4().hex, people(CONTACTS)
    died = [platform.arm(name) for name in ("staged-not-accepted", "media-forgotten")]
    ask = {"json": {"text": "hello", "contacts": contacts}, "headers": {"Idempotency-Key": key}}
    with pytest.raises(httpx.TransportError):
        client.request("POST", "/v1/jobs", **ask)
    hurry(platform, key)
    first, second = (client.ask("POST", "/v1/jobs", **ask) for _ in range(2))
    assert first == second
    job = Asked(first["jobId"], contacts, "hello")
    client.wait_end(job)
    assert sorted(line["to"] for line in client.lines_of(job)) == sorted(contacts)
    wait_for("the file to be removed", lambda: ref not in files(platform))
    assert all(has_died() for has_died in died)
    assert not platform.redis.exists(f"media:{ref}")
    assert upload(client, body) == ref
    arrived(platform, client, client.post_job(people(1), mode="image", mediaRef=ref), body)


def forgotten(platform: Platform, client: Client, body: bytes) -> str:
    """A file that nobody has used for longer than any is kept."""
    ref = upload(client, body)
    platform.redis.zadd("media:kept", {ref: platform.now_ms() - LONG_AGO_MS})
    [path] = (platform.data / "media").rglob(ref)
    os.utime(path, (0, 0))
    return ref


def test_a_receiver_hears_everything_although_the_gateway_dies_at_every_step(
    platform: Platform, client: Client, receiver: Receiver
) -> None:
    """At least once, under one id for each event, and with a signature that the reference library accepts."""
    died = {name: platform.arm(name) for name in ("webhook-fed", "delivery-taken", "posted-not-recorded")}
    job = client.post_job(people(CONTACTS))
    for name, has_died in died.items():
        wait_for(f"the gateway to die at {name}", has_died)
    client.wait_end(job)
    tasks = {job.task(index) for index in range(CONTACTS)}

    def heard() -> bool:
        end_leases(platform)
        is_repeated = max(receiver.posts.values(), default=0) > 1
        is_told = receiver.of("message.sent", job.job_id) >= tasks and bool(receiver.of("job.done", job.job_id))
        return is_told and is_repeated

    wait_for("every event to be heard, and the one that was posted and not recorded again", heard)
    assert receiver.of("message.sent", job.job_id) == tasks
    assert receiver.forged == []


def end_leases(platform: Platform) -> None:
    """A delivery whose poster died is due again after a minute; that minute is over."""
    now = platform.now_ms()
    for key in platform.redis.keys("webhook:busy:*"):
        webhook = key.rpartition(":")[2]
        for delivery, until in platform.redis.zrange(key, 0, -1, withscores=True):
            # Not those that a living poster has just taken: they have most of their minute left.
            if until - now < 59_000:
                platform.redis.zrem(key, delivery)
                platform.redis.zadd(f"webhook:outbox:{webhook}", {delivery: now})
                platform.redis.zadd("webhooks:due", {webhook: now})


def test_what_left_the_platform_was_signed_with_the_key_it_was_given_alone(receiver: Receiver) -> None:
    """The receiver would have noted a forged one; and nothing of ours but the secret is in what it got."""
    assert receiver.events
    assert receiver.forged == []
    assert API_KEY not in str(receiver.events)
