"""`paceline up` as scripts rely on it: it comes back where it was, restarts what dies, and keeps a second one out; and
the default policy as a first user meets it."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from .api import Client, people
from .checkers import judge
from .platform import API_KEY, CANARIES, TEXT_CANARY, WEBHOOK_SECRET, Platform, wait_for

PLATFORM = {"sessions": 2}

SHORTEST_COLD_GAP_MS = 16_000
# The time shown may be that of the hand-over, which leaves room for claim and typing before the send.
HAND_OVER_LEAD_MS = 4_000

SERVICES = {"redis", "gateway", "dispatcher", "orchestrator", "worker-sim-1", "worker-sim-2"}


def test_every_child_has_a_pid_file_and_is_restarted(platform: Platform) -> None:
    """`run/<service>.pid` names the living process, and after a kill -9 of all of them new ones."""
    before = platform.pids()
    assert before.keys() == SERVICES
    assert set(before.values()) <= set(platform.processes())
    for pid in before.values():
        os.kill(pid, 9)
    wait_for(
        "all of them to come back",
        lambda: (now := platform.pids()).keys() == SERVICES and not set(now.values()) & set(before.values()),
    )


def test_workers_outlive_their_orchestrator_and_are_found_again(platform: Platform, client: Client) -> None:
    """kill -9 of the orchestrator alone: the same processes go on, and the job with them."""
    client.wait_connected("sim-1", "sim-2")
    workers = {name: pid for name, pid in platform.pids().items() if name.startswith("worker-")}
    job = client.post_job(people(20))
    client.wait_sent(job, 4)
    platform.kill("orchestrator")
    [view] = client.wait_end(job)
    assert view["progress"]["sent"] == 20
    assert {name: pid for name, pid in platform.pids().items() if name in workers} == workers
    judge(platform, client, job)


@pytest.mark.parametrize("failpoint", ["worker-begun", "worker-spawned"])
def test_an_orchestrator_killed_in_the_middle_of_a_start_makes_no_second_worker(
    platform: Platform, client: Client, failpoint: str
) -> None:
    """A worker dies, and the orchestrator while it replaces it: the session comes back, with one worker."""
    client.wait_connected("sim-1", "sim-2")
    job = client.post_job(people(20))
    client.wait_sent(job, 4)
    has_fired = platform.arm(failpoint)
    os.kill(platform.pid("worker-sim-1"), 9)
    wait_for(f"the orchestrator to die at {failpoint}", has_fired)
    [view] = client.wait_end(job)
    assert view["progress"]["sent"] == 20
    client.wait_connected("sim-1", "sim-2")
    assert sessions_running(platform) == ["sim-1", "sim-2"]
    judge(platform, client, job)


def test_an_up_that_was_killed_is_followed_by_one_that_has_the_same_workers(platform: Platform, client: Client) -> None:
    """Started again at once, before they have ended by themselves: each session has one worker, not two."""
    client.wait_connected("sim-1", "sim-2")
    job = client.post_job(people(30))
    client.wait_sent(job, 6)
    assert platform.up is not None
    platform.up.kill()
    platform.up.wait()
    platform.start()
    [view] = client.wait_end(job)
    assert view["progress"]["sent"] == 30
    assert sessions_running(platform) == ["sim-1", "sim-2"]
    judge(platform, client, job)


def sessions_running(platform: Platform) -> list[str]:
    """The session of every worker process there is; two of one session would stand there twice."""
    environs = [Path(f"/proc/{pid}/environ").read_text().split("\0") for pid in platform.processes()]
    told = [entry for environ in environs for entry in environ if entry.startswith("SESSION_ID=")]
    return sorted(entry.partition("=")[2] for entry in told)


def test_a_second_up_on_the_same_data_is_refused(platform: Platform) -> None:
    """It says who holds the data, and the first one does not notice."""
    before = platform.pids()
    second = platform.run_another()
    assert platform.up is not None
    assert second.returncode == 1
    assert f"pid {platform.up.pid}" in second.stderr
    assert platform.pids() == before


@pytest.mark.parametrize("how", ["SIGTERM", "kill -9"])
def test_it_comes_back_where_it_was(platform: Platform, client: Client, how: str) -> None:
    """Stopped in the middle of a job, by whatever means, and started again: the job goes on and ends once."""
    client.wait_connected("sim-1", "sim-2")
    job = client.post_job(people(40))
    client.wait_sent(job, 8)
    if how == "SIGTERM":
        platform.stop()
    else:
        platform.kill_up()
    at_rest = len(client.lines_of(job))
    ready = platform.start()
    assert f"gateway={platform.gateway} " in ready
    [view] = client.wait_end(job)
    assert (view["state"], view["progress"]["sent"]) == ("DONE", 40)
    assert 8 <= at_rest < 40
    judge(platform, client, job)


def test_no_secret_is_in_an_answer(platform: Platform, client: Client) -> None:
    """Errors name the field and the reason, never the key, the secret or the text that came with them."""
    hook = f"{platform.orchestrator}/api/worker/sessions/sim-1/hello"
    text = {"text": f"{TEXT_CANARY} {{{{missing}}}}", "contacts": people(1)}
    answers = [
        client.request("POST", "/v1/jobs", content=f'{{"text": "{TEXT_CANARY}", '),
        client.request("POST", "/v1/jobs", json={**text, "surprise": TEXT_CANARY}),
        client.request("POST", "/v1/jobs", json=text),
        client.request("POST", "/api/v1/send", json={"to": "12", "message": TEXT_CANARY}),
        client.request("POST", "/api/v1/send", json={"to": people(1)[0], "message": TEXT_CANARY * 1_000}),
        client.request("GET", "/v1/jobs/none", headers={"X-API-KEY": f"{API_KEY}x"}),
        client.request("POST", hook, json={}, headers={"X-Webhook-Secret": WEBHOOK_SECRET}),
        client.request("GET", f"{platform.orchestrator}/api/sessions"),
        client.request("GET", f"{platform.dispatcher}/queue/status"),
        client.request("GET", "/openapi.json"),
    ]
    assert [answer.status_code // 100 for answer in answers] == [4] * 7 + [2] * 3
    assert [secret for answer in answers for secret in CANARIES if secret in answer.text] == []


@pytest.fixture
def default(request: pytest.FixtureRequest) -> Iterator[tuple[Platform, Client]]:
    """A platform of its own, with the policy that a first user has."""
    # Its typing takes up to three seconds, which have to fit into a lease.
    platform = Platform(sessions=0, policy="default", env={"LEASE_MS": "120000"})
    client = Client(platform)
    failed_before = request.session.testsfailed
    try:
        platform.start()
        yield platform, client
        platform.stop()
    finally:
        client.close()
        platform.destroy(keep=request.session.testsfailed != failed_before)


def test_at_night_nothing_is_sent_and_by_day_a_new_number_takes_its_time(default: tuple[Platform, Client]) -> None:
    """Where it is night the message waits with QUIET_HOURS; where it is day the second waits with PACING."""
    platform, client = default
    night, day = zone_at(hour=2), zone_at(hour=14)
    client.register("owl", "447700900001", timezone=night)
    client.register("lark", "447700900002", timezone=day)
    client.wait_connected("owl", "lark")
    contacts = [{"to": contact, "timezone": day} for contact in people(4)]
    asleep, awake = (
        client.ask("POST", "/v1/jobs", json={"text": "Good day", "sessionId": session, "contacts": some})["jobId"]
        for session, some in (("owl", contacts[:2]), ("lark", contacts[2:]))
    )
    resting = client.wait_reason(f"{asleep}:1", "QUIET_HOURS")["waiting"]
    opening = datetime.fromtimestamp(resting["until"] / 1000, ZoneInfo(night))
    assert (opening.hour, opening.minute) == (9, 0)
    waiting = client.wait_reason(f"{awake}:1", "PACING")["waiting"]
    [first] = platform.ledger()
    assert (first["sessionId"], first["taskId"]) == ("lark", f"{awake}:0")
    assert waiting["until"] - first["at"] >= SHORTEST_COLD_GAP_MS - HAND_OVER_LEAD_MS


def zone_at(*, hour: int) -> str:
    """A timezone in which it is about that hour now; far enough from the borders of every window."""
    now = datetime.now(UTC)
    offset = min(range(-11, 13), key=lambda hours: abs((now + timedelta(hours=hours)).hour - hour))
    # The names of this family have the sign the wrong way round.
    return f"Etc/GMT{-offset:+d}" if offset else "Etc/GMT"
