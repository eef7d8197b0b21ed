"""100,000 contacts in one request, with a small job beside them, and the end of all that was not sent."""

import threading
import time
from collections.abc import Iterator

import pytest

from .api import Client, people
from .checkers import judge
from .platform import Platform, wait_for

CONTACTS = 100_000
# Small, so that the small job's messages stand behind few of the big one's.
PLATFORM = {"sessions": 2, "env": {"ROUTE_AHEAD": "20"}}

WAITING_WORK = (
    "gateway:*", "queue:*", "dispatch:*", "session:outbox:*", "outbox:*", "jobs:active", "pacer:*", "phones:*",
    "job:{0}", "job:run:{0}", "job:states:{0}", "job:contacts:{0}:*", "job:routes:{0}", "job:stats:{0}:*",
)  # fmt: skip
GONE, NO_TTL = -2, -1


class PingLoop(threading.Thread):
    """Asks Redis PING without end, and keeps the longest time an answer took."""

    def __init__(self, platform: Platform) -> None:
        super().__init__(daemon=True)
        self._platform = platform
        self.longest_ms = 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.is_set():
            asked = time.perf_counter()
            self._platform.redis.ping()
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - asked) * 1000)
            time.sleep(0.001)


def used_memory(platform: Platform) -> int:
    return int(platform.redis.info("memory")["used_memory"])


def waiting_keys(platform: Platform, job_id: str) -> dict[str, int]:
    """Every key that holds waiting work of an open job, with its TTL."""
    found = {key for pattern in WAITING_WORK for key in platform.redis.scan_iter(pattern.format(job_id), count=10_000)}
    ttls = {key: platform.redis.ttl(key) for key in found}
    # A queue that was emptied between the two looks is gone.
    return {key: ttl for key, ttl in ttls.items() if ttl != GONE}


@pytest.fixture
def pings(platform: Platform) -> Iterator[PingLoop]:
    loop = PingLoop(platform)
    loop.start()
    yield loop
    loop.done.set()
    loop.join()


def test_a_hundred_thousand_contacts(
    platform: Platform, client: Client, pings: PingLoop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Accepted in one request, exact at every look; a small job overtakes it; canceled, every message has an end."""
    before = used_memory(platform)
    big = client.post_job(people(CONTACTS))
    assert big.accepted["accepted"] == CONTACTS
    accepting_ms, pings.longest_ms = pings.longest_ms, 0.0
    bytes_each = (used_memory(platform) - before) / CONTACTS
    client.wait_sent(big, 5)
    # Every look checks the sum.
    small = client.post_job(people(10))
    [view] = client.wait_end(small)
    assert (view["state"], view["progress"]["sent"]) == ("DONE", 10)
    assert client.job(big)["state"] == "ROUTING"
    ttls = waiting_keys(platform, big.job_id)
    assert len(ttls) > CONTACTS // 1_000
    assert {key: ttl for key, ttl in ttls.items() if ttl != NO_TTL} == {}
    routing_ms, pings.longest_ms = pings.longest_ms, 0.0
    client.cancel(big)
    [end] = client.wait_end(big)
    canceling_ms = pings.longest_ms
    progress = end["progress"]
    assert end["state"] == "CANCELED"
    assert progress["sent"] == len(client.lines_of(big))
    assert progress["sent"] + progress["canceled"] == CONTACTS
    wait_for("the queues to be empty again", lambda: client.queues()["total"] == 0)
    assert client.job(big)["progress"]["sent"] == len(client.lines_of(big))
    judge(platform, client, small)
    with capsys.disabled():
        print(
            f"\n100,000 contacts: longest Redis stall {accepting_ms:.0f} ms accepting, {routing_ms:.0f} ms running, "
            f"{canceling_ms:.0f} ms canceling; {bytes_each:.0f} bytes per waiting task"
        )
