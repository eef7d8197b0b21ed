"""A deaf worker that still pings, with real processes: it is found and replaced, and nothing is sent twice."""

from typing import Any

from .api import Client, people
from .checkers import judge
from .platform import Platform, wait_for

PLATFORM: dict[str, Any] = {"sessions": 1, "env": {"MONITOR_INTERVAL_MS": "500", "DEAF_MS": "20000"}}


def test_a_deaf_worker_is_found_and_replaced(platform: Platform, client: Client) -> None:
    platform.simulate({"deaf": True})
    job = client.post_job(people(3))

    def restarted() -> bool:
        session = client.session("sim-1")
        assert session["restartReason"] in (None, "DEAF"), session
        return bool(session["generation"] > 1)

    wait_for("the deaf worker to be noticed", restarted)
    platform.simulate()
    [view] = client.wait_end(job)
    assert view["progress"]["sent"] == 3, view
    judge(platform, client, job)
    assert client.session("sim-1")["memoryBytes"] > 1_000_000
