"""kill -9 at every step that changes something: nothing is lost, nothing is repeated that must not be, no gap shrinks.

With deduplication on and `onUnknown: resend`, and with it off and `hold`.
"""

import pytest

from .api import Client, people
from .checkers import judge
from .platform import Platform, wait_for

PLATFORM = {"sessions": 3}

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
# Killed between the intent and the report nobody can know whether it went out; everywhere else somebody can.
UNCERTAIN = ("intent-written", "sent-not-reported")
MODES = [pytest.param(True, "resend", id="resend"), pytest.param(False, "hold", id="hold")]


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
    [view] = client.wait_end(job)
    evidence = judge(platform, client, job)
    held = 1 if on_unknown == "hold" and failpoint in UNCERTAIN else 0
    assert (view["progress"]["sent"], view["progress"]["failed"]) == (CONTACTS - held, held)
    repeats = 1 if on_unknown == "resend" and failpoint == "sent-not-reported" else 0
    assert sum(len(lines) > 1 for _, _, _, lines in evidence.ours()) == repeats


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_receipt_settles_what_a_crash_left_open(platform: Platform, client: Client, on_unknown: str) -> None:
    """Killed after the send and before its report, a worker finds the receipt: sent, and not repeated."""
    has_fired = platform.arm("sent-not-reported")
    job = client.post_job(people(CONTACTS), on_unknown=on_unknown)
    wait_for("a worker to die", has_fired)
    [view] = client.wait_end(job)
    assert (view["state"], len(client.lines_of(job))) == ("DONE", CONTACTS)
    judge(platform, client, job)
