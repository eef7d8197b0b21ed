"""kill -9 at every step that changes something: nothing is lost, nothing is repeated that must not be, no gap shrinks.

With deduplication on and `onUnknown: resend`, and with it off and `hold`.
"""

import pytest

from .api import Asked, Client, people
from .checkers import judge
from .platform import OLD, Platform, wait_for

PLATFORM = {"sessions": 3, "paces": {"old-1": OLD}}

CONTACTS = 12

FAILPOINTS = (
    "accepted-not-answered",
    "chunk-routed",
    "handed-off",
    "claimed-not-answered",
    "claimed-not-sent",
    "intent-written",
    "sent-not-reported",
    "reported-not-acked",
    "settled-not-answered",
)
MODES = [pytest.param(True, "resend", id="resend"), pytest.param(False, "hold", id="hold")]


@pytest.fixture(scope="module")
def slow_job(platform: Platform, client: Client) -> Asked:
    """A number that may send ten a minute and has sent them: the eleventh waits while everything around it is killed."""
    client.register("old-1", "447700900901", createdAt="2020-01-01T00:00:00Z")
    client.wait_connected("old-1")
    job = client.post_job(people(OLD.rpm + 2), sessionId="old-1")
    client.wait_sent(job, OLD.rpm)
    return job


@pytest.mark.usefixtures("slow_job")
@pytest.mark.parametrize("failpoint", FAILPOINTS)
@pytest.mark.parametrize(("dedupe", "on_unknown"), MODES)
def test_a_crash_at_this_point_loses_and_repeats_nothing(
    platform: Platform, client: Client, failpoint: str, dedupe: bool, on_unknown: str
) -> None:
    """Whoever dies there, every message ends once, under one id, from one number, at its pace."""
    # Nobody's phone is on, so no receipt can prove what the crash left open.
    platform.simulate({"dedupe": dedupe, "delivered_ratio": 0.0})
    has_fired = platform.arm(failpoint)
    job = client.post_job(people(CONTACTS), on_unknown=on_unknown)
    wait_for(f"a process to die at {failpoint}", has_fired)
    client.wait_end(job)
    judge(platform, client, job)


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_receipt_settles_what_a_crash_left_open(platform: Platform, client: Client, on_unknown: str) -> None:
    """Killed after the send and before its report, a worker finds the receipt: sent, and not repeated."""
    has_fired = platform.arm("sent-not-reported")
    job = client.post_job(people(CONTACTS), on_unknown=on_unknown)
    wait_for("a worker to die", has_fired)
    [view] = client.wait_end(job)
    assert (view["state"], len(client.lines_of(job))) == ("DONE", CONTACTS)
    judge(platform, client, job)


def test_no_crash_shortened_a_rolling_minute(platform: Platform, client: Client, slow_job: Asked) -> None:
    """The number with ten a minute had to wait the minute out, through all the crashes before."""
    client.wait_end(slow_job)
    judge(platform, client, slow_job)
